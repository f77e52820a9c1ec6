//! The step `change`: another due time or another payload for jobs that are there (rule 28).

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::now::Now;
use super::places::{Place, Room, Slot};
use super::topic::Topic;
use crate::job::{Codec, JobId, Metadata, ProducerId, Record, State};
use crate::store::step::DEFAULT_BYTES;
use crate::store::{
    ChangeKind, ChangeOutcome, ChangeVerdict, Due, JobChange, LATEST_DUE, OptionChange, StoreError, Transition,
};
use crate::time::Timestamp;

/// The latest time that fits in a record.
pub(super) const LATEST_EXPIRY: Timestamp = Timestamp::from_millis((1 << 48) - 1);

/// What becomes of each part of a job: of the one in the queue, and of the broadcast that waits.
pub(super) struct Edit<'a> {
    pub(super) version: u32,
    pub(super) first_added: Option<Timestamp>,
    pub(super) payload: Option<&'a Record>,
    pub(super) options: Option<&'a OptionChange>,
}

impl Edit<'_> {
    /// The record after the change. Its expiry keeps its distance to the due time.
    pub(super) fn of(&self, record: &Record, due: Option<(Timestamp, Timestamp)>) -> Record {
        let metadata = record.metadata().unwrap_or_default();
        let expires_at = match (metadata.expires_at, due) {
            (Some(at), Some((old, new))) => Some(moved(at, old, new)),
            (at, _) => at,
        };
        let metadata = Metadata { expires_at, version: self.version, first_added: self.first_added, ..metadata };
        let metadata = self.options.map_or_else(|| metadata.clone(), |options| options.of(metadata.clone()));
        self.payload.unwrap_or(record).with_metadata(&metadata)
    }
}

/// The time that is as far from `new` as `at` is from `old`.
fn moved(at: Timestamp, old: Timestamp, new: Timestamp) -> Timestamp {
    let moved = (at.as_millis() + new.as_millis()).saturating_sub(old.as_millis());
    Timestamp::from_millis(moved).min(LATEST_EXPIRY)
}

/// What a change needs to know of a job.
#[derive(Default)]
pub(super) struct Present {
    pub(super) version: u32,
    pub(super) first_added: Option<Timestamp>,
    pub(super) due: Option<Timestamp>,
}

impl Present {
    pub(super) fn of(record: &Record) -> Self {
        let fixed = record.fixed();
        Self { version: fixed.version, first_added: fixed.first_added, due: None }
    }
}

/// When the first job and the first broadcast are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    job: Option<Timestamp>,
    broadcast: Option<Timestamp>,
}

impl Topic {
    /// Applies the changes in order. O(n log n).
    pub(crate) fn change(
        &mut self,
        now: Now,
        producer: &ProducerId,
        changes: &[JobChange],
    ) -> Result<Vec<ChangeOutcome>, StoreError> {
        let mut left_out = self.over_the_bytes(changes.iter().map(|item| (&item.id, self.broadcast_size(&item.id))));
        if let Err(full) = self.memory.take("change", changes.iter().map(|item| self.growth(item)).sum()) {
            // The changes of other callers need no room. What grows comes again, and is refused once it comes without them.
            left_out.extend(changes.iter().filter(|item| self.growth(item) > 0).map(|item| item.id.clone()));
            if changes.iter().all(|item| left_out.contains(&item.id)) {
                return Err(full);
            }
        }
        let heads = self.heads();
        let mut outcomes = Vec::with_capacity(changes.len());
        for item in changes {
            outcomes.push(match left_out.contains(&item.id) {
                true => ChangeOutcome { verdict: ChangeVerdict::Later, ..unknown(self.state(&item.id)) },
                false => self.change_one(now, producer, item),
            });
        }
        self.signal_new_heads(now, heads);
        Ok(outcomes)
    }

    /// By how many bytes the payloads grow.
    fn growth(&self, JobChange { id, what, .. }: &JobChange) -> u64 {
        let new = match what {
            ChangeKind::Update(new) => new,
            ChangeKind::Options(options) => {
                return Record::new(&options.of(Metadata::default()), Codec::Json, b"").as_bytes().len() as u64;
            }
            _ => return 0,
        };
        let of_job = self.jobs.get(id).map(|slot| &slot.record);
        let of_broadcast = self.broadcasts.get(id).map(|(_, record)| record);
        let grows = |old: &Record| new.payload_length().saturating_sub(old.payload_length());
        of_job.into_iter().chain(of_broadcast).map(grows).sum()
    }

    pub(super) fn broadcast_size(&self, id: &JobId) -> usize {
        self.broadcasts.get(id).map_or(0, |(_, record)| record.as_bytes().len())
    }

    /// The ids that have too many bytes to move in one batch, with those before them (rule 5).
    pub(super) fn over_the_bytes<'a>(
        &self,
        sizes: impl Iterator<Item = (&'a JobId, usize)>,
    ) -> HashSet<JobId, FixedState> {
        let (mut named, mut over) = (HashSet::with_hasher(FixedState::default()), HashSet::default());
        let mut room = Room::new(DEFAULT_BYTES);
        for (id, size) in sizes.filter(|(_, size)| *size > 0) {
            if named.insert(id) && !room.takes(size) {
                over.insert(id.clone());
            }
        }
        over
    }

