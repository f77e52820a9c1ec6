//! The whole state of a topic, for the checkers that run after every step of a simulation.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::pending::Replacement;
use super::places::{Place, Slot};
use crate::job::{Isolation, JobId, NodeId, Record, State, Token, TopicKey};
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
        let view = cell.query("view", |topic, _| {
            Ok(View {
                jobs: topic.jobs.iter().map(|(id, slot)| (id.clone(), job_view(slot))).collect(),
                broadcasts: topic.broadcasts.iter().map(|(id, broadcast)| (id.clone(), broadcast.clone())).collect(),
                leases: topic.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease)).collect(),
                consistent: topic.jobs.is_consistent(),
            })
        });
        view.unwrap_or_default()
    }

    /// As [`view`](Self::view), but of these jobs only, without broadcasts and without the check of consistency. O(ids).
    pub fn view_of(&self, key: &TopicKey, ids: &BTreeSet<JobId>) -> View {
        let Some(cell) = self.topics.known(key) else { return View { consistent: true, ..View::default() } };
        let view = cell.query("view", |topic, _| {
            let known = ids.iter().filter_map(|id| Some((id.clone(), job_view(topic.jobs.get(id)?))));
            Ok(View {
                jobs: known.collect(),
                broadcasts: BTreeMap::new(),
                leases: topic.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease)).collect(),
                consistent: true,
            })
        });
        view.unwrap_or_default()
    }
}

fn job_view(slot: &Slot) -> JobView {
    let at = match slot.place {
        Place::Timed(_, at) => Some(at),
        Place::Running(_) => None,
    };
    let (row, pending) = match &slot.place {
        Place::Running(run) => {
            (Some(Row { node: run.node.clone(), token: run.token, isolation: run.isolation }), run.pending.as_deref())
        }
        Place::Timed(..) => (None, None),
    };
    let replacement = |new: &Replacement| (new.job.record.clone(), new.conditional);
    JobView {
        state: slot.place.state(),
        record: slot.record.clone(),
        crashes: slot.crashes,
        at,
        row,
        replacement: pending.and_then(|pending| pending.replacement.as_ref()).map(replacement),
    }
}
