//! Every job of a topic, and where it is.
//!
//! Invariant (PROTOCOL.md section 2): a job is in exactly one place. A slot *has* a place, so it cannot be in two; the
//! indexes beside the slots say the same once more, in order, and change only here. A mark and *begun* are part of the
//! run, a crash count is part of the slot, so neither can outlive what it belongs to. A holder, and with it a lease,
//! exists exactly while it has rows (rule 8).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;

use foldhash::fast::FixedState;

use super::pending::PendingCommand;
use super::waiting::Waiting;
use crate::job::{Fence, JobId, NodeId, Record, State, Token};
use crate::store::step::Claim;
use crate::time::Timestamp;

/// A place that is not a run: the job waits there for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shelf {
    /// DELAYED, until its due time.
    Delayed,
    /// UNACKED, since it was parked.
    Unacked,
    /// DEAD, since it was given up.
    Dead,
    /// DONE, until the end of its retention.
    Done,
}

/// A run of a job: its row.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) node: NodeId,
    pub(super) token: Token,
    /// It was started alone, one crash short of its cap (rule 19).
    pub(super) isolated: bool,
    /// What waits for its end. Rare.
    pub(super) pending: Option<Box<PendingCommand>>,
}

/// Where a job is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    On(Shelf, Timestamp),
    Running(Box<Run>),
}

impl Place {
    pub(super) const fn state(&self) -> State {
        match self {
            Self::On(Shelf::Delayed, _) => State::Delayed,
            Self::On(Shelf::Unacked, _) => State::Unacked,
            Self::On(Shelf::Dead, _) => State::Dead,
            Self::On(Shelf::Done, _) => State::Done,
            Self::Running(_) => State::Running,
        }
    }
}

/// A job.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) record: Record,
    /// Crashes since its last settled outcome.
    pub(super) crashes: u32,
    pub(super) place: Place,
}

/// What a node holds of the topic.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// Until when nobody takes it; [`Timestamp::EPOCH`]: free at once.
    pub(super) lease: Timestamp,
    pub(super) rows: BTreeSet<JobId>,
}

/// The jobs of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    slots: HashMap<JobId, Slot, FixedState>,
    delayed: Waiting,
    unacked: Waiting,
    dead: Waiting,
    done: Waiting,
    holders: BTreeMap<NodeId, Holder>,
}

impl Jobs {
    pub(super) fn get(&self, id: &JobId) -> Option<&Slot> {
        self.slots.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &JobId) -> Option<&mut Slot> {
        self.slots.get_mut(id)
    }

