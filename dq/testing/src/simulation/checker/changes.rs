//! A change does exactly what its answer says (rule 28).

use super::super::version::{mark, version, with_payload};
use super::record::Checker;
use dq::job::State;
use dq::store::{ChangeKind, ChangeOutcome, ChangeVerdict, JobChange};
use dq::testing::seam::{JobView, View};

impl Checker {
    /// Records when a job that got another due time may run.
    pub(super) fn note_change(&mut self, item: &JobChange, outcome: &ChangeOutcome, before: &View, micros: u64) {
        if let (ChangeVerdict::Changed, ChangeKind::Update(new)) = (outcome.verdict, &item.what) {
            let changed =
                before.jobs.get(&item.id).filter(|job| job.state != State::Done).map(|job| version(&job.record));
            self.expected.marks.extend(changed.map(|changed| (changed, mark(new))));
            return;
        }
        let (ChangeVerdict::Changed, Some(due)) = (outcome.verdict, outcome.due) else { return };
        let due = due.as_millis() * 1000;
        if let Some(job) = before.jobs.get(&item.id).filter(|job| job.state == State::Delayed) {
            self.expected.due.insert(version(&job.record), due);
            self.expected.put.insert(version(&job.record), micros / 1000);
        }
        if let Some((_, record)) = before.broadcasts.get(&item.id) {
            self.expected.broadcasts.moved(version(record), due, micros / 1000);
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

    /// Checks changes of jobs that no other change of their batch names.
    pub(super) fn check_changes(&mut self, items: &[(JobChange, ChangeOutcome)], before: &View, after: &View) {
        for (item, outcome) in items {
            let alone = items.iter().filter(|(other, _)| other.id == item.id).count() == 1;
            let (was, is) = (before.jobs.get(&item.id), after.jobs.get(&item.id));
            if !alone {
                continue;
            }
            let changed = |was: &JobView, is: &JobView| {
                let (old, new) = (was.record.fixed(), is.record.fixed());
                let moved = |at: dq::time::Timestamp| at.as_millis() as i128;
                let kept = old.expires_at.map(moved).zip(was.at.map(moved)).map(|(expires, due)| expires - due);
                let keeps = new.expires_at.map(moved).zip(is.at.map(moved)).map(|(expires, due)| expires - due);
                let may_be = match &item.what {
                    ChangeKind::Update(_) => matches!(was.state, State::Delayed | State::Unacked | State::Dead),
                    _ => was.state == State::Delayed,
                };
                let stays = match &item.what {
                    ChangeKind::Update(new) => is.at == was.at && mark(&is.record) == mark(new),
                    _ => is.at == outcome.due || before.broadcasts.contains_key(&item.id),
                };
                may_be
                    && stays
                    && is.state == was.state
                    && new.version == old.version + 1
                    && outcome.version == new.version
                    && item.if_version.is_none_or(|wanted| wanted == old.version)
                    && kept == keeps
                    && (is.crashes, version(&is.record)) == (was.crashes, version(&was.record))
            };
            let fits = match (outcome.verdict, was, is) {
                (ChangeVerdict::Changed, Some(was), Some(is)) if was.state != State::Done => changed(was, is),
                (ChangeVerdict::Changed, None, None) => before.broadcasts.contains_key(&item.id),
                _ => {
                    was == is && (outcome.verdict != ChangeVerdict::Changed || before.broadcasts.contains_key(&item.id))
                }
            };
            if !fits {
                self.bad(format!("[28] {item:?} is answered {outcome:?}: {was:?} is {is:?}"));
            }
        }
    }
}
