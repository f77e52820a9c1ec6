//! The answers to the queries: one `match`, which hands each to a method of its topic.

use std::future::ready;

use futures_util::FutureExt;

use super::MemoryStore;
use super::durable::Waits;
use super::now::Now;
use super::topic::Topic;
use crate::job::{JobId, JobState, State, TopicKey, TopicName};
use crate::store::{Examined, PageRequest, Pending, Query, QueryReply as Reply, Relay, Repair, StoreError, relay_of};
use crate::time::Timestamp;

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
            Query::Repair { topic, repair: Repair::GiveUp(job) } => {
                let Some(cell) = self.topics.known(topic) else { return Ok(ready(Ok(Reply::Repair(false))).boxed()) };
                let give_up = |topic: &mut Topic, now| Ok(Reply::Repair(topic.give_up_undecodable(now, job)));
                return Ok(cell.ask(name, Waits::CHANGES, give_up));
            }
            Query::Repair { topic, repair: Repair::SetBack { source, from, to } } => {
                let (relay, from, to) = (relay_of(source), *from, *to);
                let set_back = move |topic: &mut Topic, _| Ok(Reply::Repair(topic.calls.set_back(&relay, from, to)));
                return Ok(self.topics.cell(topic).ask(name, Waits::CHANGES, set_back));
            }
            // A follow-up that cannot be read has no place but the outbox, from which a version that can read it brings it to its topic.
            Query::Repair { repair: Repair::Mismatch { .. } | Repair::SetAside(_), .. } => Reply::Repair(false),
            Query::Prepare {} => Reply::Prepare(()),
            Query::Contact {} => Reply::Contact(Timestamp::floor_micros(self.topics.clock.micros())),
            // Only this version of dq has ever written here.
            Query::Open { .. } => Reply::Open(()),
            // The steps know who listens.
            Query::Listen { .. } => Reply::Listen(()),
            Query::Dangers {} => Reply::Dangers(Vec::new()),
            Query::ExamineKeys { .. } => Reply::ExamineKeys(Examined::default()),
            Query::TopicsBehind { app, after, limit } => Reply::TopicsBehind(self.topics.names(app, after, limit)?),
            Query::Page { topic, request } => self.look(name, topic, |of, _| of.page(&request).map(Reply::Page))??,
            Query::Oldest { topic } => self.look(name, topic, |of, _| oldest(of).map(Reply::Oldest))??,
            Query::Export { topic, request, broadcasts } => {
                self.look(name, topic, |of, now| of.export(now, &request, broadcasts).map(Reply::Export))??
            }
            Query::Outbox { topic, after, limit } => {
                self.look(name, topic, |of, _| Reply::Outbox(of.outbox.seen(after, limit)))?
            }
            Query::FollowUps { topic, after, limit } => {
                self.look(name, topic, |of, _| Reply::FollowUps(of.outbox.behind(after, limit)))?
            }
            Query::Arrived { topic, source } => {
                self.look(name, topic, |of, _| Reply::Arrived(of.calls.highest(&relay_of(source))))?
            }
            Query::JobSets { topic, request } => {
                self.look(name, topic, |of, _| Reply::JobSets(of.job_sets.seen(request)))?
            }
            Query::Get { topic, ids } => self.look(name, topic, |of, _| Reply::Get(of.get(ids)))?,
            Query::Schedules { topic, after, limit } => {
                self.look(name, topic, |of, _| Reply::Schedules(of.schedules(after, limit)))?
            }
            Query::History { topic, id } => self.look(name, topic, |of, _| Reply::History(of.history(id)))?,
            Query::Taken { topic, id } => {
                self.look(name, topic, |of, _| Reply::Taken(of.taken.get(id).map(|taken| taken.until)))?
            }
            Query::TopicState { topic } => self.look(name, topic, |of, now| Reply::TopicState(of.topic_state(now)))?,
            Query::Overview { topic, nodes } => {
                self.look(name, topic, |of, now| Reply::Overview(of.overview(now, nodes)))?
            }
            Query::Nodes { topic, request } => self.look(name, topic, |of, _| Reply::Nodes(of.nodes(&request)))?,
            Query::Groups { topic, request } => {
                self.look(name, topic, |of, now| Reply::Groups(of.jobs.groups(now.micros(), request)))?
            }
            Query::DueCounts { topic, times } => {
                self.look(name, topic, |of, _| Reply::DueCounts(of.due_counts(times)))?
            }
            Query::Statistics { topic, from, to } => {
                self.look(name, topic, |of, _| Reply::Statistics(of.statistics.between(from, to)))?
            }
            Query::Counts { topic } => self.look(name, topic, |of, now| Reply::Counts(of.counts(now)))?,
            // A job has one slot with one place, so nothing can disagree.
            Query::Examine { topic, request } => self.look(name, topic, |of, _| of.examined(topic, &request))?,
        };
        Ok(ready(Ok(reply)).boxed())
    }

    /// Removes what the targets have, by their own positions, and returns the next entries.
    fn relay(&self, name: &'static str, topic: &TopicKey, request: &Relay) -> Result<Pending<Reply>, StoreError> {
        let relay = relay_of(&topic.topic);
        let position_of = |(target, _): &(TopicName, u64)| {
            let target_key = TopicKey { app: topic.app.clone(), topic: target.clone() };
            let position = self.look(name, &target_key, |of, _| of.calls.highest(&relay))?;
            Ok((target.clone(), position))
        };
        let arrived = request.arrived.iter().map(position_of).collect::<Result<Vec<_>, StoreError>>()?;
        let request = request.clone();
        let relay = move |topic: &mut Topic, now| Ok(Reply::Relay(topic.outbox.relay(now, &request, &arrived)));
        Ok(self.topics.cell(topic).ask(name, Waits::CHANGES, relay))
    }

    /// Looks at a topic; at an empty one if nobody has used it. A query creates nothing.
    fn look<T>(
        &self,
        name: &'static str,
        topic: &TopicKey,
        look: impl FnOnce(&Topic, Now) -> T,
    ) -> Result<T, StoreError> {
        match self.topics.known(topic) {
            Some(cell) => cell.query(name, look),
            None => Ok(look(&Topic::default(), Now::from_micros(self.topics.clock.micros()))),
        }
    }
}

/// The first job of each state that has an order of time.
fn oldest(topic: &Topic) -> Result<Vec<(JobId, JobState)>, StoreError> {
    let first = |state| topic.page(&PageRequest { state, after: None, limit: 1, bytes: 0 });
    let pages = State::TIMED.into_iter().map(first);
    let firsts = pages.map(|page| Ok(page?.jobs.into_iter().next().map(|job| (job.id, job.place))));
    firsts.filter_map(Result::transpose).collect()
}
