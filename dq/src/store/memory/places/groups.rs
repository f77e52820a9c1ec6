//! The groups of jobs (rule 4): of the near DELAYED jobs of a group only the one that goes next stands where claims look; the others are
//! blocked. A job that runs has a seat in its group, and so has one that waits and keeps it. The next job of a group that was served stands at
//! the turn of the group if that is after its due time. In time order it is a blocked job, so only claims and the head know of turns.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use foldhash::fast::FixedState;
use smol_str::SmolStr;

use super::paused::PausedGroups;
use super::rates::GroupRates;
use super::{Claimed, Jobs, Log, Place, Slot, TimedPlace, Touch};
use crate::job::{GroupName, JobId, Priority, Record};
use crate::store::groups::MOST_SEATS;
use crate::store::{GroupSeen, GroupsPage, GroupsRequest, Rate};
use crate::time::Timestamp;

/// Where a waiting job stands in its group: due time, order of the adds, and id.
type Entry = (Timestamp, u64, JobId);

/// The groups that have jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    by_name: HashMap<SmolStr, Group, FixedState>,
    /// The jobs that stand at the turn of their group, in µs, apart by priority.
    turns: [BTreeSet<(u64, JobId)>; Priority::ALL.len()],
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

    pub(super) fn set_log(&mut self, log: Log) {
        self.paused.set_log(log);
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
    waiting: BTreeSet<Entry>,
    seats: BTreeSet<JobId>,
}

/// To which group a job belongs.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: SmolStr,
    order: u64,
    /// The turn at which it stands.
    turn: Option<u64>,
}

impl Member {
    pub(super) fn of(record: &Record) -> Option<Box<Self>> {
        record.group().map(|(order, name)| Box::new(Self { name: name.into(), order, turn: None }))
    }
}

/// The group and the entry of a slot that waits in one.
fn entry_of(id: &JobId, slot: &Slot) -> Option<(SmolStr, Entry)> {
    let (Some(member), Place::Timed(TimedPlace::Delayed, due)) = (&slot.member, &slot.place) else { return None };
    (!slot.has_seat).then(|| (member.name.clone(), (*due, member.order, id.clone())))
}

impl Slot {
    /// The turn at which the job stands.
    fn turn(&self) -> Option<u64> {
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
                self.come(id, turn);
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
            self.groups.turns[was.priority as usize].remove(&(turn, id.clone()));
        }
        if goes_on {
            self.let_next(&member.name, member.turn.or_else(|| is_served.then_some(self.groups.now)));
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
        names.iter().for_each(|name| self.let_next(name, Some(self.groups.now)));
    }

    /// The first job of the group and those with a seat may be claimed.
    pub(super) fn open_group(&mut self, name: &SmolStr, turn: u64) {
        let Some(group) = self.groups.by_name.get(name) else { return };
        let seated: Vec<_> = group.seats.iter().cloned().collect();
        seated.iter().for_each(|id| self.block(id, false));
        self.let_next(name, Some(turn));
    }

    /// The first job of the group may be claimed, at this turn unless it stands already; a claim finds out whether there is room.
    fn let_next(&mut self, name: &SmolStr, turn: Option<u64>) {
        let Some(group) = self.groups.by_name.get(name) else { return };
        match group.waiting.first() {
            Some((_, _, first)) => {
                let first = first.clone();
                let stands = |slot: &Slot| !slot.is_blocked || slot.turn().is_some();
                if !self.slots.get(&first).is_some_and(stands) {
                    self.come(&first, turn);
                }
            }
            None if group.seats.is_empty() => drop(self.groups.by_name.remove(name)),
            None => {}
        }
    }

