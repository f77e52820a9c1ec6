//! Bytes → rows.

use std::hash::BuildHasher;

use bytes::Bytes;
use foldhash::fast::FixedState;

use super::super::histories::History;
use super::super::job_sets::{MemberState, SetRow};
use super::super::places::{Log, Place, Run, Slot, TimedPlace};
use super::super::taken::TakenId;
use super::super::topic::Topic;
use super::read::{BadChanges, Damage, Reader, record_of};
use super::{bits, kind};
use crate::job::{Fence, JobId, ProducerId, Token, TopicName};
use crate::store::step::DEAD_LEASE;
use crate::store::{CopyPlace, Membership, OnDead, OutboxEntry, Packed, SetCounts, SetState};
use crate::time::Timestamp;

/// What a replay does with a change of a row that the topic does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// It fails: every row is known.
    Strict,
    /// It goes on: the changes were made while the dump was taken that the topic was loaded from, so the dump may have been
    /// ahead of them, and a later change has the row whole or gone.
    WithinDump,
}

/// Which jobs are loaded: all, or one part of several, by their ids. So a directory that is larger than the memory is read part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    number: u64,
    of: u64,
}

impl Part {
    /// All jobs.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// So many parts, which have about equally many jobs.
    pub fn each(of: u64) -> impl Iterator<Item = Self> {
        (0..of.max(1)).map(move |number| Self { number, of: of.max(1) })
    }

    /// Whether what belongs to no job is loaded with it.
    fn is_first(self) -> bool {
        self.number == 0
    }

    fn is_whole(self) -> bool {
        self == Self::WHOLE
    }

    fn has(self, id: &JobId) -> bool {
        // Another seed than that of the tables, in which the jobs of a part would collide.
        self.is_whole() || FixedState::with_seed(self.of).hash_one(id.as_str()) % self.of == self.number
    }
}

/// The rows that changes are of and that the topic does not have. Only within a dump; else there are none.
#[derive(Debug, Default)]
pub struct PassedOver {
    /// Rows that were changed.
    pub changed: Vec<JobId>,
    /// Rows that went.
    pub gone: Vec<JobId>,
}

impl Topic {
    /// Makes the topic what it was after these changes, or after this page of a dump, as far as they are of jobs of this part. Applying
    /// the same changes again, in order, changes nothing. Every node that holds a job is taken for dead: its rows are free for reclaim
    /// at once (rule 20).
    ///
    /// # Errors
    /// [`BadChanges`]; the changes before the damage are applied then, so the topic is of no use. Never panics, whatever the
    /// bytes are.
    pub(crate) fn apply_of(&mut self, changes: &[u8], replay: Replay, part: Part) -> Result<PassedOver, BadChanges> {
        let log = self.jobs.log();
        self.set_log(Log::Off);
        let applied = self.apply_groups(&mut Reader::new(changes), replay, part);
        self.set_log(log);
        applied
    }

    /// Puts rows of which only the places are known: so an import finds what earlier ones have put elsewhere.
    pub(crate) fn put_places(&mut self, places: Vec<(JobId, CopyPlace)>) {
        let log = self.jobs.log();
        self.set_log(Log::Off);
        for (id, place) in places {
            let (record, at) = (record_of(&[]), Timestamp::EPOCH);
            match TimedPlace::ALL.into_iter().find(|timed| timed.copied() == place) {
                Some(timed) => self.jobs.insert(id, Slot::new(record, 0, Place::Timed(timed, at))),
                None => self.broadcasts.insert(id, record, at),
            }
        }
        self.set_log(log);
    }

    /// As [`apply_of`](Self::apply_of), of all jobs.
    #[cfg(test)]
    pub(crate) fn apply(&mut self, changes: &[u8], replay: Replay) -> Result<PassedOver, BadChanges> {
        self.apply_of(changes, replay, Part::WHOLE)
    }

