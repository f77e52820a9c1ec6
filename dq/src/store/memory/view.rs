//! What simulations need: the whole state of a topic, for the checkers that run after every step; and a step and its confirmation apart,
//! because they judge a step when it is done, and see its answer only later.

use std::collections::BTreeMap;

use super::MemoryStore;
use super::durable::Waits;
use super::places::{Place, Slot};
use super::topic::Topic;
use crate::job::{Isolation, JobId, NodeId, ProducerId, Record, State, Token, TopicKey};
use crate::store::{Answer, Batch, BatchReply, LinkOptions, Pending, Request, StoreError};
use crate::time::Timestamp;

/// A row: the node that holds a job, its token, and how a quarantined job was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: NodeId,
    /// The token.
    pub token: Token,
    /// How the quarantined job was started.
    pub isolation: Option<Isolation>,
}

/// The state of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// The job's state.
    pub state: State,
    /// The job's record.
    pub record: Record,
    /// Crashes since the last settled outcome.
    pub crashes: u32,
    /// Until when (DELAYED, DONE) or since when (UNACKED, DEAD) the job is in its place; `None` while it is RUNNING.
    pub at: Option<Timestamp>,
    /// The row, while the job is RUNNING.
    pub row: Option<Row>,
    /// The replacement that waits for the end of the run, and whether it is conditional on a fenced end.
    pub replacement: Option<(Record, bool)>,
}

/// The state of one topic.
#[derive(Debug, Default)]
pub struct View {
    /// Every job.
    pub jobs: BTreeMap<JobId, JobView>,
    /// The due time and record of each waiting broadcast.
    pub broadcasts: BTreeMap<JobId, (Timestamp, Record)>,
    /// The end of each lease.
    pub leases: BTreeMap<NodeId, Timestamp>,
    /// Whether slots, indexes and rows agree.
    pub consistent: bool,
}

impl MemoryStore {
    /// Everything that the store keeps of a topic. O(jobs log jobs); records are shared, not copied.
    pub fn view(&self, key: &TopicKey) -> View {
        let Some(cell) = self.topics.known(key) else { return View { consistent: true, ..View::default() } };
        let view = |topic: &Topic| View {
            jobs: topic.jobs.iter().map(|(id, slot)| (id.clone(), job_view(slot))).collect(),
            broadcasts: topic.broadcasts.iter().map(|(id, broadcast)| (id.clone(), broadcast.clone())).collect(),
            leases: topic.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease)).collect(),
            consistent: topic.jobs.is_consistent(),
        };
        cell.query("view", |topic, _| view(topic)).unwrap_or_default()
    }
}

fn job_view(slot: &Slot) -> JobView {
    let (at, row) = match &slot.place {
        Place::Timed(_, at) => (Some(*at), None),
        Place::Running(run) => (None, Some(Row { node: run.node.clone(), token: run.token, isolation: run.isolation })),
    };
    JobView {
        state: slot.place.state(),
        record: slot.record.clone(),
        crashes: slot.crashes,
        at,
        row,
        replacement: slot.replacement().map(|new| (new.job.record.clone(), new.conditional)),
    }
}

/// The answer of a step, and what the caller waits for before it may see it.
pub type InParts<T> = (Result<T, StoreError>, Option<Pending<()>>);

impl MemoryStore {
    /// Executes the step that a node asks for.
    pub fn ask_in_parts(
        &self,
        topic: &TopicKey,
        node: &NodeId,
        options: LinkOptions,
        request: Request,
    ) -> InParts<Answer> {
        let kind = request.kind();
        let cell = self.topics.cell(topic);
        cell.ask_in_parts(kind.name(), Waits::of(kind), |topic, now| topic.answer(now, node, options, request))
    }

    /// Executes a batch of a producer.
    pub fn execute_in_parts(&self, topic: &TopicKey, producer: &ProducerId, batch: Batch) -> InParts<BatchReply> {
        let cell = self.topics.cell(topic);
        cell.ask_in_parts(batch.name(), Waits::CHANGES, |topic, now| topic.execute(now, producer, batch))
    }
}
