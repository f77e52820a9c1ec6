//! The answers to the queries: one `match`, which hands each to a method of its topic.

use std::future::ready;

use futures_util::FutureExt;

use super::MemoryStore;
use super::durable::Waits;
use super::now::Now;
use super::topic::Topic;
use crate::job::{JobId, State, TopicKey, TopicName};
use crate::store::{
    Examined, FindingCode, JobPlace, Mismatch, PageRequest, Pending, Query, QueryReply as Reply, Relay, Repair,
    SetSeen, SetsRequest, StoreError, relay_of,
};

impl MemoryStore {
    /// The answer, or what comes once the answer is durable.
    pub(super) fn answer(&self, query: Query<'_>) -> Result<Pending<Reply>, StoreError> {
        query.check()?;
        let name = query.name();
        let reply = match query {
            Query::KeepHistory { topic, setting } => {
                let keep = |topic: &mut Topic, _| topic.keep_history(setting).map(Reply::KeepHistory);
                return Ok(self.topics.cell(topic).ask(name, Waits::CHANGES, keep));
            }
            Query::Relay { topic, request } => return self.relay(name, topic, request),
            Query::Outbox { topic, after, limit } => {
                Reply::Outbox(self.look(name, topic, |topic, _| Ok(topic.outbox.seen(after, limit)))?)
            }
            Query::FollowUps { topic, after, limit } => {
                Reply::FollowUps(self.look(name, topic, |topic, _| Ok(topic.outbox.behind(after, limit)))?)
            }
            Query::Arrived { topic, source } => {
                Reply::Arrived(self.look(name, topic, |topic, _| Ok(topic.position_of(&relay_of(source))))?)
            }
            Query::JobSets { topic, request } => Reply::JobSets(self.sets_of(topic, request)?),
            Query::Repair { topic, repair: Repair::GiveUp(job) } => {
                let Some(cell) = self.topics.known(topic) else { return Ok(ready(Ok(Reply::Repair(false))).boxed()) };
                let give_up = |topic: &mut Topic, now| Ok(Reply::Repair(topic.give_up_undecodable(now, job)));
                return Ok(cell.ask(name, Waits::CHANGES, give_up));
            }
            Query::Prepare {} => Reply::Prepare(()),
            Query::Contact {} => Reply::Contact(()),
            // Only this version of dq has ever written here.
            Query::Open { .. } => Reply::Open(()),
            // The steps know who listens.
            Query::Listen { .. } => Reply::Listen(()),
            Query::Get { topic, ids } => Reply::Get(self.look(name, topic, |topic, _| topic.get(ids))?),
            Query::Page { topic, request } => Reply::Page(self.look(name, topic, |topic, _| topic.page(&request))?),
            Query::Oldest { topic } => Reply::Oldest(self.look(name, topic, |topic, _| oldest(topic))?),
            Query::Schedules { topic, after, limit } => {
                Reply::Schedules(self.look(name, topic, |topic, _| topic.schedules(after, limit))?)
            }
            Query::History { topic, id } => Reply::History(self.look(name, topic, |topic, _| Ok(topic.history(id)))?),
            Query::Taken { topic, id } => {
                Reply::Taken(self.look(name, topic, |topic, _| Ok(topic.taken.get(id).map(|taken| taken.until)))?)
            }
            Query::Export { topic, request } => {
                Reply::Export(self.look(name, topic, |topic, now| topic.export(now, &request))?)
            }
            Query::TopicsBehind { app, after, limit } => Reply::TopicsBehind(self.topics.names(app, after, limit)?),
            Query::TopicState { topic } => {
                Reply::TopicState(self.look(name, topic, |topic, now| Ok(topic.topic_state(now)))?)
            }
            Query::Overview { topic, nodes } => {
                Reply::Overview(self.look(name, topic, |topic, now| topic.overview(now, nodes))?)
            }
            Query::Nodes { topic, request } => Reply::Nodes(self.look(name, topic, |topic, _| topic.nodes(&request))?),
            Query::Groups { topic, request } => {
                Reply::Groups(self.look(name, topic, |topic, now| Ok(topic.jobs.groups(now.micros(), request)))?)
            }
            Query::DueCounts { topic, times } => {
                Reply::DueCounts(self.look(name, topic, |topic, _| topic.due_counts(times))?)
            }
            Query::Statistics { topic, from, to } => {
                Reply::Statistics(self.look(name, topic, |topic, _| topic.statistics(from, to))?)
            }
            Query::Counts { topic } => Reply::Counts(self.look(name, topic, |topic, now| Ok(topic.counts(now)))?),
            // A job has one slot with one place, so nothing else can disagree.
            Query::Examine { topic, .. } => {
                let found = self.look(name, topic, |of, _| Ok(Mismatch::of_fence(&topic.topic, &of.fence)))?;
                Reply::Examine(Examined { mismatches: found.into_iter().collect(), ..Examined::default() })
            }
            Query::ExamineKeys { .. } => Reply::ExamineKeys(Examined::default()),
            Query::Repair { topic, repair: Repair::Mismatch { mismatch, .. } } => {
                let is_known = mismatch.code == FindingCode::FenceTooLarge && self.topics.known(topic).is_some();
                Reply::Repair(is_known && self.lower_fence(topic)?)
            }
            Query::Dangers {} => Reply::Dangers(Vec::new()),
        };
        Ok(ready(Ok(reply)).boxed())
    }

    /// Removes what the targets have, by their own positions, and returns the next entries.
    fn relay(&self, name: &'static str, topic: &TopicKey, request: &Relay) -> Result<Pending<Reply>, StoreError> {
        let relay = relay_of(&topic.topic);
        let position_of = |(target, confirmed): &(TopicName, u64)| {
            let target_key = TopicKey { app: topic.app.clone(), topic: target.clone() };
            let position = self.look(name, &target_key, |of, _| Ok(of.position_of(&relay)))?;
            Ok((target.clone(), position.min(*confirmed)))
        };
        let arrived = request.arrived.iter().map(position_of).collect::<Result<Vec<_>, StoreError>>()?;
        let request = request.clone();
        let relay = move |topic: &mut Topic, now| Ok(Reply::Relay(topic.outbox.relay(now, &request, &arrived)));
        Ok(self.topics.cell(topic).ask(name, Waits::CHANGES, relay))
    }

    fn sets_of(&self, topic: &TopicKey, request: &SetsRequest) -> Result<Vec<SetSeen>, StoreError> {
        self.look("job_sets", topic, |topic, _| Ok(topic.job_sets.seen(request)))
    }

    /// Looks at a topic; at an empty one if nobody has used it. A query creates nothing.
    fn look<T>(
        &self,
        name: &'static str,
        topic: &TopicKey,
        look: impl FnOnce(&Topic, Now) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.topics.known(topic) {
            Some(cell) => cell.query(name, look),
            None => look(&Topic::default(), Now::from_micros(self.topics.clock.micros())),
        }
    }
}

/// The first job of each state that has an order of time.
fn oldest(topic: &Topic) -> Result<Vec<(JobId, JobPlace)>, StoreError> {
    let first = |state| topic.page(&PageRequest { state, after: None, limit: 1, bytes: 0 });
    let pages = State::ALL.into_iter().filter(|state| *state != State::Running).map(first);
    let firsts = pages.map(|page| Ok(page?.jobs.into_iter().next().map(|job| (job.id, job.place))));
    firsts.filter_map(Result::transpose).collect()
}
