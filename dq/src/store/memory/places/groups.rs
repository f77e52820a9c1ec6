//! The groups of jobs (rule 4): of the near DELAYED jobs of a group only the one that goes next stands where claims look; the others are
//! blocked. A job that runs has a seat in its group, and so has one that waits and keeps it. The next job of a group that was served stands at
//! the turn of the group if that is after its due time. In time order it is a blocked job, so only claims and the head know of turns.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use foldhash::fast::FixedState;
use smol_str::SmolStr;

use super::paused::PausedGroups;
use super::rates::GroupRates;
use super::{Claimed, Jobs, Place, Slot, Touch};
use crate::job::{GroupName, JobId, Priority, Record, State};
use crate::store::groups::MAX_SEATS;
use crate::store::{GroupPage, GroupSeen, GroupsRequest, Rate};
use crate::time::Timestamp;

/// Where a waiting job stands in its group: due time, order of the adds, and id.
type GroupEntry = (Timestamp, u64, JobId);

/// The last of the turns.
const BORROWERS: usize = Priority::ALL.len();

/// How many jobs of a group may have a seat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seats {
    /// Whatever else is due.
    own: usize,
    /// While nothing else is due.
    most: usize,
}

impl Seats {
    /// A group of one job is a queue, which a second one would break.
    pub(crate) const fn new(own: usize, burst: usize) -> Self {
        Self { own, most: if own > 1 { own.saturating_add(burst) } else { own } }
    }
}

/// The groups that have jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    by_name: HashMap<SmolStr, Group, FixedState>,
    /// The jobs that stand at the turn of their group, in µs, apart by priority, and behind them those of groups that may borrow.
    turns: [BTreeSet<(u64, JobId)>; BORROWERS + 1],
    /// The time of the present step, in µs; 0 in a replay, which knows no turns.
    now: u64,
    pub(super) paused: PausedGroups,
    pub(super) rates: GroupRates,
    /// Whether a job has ever had a group.
    pub(super) are_used: bool,
}

impl Groups {
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// Forgets what follows from the slots.
    pub(super) fn restore(&mut self) {
        (self.by_name, self.turns) = Default::default();
    }

    /// The turn that goes first, with its priority: the one whose time, shifted by its priority, is the earliest.
    fn first_turn(&self, ageing: Duration) -> Option<(u64, Priority)> {
        let shifted = |priority: Priority| {
            let (turn, _) = self.turns[priority as usize].first()?;
            Some((turn.saturating_add(priority.shift(ageing).as_micros() as u64), priority))
        };
        Priority::ALL.into_iter().filter_map(shifted).min()
    }
}

#[derive(Debug, Clone, Default)]
struct Group {
    waiting: BTreeSet<GroupEntry>,
    seats: BTreeSet<JobId>,
}

impl Group {
    /// Whether the group is full and may have another seat. One that waits for a job with a seat may not.
    fn may_borrow(&self, seats: Seats, slots: &HashMap<JobId, Slot, FixedState>) -> bool {
        let runs = |id| slots.get(id).is_some_and(|slot| slot.run().is_some());
        (seats.own..seats.most).contains(&self.seats.len()) && self.seats.iter().all(runs)
    }
}

/// A turn of a group, at which its first job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    /// When it began, in µs.
    at: u64,
    /// Whether it comes after all that is due, because the group may only borrow.
    borrows: bool,
}

impl Turn {
    /// Which of the turns have it.
    const fn queue(self, priority: Priority) -> usize {
        if self.borrows { BORROWERS } else { priority as usize }
    }

    /// The same turn, whichever job is first; a group that borrows has none.
    fn kept(self) -> Option<u64> {
        (!self.borrows).then_some(self.at)
    }
}

/// To which group a job belongs.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: SmolStr,
    order: u64,
    /// The turn at which it stands.
    turn: Option<Turn>,
}

