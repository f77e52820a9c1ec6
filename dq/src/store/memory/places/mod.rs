//! Every job of a topic, and its place.
//!
//! Invariant (rule 2): a job is in exactly one place. A [`Slot`] *has* one place, so a job cannot be in two. The indexes
//! repeat the places in order of time, and only this module changes them. A pending command, and how the job is isolated, are part of the
//! run, and the crash count is part of the slot, so none of them can outlive its owner. A holder, and with it a lease,
//! exists exactly while it has rows (rule 8).

mod groups;
mod index;
mod parked;
mod paused;
mod rates;
mod rows;
mod slot;
mod ticks;
mod touched;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::ops::Bound;
use std::time::Duration;

use foldhash::fast::FixedState;

use crate::job::{Fence, JobId, NodeId, Record, State, Token, Weight};
use crate::store::step::{Claim, DEAD_LEASE};
use crate::store::{Pace, Rate};
use crate::time::Timestamp;

pub(super) use index::PlaceIndex;
pub(super) use slot::{Holder, Place, Run, Slot, SlotMut, bytes_of_row};
pub(super) use touched::{Log, Touch};

pub(super) use groups::Seats;
use groups::{Groups, Member};
use index::IndexPart;
use rows::{Position, Rows};
use touched::Touched;

/// The holders of jobs, each with its lease and rows.
pub(super) type Holders = BTreeMap<NodeId, Holder>;

/// How many bytes an answer or a step may still take. The first item always fits, so that a large one never blocks, and none fits
/// behind one that did not.
#[derive(Debug)]
pub(super) struct Room {
    most: usize,
    taken: Option<usize>,
}

impl Room {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, taken: None }
    }

    /// Whether everything has fitted so far.
    pub(super) fn is_left(&self) -> bool {
        self.taken.is_none_or(|taken| taken <= self.most)
    }

    /// Whether one more item of this size fits.
    pub(super) fn takes(&mut self, size: usize) -> bool {
        let is_first = self.taken.is_none();
        self.taken = Some(self.taken.unwrap_or(0).saturating_add(size));
        is_first || self.is_left()
    }
}

/// How many of these sizes, from the first on, fit in so many bytes.
pub(super) fn fitting(sizes: impl Iterator<Item = usize>, most: usize) -> usize {
    let mut room = Room::new(most);
    sizes.take_while(|size| room.takes(*size)).count()
}

/// What the start of a job spends of a rate: its weight, and nothing if it is the tick of a schedule.
pub(super) fn spends(id: &JobId, record: &Record) -> u64 {
    if id.schedule_name().is_some() { 0 } else { u64::from(record.weight().get()) }
}

/// Enters the job into the schedules, if it keeps one.
fn enter(schedules: &mut BTreeSet<JobId>, id: &JobId) {
    if id.schedule_name().is_some() {
        schedules.insert(id.clone());
    }
}

/// What a claim wants: up to `limit` jobs of a place whose time is `until` or earlier, with up to `bytes` of records, and as the pace allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) place: State,
    pub(super) until: Timestamp,
    pub(super) limit: usize,
    pub(super) bytes: usize,
    pub(super) pace: Option<Pace>,
}

/// Under what a node holds what it claims: the fence, and the end of the lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimTerms {
    pub(super) fence: Fence,
    pub(super) lease: Timestamp,
}

/// What a claim takes out of an index.
type Claimed = (IndexPart, Timestamp, JobId);

/// The index of each state; that of RUNNING is empty.
type Timed = [PlaceIndex; 5];

/// Puts an id in the index of its place, or gives its run a row. A node that is not known to hold jobs is of a process that has ended.
fn occupy(timed: &mut Timed, holders: &mut Holders, id: JobId, slot: &mut Slot) {
    slot.priority = Slot::priority_in(&slot.place, &slot.record);
    slot.member = Member::of(&id, &slot.record);
    slot.has_seat &= slot.member.is_some();
    slot.is_blocked = false;
    let part = slot.part();
    match &mut slot.place {
        Place::Timed(place, at) => timed[*place as usize].insert(part, *at, id),
        Place::Running(run) => {
            let holder = holders.entry(run.node.clone());
            let rows = &mut holder.or_insert_with(|| Holder { lease: DEAD_LEASE, rows: Rows::default() }).rows;
            run.position = rows.next_position(run.token.fence);
            rows.extend(run.token.fence, [id].into_iter());
        }
    }
}