    /// Every job, in no order.
    #[cfg(feature = "testing")]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&JobId, &Slot)> {
        self.slots.iter()
    }

    pub(super) fn state(&self, id: &JobId) -> Option<State> {
        self.slots.get(id).map(|slot| slot.place.state())
    }

    /// The run of `id`, if it is one of `node` under `token`.
    pub(super) fn run_mut(&mut self, node: &NodeId, id: &JobId, token: Token) -> Option<&mut Slot> {
        self.slots
            .get_mut(id)
            .filter(|slot| matches!(&slot.place, Place::Running(run) if run.token == token && run.node == *node))
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The sum of all places, which is the number of jobs.
    pub(super) fn in_places(&self) -> usize {
        let shelves: usize = [&self.delayed, &self.unacked, &self.dead, &self.done].map(Waiting::len).iter().sum();
        shelves + self.in_runs()
    }

    pub(super) fn in_runs(&self) -> usize {
        self.holders.values().map(|holder| holder.rows.len()).sum()
    }

    pub(super) const fn shelf(&self, shelf: Shelf) -> &Waiting {
        match shelf {
            Shelf::Delayed => &self.delayed,
            Shelf::Unacked => &self.unacked,
            Shelf::Dead => &self.dead,
            Shelf::Done => &self.done,
        }
    }

    const fn shelf_mut(&mut self, shelf: Shelf) -> &mut Waiting {
        match shelf {
            Shelf::Delayed => &mut self.delayed,
            Shelf::Unacked => &mut self.unacked,
            Shelf::Dead => &mut self.dead,
            Shelf::Done => &mut self.done,
        }
    }

    pub(super) const fn holders(&self) -> &BTreeMap<NodeId, Holder> {
        &self.holders
    }

    pub(super) fn holders_mut(&mut self) -> impl Iterator<Item = &mut Holder> {
        self.holders.values_mut()
    }

    pub(super) fn holder_mut(&mut self, node: &NodeId) -> Option<&mut Holder> {
        self.holders.get_mut(node)
    }

    /// How many rows a node has.
    pub(super) fn rows(&self, node: &NodeId) -> usize {
        self.holders.get(node).map_or(0, |holder| holder.rows.len())
    }

    /// Puts a job that is not there on a shelf.
    pub(super) fn insert(&mut self, id: JobId, record: Record, shelf: Shelf, at: Timestamp) {
        self.shelf_mut(shelf).insert(at, id.clone());
        let old = self.slots.insert(id, Slot { record, crashes: 0, place: Place::On(shelf, at) });
        debug_assert!(old.is_none(), "whoever puts a job in the place of another removes that one first");
    }

    /// Takes a job out of its place, wherever that is.
    pub(super) fn remove(&mut self, id: &JobId) -> Option<Record> {
        let slot = self.slots.remove(id)?;
        self.vacate(id, &slot.place);
        Some(slot.record)
    }

    /// Moves a known job to a shelf.
    pub(super) fn shelve(&mut self, id: &JobId, shelf: Shelf, at: Timestamp) {
        let slot = self.slots.get_mut(id).expect("only known jobs are moved");
        let from = mem::replace(&mut slot.place, Place::On(shelf, at));
        self.vacate(id, &from);
        self.shelf_mut(shelf).insert(at, id.clone());
    }

    fn vacate(&mut self, id: &JobId, place: &Place) {
        match place {
            Place::On(shelf, at) => self.shelf_mut(*shelf).remove(*at, id),
            Place::Running(run) => {
                let holder = self.holders.get_mut(&run.node).expect("a run has a holder");
                let known = holder.rows.remove(id);
                debug_assert!(known, "a run has a row");
                if holder.rows.is_empty() {
                    self.holders.remove(&run.node);
                }
            }
        }
    }

    /// Gives `node` what is on a shelf at `until` or before, at most `limit` jobs, under a fence and a lease.
    pub(super) fn claim(
        &mut self,
        (shelf, until, limit): (Shelf, Timestamp, usize),
        node: &NodeId,
        (fence, lease): (Fence, Timestamp),
    ) -> Vec<Claim> {
        let taken = self.shelf_mut(shelf).take(until, limit);
        if taken.is_empty() {
            return Vec::new();
        }
        let holder = self.holders.entry(node.clone()).or_insert_with(|| Holder { lease, rows: BTreeSet::new() });
        let mut claims = Vec::with_capacity(taken.len());
        for (due, id) in taken {
            let slot = self.slots.get_mut(&id).expect("what is on a shelf has a slot");
            let token = Token { fence, due };
            slot.place = Place::Running(Box::new(Run { node: node.clone(), token, isolated: false, pending: None }));
            holder.rows.insert(id.clone());
            claims.push(Claim { id, token, record: slot.record.clone(), crashes: slot.crashes });
        }
        claims
    }

    /// Whether indexes and slots say the same. O(n log n): for tests and small topics.
    pub(super) fn is_consistent(&self) -> bool {
        let indexed = |(id, slot): (&JobId, &Slot)| match &slot.place {
            Place::On(shelf, at) => self.shelf(*shelf).contains(*at, id),
            Place::Running(run) => self.holders.get(&run.node).is_some_and(|holder| holder.rows.contains(id)),
        };
        self.len() == self.in_places()
            && self.slots.iter().all(indexed)
            && self.holders.values().all(|holder| !holder.rows.is_empty())
    }
}
