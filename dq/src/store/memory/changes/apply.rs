//! Bytes → rows.

use std::borrow::Cow;

use super::super::places::{Log, Place, Slot};
use super::super::topic::Topic;
use super::change::{Change, KeptPlace, Notes, Row, RowPart};
use super::read::{BadChanges, Damage, PassedOver, Reader, Replay, ReplayPart};
use crate::job::limits::{FENCE, POSITION};
use crate::job::{Fence, JobId, NodeId, ProducerId, State};
use crate::store::raw::Raw;
use crate::store::step::DEAD_LEASE;
use crate::store::{OutboxEntry, Packed};
use crate::time::Timestamp;

impl Topic {
    /// Makes the topic what it was after these changes, or after this page of a dump, as far as they are of jobs of this part. Applying
    /// the same changes again, in order, changes nothing. Every node that holds a job is taken for dead: its rows are free for reclaim
    /// at once (rule 20).
    ///
    /// # Errors
    /// [`BadChanges`]; the changes before the damage are applied then, so the topic is of no use. Never panics, whatever the
    /// bytes are.
    pub(crate) fn apply_of(
        &mut self,
        changes: &[u8],
        replay: Replay,
        part: ReplayPart,
    ) -> Result<PassedOver, BadChanges> {
        let log = self.jobs.log();
        self.set_log(Log::Off);
        let mut reader = Reader::new(changes, replay, part);
        let applied = self.apply_all(&mut reader);
        self.set_log(log);
        applied.map(|()| reader.passed)
    }

    /// Puts rows of which only the places are known: so an import finds what earlier ones have put elsewhere.
    pub(crate) fn put_places(&mut self, places: Vec<(bool, State, JobId)>) {
        let log = self.jobs.log();
        self.set_log(Log::Off);
        for (is_broadcast, state, id) in places {
            let (record, at) = (Raw(&[]).record(), Timestamp::EPOCH);
            match is_broadcast {
                true => self.broadcasts.insert(id, record, at),
                false => self.jobs.insert(id, Slot::new(record, 0, Place::Timed(state, at))),
            }
        }
        self.set_log(log);
    }

    /// As [`apply_of`](Self::apply_of), of all jobs.
    #[cfg(test)]
    pub(crate) fn apply(&mut self, changes: &[u8], replay: Replay) -> Result<PassedOver, BadChanges> {
        self.apply_of(changes, replay, ReplayPart::WHOLE)
    }

    fn apply_all(&mut self, reader: &mut Reader<'_>) -> Result<(), BadChanges> {
        while let Some(change) = reader.next()? {
            match change {
                Change::Origin(origin) => reader.origin = origin,
                Change::Claim(node, fence, is_released) => {
                    self.apply_fence(reader, fence);
                    reader.claim = Some((NodeId::new(node), Fence(fence), lease_of_dead(is_released)));
                }
                Change::Put(_) | Change::Part(_) | Change::Gone(_) | Change::Claimed(..) | Change::Lease(..) => {
                    self.apply_to_rows(reader, change)?;
                }
                Change::State(state) => self.settings = state.read(&mut reader.passed.aside),
                Change::PauseOfGroup(name, pause) => {
                    self.jobs.set_pause_of_group(&name.into(), pause.map(Cow::into_owned));
                }
                Change::HistorySetting(setting) => match setting.check() {
                    Ok(setting) => self.histories.set(setting),
                    Err(bad) => reader.passed.aside.push(format!("the setting `history_max`: {bad}")),
                },
                Change::Broadcast(id, broadcast) => match (reader.id(id)?, broadcast) {
                    (Some(id), Some((due, record))) => self.broadcasts.insert(id, record.record(), reader.time(due)),
                    (Some(id), None) if self.broadcasts.remove(&id).is_none() => drop(reader.lacks(id)?),
                    _ => {}
                },
                Change::History(id, history) => {
                    reader.put(&mut self.histories.kept, id, history.map(Cow::into_owned))?;
                }
                Change::Taken(id, taken) => reader.put(&mut self.taken, id, taken)?,
                Change::Member(id, of) => reader.put(&mut self.members, id, of.map(Cow::into_owned))?,
                // The first part has what belongs to no job.
                _ if !reader.part.is_first() => {}
                _ => self.apply_to_topic(reader, change),
            }
        }
        Ok(())
    }