impl Member {
    /// A schedule is in no group, even if another program wrote one: its ticks pass all limits.
    pub(super) fn of(id: &JobId, record: &Record) -> Option<Box<Self>> {
        let group = record.group().filter(|_| id.schedule_name().is_none());
        group.map(|(order, name)| Box::new(Self { name: name.into(), order, turn: None }))
    }
}

/// The group and the entry of a slot that waits in one.
fn entry_of(id: &JobId, slot: &Slot) -> Option<(SmolStr, GroupEntry)> {
    let (Some(member), Place::Timed(State::Delayed, due)) = (&slot.member, &slot.place) else { return None };
    (!slot.has_seat).then(|| (member.name.clone(), (*due, member.order, id.clone())))
}

impl Slot {
    /// The turn at which the job stands.
    fn turn(&self) -> Option<Turn> {
        self.member.as_ref()?.turn
    }
}

impl Jobs {
    /// A step begins at this time, in µs.
    pub(crate) const fn set_now(&mut self, now: u64) {
        self.groups.now = now;
    }

    /// Whether a job has ever had a group.
    pub(crate) const fn have_groups(&self) -> bool {
        self.groups.are_used
    }

    /// How many jobs of the group wait without a seat.
    pub(crate) fn waiting_in(&self, name: &str) -> usize {
        self.groups.by_name.get(name).map_or(0, |group| group.waiting.len())
    }

    /// The job waits in its group from now on, or comes back with its seat.
    pub(super) fn join_group(&mut self, id: &JobId) {
        let Some(slot) = self.slots.get(id) else { return };
        let Some(member) = &slot.member else { return };
        self.groups.are_used = true;
        if slot.has_seat {
            self.groups.by_name.entry(member.name.clone()).or_default().seats.insert(id.clone());
        }
        let Some((name, entry)) = entry_of(id, slot) else { return };
        let group = self.groups.by_name.entry(name).or_default();
        let (first, is_served) = (group.waiting.first().cloned(), !group.seats.is_empty());
        group.waiting.insert(entry.clone());
        match first {
            Some(first) if first < entry => self.block(id, true),
            Some((_, _, first)) => {
                let turn = self.leave_turn(&first).or_else(|| is_served.then_some(self.groups.now));
                self.block(&first, true);
                self.come(id, turn, false);
            }
            None => {}
        }
    }

    /// The job was in its group as this slot has it, and is not any more.
    pub(super) fn leave_group(&mut self, id: &JobId, was: &Slot) {
        let Some(member) = &was.member else { return };
        let Some(group) = self.groups.by_name.get_mut(&member.name) else { return };
        let goes_on = match entry_of(id, was) {
            Some((_, entry)) => {
                let was_first = group.waiting.first() == Some(&entry);
                group.waiting.remove(&entry) && was_first
            }
            None => was.has_seat && group.seats.remove(id),
        };
        let is_served = was.has_seat || !group.seats.is_empty();
        if let Some(turn) = member.turn {
            self.groups.turns[turn.queue(was.priority)].remove(&(turn.at, id.clone()));
        }
        if goes_on {
            let turn = member.turn.and_then(Turn::kept).or_else(|| is_served.then_some(self.groups.now));
            self.let_next(&member.name, turn, false);
        }
    }

    /// A replay claims the job.
    pub(crate) fn take_seat(&mut self, id: &JobId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        if slot.member.is_none() || slot.has_seat || !slot.takes_seat() {
            return;
        }
        let was = slot.clone();
        slot.has_seat = true;
        self.leave_group(id, &was);
        self.join_group(id);
    }