fn vacate(timed: &mut Timed, holders: &mut Holders, id: &JobId, slot: &Slot) {
    match &slot.place {
        Place::Timed(place, at) => timed[*place as usize].remove(slot.part(), *at, id),
        Place::Running(run) => {
            let holder = holders.get_mut(&run.node).expect("a run has a holder");
            let known = holder.rows.remove(run.token.fence, run.position);
            debug_assert!(known, "a run has a row");
            if holder.rows.is_empty() {
                holders.remove(&run.node);
            }
        }
    }
}

/// The jobs of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    slots: HashMap<JobId, Slot, FixedState>,
    timed: Timed,
    holders: Holders,
    /// The jobs that keep schedules.
    schedules: BTreeSet<JobId>,
    groups: Groups,
    touched: Touched,
    /// What all of it takes in memory, about.
    bytes: u64,
}

impl Jobs {
    pub(super) fn get(&self, id: &JobId) -> Option<&Slot> {
        self.slots.get(id)
    }

    /// The job `id`, to change it.
    pub(super) fn get_mut<'a>(&'a mut self, id: &'a JobId) -> Option<SlotMut<'a>> {
        let slot = self.slots.get_mut(id)?;
        Some(SlotMut { id, slot, touched: &mut self.touched, bytes: &mut self.bytes })
    }

    /// Every job, in no order.
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

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// What the jobs take in memory, about.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The sum of all places, which must be the number of jobs.
    pub(super) fn in_places(&self) -> usize {
        self.timed.iter().map(PlaceIndex::len).sum::<usize>() + self.in_runs()
    }

    pub(super) fn in_runs(&self) -> usize {
        self.holders.values().map(|holder| holder.rows.len()).sum()
    }

    pub(super) const fn index(&self, place: State) -> &PlaceIndex {
        &self.timed[place as usize]
    }