    fn apply_groups(&mut self, reader: &mut Reader<'_>, replay: Replay, part: Part) -> Result<PassedOver, BadChanges> {
        let mut passed = PassedOver::default();
        while let Some(kind) = reader.group()? {
            match kind {
                kind::PUT
                | kind::PART
                | kind::GONE
                | kind::BROADCAST
                | kind::BROADCAST_GONE
                | kind::HISTORY
                | kind::HISTORY_GONE
                | kind::TAKEN => {
                    while let Some(id) = reader.item()? {
                        let is_loaded = part.has(&id);
                        match self.apply_item(reader, kind, &id, is_loaded)? {
                            _ if !is_loaded => {}
                            true => {}
                            false if replay == Replay::Strict => return Err(reader.bad(Damage::NoRow(id))),
                            false if kind == kind::PART => passed.changed.push(id),
                            false if kind == kind::GONE => passed.gone.push(id),
                            false => {}
                        }
                    }
                }
                kind::CLAIM => self.apply_claims(reader, replay, part, &mut passed.changed)?,
                // The rows of the node may all be in other parts.
                kind::LEASE if !part.is_whole() => self.apply_leases(reader, Replay::WithinDump)?,
                kind::LEASE => self.apply_leases(reader, replay)?,
                kind::POSITION | kind::OUTBOX | kind::OUTBOX_GONE => {
                    self.apply_outbox(reader, kind, part.is_first())?;
                }
                kind::MEMBER => self.apply_members(reader, part)?,
                kind::SET | kind::SET_GONE | kind::SET_MEMBER => self.apply_sets(reader, kind, part.is_first())?,
                kind::STATE => {
                    let jobs = &mut self.jobs;
                    reader.state(&mut self.settings, |name, pause| jobs.set_pause_of_group(&name, pause))?;
                }
                kind::HISTORY_SETTING => self.histories.set(reader.history_setting()?),
                unknown => return Err(reader.bad(Damage::UnknownKind(unknown))),
            }
        }
        Ok(passed)
    }

    /// Applies a change of what this id stands for, or only reads it. Returns whether the topic has what can change so.
    fn apply_item(
        &mut self,
        reader: &mut Reader<'_>,
        kind: u8,
        id: &JobId,
        is_loaded: bool,
    ) -> Result<bool, BadChanges> {
        match kind {
            kind::PUT => self.apply_put(reader, id, is_loaded)?,
            kind::PART => return self.apply_part(reader, id),
            kind::GONE => return Ok(self.jobs.remove(id).is_some()),
            kind::BROADCAST => {
                let (due, record) = (reader.time()?, reader.bytes()?);
                if is_loaded {
                    self.broadcasts.insert(id.clone(), record_of(record), due);
                }
            }
            kind::BROADCAST_GONE => return Ok(self.broadcasts.remove(id).is_some()),
            kind::HISTORY => {
                let until = reader.number()?.checked_sub(1).map(Timestamp::from_millis);
                let text = std::str::from_utf8(reader.bytes()?).map_err(|_| reader.bad(Damage::Name))?;
                if is_loaded {
                    self.histories.put(id, Some(History { text: text.to_owned(), until }));
                }
            }
            kind::TAKEN => {
                let number = reader.number()?;
                let taken = (number >> 1)
                    .checked_sub(1)
                    .map(|until| TakenId { until: Timestamp::from_millis(until), was_deleted: number & 1 != 0 });
                if number == 1 {
                    return Err(reader.bad(Damage::Number));
                }
                if is_loaded {
                    self.taken.put(id, taken);
                }
            }
            _ if is_loaded => self.histories.put(id, None),
            _ => {}
        }
        Ok(true)
    }

