//! A job that moves: its new place, to the millisecond, is the one that the step says, and its counters go on as the rules
//! say (rules 4, 13, 15, 19, 20 and 25).

use super::crashes::isolation;
use super::record::{Checker, Did};
use dq::job::{Cause, Fence, Isolation, JobId, State};
use dq::store::step::{Change, RejoinDue, Verdict};
use dq::testing::seam::JobView;
use dq::time::Timestamp;

/// Where a job must be, and what its counters must be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Placement {
    state: State,
    /// Until when, or since when; `None` while it is RUNNING.
    at: Option<Timestamp>,
    crashes: u32,
    attempts: u16,
    parked_by: Option<Fence>,
}

impl Placement {
    fn of(job: &JobView) -> Self {
        Self {
            state: job.state,
            at: job.at,
            crashes: job.crashes,
            attempts: attempts(job),
            parked_by: job.record.fixed().parked_by,
        }
    }

    /// The same job, waiting to run.
    fn delayed(&self, due: Timestamp) -> Self {
        Self { state: State::Delayed, at: Some(due), crashes: 0, parked_by: None, ..*self }
    }
}

fn attempts(job: &JobView) -> u16 {
    job.record.metadata().map(|metadata| metadata.attempts).unwrap_or_default()
}

impl Checker {
    /// Checks a version that is in another place than before.
    pub(super) fn check_move(&mut self, did: &Did, id: &JobId, was: &JobView, is: &JobView, micros: u64) {
        let found = Placement::of(is);
        let wanted = self.placement_after(did, id, was, is, micros);
        if wanted.as_ref() != Some(&found) {
            self.bad_crash_death(format!("[4] {id} was {} and is {found:?}, not {wanted:?}", was.state));
        }
    }

    /// Checks a version that is new in the store.
    pub(super) fn check_entry(&mut self, id: &JobId, version: u64, is: &JobView) {
        let due = self.expected.due.get(&version).map(|due| Timestamp::ceil_micros(*due));
        let fits =
            is.state == State::Delayed && is.at == due && is.crashes == 0 && is.record.fixed().parked_by.is_none();
        if !fits {
            self.bad(format!("[4] {id} ({version}) was added for {due:?} and is {:?}", Placement::of(is)));
        }
    }

    fn placement_after(&self, did: &Did, id: &JobId, was: &JobView, is: &JobView, micros: u64) -> Option<Placement> {
        let (floor, ceil) = (Timestamp::floor_micros(micros), Timestamp::ceil_micros(micros));
        let placement = Placement::of(was);
        if is.state == State::Done {
            let at = Some(floor.after(was.record.fixed().retain));
            return Some(Placement { state: State::Done, at, crashes: 0, ..placement });
        }
        match did {
            Did::Claim { claims, .. } => {
                let claim = claims.iter().find(|claim| claim.id == *id)?;
                (Some(claim.token.due) == was.at).then_some(Placement { state: State::Running, at: None, ..placement })
            }
            Did::Command { .. } => {
                let attempts = if was.state == State::Dead { 0 } else { placement.attempts };
                Some(Placement { attempts, ..placement.delayed(ceil) })
            }
            Did::Settle { outcomes, .. } => {
                let ended = outcomes.iter().find(|(outcome, verdict)| outcome.id == *id && *verdict == Verdict::Done);
                self.settled(&ended?.0.change, was, is, micros)
            }
            Did::Reclaim { charged, .. } => {
                let given_back = given_back(was)?;
                if !charged {
                    return Some(given_back);
                }
                // Without a known cap, any count is right.
                let Some(caps) = self.caps else { return Some(Placement { crashes: is.crashes, ..given_back }) };
                reclaimed(was, is, caps.crashes, given_back, floor)
            }
            Did::Nothing
            | Did::Change { .. }
            | Did::Set { .. }
            | Did::RefuseAdd
            | Did::Add { .. }
            | Did::Note { .. }
            | Did::Release { .. }
            | Did::Publish { .. } => None,
        }
    }

    /// Where the outcome of its run puts a job.
    fn settled(&self, change: &Change, was: &JobView, is: &JobView, micros: u64) -> Option<Placement> {
        let floor = Timestamp::floor_micros(micros);
        let after = |micros_more: u128| Timestamp::ceil_micros(micros + u64::try_from(micros_more).unwrap_or(u64::MAX));
        let (placement, as_added) = (Placement::of(was), was.record.fixed().delay);
        Some(match change.clone() {
            Change::Ack | Change::Drop => return None,
            Change::Tick(tick) => {
                let later = was.row.as_ref()?.token.due.as_millis() + 1;
                placement.delayed(tick.next?.max(Timestamp::from_millis(later)))
            }
            Change::Retry(delay) => {
                let backoff = self.caps.map(|caps| caps.backoff);
                if backoff.is_some_and(|steps| steps.get(usize::from(placement.attempts)) != Some(&delay)) {
                    return None;
                }
                Placement { attempts: placement.attempts + 1, ..placement.delayed(after(delay.as_micros())) }
            }
            Change::Rejoin(RejoinDue::After(delay)) => placement.delayed(after(delay.as_micros())),
            Change::Rejoin(RejoinDue::At(at)) if at > floor => placement.delayed(at),
            Change::Rejoin(RejoinDue::AsAdded | RejoinDue::At(_)) => placement.delayed(after(as_added.as_micros())),
            Change::Rollback => given_back(was)?,
            Change::Park => {
                let parked_by = placement.parked_by.or(was.row.as_ref().map(|row| row.token.fence));
                Placement { state: State::Unacked, at: Some(floor), crashes: 0, parked_by, ..placement }
            }
            Change::Dead => {
                let dead = dead(&placement, floor);
                let cause = is.record.metadata().ok()?.cause;
                let failed = matches!(cause, Some(Cause::Error | Cause::Panic | Cause::Timeout));
                match self.caps {
                    Some(caps) if failed => Placement { attempts: caps.attempts, ..dead },
                    _ => Placement { attempts: attempts(is), ..dead },
                }
            }
        })
    }
}

/// Where a reclaim of an expired lease puts a job: a run alone in its process convicts it, a group charges it up to one
/// crash beyond the cap, and a quarantined job that was not marked is charged nothing.
fn reclaimed(was: &JobView, is: &JobView, cap: u32, given_back: Placement, now: Timestamp) -> Option<Placement> {
    let charged = Placement { crashes: was.crashes + 1, ..given_back.clone() };
    match isolation(was.row.as_ref()) {
        Some(Isolation::Alone) if was.crashes > cap + 1 && was.record.fixed().exhausted => {
            Some(dead(&Placement::of(was), now))
        }
        Some(Isolation::Alone) if !is.record.fixed().exhausted => None,
        Some(Isolation::Alone) => Some(Placement { crashes: cap + 2, ..given_back }),
        Some(Isolation::Grouped) if was.crashes > cap => Some(given_back),
        None if Checker::is_quarantined(was.crashes, cap) => Some(given_back),
        Some(Isolation::Grouped) | None => Some(charged),
    }
}

/// Back where it was claimed from, unchanged.
fn given_back(was: &JobView) -> Option<Placement> {
    let (placement, at) = (Placement::of(was), Some(was.row.as_ref()?.token.due));
    let state = if placement.parked_by.is_some() { State::Unacked } else { State::Delayed };
    Some(Placement { state, at, ..placement })
}

fn dead(placement: &Placement, since: Timestamp) -> Placement {
    Placement { state: State::Dead, at: Some(since), crashes: 0, parked_by: None, ..*placement }
}
