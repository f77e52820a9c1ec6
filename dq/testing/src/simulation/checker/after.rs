//! What a step may do to a job, and what it must do.

use std::mem;

use super::super::version::version;
use super::record::{Checker, Did};
use dq::job::{Cause, Fence, JobId, Record, State};
use dq::store::step::{Change, Verdict};
use dq::store::{AddOutcome, CommandKind, NewJob, OnDuplicate};
use dq::testing::seam::JobView;
use dq::time::Timestamp;

impl Checker {
    pub(super) fn check_job(
        &mut self,
        did: &Did,
        id: &JobId,
        (before, after): (Option<&JobView>, Option<&JobView>),
        publish: Option<&(Timestamp, Record)>,
        micros: u64,
    ) {
        let publish = publish.map(|(_, record)| version(record));
        let old = before.map(|job| version(&job.record));
        let new = after.map(|job| version(&job.record));
        if let (Some(new), Some(job)) = (new, after) {
            self.check_new(id, new, (before, job), micros, did);
        }
        if let (Some(old), Some(job)) = (old, before) {
            if new != Some(old) {
                self.check_gone(did, id, old, (job, micros), [new, publish]);
            }
            if job.row.is_some() && after.is_none_or(|job| job.row.is_none()) {
                self.note_slot(self.expected.rows.len(), micros);
                self.check_left(did, id, old, job, after, new);
            }
            self.check_replacement(did, id, job, after, publish);
        }
        let Some(is) = after else { return };
        let is_extended = |jobs: &[(NewJob, AddOutcome)]| {
            jobs.iter().any(|(job, outcome)| job.id == *id && matches!(outcome, AddOutcome::Extended { .. }))
        };
        if old != new && !matches!(did, Did::Add { jobs } if is_extended(jobs)) {
            self.check_entry(id, version(&is.record), is);
        }
    }

    fn check_new(&mut self, id: &JobId, new: u64, (before, job): (Option<&JobView>, &JobView), micros: u64, did: &Did) {
        let old = before.filter(|before| version(&before.record) == new);
        if !self.expected.effected.contains(&new) {
            self.bad(format!("[18] {id} has version {new}, which was never added"));
        }
        if let Some(why) = self.expected.ended.get(&new) {
            self.bad(format!("[18] version {new} of {id} RETURNED after its end: {why}"));
        }
        let moved = old.map(|old| old.state) != Some(job.state);
        if moved {
            self.check_caps(id, new, job);
        }
        if moved && job.state == State::Delayed {
            self.expected.put.insert(new, micros / 1000);
            self.expected.parked.remove(&new);
            if let (Some(_), Did::Command { .. }) = (old, did) {
                self.expected.finals.remove(&new);
                self.expected.charged.remove(&new);
                self.forgets_crashes(new);
            }
        }
        if moved && job.state == State::Unacked {
            self.expected.parked.insert(new);
        }
    }

    /// Checks that a version that is gone has a reason.
    fn check_gone(&mut self, did: &Did, id: &JobId, old: u64, (job, micros): (&JobView, u64), new: [Option<u64>; 2]) {
        let waited = job.replacement.as_ref().map(|(record, _)| version(record));
        let replaced = waited.is_some() && new.contains(&waited);
        let why = match did {
            Did::Settle { outcomes, .. } => {
                let change = outcomes.iter().find(|(outcome, verdict)| outcome.id == *id && *verdict == Verdict::Done);
                match change.map(|(outcome, _)| outcome.change.alone()) {
                    Some(Change::Ack | Change::Drop) => Some("acked"),
                    Some(Change::Tick(tick)) if tick.next.is_none() => Some("ended"),
                    Some(_) if replaced => Some("replaced"),
                    Some(_) if self.is_promised(old, job) => Some("ended from outside"),
                    _ => None,
                }
            }
            Did::Reclaim { from, .. } if job.row.as_ref().is_some_and(|row| row.node == *from) => {
                if replaced {
                    Some("replaced")
                } else {
                    self.is_promised(old, job).then_some("ended from outside")
                }
            }
            Did::Add { jobs } => jobs.iter().find(|(job, _)| job.id == *id).and_then(|(_, outcome)| match outcome {
                AddOutcome::Added if job.state == State::Done => Some("done"),
                AddOutcome::Replaced(_) if job.state != State::Running => Some("replaced"),
                AddOutcome::Extended { .. } if job.state == State::Delayed => Some("extended"),
                AddOutcome::Extended { .. } if job.state == State::Done => Some("done"),
                _ => None,
            }),
            Did::Command { items } => {
                items.iter().filter(|(item, _)| item.id == *id).find_map(|(item, _)| match item.verb {
                    CommandKind::Delete | CommandKind::Cancel => (job.state != State::Running).then_some("deleted"),
                    CommandKind::Ack if job.state == State::Delayed && item.fence.is_none() => Some("acked"),
                    CommandKind::Ack if job.state == State::Unacked => {
                        let ours = item.fence.is_none() || item.fence == job.record.fixed().parked_by;
                        ours.then_some("acked")
                    }
                    _ => None,
                })
            }
            Did::Claim { aged: true, .. } => self.may_be_forgotten(job, micros).then_some("pruned"),
            _ => None,
        };
        match why {
            Some(why) => {
                self.expected.ended.insert(old, why);
            }
            None => {
                let step = format!("{did:?}");
                let rule = match did {
                    Did::Add { .. } if job.state == State::Running => 13,
                    Did::Command { .. } => 13,
                    _ => 2,
                };
                let lost = format!("LOST: version {old} of {id}, which was {}, is gone in", job.state);
                self.bad(format!("[{rule}] {lost} {}", cut(&step)));
            }
        }
    }