    /// Gives the seat of a job back.
    pub(crate) fn free_seat(&mut self, id: &JobId) {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.has_seat) else { return };
        let was = slot.clone();
        slot.has_seat = false;
        self.touched.change(id, &mut slot.touched, Touch::PLACE);
        self.leave_group(id, &was);
    }

    /// A job that does not run gives its seat back, and waits like the others of its group if it is DELAYED. Returns whether it had one.
    pub(crate) fn pass(&mut self, id: &JobId) -> bool {
        let had_seat = self.slots.get(id).is_some_and(|slot| slot.has_seat);
        self.free_seat(id);
        if had_seat {
            self.join_group(id);
        }
        had_seat
    }

    /// The first job of every group may be claimed, as far as the groups have room.
    pub(crate) fn open_groups(&mut self) {
        let names: Vec<_> = self.groups.by_name.keys().cloned().collect();
        names.iter().for_each(|name| self.let_next(name, Some(self.groups.now), false));
    }

    /// The first job of the group and those with a seat may be claimed.
    pub(super) fn open_group(&mut self, name: &SmolStr, turn: u64) {
        let Some(group) = self.groups.by_name.get(name) else { return };
        let seated: Vec<_> = group.seats.iter().cloned().collect();
        seated.iter().for_each(|id| self.block(id, false));
        self.let_next(name, Some(turn), false);
    }

    /// The first job of the group may be claimed, at this turn unless it stands already; a claim finds out whether there is room. Of a group
    /// that `borrows` it comes after all that is due.
    fn let_next(&mut self, name: &SmolStr, turn: Option<u64>, borrows: bool) {
        let Some(group) = self.groups.by_name.get(name) else { return };
        match group.waiting.first() {
            Some((_, _, first)) => {
                let first = first.clone();
                let stands = |slot: &Slot| !slot.is_blocked || slot.turn().is_some_and(|turn| borrows || !turn.borrows);
                if !self.slots.get(&first).is_some_and(stands) {
                    self.leave_turn(&first);
                    self.come(&first, turn, borrows);
                }
            }
            None if group.seats.is_empty() => drop(self.groups.by_name.remove(name)),
            None => {}
        }
    }

    /// The job stands where claims look: at its due time, or at this turn if that is later.
    fn come(&mut self, id: &JobId, turn: Option<u64>, borrows: bool) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let (Some(member), Place::Timed(_, due)) = (&mut slot.member, &slot.place) else { return };
        let turn = turn.filter(|turn| *turn > due.as_millis().saturating_mul(1_000));
        member.turn = turn.map(|at| Turn { at, borrows });
        if let Some(turn) = member.turn {
            self.groups.turns[turn.queue(slot.priority)].insert((turn.at, id.clone()));
        }
        self.block(id, turn.is_some());
    }

    /// The job stands at no turn any more. Returns the turn that stays with its group.
    fn leave_turn(&mut self, id: &JobId) -> Option<u64> {
        let slot = self.slots.get_mut(id)?;
        let turn = slot.member.as_mut()?.turn.take()?;
        self.groups.turns[turn.queue(slot.priority)].remove(&(turn.at, id.clone()));
        turn.kept()
    }

    /// The earliest time at which a job may be claimed. A turn is never later than now.
    pub(crate) fn head(&self) -> Option<Timestamp> {
        let turn = self.groups.first_turn(Duration::ZERO).map(|(turn, _)| turn);
        let turn = turn.or_else(|| Some(self.groups.turns[BORROWERS].first()?.0));
        let turn = turn.map(|turn| Timestamp::floor_micros(turn.min(self.groups.now)));
        self.index(State::Delayed).head().into_iter().chain(turn).min()
    }

    /// Whether a claim up to this time finds something. What stands at a turn and is due later goes back to its due time with that claim.
    pub(crate) fn is_due(&self, until: Timestamp) -> bool {
        self.index(State::Delayed).is_due(until) || self.groups.turns.iter().any(|turns| !turns.is_empty())
    }

    /// Takes out the job that goes first of those due at `until` or earlier; those of groups that borrow come after all others.
    pub(super) fn pop_due(&mut self, until: Timestamp, ageing: Duration) -> Option<Claimed> {
        loop {
            let index = &mut self.timed[State::Delayed as usize];
            let due = index.next_due(until, ageing).map(|(due, _)| due.as_millis().saturating_mul(1_000));
            let turn = self.groups.first_turn(ageing).filter(|(turn, _)| due.is_none_or(|due| *turn < due));
            let queue = match turn {
                Some((_, priority)) => priority as usize,
                None if due.is_some() => return index.pop_due(until, ageing),
                None => BORROWERS,
            };
            let (_, id) = self.groups.turns[queue].pop_first()?;
            let slot = self.slots.get_mut(&id).expect("a turn is of a job");
            let Place::Timed(_, due) = slot.place else { return None };
            if due <= until {
                index.remove(slot.part(), due, &id);
                return Some((slot.part(), due, id));
            }
            // The topic drains, or the clock has jumped back.
            slot.member.iter_mut().for_each(|member| member.turn = None);
            self.block(&id, false);
        }
    }

    /// Puts back what was taken out for a claim and has no room there.
    pub(super) fn put_back(&mut self, (part, due, id): Claimed) {
        if let Some(slot) = self.slots.get(&id)
            && let Some(turn) = slot.turn()
        {
            self.groups.turns[turn.queue(slot.priority)].insert((turn.at, id.clone()));
        }
        self.timed[State::Delayed as usize].insert(part, due, id);
    }

    fn block(&mut self, id: &JobId, is_blocked: bool) {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.is_blocked != is_blocked) else { return };
        let Place::Timed(place, at) = slot.place else { return };
        let index = &mut self.timed[place as usize];
        index.remove(slot.part(), at, id);
        slot.is_blocked = is_blocked;
        index.insert(slot.part(), at, id.clone());
    }

    /// Gives a seat to each of these jobs that are about to be claimed, while its group has fewer than `seats` says. The others, and all of a group
    /// that is paused or has spent its rate, are blocked, and are taken out of the list.
    pub(super) fn seat(&mut self, due: &mut Vec<Claimed>, seats: Seats, rate: Option<Rate>) {
        if !self.groups.are_used {
            return;
        }
        let (mut open, mut blocked, now) = (Vec::new(), Vec::new(), self.groups.now);
        let Groups { by_name, paused, rates, .. } = &mut self.groups;
        due.retain(|(_, at, id)| {
            let of_slot =
                |slot: &Slot| Some((slot.member.as_ref()?.name.clone(), u64::from(slot.record.weight().get())));
            let Some((name, weight)) = self.slots.get(id).and_then(of_slot) else { return true };
            let is_paused = paused.get(&name).is_some();
            let spent = rate.filter(|rate| !is_paused && !rates.has_room(&name, *rate, now, weight));
            spent.into_iter().for_each(|rate| rates.wait(&name, rate, now, weight));
            let is_shut = is_paused || spent.is_some();
            let group = by_name.entry(name.clone()).or_default();
            let may_borrow = !is_shut && group.may_borrow(seats, &self.slots);
            let Some(slot) = self.slots.get_mut(id) else { return true };
            let Some(member) = slot.member.as_deref_mut() else { return true };
            let has_room = group.seats.len() < seats.own || may_borrow && member.turn.is_some_and(|turn| turn.borrows);
            if is_shut || !slot.has_seat && !has_room {
                member.turn = Some(Turn { at: now, borrows: true }).filter(|_| may_borrow && !slot.has_seat);
                blocked.push((*at, id.clone()));
                return false;
            }
            rate.into_iter().for_each(|rate| rates.spend(&name, rate, now, weight));
            if slot.has_seat {
                open.extend((seats.most > seats.own).then_some(name));
                return true;
            }
            member.turn = None;
            group.waiting.remove(&(*at, member.order, id.clone()));
            group.seats.insert(id.clone());
            open.push(name);
            (slot.has_seat, slot.is_blocked) = (true, false);
            true
        });
        for (at, id) in blocked {
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.is_blocked = true;
                if let Some(turn) = slot.turn() {
                    self.groups.turns[turn.queue(slot.priority)].insert((turn.at, id.clone()));
                }
                self.timed[State::Delayed as usize].insert(slot.part(), at, id);
            }
        }
        for name in open {
            let taken = self.groups.by_name.get(&name).map_or(0, |group| group.seats.len());
            if taken < seats.most {
                self.let_next(&name, Some(self.groups.now), taken >= seats.own);
            }
        }
    }

    /// A page of the groups at this time, in µs. O(groups).
    pub(crate) fn groups(&self, now: u64, GroupsRequest { after, only, limit }: &GroupsRequest) -> GroupPage {
        let clock = Timestamp::floor_micros(now);
        let is_asked = |name: &&SmolStr| {
            after.as_ref().is_none_or(|after| name.as_str() > after.as_str())
                && only.as_ref().is_none_or(|only| name.as_str() == only.as_str())
        };
        let paused = self.groups.paused.after(None).filter(|(_, pause)| pause.is_at(clock));
        let mut names: Vec<_> =
            self.groups.by_name.keys().chain(paused.map(|(name, _)| name)).filter(is_asked).collect();
        names.sort_unstable();
        names.dedup();
        let none = Group::default();
        let seen = |name: &&SmolStr| {
            let group = self.groups.by_name.get(*name).unwrap_or(&none);
            let opens = self.groups.rates.opens(name, now);
            let (pause, name) = (self.pause_of_group(name), GroupName::new((*name).clone()).ok()?);
            let place = |id: &JobId| Some((id.clone(), self.get(id)?.seen_place()));
            let first = group.waiting.first().and_then(|(_, _, id)| self.get(id));
            Some(GroupSeen {
                name,
                waiting: group.waiting.len(),
                seats: group.seats.iter().take(MAX_SEATS).filter_map(place).collect(),
                // A group that may borrow is full as long as anything else is due.
                is_full: first.is_some_and(|first| first.is_blocked && first.turn().is_none_or(|turn| turn.borrows)),
                pause: pause.filter(|pause| pause.is_at(clock)).cloned(),
                opens: opens.map(|opens| Timestamp::from_millis(opens.div_ceil(1_000))),
            })
        };
        let limit = (*limit).max(1);
        GroupPage { groups: names.iter().take(limit).filter_map(seen).collect(), more: names.len() > limit }
    }

    /// Whether each waiting job of a group has an entry and each seat a job, a job that is not first in its group is blocked, and only a first
    /// one stands at a turn.
    pub(super) fn are_groups_consistent(&self) -> bool {
        let group_of = |slot: &Slot| slot.member.as_ref().and_then(|member| self.groups.by_name.get(&member.name));
        self.slots.iter().all(|(id, slot)| match entry_of(id, slot) {
            Some((_, entry)) => group_of(slot).is_some_and(|group| {
                let is_first = group.waiting.first() == Some(&entry);
                let has_turn =
                    |turn: Turn| self.groups.turns[turn.queue(slot.priority)].contains(&(turn.at, id.clone()));
                group.waiting.contains(&entry)
                    && (slot.is_blocked || is_first)
                    && slot.turn().is_none_or(|turn| is_first && slot.is_blocked && has_turn(turn))
            }),
            None => {
                let is_shut = |name| self.pause_of_group(name).is_some() || self.groups.rates.is_waiting(name);
                let may_be_blocked = slot.has_seat && slot.member.iter().any(|member| is_shut(&member.name));
                (may_be_blocked || !slot.is_blocked)
                    && slot.turn().is_none()
                    && (!slot.has_seat || group_of(slot).is_some_and(|group| group.seats.contains(id)))
            }
        }) && self.groups.by_name.values().flat_map(|group| &group.seats).all(|id| self.slots.contains_key(id))
            && self
                .groups
                .turns
                .iter()
                .flatten()
                .all(|(at, id)| self.slots.get(id).and_then(Slot::turn).is_some_and(|turn| turn.at == *at))
    }
}