    /// The job stands where claims look: at its due time, or at this turn if that is later.
    fn come(&mut self, id: &JobId, turn: Option<u64>) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let (Some(member), Place::Timed(_, due)) = (&mut slot.member, &slot.place) else { return };
        let turn = turn.filter(|turn| *turn > due.as_millis().saturating_mul(1_000));
        member.turn = turn;
        if let Some(turn) = turn {
            self.groups.turns[slot.priority as usize].insert((turn, id.clone()));
        }
        self.block(id, turn.is_some());
    }

    /// The job stands at no turn any more. Returns at which it stood.
    fn leave_turn(&mut self, id: &JobId) -> Option<u64> {
        let slot = self.slots.get_mut(id)?;
        let turn = slot.member.as_mut()?.turn.take()?;
        self.groups.turns[slot.priority as usize].remove(&(turn, id.clone()));
        Some(turn)
    }

    /// The earliest time at which a job may be claimed. A turn is never later than now.
    pub(crate) fn head(&self) -> Option<Timestamp> {
        let turn = self.groups.first_turn(Duration::ZERO);
        let turn = turn.map(|(turn, _)| Timestamp::floor_micros(turn.min(self.groups.now)));
        self.index(TimedPlace::Delayed).head().into_iter().chain(turn).min()
    }

    /// Whether a claim up to this time finds something. What stands at a turn and is due later goes back to its due time with that claim.
    pub(crate) fn is_due(&self, until: Timestamp) -> bool {
        self.index(TimedPlace::Delayed).is_due(until) || self.groups.first_turn(Duration::ZERO).is_some()
    }

    /// Takes out the job that goes first of those due at `until` or earlier.
    pub(super) fn pop_due(&mut self, until: Timestamp, ageing: Duration) -> Option<Claimed> {
        loop {
            let index = &mut self.timed[TimedPlace::Delayed as usize];
            let due = index.next_due(until, ageing).map(|(due, _)| due.as_millis().saturating_mul(1_000));
            let turn = self.groups.first_turn(ageing).filter(|(turn, _)| due.is_none_or(|due| *turn < due));
            let Some((_, priority)) = turn else { return index.pop_due(until, ageing) };
            let (_, id) = self.groups.turns[priority as usize].pop_first()?;
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
            self.groups.turns[slot.priority as usize].insert((turn, id.clone()));
        }
        self.timed[TimedPlace::Delayed as usize].insert(part, due, id);
    }

    fn block(&mut self, id: &JobId, is_blocked: bool) {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.is_blocked != is_blocked) else { return };
        let Place::Timed(place, at) = slot.place else { return };
        let index = &mut self.timed[place as usize];
        index.remove(slot.part(), at, id);
        slot.is_blocked = is_blocked;
        index.insert(slot.part(), at, id.clone());
    }

    /// Gives a seat to each of these jobs that are about to be claimed, while its group has fewer than `most`. The others, and all of a group
    /// that is paused or has spent its rate, are blocked, and are taken out of the list.
    pub(super) fn seat(&mut self, due: &mut Vec<Claimed>, most: usize, rate: Option<Rate>) {
        if !self.groups.are_used {
            return;
        }
        let (mut open, mut blocked, now) = (Vec::new(), Vec::new(), self.groups.now);
        let Groups { by_name, paused, rates, .. } = &mut self.groups;
        due.retain(|(_, at, id)| {
            let Some(slot) = self.slots.get_mut(id) else { return true };
            let Some(member) = slot.member.as_deref_mut() else { return true };
            let (is_paused, weight) = (paused.has(&member.name), u64::from(slot.record.weight().get()));
            let spent = rate.filter(|rate| !is_paused && !rates.has_room(&member.name, *rate, now, weight));
            spent.into_iter().for_each(|rate| rates.wait(&member.name, rate, now, weight));
            let is_shut = is_paused || spent.is_some();
            let group = by_name.entry(member.name.clone()).or_default();
            if is_shut || !slot.has_seat && group.seats.len() >= most {
                member.turn = None;
                blocked.push((*at, id.clone()));
                return false;
            }
            rate.into_iter().for_each(|rate| rates.spend(&member.name, rate, now, weight));
            if slot.has_seat {
                return true;
            }
            member.turn = None;
            group.waiting.remove(&(*at, member.order, id.clone()));
            group.seats.insert(id.clone());
            open.push(member.name.clone());
            (slot.has_seat, slot.is_blocked) = (true, false);
            true
        });
        for (at, id) in blocked {
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.is_blocked = true;
                self.timed[TimedPlace::Delayed as usize].insert(slot.part(), at, id);
            }
        }
        for name in open {
            if self.groups.by_name.get(&name).is_some_and(|group| group.seats.len() < most) {
                self.let_next(&name, Some(self.groups.now));
            }
        }
    }

    /// A page of the groups at this time, in µs. O(groups).
    pub(crate) fn groups(&self, now: u64, GroupsRequest { after, only, limit }: &GroupsRequest) -> GroupsPage {
        let clock = Timestamp::floor_micros(now);
        let is_asked = |name: &&SmolStr| {
            after.as_ref().is_none_or(|after| name.as_str() > after.as_str())
                && only.as_ref().is_none_or(|only| name.as_str() == only.as_str())
        };
        let is_paused = |name: &&SmolStr| self.pause_of_group(name).is_some_and(|pause| pause.is_at(clock));
        let paused = self.groups.paused.names_after(None).filter(is_paused);
        let mut names: Vec<_> = self.groups.by_name.keys().chain(paused).filter(is_asked).collect();
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
                seats: group.seats.iter().take(MOST_SEATS).filter_map(place).collect(),
                is_full: first.is_some_and(|first| first.is_blocked && first.turn().is_none()),
                pause: pause.filter(|pause| pause.is_at(clock)).cloned(),
                opens: opens.map(|opens| Timestamp::from_millis(opens.div_ceil(1_000))),
            })
        };
        let limit = (*limit).max(1);
        GroupsPage { groups: names.iter().take(limit).filter_map(seen).collect(), more: names.len() > limit }
    }

    /// Whether each waiting job of a group has an entry and each seat a job, a job that is not first in its group is blocked, and only a first
    /// one stands at a turn.
    pub(super) fn are_groups_consistent(&self) -> bool {
        let group_of = |slot: &Slot| slot.member.as_ref().and_then(|member| self.groups.by_name.get(&member.name));
        self.slots.iter().all(|(id, slot)| match entry_of(id, slot) {
            Some((_, entry)) => group_of(slot).is_some_and(|group| {
                let is_first = group.waiting.first() == Some(&entry);
                let has_turn = |turn| self.groups.turns[slot.priority as usize].contains(&(turn, id.clone()));
                group.waiting.contains(&entry)
                    && (slot.is_blocked || is_first)
                    && slot.turn().is_none_or(|turn| is_first && slot.is_blocked && has_turn(turn))
            }),
            None => {
                let is_shut = |name| self.groups.paused.has(name) || self.groups.rates.is_waiting(name);
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
                .all(|(turn, id)| self.slots.get(id).is_some_and(|slot| slot.turn() == Some(*turn)))
    }
}