    fn apply_to_rows(&mut self, reader: &mut Reader<'_>, change: Change<'_>) -> Result<(), BadChanges> {
        match change {
            Change::Put(row) => self.apply_put(reader, row)?,
            Change::Part(RowPart { place: Some(KeptPlace { state: State::Running, .. }), .. }) => {
                return Err(reader.bad(Damage::Unknown));
            }
            Change::Part(parts) => {
                let Some(id) = reader.id(parts.id)? else { return Ok(()) };
                if !self.apply_part(reader, &id, parts) {
                    let id = reader.lacks(id)?;
                    reader.passed.changed.push(id);
                }
            }
            Change::Gone(id) => {
                if let Some(id) = reader.id(id)?
                    && self.jobs.remove(&id).is_none()
                {
                    let id = reader.lacks(id)?;
                    reader.passed.gone.push(id);
                }
            }
            Change::Claimed(id, due) => {
                let ((run, _), Some(id)) = (reader.claimed(due)?, reader.id(id)?) else { return Ok(()) };
                if self.jobs.get(&id).is_some() {
                    self.jobs.take_seat(&id);
                    self.jobs.relocate(&id, Place::Running(Box::new(run)));
                } else {
                    let id = reader.lacks(id)?;
                    reader.passed.changed.push(id);
                }
            }
            Change::Lease(node, is_released) => {
                let node = NodeId::new(node);
                // If only a part is loaded, the rows of the node may all be in others.
                let must_be_known = reader.replay == Replay::Strict && reader.part.is_whole();
                if must_be_known && !self.jobs.holders().contains_key(&node) {
                    return Err(reader.bad(Damage::NoLease(node)));
                }
                self.jobs.set_lease(&node, lease_of_dead(is_released));
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_put(&mut self, reader: &Reader<'_>, row: Row<'_>) -> Result<(), BadChanges> {
        let KeptPlace { state, at, has_seat } = row.place;
        let (place, holder) = match state {
            State::Running => {
                let (mut run, lease) = reader.claimed(at)?;
                if let Some(Notes { isolation, pending }) = row.notes {
                    (run.isolation, run.pending) = (isolation, pending.map(Cow::into_owned));
                }
                let holder = (run.node.clone(), lease);
                (Place::Running(Box::new(run)), Some(holder))
            }
            _ => (Place::Timed(state, reader.time(at)), None),
        };
        let Some(id) = reader.id(row.id)? else { return Ok(()) };
        let mut slot = Slot::new(row.record.record(), row.crashes, place);
        slot.has_seat = has_seat;
        self.jobs.insert(id, slot);
        if let Some((node, lease)) = holder {
            self.jobs.set_lease(&node, lease);
        }
        Ok(())
    }

    /// Returns whether the topic has a row that can change so.
    fn apply_part(&mut self, reader: &Reader<'_>, id: &JobId, part: RowPart<'_>) -> bool {
        let mut known = self.jobs.get(id).is_some();
        if let Some(kept) = part.place.filter(|_| known) {
            if !kept.has_seat {
                self.jobs.free_seat(id);
            }
            self.jobs.move_to(id, kept.state, reader.time(kept.at));
        }
        let Some(mut slot) = self.jobs.get_mut(id) else { return false };
        if let Some(crashes) = part.crashes {
            slot.set_crashes(crashes);
        }
        if let Some((Raw(metadata), kept)) = part.metadata {
            match slot.record.with_metadata_bytes(metadata, kept) {
                None => known = false,
                Some(record) if record.group() == slot.record.group() => slot.set_record(record, false),
                // No step does this, so another program wrote it.
                Some(record) => {
                    let mut regrouped = slot.clone();
                    regrouped.record = record;
                    self.jobs.insert(id.clone(), regrouped);
                }
            }
        }
        let Some(mut slot) = self.jobs.get_mut(id) else { return false };
        if let Some(notes) = part.notes {
            let pending = notes.pending.map(Cow::into_owned);
            known &= slot.set_notes(notes.isolation, pending);
        }
        known
    }

    /// Applies a change of what belongs to no job of this topic.
    fn apply_to_topic(&mut self, reader: &mut Reader<'_>, change: Change<'_>) {
        let packed = |batch: Raw<'_>| Packed::from_bytes(batch.copied());
        match change {
            Change::Position(relay, position)
                if reader.is_within(POSITION, position.at, || {
                    format!("how far the follow-ups of `{relay}` have come here")
                }) =>
            {
                self.calls.put(&ProducerId::new(relay), position);
            }
            Change::Outbox(target, position, after, batch) => {
                self.apply_entry(reader, OutboxEntry { target, position, after, batch: packed(batch) });
            }
            Change::OutboxGone(target, position)
                if reader.is_within(POSITION, position.at, || format!("follow-ups that topic `{target}` has got")) =>
            {
                self.outbox.remove(&target, position.at);
                self.outbox.raise(&target, position);
            }
            Change::Set(name, Some((row, then))) => {
                self.job_sets.put(&name, row);
                then.into_iter().for_each(|then| self.job_sets.put_last(&name, packed(then)));
            }
            Change::Set(name, None) => self.job_sets.remove(&name),
            Change::SetMember(name, member, state) => self.job_sets.put_member(&name, member.into_owned(), state),
            _ => {}
        }
    }

    /// The outbox has this entry, unless its position is over its limit.
    fn apply_entry(&mut self, reader: &mut Reader<'_>, entry: OutboxEntry) {
        let is_of = || format!("follow-ups for topic `{}`, which are lost", entry.target);
        if reader.is_within(POSITION, entry.position.at, is_of) {
            self.outbox.put(entry);
        }
    }

    /// A claim got this fence. The run keeps it, and later ones are above it, unless it is over its limit.
    fn apply_fence(&mut self, reader: &mut Reader<'_>, fence: u64) {
        if reader.is_within(FENCE, fence, || "a claim, after which fences follow the clock again".to_owned()) {
            self.raise_fence(Fence(fence));
        }
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