    pub(super) const fn holders(&self) -> &Holders {
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
    pub(super) fn rows_after(&self, after: Option<(NodeId, JobId)>) -> impl Iterator<Item = (&NodeId, &JobId)> {
        let first = after.as_ref().map_or(Bound::Unbounded, |(node, _)| Bound::Included(node.clone()));
        self.holders.range((first, Bound::Unbounded)).flat_map(move |(node, holder)| {
            let last_id = after.as_ref().filter(|(last, _)| last == node).map(|(_, id)| id);
            holder.rows.after(last_id).map(move |id| (node, id))
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

    /// The number of rows of a node.
    pub(super) fn rows(&self, node: &NodeId) -> usize {
        self.holders.get(node).map_or(0, |holder| holder.rows.len())
    }

    /// Puts a job in its place. It replaces the one that had its id.
    pub(super) fn insert(&mut self, id: JobId, mut slot: Slot) {
        self.touched.change(&id, &mut slot.touched, Touch::WHOLE);
        enter(&mut self.schedules, &id);
        self.bytes += bytes_of_row(&id, slot.records());
        if let Some(old) = self.slots.remove(&id) {
            self.bytes -= bytes_of_row(&id, old.records());
            vacate(&mut self.timed, &mut self.holders, &id, &old);
            self.leave_group(&id, &old);
        }
        occupy(&mut self.timed, &mut self.holders, id.clone(), &mut slot);
        if slot.member.is_some() {
            self.slots.insert(id.clone(), slot);
            self.join_group(&id);
        } else {
            self.slots.insert(id, slot);
        }
    }

    /// Puts a job in DELAYED. If its id is known, returns the record and changes nothing.
    pub(super) fn delay_if_unknown(&mut self, id: JobId, record: Record, due: Timestamp) -> Option<Record> {
        match self.slots.entry(id) {
            Entry::Occupied(_) => Some(record),
            Entry::Vacant(entry) => {
                let id = entry.key().clone();
                let slot = entry.insert(Slot::new(record, 0, Place::Timed(State::Delayed, due)));
                self.touched.change(&id, &mut slot.touched, Touch::WHOLE);
                enter(&mut self.schedules, &id);
                self.bytes += bytes_of_row(&id, slot.records());
                slot.member = Member::of(&id, &slot.record);
                let is_member = slot.member.is_some();
                self.timed[State::Delayed as usize].insert(slot.part(), due, id.clone());
                if is_member {
                    self.join_group(&id);
                }
                None
            }
        }
    }

    /// Gives `node` what is wanted. Of DELAYED jobs those go first that their priorities say under this ageing, and of a group no more have a seat
    /// than `seats` says, or are claimed than its rate says.
    pub(super) fn claim(
        &mut self,
        Wanted { place, until, limit, bytes, pace }: Wanted,
        ageing: Duration,
        seats: Seats,
        rate: Option<Rate>,
        node: &NodeId,
        terms: ClaimTerms,
    ) -> (Vec<Claim>, Option<Weight>) {
        let is_delayed = place == State::Delayed;
        if limit == 0 || !(self.index(place).is_due(until) || is_delayed && self.is_due(until)) {
            return (Vec::new(), None);
        }
        let mut due: Vec<_> = if is_delayed && self.groups.are_used {
            std::iter::from_fn(|| self.pop_due(until, ageing)).take(limit).collect()
        } else if self.groups.are_used {
            self.pop_parked(until, limit, rate)
        } else {
            let index = &mut self.timed[place as usize];
            std::iter::from_fn(|| index.pop_due(until, ageing)).take(limit).collect()
        };
        // All slots are looked up before the first one changes. With many jobs waiting each lookup misses the caches, and lookups that
        // do not depend on each other wait for the memory together.
        let size =
            |(_, _, id): &(_, _, JobId)| self.slots.get(id).map_or(0, |slot: &Slot| slot.record.as_bytes().len());
        let mut count = fitting(due.iter().map(size), bytes);
        let spends = |(_, _, id): &(_, _, JobId)| self.slots.get(id).map_or(0, |slot: &Slot| spends(id, &slot.record));
        let fits = pace.map_or(count, |pace| pace.fits(due[..count].iter().map(spends)));
        let refused = due[..count].get(fits).and_then(|(_, _, id)| Some(self.slots.get(id)?.record.weight()));
        count = fits;
        if is_delayed {
            due.drain(count..).for_each(|claimed| self.put_back(claimed));
            self.seat(&mut due, seats, rate);
        } else {
            let index = &mut self.timed[place as usize];
            due.drain(count..).for_each(|(part, at, id)| index.insert(part, at, id));
        }
        (self.run(due, node, terms), refused)
    }

    /// Gives `node` what was taken out of an index.
    fn run(&mut self, due: Vec<Claimed>, node: &NodeId, ClaimTerms { fence, lease }: ClaimTerms) -> Vec<Claim> {
        if due.is_empty() {
            return Vec::new();
        }
        let holder = self.holders.entry(node.clone()).or_insert_with(|| Holder { lease, rows: Rows::default() });
        let (mut claims, first) = (Vec::with_capacity(due.len()), holder.rows.next_position(fence));
        for (position, (_, due, id)) in (first.0..).map(Position).zip(due) {
            let slot = self.slots.get_mut(&id).expect("an indexed job has a slot");
            let token = Token { fence, due };
            slot.place = Place::Running(Box::new(Run { position, ..Run::new(node.clone(), token) }));
            self.touched.change(&id, &mut slot.touched, Touch::CLAIMED);
            claims.push(Claim { id, token, record: slot.record.clone(), crashes: slot.crashes });
        }
        holder.rows.extend(fence, claims.iter().map(|claim| claim.id.clone()));
        claims
    }

    /// Removes a job that `node` runs under `token`, if its record is not kept and no command waits for its end. Returns
    /// whether it did.
    pub(super) fn remove_plain_run(&mut self, node: &NodeId, id: &JobId, token: Token) -> bool {
        let Some(slot) = self.slots.get(id) else { return false };
        let Some(run) = slot.run() else { return false };
        let is_plain = run.token == token && run.node == *node && run.pending.is_none();
        if !is_plain || !slot.record.retain().is_zero() {
            return false;
        }
        self.remove(id);
        true
    }

    /// Removes a job from whichever place it is in.
    pub(super) fn remove(&mut self, id: &JobId) -> Option<Record> {
        let slot = self.slots.remove(id)?;
        self.bytes -= bytes_of_row(id, slot.records());
        self.touched.remove(id);
        if id.schedule_name().is_some() {
            self.schedules.remove(id);
        }
        vacate(&mut self.timed, &mut self.holders, id, &slot);
        self.leave_group(id, &slot);
        Some(slot.record)
    }

    /// Moves a known job to another place that it leaves by time.
    pub(super) fn move_to(&mut self, id: &JobId, place: State, at: Timestamp) {
        self.relocate(id, Place::Timed(place, at));
    }

    /// Moves a known job to another place. One that has a seat in its group keeps it, unless it ends.
    pub(super) fn relocate(&mut self, id: &JobId, to: Place) {
        if matches!(to, Place::Timed(State::Done, _)) {
            self.free_seat(id);
        }
        let slot = self.slots.get_mut(id).expect("only known jobs move");
        self.touched.change(id, &mut slot.touched, Touch::PLACE);
        self.bytes = self.bytes + to.replacement_size() as u64 - slot.place.replacement_size() as u64;
        vacate(&mut self.timed, &mut self.holders, id, slot);
        let was = slot.member.is_some().then(|| slot.clone());
        slot.place = to;
        occupy(&mut self.timed, &mut self.holders, id.clone(), slot);
        // A seat stays while its job moves.
        if let Some(was) = was.filter(|was| !was.has_seat) {
            self.leave_group(id, &was);
            self.join_group(id);
        }
    }

    /// As a step leaves the indexes that panics between two changes.
    #[cfg(test)]
    pub(super) fn break_index(&mut self) {
        _ = self.timed[State::Delayed as usize].pop_due(Timestamp::from_millis(u64::MAX), Duration::ZERO);
    }

    /// A step has panicked between two changes: makes the indexes again from the slots, which have one place each.
    pub(super) fn restore(&mut self) {
        let mut slots = mem::take(&mut self.slots);
        let holders = mem::take(&mut self.holders);
        (self.timed, self.schedules) = Default::default();
        self.groups.restore();
        for (id, slot) in &mut slots {
            enter(&mut self.schedules, id);
            occupy(&mut self.timed, &mut self.holders, id.clone(), slot);
        }
        for (node, holder) in holders {
            if let Some(known) = self.holders.get_mut(&node) {
                known.lease = holder.lease;
            }
        }
        self.slots = slots;
        let ids: Vec<_> =
            self.slots.iter().filter(|(_, slot)| slot.member.is_some()).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.join_group(id));
        self.bytes = self.counted();
    }

    fn counted(&self) -> u64 {
        self.slots.iter().map(|(id, slot)| bytes_of_row(id, slot.records())).sum()
    }

    pub(super) const fn log(&self) -> Log {
        self.touched.log
    }

    /// Sets how much a journal wants to know of each step.
    pub(super) fn set_log(&mut self, log: Log) {
        self.touched.log = log;
    }

    /// Tells what the step has touched.
    pub(super) fn take_touched(&mut self, mut tell: impl FnMut(Changed<'_>)) {
        let lists = self.touched.take();
        // A removed id is known again if a new job has taken its place, which is then whole.
        for id in lists.gone.iter().filter(|id| lists.changed.is_empty() || !self.slots.contains_key(*id)) {
            tell(Changed::Gone(id));
        }
        for id in &lists.changed {
            let Some(slot) = self.slots.get_mut(id) else { continue };
            let touched = mem::take(&mut slot.touched);
            if !touched.is_empty() {
                tell(Changed::Row(id, slot, touched, &self.holders));
            }
        }
        for node in &lists.leases {
            if let Some(holder) = self.holders.get(node) {
                tell(Changed::Lease(node, holder.is_released()));
            }
        }
        self.touched.reuse(lists);
    }

    /// Whether indexes and slots agree. O(n log n): for tests and small topics.
    pub(super) fn is_consistent(&self) -> bool {
        let indexed = |(id, slot): (&JobId, &Slot)| match &slot.place {
            Place::Timed(place, at) => self.index(*place).contains(slot.part(), *at, id),
            Place::Running(run) => {
                let row = self.holders.get(&run.node).and_then(|holder| holder.rows.get(run.token.fence, run.position));
                row == Some(id)
            }
        };
        self.len() == self.in_places()
            && self.bytes == self.counted()
            && self.are_groups_consistent()
            && self.slots.iter().all(indexed)
            && self.holders.values().all(|holder| !holder.rows.is_empty())
            && self.schedules.iter().all(|id| self.slots.contains_key(id))
            && self.slots.keys().filter(|id| id.schedule_name().is_some()).count() == self.schedules.len()
    }
}

/// What a step has touched.
pub(super) enum Changed<'a> {
    /// It has changed this of a row.
    Row(&'a JobId, &'a Slot, Touch, &'a Holders),
    /// It has removed a row.
    Gone(&'a JobId),
    /// A node that has rows has released its lease, or has renewed a released one.
    Lease(&'a NodeId, bool),
}
