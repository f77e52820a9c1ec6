//! Extensions: an add gives a job that waits its payload and another due time, which is bounded from the first add on (rule 28).

use super::super::version::version;
use super::record::{Added, Checker};
use dq::job::{Metadata, Record, State};
use dq::store::{Due, NewJob, OnDuplicate};
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

impl Checker {
    /// A version takes the place of one that waits, and everything but payload and due time goes on.
    pub(super) fn note_extension(&mut self, job: &NewJob, new: u64, due: Timestamp, (before, micros): (&View, u64)) {
        let queued = before.jobs.get(&job.id).filter(|was| was.state != State::Done);
        let replacement = queued.and_then(|was| was.replacement.as_ref()).map(|(record, _)| record);
        let waits = queued.filter(|was| was.state == State::Delayed).map(|was| &was.record);
        let broadcast = before.broadcasts.get(&job.id).map(|(_, record)| record);
        let Some(old) = replacement.or(waits).or(broadcast) else {
            return self.bad(format!("[28] {} is extended, and does not wait: {queued:?}", job.id));
        };
        let wanted = extended(job, old, micros);
        if wanted != due {
            self.bad(format!("[28] {} is extended to {due}, not to {wanted}", job.id));
        }
        let was = version(old);
        let due = due.as_millis() * 1000;
        self.expected.due.insert(new, due);
        self.expected.put.insert(new, micros / 1000);
        if let Some(added) = self.expected.broadcasts.added.get(&was).copied() {
            self.expected.broadcasts.added.insert(new, Added { due, put: Some(micros / 1000), ..added });
        }
        if self.expected.finals.contains(&was) {
            self.expected.finals.insert(new);
        }
        if let Some(charged) = self.expected.charged.get(&was).copied() {
            self.expected.charged.insert(new, charged);
        }
        if let Some(crashes) = self.crash_records.get(&was).copied() {
            self.crash_records.insert(new, crashes);
        }
    }

    /// Checks an extended job: beside payload, due time and version everything stays.
    pub(super) fn check_extended(&mut self, job: &NewJob, was: Option<&JobView>, is: Option<&JobView>) {
        let (Some(was), Some(is)) = (was.filter(|was| was.state == State::Delayed), is) else { return };
        let (Ok(old), Ok(new)) = (was.record.metadata(), is.record.metadata()) else { return };
        let distance = |at: Option<Timestamp>, job: &JobView| Some(at?.as_millis().abs_diff(job.at?.as_millis()));
        let kept = distance(old.expires_at, was) == distance(new.expires_at, is);
        let changes =
            |metadata: &Metadata| Metadata { version: 0, first_added: None, expires_at: None, ..metadata.clone() };
        let stays = changes(&old) == changes(&new) && (was.state, was.crashes) == (is.state, is.crashes) && kept;
        if !stays || new.version != old.version + 1 {
            self.bad(format!("[28] {} is extended: {was:?} is {is:?}", job.id));
        }
    }
}

/// When an extended job is due.
fn extended(job: &NewJob, old: &Record, micros: u64) -> Timestamp {
    let now = Timestamp::ceil_micros(micros);
    let due = match job.due {
        Due::After(delay) | Due::Usual(delay) => Timestamp::ceil_micros(micros + delay.as_micros() as u64),
        Due::At(at) => at.max(now),
    };
    let OnDuplicate::Extend { at_most: Some(at_most) } = job.on_duplicate else { return due };
    due.min(old.fixed().first_added.unwrap_or(now).after(at_most)).max(now)
}
