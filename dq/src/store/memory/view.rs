//! What a topic keeps, seen whole: for judges that look after every step of a simulation.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::pending::Replacement;
use super::places::{Place, Slot};
use crate::job::{JobId, NodeId, Record, State, Token, TopicKey};
use crate::time::Timestamp;

/// A row: who holds a job, under which token, and whether the run was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: NodeId,
    /// The token.
    pub token: Token,
    /// Whether the run was begun.
    pub isolated: bool,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// Where it is.
    pub state: State,
    /// What is kept of it.
    pub record: Record,
    /// Crashes since its last settled outcome.
    pub crashes: u32,
    /// Until when, or since when, it is where it is; `None` while it is RUNNING.
    pub at: Option<Timestamp>,
    /// Who holds it.
    pub row: Option<Row>,
    /// What takes its place when its run ends, and whether only under an end that names the run.
    pub replacement: Option<(Record, bool)>,
}

/// A topic.
#[derive(Debug, Default)]
pub struct View {
    /// Every job.
    pub jobs: BTreeMap<JobId, JobView>,
    /// Broadcasts that wait: when each is due, and its record.
    pub broadcasts: BTreeMap<JobId, (Timestamp, Record)>,
    /// The end of each lease.
    pub leases: BTreeMap<NodeId, Timestamp>,
    /// Whether slots, places and rows say the same.
    pub consistent: bool,
}

impl MemoryStore {
    /// All that is kept of a topic. O(jobs log jobs); records are shared, not copied.
    pub fn view(&self, key: &TopicKey) -> View {
        let Some(cell) = self.known(key) else { return View { consistent: true, ..View::default() } };
        let view = cell.query("view", |topic, _| {
            Ok(View {
                jobs: topic.jobs.iter().map(|(id, slot)| (id.clone(), seen(slot))).collect(),
                broadcasts: topic.broadcasts.iter().map(|(id, publish)| (id.clone(), publish.clone())).collect(),
                leases: topic.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease)).collect(),
                consistent: topic.jobs.is_consistent(),
            })
        });
        view.unwrap_or_default()
    }
}

impl MemoryStore {
    /// As [`view`](Self::view), of these jobs only; whether places agree is not asked, nor what broadcasts wait. O(ids).
    pub fn view_of(&self, key: &TopicKey, ids: &BTreeSet<JobId>) -> View {
        let Some(cell) = self.known(key) else { return View { consistent: true, ..View::default() } };
        let view = cell.query("view", |topic, _| {
            let known = ids.iter().filter_map(|id| Some((id.clone(), seen(topic.jobs.get(id)?))));
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

fn seen(slot: &Slot) -> JobView {
    let at = match slot.place {
        Place::On(_, at) => Some(at),
        Place::Running(_) => None,
    };
    let (row, pending) = match &slot.place {
        Place::Running(run) => {
            (Some(Row { node: run.node.clone(), token: run.token, isolated: run.isolated }), run.pending.as_deref())
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
        replacement: pending.and_then(|pending| pending.replacement.as_ref()).map(replaces),
    }
}