    /// Returns whether a caller was promised a delete or cancel of this version.
    pub(in crate::simulation) fn is_deleted(&self, version: u64) -> bool {
        let deletes = |verb| matches!(verb, CommandKind::Delete | CommandKind::Cancel);
        self.expected.promised.get(&version).is_some_and(|ends| ends.iter().any(|(verb, _)| deletes(*verb)))
    }

    pub(in crate::simulation) fn is_promised(&self, version: u64, job: &JobView) -> bool {
        let Some(row) = &job.row else { return false };
        let parked_by = job.record.fixed().parked_by;
        let named = |fence: Option<Fence>| fence.is_none() || fence == Some(row.token.fence) || fence == parked_by;
        self.expected.promised.get(&version).is_some_and(|ends| ends.iter().any(|(_, fence)| named(*fence)))
    }

    /// A run is over: checks that everything promised for its end has happened.
    fn check_left(
        &mut self,
        did: &Did,
        id: &JobId,
        old: u64,
        job: &JobView,
        after: Option<&JobView>,
        new: Option<u64>,
    ) {
        let Some(row) = &job.row else { return };
        let run = self.expected.rows.remove(&(row.node.clone(), id.clone()));
        let again = run.and_then(|run| self.runs.get_mut(&run)).is_some_and(|run| mem::replace(&mut run.over, true));
        let promises = self.expected.promised.remove(&old).unwrap_or_default();
        let still = after.filter(|_| new == Some(old));
        let unfenced = promises.iter().any(|(_, fence)| fence.is_none());
        if still.is_some() && promises.iter().any(|(verb, _)| *verb != CommandKind::Ack) {
            self.bad(format!("[13] version {old} of {id} is still there, though its delete was promised"));
        }
        if let Some(job) = still
            && unfenced
            && job.state != State::Done
        {
            self.bad(format!("[13] version {old} of {id} is {}, though its end was promised", job.state));
        }
        let top = promises.iter().filter_map(|(_, fence)| *fence).max();
        if let Some(kept) = still
            && top == Some(row.token.fence)
            && kept.state != State::Done
        {
            self.bad(format!("[13] version {old} of {id} is {}, though the ack named its run", kept.state));
        }
        if let (Did::Reclaim { charged: true, .. }, Some(kept)) = (did, still) {
            let run = run.filter(|run| !again && !self.signs_back.contains(run));
            self.check_crash(id, old, job, kept, run);
        }
        if let (Some(kept), Did::Settle { .. }) = (still, did)
            && kept.state == State::Dead
            && kept.record.metadata().is_ok_and(|metadata| metadata.cause == Some(Cause::Crashes))
            && !self.expected.charged.get(&old).is_some_and(|crashed| crashed.convicts())
        {
            self.bad(format!(
                "[19] {id} ({old}) is DEAD by crashes, though it ran as {:?}",
                self.expected.charged.get(&old)
            ));
        }
    }

    /// Checks that a replacement does not get lost either.
    fn check_replacement(
        &mut self,
        did: &Did,
        id: &JobId,
        job: &JobView,
        after: Option<&JobView>,
        publish: Option<u64>,
    ) {
        let Some((record, conditional)) = &job.replacement else { return };
        let waited = version(record);
        let now = after.and_then(|job| job.replacement.as_ref()).map(|(record, _)| version(record));
        if now == Some(waited) {
            return;
        }
        let came = (after.is_some_and(|job| version(&job.record) == waited), publish == Some(waited));
        if came.0 || came.1 {
            let wanted = self.expected.broadcasts.parts(waited);
            if came != wanted {
                self.bad(format!("[24] {id} ({waited}) came as (job, broadcast) {came:?}, not {wanted:?}"));
            }
            return;
        }
        let why = match did {
            Did::Add { jobs } => jobs
                .iter()
                .any(|(new, _)| new.id == *id && !matches!(new.on_duplicate, OnDuplicate::Reject | OnDuplicate::Keep))
                .then_some("replaced"),
            Did::Command { items } => items
                .iter()
                .any(|(item, _)| item.id == *id && matches!(item.verb, CommandKind::Delete | CommandKind::Cancel))
                .then_some("deleted"),
            Did::Settle { .. } | Did::Reclaim { .. } if *conditional => Some("the old one was kept"),
            _ => None,
        };
        match why {
            Some(why) => drop(self.expected.ended.insert(waited, why)),
            None => self.bad(format!("[13] LOST: {waited}, which was to replace {id}")),
        }
    }

    /// Checks a version that is new in the store.
    fn check_entry(&mut self, id: &JobId, version: u64, is: &JobView) {
        let due = self.expected.due.get(&version).map(|due| Timestamp::ceil_micros(*due));
        if (is.state, is.at, is.crashes) != (State::Delayed, due, 0) {
            self.bad(format!("[4] {id} ({version}) was added for {due:?} and is {} {:?}", is.state, is.at));
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(400).collect()
}