    fn apply_put(&mut self, reader: &mut Reader<'_>, id: &JobId, is_loaded: bool) -> Result<(), BadChanges> {
        const OF_RUN: u8 = bits::GROUPED | bits::ALONE | bits::PENDING;
        let flags = reader.byte()?;
        let place = reader.place(flags & bits::PLACE)?;
        if place.is_some() && flags & OF_RUN != 0 {
            return Err(reader.bad(Damage::Flags(flags)));
        }
        let (place, node) = match place {
            Some(place) => (Place::Timed(place, reader.time()?), None),
            None => {
                let node = reader.node()?;
                let token = Token { fence: reader.fence()?, due: reader.time()? };
                let (isolation, pending) = reader.notes(flags)?;
                self.raise_fence(token.fence);
                (Place::Running(Box::new(Run { isolation, pending, ..Run::new(node.clone(), token) })), Some(node))
            }
        };
        let crashes = if flags & bits::CRASHES == 0 { 0 } else { reader.crashes()? };
        let record = reader.bytes()?;
        if !is_loaded {
            return Ok(());
        }
        let mut slot = Slot::new(record_of(record), crashes, place);
        slot.has_seat =
            slot.record.group().is_some() && if node.is_some() { slot.takes_seat() } else { flags & bits::SEAT != 0 };
        self.jobs.insert(id.clone(), slot);
        if let Some(node) = node {
            self.jobs.set_lease(&node, lease_of_dead(flags & bits::RELEASED != 0));
        }
        Ok(())
    }

    fn apply_part(&mut self, reader: &mut Reader<'_>, id: &JobId) -> Result<bool, BadChanges> {
        const KNOWN: u8 = bits::HAS_PLACE | bits::HAS_CRASHES | bits::HAS_METADATA | bits::HAS_NOTES;
        let flags = reader.byte()?;
        if flags & !KNOWN != 0 {
            return Err(reader.bad(Damage::Flags(flags)));
        }
        let mut known = self.jobs.get(id).is_some();
        if flags & bits::HAS_PLACE != 0 {
            let number = reader.byte()?;
            let Some(place) = reader.place(number & !bits::SEAT)? else {
                return Err(reader.bad(Damage::Flags(number)));
            };
            let at = reader.time()?;
            if known {
                if number & bits::SEAT == 0 {
                    self.jobs.free_seat(id);
                }
                self.jobs.move_to(id, place, at);
            }
        }
        let mut slot = self.jobs.get_mut(id);
        if flags & bits::HAS_CRASHES != 0 {
            let crashes = reader.crashes()?;
            slot.iter_mut().for_each(|slot| slot.set_crashes(crashes));
        }
        if flags & bits::HAS_METADATA != 0 {
            let (metadata, kept) = (reader.bytes()?, reader.length()?);
            known &= slot.as_mut().is_some_and(|slot| {
                let record = slot.record.with_metadata_bytes(metadata, kept);
                record.map(|record| slot.set_record(record, false)).is_some()
            });
        }
        if flags & bits::HAS_NOTES != 0 {
            let notes = reader.byte()?;
            if notes & !(bits::GROUPED | bits::ALONE | bits::PENDING) != 0 {
                return Err(reader.bad(Damage::Flags(notes)));
            }
            let (isolation, pending) = reader.notes(notes)?;
            known &= slot.is_some_and(|mut slot| slot.set_notes(isolation, pending));
        }
        Ok(known)
    }

    fn apply_claims(
        &mut self,
        reader: &mut Reader<'_>,
        replay: Replay,
        part: Part,
        passed: &mut Vec<JobId>,
    ) -> Result<(), BadChanges> {
        let (node, fence) = (reader.node()?, reader.fence()?);
        self.raise_fence(fence);
        while let Some(id) = reader.item()? {
            let token = Token { fence, due: reader.time()? };
            if self.jobs.get(&id).is_some() {
                self.jobs.take_seat(&id);
                self.jobs.relocate(&id, Place::Running(Box::new(Run::new(node.clone(), token))));
            } else if !part.has(&id) {
                continue;
            } else if replay == Replay::Strict {
                return Err(reader.bad(Damage::NoRow(id)));
            } else {
                passed.push(id);
            }
        }
        Ok(())
    }

    fn apply_leases(&mut self, reader: &mut Reader<'_>, replay: Replay) -> Result<(), BadChanges> {
        while let Some(node) = reader.next_node()? {
            let is_released = match reader.byte()? {
                0 => false,
                1 => true,
                other => return Err(reader.bad(Damage::Flags(other))),
            };
            if replay == Replay::Strict && !self.jobs.holders().contains_key(&node) {
                return Err(reader.bad(Damage::NoLease(node)));
            }
            self.jobs.set_lease(&node, lease_of_dead(is_released));
        }
        Ok(())
    }

