//! The answers to the queries, over the shared connection: one `match`, and the queries about the jobs of a topic.

use bytes::Bytes;

use super::export::{crash_count, progress_of};
use super::keys::Key;
use super::outbox::position_of;
use super::reply::{Text, readable};
use super::scripts::{Step, TopicScripts};
use super::topic_state::state_of;
use super::{RedisStore, millis};
use crate::job::{Fence, JobId, JobState, Record, State, TopicKey};
use crate::store::step::DEFAULT_BYTES;
use crate::store::{
    HeldJob, HistorySetting, JobCopy, JobHistory, LISTENING, Page, PageRequest, Query, QueryReply as Answer, Repair,
    StoreError, Stored, history,
};

/// What a topic keeps of the histories of its jobs (rule 31), as `meta` has it.
fn kept(setting: HistorySetting) -> Result<String, StoreError> {
    let HistorySetting { moves, after } = setting.check()?;
    Ok(if moves == 0 { String::new() } else { format!("{moves}:{}", millis(after)) })
}

impl RedisStore {
    /// Answers a query.
    pub(super) async fn answer(&self, query: Query<'_>) -> Result<Answer, StoreError> {
        query.check()?;
        let call = |topic, step| self.scripts_of(topic).call(step);
        Ok(match query {
            Query::Prepare {} => Answer::Prepare(()),
            Query::Contact {} => {
                self.shards.command("ping", &redis::cmd("PING")).await?;
                self.check_once().await;
                Answer::Contact(self.shards.clock("ping").await?)
            }
            Query::Open { topic } => {
                self.shards.ask::<()>(call(topic, Step::Open)).await?;
                self.check_once().await;
                Answer::Open(())
            }
            Query::Listen { topic } => {
                Answer::Listen(self.shards.ask(call(topic, Step::Listen).arg(LISTENING.as_millis())).await?)
            }
            Query::KeepHistory { topic, setting } => {
                Answer::KeepHistory(self.shards.ask(call(topic, Step::KeepHistory).arg(kept(setting)?)).await?)
            }
            Query::History { topic, id } => Answer::History(self.history_of(topic, id).await?),
            Query::Taken { topic, id } => Answer::Taken(self.taken_until(topic, &[id]).await?.pop().flatten()),
            Query::Get { topic, ids } => Answer::Get(self.get_by_ids(topic, ids).await?),
            Query::Page { topic, request } => Answer::Page(self.page_of(topic, request).await?),
            Query::Oldest { topic } => Answer::Oldest(self.oldest_of(topic).await?),
            Query::Schedules { topic, after, limit } => {
                Answer::Schedules(self.schedules_of(topic, after, limit).await?)
            }
            Query::Export { topic, request, broadcasts } => {
                Answer::Export(self.export_of(topic, request, broadcasts).await?)
            }
            Query::TopicsBehind { app, after, limit } => {
                Answer::TopicsBehind(self.names_behind(app, after, limit).await?)
            }
            Query::TopicState { topic } => {
                let (clock, settings) = self.shards.ask(call(topic, Step::TopicState)).await?;
                Answer::TopicState(state_of(settings, clock))
            }
            Query::Overview { topic, nodes } => Answer::Overview(self.overview_of(topic, nodes).await?),
            Query::Nodes { topic, request } => Answer::Nodes(self.nodes_of(topic, request).await?),
            Query::Groups { topic, request } => Answer::Groups(self.groups_of(topic, request).await?),
            Query::DueCounts { topic, times } => Answer::DueCounts(self.due_counts_of(topic, times).await?),
            Query::Examine { topic, request } => Answer::Examine(self.examine_of(topic, request).await?),
            Query::ExamineKeys { app, topic, after } => {
                Answer::ExamineKeys(self.examine_names(app, topic, after).await?)
            }
            Query::Relay { topic, request } => Answer::Relay(self.relay_of_topic(topic, request).await?),
            Query::Outbox { topic, after, limit } => Answer::Outbox(self.outbox_of(topic, after, limit).await?),
            Query::FollowUps { topic, after, limit } => {
                Answer::FollowUps(self.follow_ups_of(topic, after, limit).await?)
            }
            Query::Arrived { topic, source } => {
                let position = self.shards.command("arrived", &self.position_in(topic, source)).await?;
                Answer::Arrived(position_of("arrived", position)?)
            }
            Query::JobSets { topic, request } => Answer::JobSets(self.sets_of(topic, request).await?),
            Query::Repair { topic, repair } => Answer::Repair(match repair {
                Repair::Mismatch { mismatch, nodes } => self.repair_of(topic, mismatch, nodes).await?,
                Repair::SetAside(row) => self.set_row_aside(topic, row).await?,
                Repair::SetBack { source, from, to } => self.set_back_in(topic, source, *from, *to).await?,
                Repair::GiveUp(job) => self.give_up_of(topic, job).await?,
            }),
            Query::Dangers {} => {
                Answer::Dangers(self.warnings().await?.into_iter().map(|(danger, _)| danger).collect())
            }
            Query::Statistics { topic, from, to } => Answer::Statistics(self.statistics_of(topic, from, to).await?),
            Query::Counts { topic } => Answer::Counts(self.shards.ask(call(topic, Step::Counts)).await?),
        })
    }

