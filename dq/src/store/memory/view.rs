//! What a topic keeps, seen whole: for judges that look after every step of a simulation.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::marks::Replacement;
use super::places::{Place, Slot};
use crate::job::{JobId, NodeId, Record, State, Token, TopicKey};
use crate::time::Timestamp;

/// A row: who holds a job, under which token, and whether the run was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) node: NodeId,
    pub(crate) token: Token,
    pub(crate) begun: bool,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobView {
    pub(crate) state: State,
    pub(crate) record: Record,
    pub(crate) crashes: u32,
    /// Until when, or since when, it is where it is; `None` while it is RUNNING.
    pub(crate) at: Option<Timestamp>,
    pub(crate) row: Option<Row>,
    /// What takes its place when its run ends, and whether only under an end that names the run.
    pub(crate) replacement: Option<(Record, bool)>,
}

/// A topic.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) jobs: BTreeMap<JobId, JobView>,
    /// Broadcasts that wait: when each is due, and its record.
    pub(crate) casts: BTreeMap<JobId, (Timestamp, Record)>,
    pub(crate) leases: BTreeMap<NodeId, Timestamp>,
    /// Whether slots, places and rows say the same.
    pub(crate) consistent: bool,
}

impl MemoryStore {
    /// All that is kept of a topic. O(jobs log jobs); records are shared, not copied.
    pub(crate) fn view(&self, key: &TopicKey) -> View {
        let Some(cell) = self.known(key) else { return View { consistent: true, ..View::default() } };
        let view = cell.look("view", |topic, _| {
            Ok(View {
                jobs: topic.jobs.iter().map(|(id, slot)| (id.clone(), seen(slot))).collect(),
                casts: topic.casts.iter().map(|(id, cast)| (id.clone(), cast.clone())).collect(),
                leases: topic.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease)).collect(),
                consistent: topic.jobs.is_consistent(),
            })
        });
        view.unwrap_or_default()
    }
}

impl MemoryStore {
    /// As [`view`](Self::view), of these jobs only; whether places agree is not asked, nor what broadcasts wait. O(ids).
    pub(crate) fn view_of(&self, key: &TopicKey, ids: &BTreeSet<JobId>) -> View {
        let Some(cell) = self.known(key) else { return View { consistent: true, ..View::default() } };
        let view = cell.look("view", |topic, _| {
            let known = ids.iter().filter_map(|id| Some((id.clone(), seen(topic.jobs.get(id)?))));
            Ok(View {
                jobs: known.collect(),
                casts: BTreeMap::new(),
                leases: topic.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease)).collect(),
                consistent: true,
            })
        });
        view.unwrap_or_default()
    }
}

fn seen(slot: &Slot) -> JobView {
    let at = match slot.place {
        Place::On(_, at) => Some(at),
        Place::Running(_) => None,
    };
    let (row, mark) = match &slot.place {
        Place::Running(run) => {
            (Some(Row { node: run.node.clone(), token: run.token, begun: run.begun }), run.mark.as_deref())
        }
        Place::On(..) => (None, None),
    };
    let replaces = |new: &Replacement| (new.fresh.record.clone(), new.conditional);
    JobView {
        state: slot.place.state(),
        record: slot.record.clone(),
        crashes: slot.crashes,
        at,
        row,
        replacement: mark.and_then(|mark| mark.replacement.as_ref()).map(replaces),
    }
}