    /// Applies changes of the outbox and of the positions of others, or only reads them.
    fn apply_outbox(&mut self, reader: &mut Reader<'_>, kind: u8, is_loaded: bool) -> Result<(), BadChanges> {
        while let Some(name) = reader.name()? {
            let position = reader.fence()?.0;
            if kind == kind::POSITION {
                if is_loaded {
                    self.calls.raise(&ProducerId::new(name), position);
                }
                continue;
            }
            let target = TopicName::new(name).map_err(|_| reader.bad(Damage::Name))?;
            if kind == kind::OUTBOX_GONE {
                if is_loaded {
                    self.outbox.remove(&target, position);
                    self.outbox.raise(&target, position);
                }
                continue;
            }
            let (after, batch) = (reader.fence()?.0, Packed::from_bytes(Bytes::copy_from_slice(reader.bytes()?)));
            if is_loaded {
                self.outbox.put(OutboxEntry { target, position, after, batch });
            }
        }
        Ok(())
    }

    fn apply_members(&mut self, reader: &mut Reader<'_>, part: Part) -> Result<(), BadChanges> {
        while let Some(id) = reader.item()? {
            let membership = match reader.name()? {
                None => None,
                Some(home) => {
                    let home = TopicName::new(home).map_err(|_| reader.bad(Damage::Name))?;
                    let set = reader.item()?.ok_or_else(|| reader.bad(Damage::Name))?;
                    let letter = reader.byte()?;
                    let on_dead = OnDead::of_letter(letter).ok_or_else(|| reader.bad(Damage::Flags(letter)))?;
                    Some(Membership { home, set, on_dead })
                }
            };
            if part.has(&id) {
                self.members.put(&id, membership);
            }
        }
        Ok(())
    }

    /// Applies changes of job sets, or only reads them.
    fn apply_sets(&mut self, reader: &mut Reader<'_>, kind: u8, is_loaded: bool) -> Result<(), BadChanges> {
        while let Some(name) = reader.item()? {
            match kind {
                kind::SET => {
                    let (letter, cancels) = (reader.byte()?, reader.byte()? != 0);
                    let state = SetState::of_letter(letter).ok_or_else(|| reader.bad(Damage::Flags(letter)))?;
                    let mut number = || reader.number();
                    let (members, acked, dead, left) = (number()?, number()?, number()?, number()?);
                    let (since, then) = (Timestamp::from_millis(number()?), reader.bytes()?);
                    let counts = SetCounts { members, acked, dead, left };
                    if is_loaded {
                        self.job_sets.put(&name, SetRow { state, counts, since, cancels });
                        if !then.is_empty() {
                            self.job_sets.put_last(&name, Packed::from_bytes(Bytes::copy_from_slice(then)));
                        }
                    }
                }
                kind::SET_GONE if is_loaded => self.job_sets.remove(&name),
                kind::SET_GONE => {}
                _ => {
                    let topic = reader.name()?.and_then(|topic| TopicName::new(topic).ok());
                    let topic = topic.ok_or_else(|| reader.bad(Damage::Name))?;
                    let (id, number) = (reader.item()?.ok_or_else(|| reader.bad(Damage::Name))?, reader.byte()?);
                    let state = MemberState::ALL.get(usize::from(number)).copied();
                    let state = state.ok_or_else(|| reader.bad(Damage::Flags(number)))?;
                    if is_loaded {
                        self.job_sets.put_member(&name, (topic, id), state);
                    }
                }
            }
        }
        Ok(())
    }

    /// No later claim gets this fence or a smaller one.
    pub(crate) fn raise_fence(&mut self, fence: Fence) {
        self.fence = self.fence.max(fence);
        self.jobs.set_last_claim(fence);
    }
}

/// The lease of a node of a process that has ended, which had released it or not.
const fn lease_of_dead(is_released: bool) -> Timestamp {
    if is_released { Timestamp::EPOCH } else { DEAD_LEASE }
}