    /// The scripts of a topic, for calls that need no owner.
    pub(super) fn scripts_of(&self, topic: &TopicKey) -> TopicScripts {
        TopicScripts::new(&self.scripts, self.keyspace.of(topic), "")
    }

    async fn history_of(&self, topic: &TopicKey, id: &JobId) -> Result<Option<JobHistory>, StoreError> {
        let keys = self.keyspace.of(topic);
        let text: Option<_> = self.shards.read_key("history", &keys, Key::History, "HGET", id.as_str()).await?;
        Ok(text.map(|Text(text)| history::read(&text)))
    }

    async fn get_by_ids(&self, topic: &TopicKey, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        let mut call = self.scripts_of(topic).call(Step::Get).arg(DEFAULT_BYTES);
        ids.iter().for_each(|id| call.push(id.as_str()));
        let stored = |id: &JobId, (state, at, record, metadata, notes): (_, _, Record, Bytes, Bytes)| {
            let (crashes, progress) = (crash_count(&notes), progress_of(&notes).filter(|_| state == State::Running));
            Stored {
                id: id.clone(),
                record: record.under(&metadata),
                place: JobState::of(state, at),
                crashes,
                progress,
            }
        };
        let found: Vec<Option<_>> = self.shards.ask(call).await?;
        Ok(ids.iter().zip(found).map(|(id, found)| found.map(|found| stored(id, found))).collect())
    }

    async fn schedules_of(
        &self,
        topic: &TopicKey,
        after: Option<&JobId>,
        limit: usize,
    ) -> Result<Vec<JobId>, StoreError> {
        let from = after.map_or_else(|| "-".to_owned(), |id| format!("({id}"));
        let (keys, page) = (self.keyspace.of(topic), (from, "+", "BYLEX", "LIMIT", 0, limit.max(1)));
        let ids = self.shards.read_key("schedules", &keys, Key::Schedules, "ZRANGE", page).await?;
        Ok(readable(ids))
    }

    async fn page_of(&self, topic: &TopicKey, request: PageRequest) -> Result<Page, StoreError> {
        let scripts = self.scripts_of(topic);
        if request.state != State::Running {
            let placed = self.placed_of(&scripts, request, false, false).await?;
            let jobs = placed.copies.into_iter().map(JobCopy::into_stored).collect();
            return Ok(Page { jobs, next: placed.next });
        }
        let runs = self.runs_of(&scripts, request, false).await?;
        let stored = |(node, HeldJob { id, record, token, .. })| {
            let fence = token.map_or_else(Fence::default, |token| token.fence);
            Stored { id, record, place: JobState::Running { holder: Some((node, fence)) }, crashes: 0, progress: None }
        };
        Ok(Page { jobs: runs.held.into_iter().map(stored).collect(), next: runs.next })
    }

    /// One page of one job for each state that has an order of time.
    async fn oldest_of(&self, topic: &TopicKey) -> Result<Vec<(JobId, JobState)>, StoreError> {
        let mut oldest = Vec::new();
        for state in State::TIMED {
            let first = self.page_of(topic, PageRequest { state, after: None, limit: 1, bytes: 0 }).await?;
            oldest.extend(first.jobs.into_iter().map(|job| (job.id, job.place)));
        }
        Ok(oldest)
    }
}
