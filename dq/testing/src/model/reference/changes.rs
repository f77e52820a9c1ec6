//! The step `change`, and adds that extend a job (rule 28).

use std::time::Duration;

use super::calls::{Call, KeptAnswer};
use super::{AddedJob, Place, Topic};
use dq::job::state::Event;
use dq::job::{JobId, Metadata, ProducerId, Record, State};
use dq::store::{AddOutcome, BatchAnswer, ChangeKind, ChangeOutcome, ChangeVerdict, Due, JobChange, Numbered};
use dq::time::Timestamp;

/// The same record, changed: another version, a payload if there is one, and an expiry as far from the due time as before.
fn changed(
    record: &Record,
    version: u32,
    first_added: Option<Timestamp>,
    payload: Option<&Record>,
    due: Option<(Timestamp, Timestamp)>,
) -> Record {
    let metadata = record.metadata().expect("the model adds readable records");
    let expires_at = metadata.expires_at.map(|at| match due {
        Some((old, new)) if new >= old => at.after(new.since(old)),
        Some((old, new)) => Timestamp::from_millis(at.as_millis().saturating_sub(old.since(new).as_millis() as u64)),
        None => at,
    });
    payload.unwrap_or(record).with_metadata(&Metadata { version, first_added, expires_at, ..metadata })
}

impl Topic {
    pub(in super::super) fn change(
        &mut self,
        producer: &ProducerId,
        batch: &Numbered<JobChange>,
    ) -> BatchAnswer<ChangeOutcome> {
        match self.call(producer, batch.number) {
            Call::Late => return BatchAnswer::Late,
            Call::Repeat(kept) => return kept.changed(),
            Call::New => {}
        }
        let outcomes: Vec<_> = batch.items.iter().map(|item| self.change_one(item)).collect();
        self.keep(producer, batch.number, KeptAnswer::Changed(outcomes.clone()));
        BatchAnswer::Done(outcomes)
    }

    fn change_one(&mut self, item: &JobChange) -> ChangeOutcome {
        let found = self.state(&item.id);
        let before = self.leading(&item.id).map(|metadata| metadata.version).unwrap_or_default();
        let is_update = matches!(item.what, ChangeKind::Update(_));
        let event = if is_update { Event::Updated } else { Event::Rescheduled };
        let verdict = match found {
            Some(state) if state.apply(event).is_err() => ChangeVerdict::Refused,
            Some(_) if item.if_version.is_some_and(|wanted| wanted != before) => ChangeVerdict::OtherVersion,
            Some(_) => ChangeVerdict::Changed,
            None => ChangeVerdict::Refused,
        };
        if verdict == ChangeVerdict::Changed {
            let first = self.leading(&item.id).and_then(|metadata| metadata.first_added);
            let payload = match &item.what {
                ChangeKind::Update(record) => Some(record),
                _ => None,
            };
            let now = self.after(Duration::ZERO);
            let due = |topic: &Self, old: Timestamp| match &item.what {
                ChangeKind::Reschedule(Due::After(delay) | Due::Usual(delay)) => topic.after(*delay),
                ChangeKind::Reschedule(Due::At(at)) => now.max(*at),
                ChangeKind::ExtendBy(delay) => old.after(*delay),
                ChangeKind::RunNow => old.min(now),
                ChangeKind::Update(_) => old,
            };
            self.change_parts(&item.id, event, (before + 1, first, payload), due);
        }
        let version = self.leading(&item.id).map(|metadata| metadata.version).unwrap_or_default();
        let due = match self.jobs.get(&item.id).map(|job| &job.place) {
            Some(Place::Delayed(due)) => Some(*due),
            None | Some(Place::Done(_)) => self.broadcasts.get(&item.id).map(|(due, _)| *due),
            Some(_) => None,
        };
        ChangeOutcome { found, verdict, version, due }
    }

    /// The metadata of what says the version: the job, unless it is DONE and a broadcast waits.
    fn leading(&self, id: &JobId) -> Option<Metadata> {
        self.query(id).map(|stored| stored.record.metadata().expect("the model adds readable records"))
    }

    /// Changes the job, unless it is DONE, and the broadcast.
    fn change_parts(
        &mut self,
        id: &JobId,
        event: Event,
        (version, first, payload): (u32, Option<Timestamp>, Option<&Record>),
        due: impl Fn(&Self, Timestamp) -> Timestamp,
    ) {
        if let Some((old, record)) = self.broadcasts.get(id).cloned() {
            let new = due(self, old);
            self.broadcasts.insert(id.clone(), (new, changed(&record, version, first, payload, Some((old, new)))));
        }
        let Some(mut job) = self.jobs.get(id).filter(|job| job.place.state() != State::Done).cloned() else { return };
        match job.place {
            Place::Delayed(old) => {
                let new = due(self, old);
                job.record = changed(&job.record, version, first, payload, Some((old, new)));
                job.go(event, Place::Delayed(new));
            }
            ref place => {
                let place = place.clone();
                job.record = changed(&job.record, version, first, payload, None);
                job.go(event, place);
            }
        }
        self.jobs.insert(id.clone(), job);
    }

    fn extended_due(&self, wanted: Timestamp, first: Timestamp, at_most: Option<Duration>) -> Timestamp {
        match at_most {
            Some(at_most) => wanted.min(first.after(at_most)).max(self.after(Duration::ZERO)),
            None => wanted,
        }
    }

    /// An add that meets a job that waits.
    pub(super) fn extend(&mut self, id: &JobId, new: &AddedJob, at_most: Option<Duration>) -> AddOutcome {
        let old = self.leading(id).expect("the job waits");
        let first = old.first_added.unwrap_or_else(|| self.after(Duration::ZERO));
        let (due, version) = (self.extended_due(new.due, first, at_most), old.version + 1);
        self.change_parts(id, Event::Rescheduled, (version, Some(first), Some(&new.record)), |_, _| due);
        AddOutcome::Extended { due, version }
    }

    /// An add that meets the replacement of a running job.
    pub(super) fn extend_replacement(
        &mut self,
        id: &JobId,
        new: &AddedJob,
        at_most: Option<Duration>,
    ) -> Option<AddOutcome> {
        let mut old = self.run(id)?.replacement.clone()?;
        let metadata = old.job.record.metadata().expect("the model adds readable records");
        let first = metadata.first_added.unwrap_or_else(|| self.after(Duration::ZERO));
        let (due, version) = (self.extended_due(new.due, first, at_most), metadata.version + 1);
        old.job.record = changed(&old.job.record, version, Some(first), Some(&new.record), Some((old.job.due, due)));
        (old.job.due, old.only_if_ended) = (due, false);
        self.run_mut(id)?.replacement = Some(old);
        Some(AddOutcome::Extended { due, version })
    }
}
