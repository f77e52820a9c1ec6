//! What the inspector and the doctor ask: reads, each one query of one topic or of the app, and the commands of a bulk change.

use super::call::Call;
use super::command::command_many;
use super::error::{CallError, Doing, Target};
use super::pages::page;
use super::query::{Asking, Query, query};
use super::topic::TopicProvider;
use super::typed::Provider;
use crate::job::{JobId, JobState, TopicKey, TopicName};
use crate::store::{
    CommandKind, CommandOutcome, Danger, DueCount, Examine, Examined, GroupPage, GroupsRequest, HolderPage, JobHistory,
    MinuteCounts, NodesRequest, OutboxPosition, OutboxSeen, Page, PageRequest, Repair, Store, Stored, TopicNames,
    TopicOverview,
};
use crate::time::Timestamp;

impl TopicProvider {
    /// A query of the topic, which is sent when it is awaited.
    pub(super) fn asks<T: Send + 'static, R: Send + Sync + 'static>(
        &self,
        request: R,
        ask: impl for<'a> Fn(&'a dyn Store, &'a TopicKey, &'a R, u32) -> Asking<'a, T> + Send + Sync + 'static,
    ) -> Call<Query<T>> {
        Call::query(self.0.clone(), request, ask, |found| found)
    }

    /// Sends the same command for many jobs, whose ids differ: together, even where the store answers at once.
    pub(crate) async fn command_many(
        &self,
        verb: CommandKind,
        ids: Vec<JobId>,
    ) -> Vec<Result<CommandOutcome, CallError>> {
        command_many(&self.0, verb, ids, None).await
    }

    /// The topic as a whole, with up to `nodes` of the nodes that hold jobs.
    pub(crate) fn overview(&self, nodes: usize) -> Call<Query<TopicOverview>> {
        self.asks(nodes, |store, key, nodes, _| store.overview(key, *nodes))
    }

    /// The first job of each state that has an order of time.
    pub(crate) fn oldest(&self) -> Call<Query<Vec<(JobId, JobState)>>> {
        self.asks((), |store, key, (), _| store.oldest(key))
    }

    /// How many DELAYED jobs are due between each two of these times.
    pub(crate) fn due_counts(&self, times: Vec<Timestamp>) -> Call<Query<Vec<DueCount>>> {
        self.asks(times, |store, key, times, _| store.due_counts(key, times))
    }

    /// A page of the nodes that hold jobs.
    pub(crate) fn nodes(&self, request: NodesRequest) -> Call<Query<HolderPage>> {
        self.asks(request, |store, key, request, _| store.nodes(key, request.clone()))
    }

    /// A page of the groups.
    pub(crate) fn groups(&self, request: GroupsRequest) -> Call<Query<GroupPage>> {
        self.asks(request, |store, key, request, _| store.groups(key, request))
    }

    /// What the topic counted in the minutes from `from` to `to`.
    pub(crate) fn statistics(&self, from: u64, to: u64) -> Call<Query<Vec<MinuteCounts>>> {
        self.asks((from, to), |store, key, (from, to), _| store.statistics(key, *from, *to))
    }

    /// A page of one state; each try after an outage asks for half of it.
    pub(crate) fn page(&self, request: PageRequest) -> Call<Query<Page>> {
        self.asks(request, page)
    }

    /// What the topic has kept of the moves of a job, oldest first.
    pub(crate) fn history(&self, id: JobId) -> Call<Query<Option<JobHistory>>> {
        self.asks(id, |store, key, id, _| store.history(key, id))
    }

    /// Until when an id stays taken, perhaps a time that is over.
    pub(crate) fn taken(&self, id: JobId) -> Call<Query<Option<Timestamp>>> {
        self.asks(id, |store, key, id, _| store.taken(key, id))
    }

    /// A job by its id.
    pub(crate) fn stored(&self, id: JobId) -> Call<Query<Option<Stored>>> {
        self.get_one(Ok(id), |stored| stored)
    }

    /// Those of these jobs that do not exist.
    pub(crate) fn missing(&self, ids: Vec<JobId>) -> Call<Query<Vec<JobId>>> {
        self.asks(ids, |store, key, ids, _| {
            Box::pin(async move {
                let found = store.get(key, ids).await?;
                Ok(ids.iter().zip(found).filter(|(_, stored)| stored.is_none()).map(|(id, _)| id.clone()).collect())
            })
        })
    }

    /// Checks the version of the topic and the types of its keys.
    pub(crate) fn check(&self) -> Call<Query<()>> {
        self.asks((), |store, key, (), _| store.open(key))
    }

    /// What waits in the outbox of the topic.
    pub(crate) fn outbox(&self, limit: usize) -> Call<Query<Vec<OutboxSeen>>> {
        self.asks(limit, |store, key, limit, _| store.outbox(key, None, *limit))
    }

    /// Up to which position the follow-ups of another topic have arrived.
    pub(crate) fn arrived(&self, source: TopicName) -> Call<Query<OutboxPosition>> {
        self.asks(source, |store, key, source, _| store.arrived(key, source))
    }

    /// Where the keys of the topic do not agree.
    pub(crate) fn examine(&self, request: Examine) -> Call<Query<Examined>> {
        self.asks(request, |store, key, request, _| store.examine(key, request.clone()))
    }

    /// Makes a repair, if what is wrong is still there.
    pub(crate) async fn repair(&self, repair: Repair) -> Result<bool, CallError> {
        let target = self.0.target(Doing::Change);
        query(&self.0.root, target, None, repair, |store, key, repair, _| store.repair(key, repair)).await
    }
}

