//! Every job of a topic, and its place.
//!
//! Invariant (rule 2): a job is in exactly one place. A [`Slot`] *has* one place, so a job cannot be in two. The indexes
//! repeat the places in order of time, and only this module changes them. A pending command, and how the job is isolated, are part of the
//! run, and the crash count is part of the slot, so none of them can outlive its owner. A holder, and with it a lease,
//! exists exactly while it has rows (rule 8).

mod changed;
mod claim;
mod restore;
mod slot;
mod touched;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::ops::Bound;

use foldhash::fast::FixedState;

use super::time_index::TimeIndex;
use crate::job::{JobId, NodeId, Record, State, Token};
use crate::time::Timestamp;

pub(super) use changed::Changed;
pub(super) use slot::{Holder, Place, Run, Slot, SlotMut, TimedPlace};
pub(super) use touched::{Log, Touch};

use touched::Touched;

/// How many of these sizes, from the first on, are together at most `most`; at least one, so that a large one never
/// blocks.
pub(super) fn fitting(sizes: impl Iterator<Item = usize>, most: usize) -> usize {
    let mut sum = 0_usize;
    let fits = |(n, size): &(usize, usize)| {
        sum = sum.saturating_add(*size);
        *n == 0 || sum <= most
    };
    sizes.enumerate().take_while(fits).count()
}

/// Enters the job into the schedules, if it keeps one.
fn enter(schedules: &mut BTreeSet<JobId>, id: &JobId) {
    if id.schedule_name().is_some() {
        schedules.insert(id.clone());
    }
}

fn is_released(holders: &BTreeMap<NodeId, Holder>, slot: &Slot) -> bool {
    slot.run().and_then(|run| holders.get(&run.node)).is_some_and(Holder::is_released)
}

/// The jobs of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    slots: HashMap<JobId, Slot, FixedState>,
    delayed: TimeIndex,
    unacked: TimeIndex,
    dead: TimeIndex,
    done: TimeIndex,
    holders: BTreeMap<NodeId, Holder>,
    /// The jobs that keep schedules.
    schedules: BTreeSet<JobId>,
    touched: Touched,
}

impl Jobs {
    pub(super) fn get(&self, id: &JobId) -> Option<&Slot> {
        self.slots.get(id)
    }

    /// The job `id`, to change it.
    pub(super) fn get_mut<'a>(&'a mut self, id: &'a JobId) -> Option<SlotMut<'a>> {
        let slot = self.slots.get_mut(id)?;
        Some(SlotMut { id, slot, touched: &mut self.touched })
    }