    fn change_one(
        &mut self,
        now: Now,
        producer: &ProducerId,
        JobChange { id, what, if_version, by }: &JobChange,
    ) -> ChangeOutcome {
        let Some(found) = self.state(id) else { return unknown(None) };
        let Present { version, first_added, .. } = self.present(id);
        let verdict = match if_version {
            _ if !what.applies_to(found) => ChangeVerdict::Refused,
            Some(wanted) if *wanted != version => ChangeVerdict::OtherVersion,
            _ if version == u32::MAX => ChangeVerdict::LastVersion,
            _ => ChangeVerdict::Changed,
        };
        if verdict == ChangeVerdict::Changed {
            let (payload, options) = match what {
                ChangeKind::Update(record) => (Some(record), None),
                ChangeKind::Options(options) => (None, Some(options)),
                _ => (None, None),
            };
            let edit = Edit { version: version + 1, first_added, payload, options };
            self.edit(id, &edit, |due| new_due(now, what, due));
        }
        let Present { version, due, .. } = self.present(id);
        if verdict == ChangeVerdict::Changed {
            let by = || by.as_deref().unwrap_or(producer.as_str()).to_owned();
            self.record.note(id, || Transition::Changed { due, by: by() });
        }
        ChangeOutcome { found: Some(found), verdict, version, due }
    }

    /// The version of a job, and when it is due. A broadcast that waits counts where the queue has no such job, or a DONE one.
    pub(super) fn present(&self, id: &JobId) -> Present {
        let slot = self.jobs.get(id).filter(|slot| slot.place.state() != State::Done || !self.broadcasts.contains(id));
        match (slot, self.broadcasts.get(id)) {
            (Some(slot), _) => Present { due: due_of(slot), ..Present::of(&slot.record) },
            (None, Some((due, record))) => Present { due: Some(*due), ..Present::of(record) },
            (None, None) => Present::default(),
        }
    }

    /// Changes the job in the queue, unless it is DONE, and the broadcast that waits. `new_due` gets the old due time of each.
    pub(super) fn edit(&mut self, id: &JobId, edit: &Edit<'_>, new_due: impl Fn(Timestamp) -> Timestamp) {
        if let Some(mut slot) = self.jobs.get_mut(id).filter(|slot| slot.place.state() != State::Done) {
            let due = due_of(&slot).map(|old| (old, new_due(old)));
            let record = edit.of(&slot.record, due);
            slot.set_record(record, edit.payload.is_some());
            if let Some((_, new)) = due.filter(|(old, new)| old != new) {
                self.jobs.move_to(id, State::Delayed, new);
            }
        }
        if let Some((old, record)) = self.broadcasts.get(id) {
            let due = new_due(*old);
            let record = edit.of(record, Some((*old, due)));
            self.broadcasts.insert(id.clone(), record, due);
        }
    }

    pub(super) fn heads(&self) -> Heads {
        Heads { job: self.jobs.head(), broadcast: self.broadcasts.head() }
    }

    /// Signals the heads that are earlier than these, as an add does.
    pub(super) fn signal_new_heads(&mut self, now: Now, before: Heads) {
        let is_earlier = |new: Option<Timestamp>, old: Option<Timestamp>| match (new, old) {
            (Some(new), Some(old)) => new < old,
            (new, _) => new.is_some(),
        };
        let Heads { job, broadcast } = self.heads();
        if let Some(due) = job.filter(|_| is_earlier(job, before.job) && !self.jobs.have_groups()) {
            self.signal_head(now, due);
        }
        if is_earlier(broadcast, before.broadcast) {
            self.signal_earlier_broadcast(now);
        }
    }
}

const fn due_of(slot: &Slot) -> Option<Timestamp> {
    match slot.place {
        Place::Timed(State::Delayed, due) => Some(due),
        Place::Timed(..) | Place::Running(_) => None,
    }
}

fn new_due(now: Now, what: &ChangeKind, old: Timestamp) -> Timestamp {
    match what {
        ChangeKind::Reschedule(Due::After(delay) | Due::Usual(delay)) => now.after(*delay).min(LATEST_DUE),
        ChangeKind::Reschedule(Due::At(at)) => (*at).min(LATEST_DUE).max(now.floor()),
        ChangeKind::ExtendBy(delay) => old.after(*delay).min(LATEST_DUE),
        ChangeKind::RunNow => old.min(now.floor()),
        ChangeKind::Update(_) | ChangeKind::Options(_) => old,
    }
}

/// The outcome of a change that did nothing to a job in this state, of which nothing else is said.
const fn unknown(found: Option<State>) -> ChangeOutcome {
    ChangeOutcome { found, verdict: ChangeVerdict::Refused, version: 0, due: None }
}
