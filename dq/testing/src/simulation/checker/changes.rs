//! Changes and extensions: a change does what its answer says, and an extended job stays as it was (rule 28).

use super::super::version::{mark, version, with_payload};
use super::record::{Added, Checker};
use dq::job::State;
use dq::store::{ChangeKind, ChangeOutcome, ChangeVerdict, JobChange, NewJob};
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

impl Checker {
    /// Records when a job that got another due time waits for it, and the last payload of each job.
    pub(super) fn note_change(&mut self, item: &JobChange, outcome: &ChangeOutcome, before: &View, micros: u64) {
        if outcome.verdict != ChangeVerdict::Changed {
            return;
        }
        if let ChangeKind::Options(_) = &item.what {
            return;
        }
        let job = before.jobs.get(&item.id).filter(|job| job.state != State::Done);
        if let ChangeKind::Update(new) = &item.what {
            return self.expected.marks.extend(job.map(|job| (version(&job.record), mark(new))));
        }
        if let Some(job) = job.filter(|job| job.state == State::Delayed) {
            self.expected.put.insert(version(&job.record), micros / 1000);
        }
        if let (Some((old, record)), Some(due)) = (before.broadcasts.get(&item.id), outcome.due) {
            // The answer is about the job, which a retry may have left with another due time.
            let due = match &item.what {
                ChangeKind::ExtendBy(delay) => old.after(*delay),
                ChangeKind::RunNow => (*old).min(Timestamp::floor_micros(micros)),
                _ => due,
            };
            self.expected.broadcasts.moved(version(record), due.as_millis() * 1000, micros / 1000);
        }
    }

    /// Gives the payloads of updates the versions of their jobs, by which the checker knows them.
    pub(in crate::simulation) fn mark_updates(&self, items: &mut [JobChange]) {
        for item in items {
            let ChangeKind::Update(record) = &mut item.what else { continue };
            let present = self.before.jobs.get(&item.id).filter(|job| job.state != State::Done).map(|job| &job.record);
            let present = present.or_else(|| self.before.broadcasts.get(&item.id).map(|(_, record)| record));
            let Some(present) = present.map(version) else { continue };
            *record = with_payload(record, &(present.to_string() + &" ".repeat(mark(record))));
        }
    }

    /// Checks changes of jobs that no other change of their batch names, and that have no broadcast.
    pub(super) fn check_changes(&mut self, items: &[(JobChange, ChangeOutcome)], before: &View, after: &View) {
        for (item, outcome) in items {
            let alone = items.iter().filter(|(other, _)| other.id == item.id).count() == 1;
            if !alone || before.broadcasts.contains_key(&item.id) {
                continue;
            }
            let changed = |was: &JobView, is: &JobView| {
                let (old, new) = (was.record.fixed().version, is.record.fixed().version);
                let is_made = match &item.what {
                    ChangeKind::Update(payload) => mark(&is.record) == mark(payload),
                    ChangeKind::Options(_) => (was.state, was.at) == (is.state, is.at),
                    _ => was.state == State::Delayed && is.at == outcome.due,
                };
                is_made && new == old + 1 && item.if_version.is_none_or(|wanted| wanted == old)
            };
            let (was, is) = (before.jobs.get(&item.id), after.jobs.get(&item.id));
            let fits = match (outcome.verdict, was, is) {
                (ChangeVerdict::Changed, Some(was), Some(is)) => was.state != State::Running && changed(was, is),
                _ => was == is && outcome.verdict != ChangeVerdict::Changed,
            };
            if !fits {
                self.bad(format!("[28] {item:?} is answered {outcome:?}: {was:?} is {is:?}"));
            }
        }
    }

    /// A version takes the place of one that waits, and everything but payload and due time stays.
    pub(super) fn note_extension(&mut self, job: &NewJob, new: u64, due: Timestamp, (before, micros): (&View, u64)) {
        let queued = before.jobs.get(&job.id).filter(|was| was.state != State::Done);
        let replacement = queued.and_then(|was| was.replacement.as_ref()).map(|(record, _)| record);
        let waits = queued.filter(|was| was.state == State::Delayed).map(|was| &was.record);
        let broadcast = before.broadcasts.get(&job.id).map(|(_, record)| record);
        let Some(old) = replacement.or(waits).or(broadcast).map(version) else {
            return self.bad(format!("[28] {} is extended, and does not wait: {queued:?}", job.id));
        };
        let due = due.as_millis() * 1000;
        let expected = &mut self.expected;
        expected.due.insert(new, due);
        expected.put.insert(new, micros / 1000);
        if let Some(added) = expected.broadcasts.added.get(&old).copied() {
            expected.broadcasts.added.insert(new, Added { due, put: Some(micros / 1000), ..added });
        }
        if expected.finals.contains(&old) {
            expected.finals.insert(new);
        }
        if let Some(charged) = expected.charged.get(&old).copied() {
            expected.charged.insert(new, charged);
        }
        if let Some(crashes) = self.crash_records.get(&old).copied() {
            self.crash_records.insert(new, crashes);
        }
    }
}