    /// Every job, in no order.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&JobId, &Slot)> {
        self.slots.iter()
    }

    pub(super) fn state(&self, id: &JobId) -> Option<State> {
        self.slots.get(id).map(|slot| slot.place.state())
    }

    /// Whether `node` runs the job `id` under `token`.
    pub(super) fn is_run(&self, node: &NodeId, id: &JobId, token: Token) -> bool {
        self.slots.get(id).and_then(Slot::run).is_some_and(|run| run.token == token && run.node == *node)
    }

    /// The size of the record of the replacement that waits for the end of a run.
    pub(super) fn replacement_size(&self, id: &JobId) -> usize {
        let pending = self.slots.get(id).and_then(Slot::run).and_then(|run| run.pending.as_ref());
        let replacement = pending.and_then(|pending| pending.replacement.as_ref());
        replacement.map_or(0, |replacement| replacement.job.record.as_bytes().len())
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The sum of all places, which must be the number of jobs.
    pub(super) fn in_places(&self) -> usize {
        let timed: usize = [&self.delayed, &self.unacked, &self.dead, &self.done].map(TimeIndex::len).iter().sum();
        timed + self.in_runs()
    }

    pub(super) fn in_runs(&self) -> usize {
        self.holders.values().map(|holder| holder.rows.len()).sum()
    }

    pub(super) const fn index(&self, place: TimedPlace) -> &TimeIndex {
        match place {
            TimedPlace::Delayed => &self.delayed,
            TimedPlace::Unacked => &self.unacked,
            TimedPlace::Dead => &self.dead,
            TimedPlace::Done => &self.done,
        }
    }

    const fn index_mut(&mut self, place: TimedPlace) -> &mut TimeIndex {
        match place {
            TimedPlace::Delayed => &mut self.delayed,
            TimedPlace::Unacked => &mut self.unacked,
            TimedPlace::Dead => &mut self.dead,
            TimedPlace::Done => &mut self.done,
        }
    }

    pub(super) const fn holders(&self) -> &BTreeMap<NodeId, Holder> {
        &self.holders
    }

    /// Gives a node that has rows a lease with this end.
    pub(super) fn set_lease(&mut self, node: &NodeId, end: Timestamp) {
        if let Some(holder) = self.holders.get_mut(node) {
            let was_released = holder.is_released();
            holder.lease = end;
            if holder.is_released() != was_released {
                self.touched.lease(node);
            }
        }
    }

    /// The rows behind this one, node after node, each with its node.
    pub(super) fn rows_after(&self, after: Option<&(NodeId, JobId)>) -> impl Iterator<Item = (&NodeId, &JobId)> {
        let first = after.map_or(Bound::Unbounded, |(node, _)| Bound::Included(node));
        self.holders.range::<NodeId, _>((first, Bound::Unbounded)).flat_map(move |(node, holder)| {
            let last_id = after.filter(|(last, _)| last == node).map(|(_, id)| id);
            let from = last_id.map_or(Bound::Unbounded, Bound::Excluded);
            holder.rows.range::<JobId, _>((from, Bound::Unbounded)).map(move |id| (node, id))
        })
    }

    /// The schedules behind this one, in order.
    pub(super) fn schedules_after(&self, after: Option<&JobId>) -> impl Iterator<Item = &JobId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.schedules.range::<JobId, _>((from, Bound::Unbounded))
    }

    /// Cuts every lease that ends later to this end.
    pub(super) fn cut_leases(&mut self, latest: Timestamp) {
        for holder in self.holders.values_mut() {
            holder.lease = holder.lease.min(latest);
        }
    }

    /// Whether the node that holds the job has released its lease.
    pub(super) fn is_released(&self, slot: &Slot) -> bool {
        is_released(&self.holders, slot)
    }

    /// The number of rows of a node.
    pub(super) fn rows(&self, node: &NodeId) -> usize {
        self.holders.get(node).map_or(0, |holder| holder.rows.len())
    }

    /// Puts a job with an unknown id in a place.
    pub(super) fn insert(&mut self, id: JobId, record: Record, place: TimedPlace, at: Timestamp) {
        self.index_mut(place).insert(at, id.clone());
        let mut slot = Slot::new(record, 0, Place::Timed(place, at));
        self.touched.change(&id, &mut slot.touched, Touch::WHOLE);
        enter(&mut self.schedules, &id);
        let old = self.slots.insert(id, slot);
        debug_assert!(old.is_none(), "a caller that replaces a job removes the old one first");
    }

    /// Puts a job in a place. If its id is known, returns the record and changes nothing.
    pub(super) fn insert_if_unknown(
        &mut self,
        id: JobId,
        record: Record,
        place: TimedPlace,
        at: Timestamp,
    ) -> Option<Record> {
        match self.slots.entry(id) {
            Entry::Occupied(_) => Some(record),
            Entry::Vacant(entry) => {
                let id = entry.key().clone();
                let slot = entry.insert(Slot::new(record, 0, Place::Timed(place, at)));
                self.touched.change(&id, &mut slot.touched, Touch::WHOLE);
                enter(&mut self.schedules, &id);
                self.index_mut(place).insert(at, id);
                None
            }
        }
    }

    /// Removes a job that `node` runs under `token`, if its record is not kept and no command waits for its end. Returns
    /// whether it did.
    pub(super) fn remove_plain_run(&mut self, node: &NodeId, id: &JobId, token: Token) -> bool {
        let Some(slot) = self.slots.get(id) else { return false };
        let Some(run) = slot.run() else { return false };
        let is_plain = run.token == token && run.node == *node && run.pending.is_none();
        if !is_plain || !slot.record.fixed().retain.is_zero() {
            return false;
        }
        self.remove(id);
        true
    }

    /// Removes a job from whichever place it is in.
    pub(super) fn remove(&mut self, id: &JobId) -> Option<Record> {
        let slot = self.slots.remove(id)?;
        self.touched.remove(id);
        if id.schedule_name().is_some() {
            self.schedules.remove(id);
        }
        self.vacate(id, &slot.place);
        Some(slot.record)
    }

    /// Moves a known job to another place.
    pub(super) fn move_to(&mut self, id: &JobId, place: TimedPlace, at: Timestamp) {
        let slot = self.slots.get_mut(id).expect("only known jobs move");
        self.touched.change(id, &mut slot.touched, Touch::PLACE);
        let from = mem::replace(&mut slot.place, Place::Timed(place, at));
        self.vacate(id, &from);
        self.index_mut(place).insert(at, id.clone());
    }

    fn vacate(&mut self, id: &JobId, place: &Place) {
        match place {
            Place::Timed(place, at) => self.index_mut(*place).remove(*at, id),
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

    /// Whether indexes and slots agree. O(n log n): for tests and small topics.
    pub(super) fn is_consistent(&self) -> bool {
        let indexed = |(id, slot): (&JobId, &Slot)| match &slot.place {
            Place::Timed(place, at) => self.index(*place).contains(*at, id),
            Place::Running(run) => self.holders.get(&run.node).is_some_and(|holder| holder.rows.contains(id)),
        };
        self.len() == self.in_places()
            && self.slots.iter().all(indexed)
            && self.holders.values().all(|holder| !holder.rows.is_empty())
            && self.schedules.iter().all(|id| self.slots.contains_key(id))
            && self.slots.keys().filter(|id| id.schedule_name().is_some()).count() == self.schedules.len()
    }
}
