//! The groups of jobs (rule 4): of the near DELAYED jobs of a group only the one that goes next stands where claims look; the others are
//! blocked. A job that runs has a seat in its group, and so has one that waits and keeps it.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;
use smol_str::SmolStr;

use super::{Claimed, Jobs, Place, Slot, TimedPlace, Touch};
use crate::job::{JobId, Record};
use crate::time::Timestamp;

/// Where a waiting job stands in its group: due time, order of the adds, and id.
type Entry = (Timestamp, u64, JobId);

/// The groups that have jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    by_name: HashMap<SmolStr, Group, FixedState>,
    /// Whether a job has ever had a group.
    pub(super) are_used: bool,
}

#[derive(Debug, Clone, Default)]
struct Group {
    waiting: BTreeSet<Entry>,
    seats: BTreeSet<JobId>,
}

/// To which group a job belongs.
#[derive(Debug, Clone)]
pub(super) struct Member {
    name: SmolStr,
    order: u64,
}

impl Member {
    pub(super) fn of(record: &Record) -> Option<Box<Self>> {
        record.group().map(|(order, name)| Box::new(Self { name: name.into(), order }))
    }
}

/// The group and the entry of a slot that waits in one.
fn entry_of(id: &JobId, slot: &Slot) -> Option<(SmolStr, Entry)> {
    let (Some(member), Place::Timed(TimedPlace::Delayed, due)) = (&slot.member, &slot.place) else { return None };
    (!slot.has_seat).then(|| (member.name.clone(), (*due, member.order, id.clone())))
}

impl Jobs {
    /// Whether a job has ever had a group.
    pub(crate) const fn have_groups(&self) -> bool {
        self.groups.are_used
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
        let waiting = &mut self.groups.by_name.entry(name).or_default().waiting;
        let first = waiting.first().cloned();
        waiting.insert(entry.clone());
        match first {
            Some(first) if first < entry => self.block(id, true),
            Some((_, _, first)) => self.block(&first, true),
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
        if goes_on {
            self.let_next(&member.name);
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

    /// The first job of every group may be claimed, as far as the groups have room.
    pub(crate) fn open_groups(&mut self) {
        let names: Vec<_> = self.groups.by_name.keys().cloned().collect();
        names.iter().for_each(|name| self.let_next(name));
    }

    /// The first job of the group may be claimed; a claim finds out whether there is room.
    fn let_next(&mut self, name: &SmolStr) {
        let Some(group) = self.groups.by_name.get(name) else { return };
        match group.waiting.first() {
            Some((_, _, first)) => {
                let first = first.clone();
                self.block(&first, false);
            }
            None if group.seats.is_empty() => drop(self.groups.by_name.remove(name)),
            None => {}
        }
    }

    fn block(&mut self, id: &JobId, is_blocked: bool) {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.is_blocked != is_blocked) else { return };
        let Place::Timed(place, at) = slot.place else { return };
        let index = &mut self.timed[place as usize];
        index.remove(slot.part(), at, id);
        slot.is_blocked = is_blocked;
        index.insert(slot.part(), at, id.clone());
    }

    /// Gives a seat to each of these jobs that are about to be claimed, while its group has fewer than `most`. The others are blocked, and
    /// are taken out of the list.
    pub(super) fn seat(&mut self, due: &mut Vec<Claimed>, most: usize) {
        if !self.groups.are_used {
            return;
        }
        let (mut open, mut blocked) = (Vec::new(), Vec::new());
        due.retain(|(_, at, id)| {
            let Some(slot) = self.slots.get_mut(id) else { return true };
            let Some(member) = slot.member.as_deref().filter(|_| !slot.has_seat) else { return true };
            let group = self.groups.by_name.entry(member.name.clone()).or_default();
            if group.seats.len() >= most {
                blocked.push((*at, id.clone()));
                return false;
            }
            group.waiting.remove(&(*at, member.order, id.clone()));
            group.seats.insert(id.clone());
            open.push(member.name.clone());
            slot.has_seat = true;
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
                self.let_next(&name);
            }
        }
    }

    /// Whether each waiting job of a group has an entry and each seat a job, and a job that is not first in its group is blocked.
    pub(super) fn are_groups_consistent(&self) -> bool {
        let group_of = |slot: &Slot| slot.member.as_ref().and_then(|member| self.groups.by_name.get(&member.name));
        self.slots.iter().all(|(id, slot)| match entry_of(id, slot) {
            Some((_, entry)) => group_of(slot).is_some_and(|group| {
                group.waiting.contains(&entry) && (slot.is_blocked || group.waiting.first() == Some(&entry))
            }),
            None => {
                !slot.is_blocked && (!slot.has_seat || group_of(slot).is_some_and(|group| group.seats.contains(id)))
            }
        }) && self.groups.by_name.values().flat_map(|group| &group.seats).all(|id| self.slots.contains_key(id))
    }
}