impl Provider {
    /// A page of the names of the topics of the app that hold anything, in order, behind a name.
    pub(crate) async fn topic_names(&self, after: Option<&str>, limit: usize) -> Result<TopicNames, CallError> {
        let after = after.map(str::to_owned);
        query(&self.0, target(None, Doing::ListTopics)?, None, after, move |store, key, after, _| {
            store.topics_behind(&key.app, after.as_deref(), limit)
        })
        .await
    }

    /// Where the names of keys do not agree with what topics know of them.
    pub(crate) async fn examine_keys(
        &self,
        topic: Option<&TopicName>,
        after: Option<String>,
    ) -> Result<Examined, CallError> {
        let request = (topic.cloned(), after);
        query(&self.0, target(topic, Doing::Query)?, None, request, |store, key, (only, after), _| {
            store.examine_keys(&key.app, only.as_ref(), after.as_deref())
        })
        .await
    }

    /// What endangers the store as a whole.
    pub(crate) async fn dangers(&self) -> Result<Vec<Danger>, CallError> {
        let target = target(None, Doing::Query)?;
        query(&self.0, target, None, (), |store, _, (), _| store.dangers()).await
    }

    /// The clock of this machine.
    pub(crate) fn wall(&self) -> Timestamp {
        self.0.environment.wall()
    }
}

/// Every query has a topic; some are about all of them.
fn target(topic: Option<&TopicName>, doing: Doing) -> Result<Target, CallError> {
    let topic = topic.cloned().map_or_else(|| TopicName::new("all"), Ok)?;
    Ok(Target::of_topic(topic, doing))
}

/// How many topics are counted at a time.
#[cfg(feature = "metrics")]
const TOGETHER: usize = 8;

#[cfg(feature = "metrics")]
impl Provider {
    /// Asks the store how many jobs each of these topics has in each state, and how many due ones wait for a limit, and reports that as the
    /// metrics `dq_jobs` and `dq_jobs_blocked`. Call it before you render the metrics; nothing else sets these two, and every process that
    /// asks gets the same numbers.
    ///
    /// It asks once a topic, for eight topics at a time; `health().topics` has the topics of a node. Cancel safe.
    ///
    /// # Errors
    /// The first error of the store; topics that were counted before are reported.
    pub async fn measure_depths(&self, topics: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), CallError> {
        use futures_util::{StreamExt, TryStreamExt, stream};
        let topics: Vec<_> = topics.into_iter().map(|topic| topic.as_ref().to_owned()).collect();
        stream::iter(topics)
            .map(async |topic: String| {
                depth(&topic, &self.topic(&topic)?.overview(0).await?);
                Ok(())
            })
            .buffer_unordered(TOGETHER)
            .try_collect()
            .await
    }
}

/// Reports how many jobs a topic has in each state, and how many of the due ones wait for a gate. A job that waits for several counts for
/// the first.
#[cfg(feature = "metrics")]
fn depth(topic: &str, seen: &TopicOverview) {
    use crate::telemetry::{gauge, label, table};
    let (topic, counts) = (label(topic), &seen.counts);
    let of_states = [
        ("delayed", counts.delayed),
        ("ready", counts.ready),
        ("running", counts.running),
        ("unacked", counts.unacked),
        ("dead", counts.dead),
        ("done", counts.done),
    ];
    for (state, jobs) in of_states {
        gauge(&table::DEPTH, &[topic, state]).set(jobs as f64);
    }
    let of_topic = [
        ("pause", seen.state.pause.is_some()),
        ("concurrency", seen.shut.is_some_and(|limit| counts.running >= limit)),
        ("rate", seen.opens.is_some()),
    ];
    let mut open = counts.ready.saturating_sub(seen.blocked);
    for (gate, is_shut) in of_topic {
        let jobs = if is_shut { std::mem::take(&mut open) } else { 0 };
        gauge(&table::GATED, &[topic, gate]).set(jobs as f64);
    }
    gauge(&table::GATED, &[topic, "group"]).set(seen.blocked as f64);
}
