//! Brings a job into a state, and makes an event of the table in `job/state.rs` happen to it.

use super::changes::update;
use super::producer::{job, replacing, retained};
use super::topic::{LEASE, Topic, ms, secs};
use dq::job::state::Event;
use dq::job::{Metadata, State};
use dq::store::step::{Change, Claim, MAX_JOBS, RejoinDue, Sweep, Tick};
use dq::store::{AddOutcome, ChangeKind, Due, NewJob};
use dq::time::Timestamp;

/// The node that runs these jobs.
pub(super) const NODE: &str = "driver";

/// Adds a job with a retention and brings it into this state; [`NODE`] runs it. No other job may be due.
pub(super) async fn add_in_state(t: &Topic, name: &str, state: State) -> Option<Claim> {
    assert_eq!(t.add_job(retained(name)).await, AddOutcome::Added);
    if state == State::Delayed {
        t.delete(name).await;
        assert_eq!(t.add_job(NewJob { due: Due::After(secs(3_600)), ..retained(name) }).await, AddOutcome::Added);
        return None;
    }
    let claim = t.claim(NODE, name).await;
    if state == State::Running {
        return Some(claim);
    }
    t.end(NODE, &claim, ending(state)).await;
    None
}

/// The outcome that takes a job from RUNNING into this state, if the job has a retention.
pub(super) fn ending(state: State) -> Change {
    match state {
        State::Delayed => Change::Rollback,
        State::Running => panic!("no outcome leads to RUNNING"),
        State::Unacked => Change::Park,
        State::Dead => Change::Dead,
        State::Done => Change::Ack,
    }
}

/// Adds a job and brings it into this state, ready for this event: claimed by age for an event of an aged claim, with a
/// retention if the event says so, exhausted and isolated if its final run is to crash.
pub(super) async fn prepare(t: &Topic, name: &str, state: State, event: Event) -> Option<Claim> {
    let retain = matches!(
        event,
        Event::Acked { retain: true }
            | Event::EndedByCommand { retain: true }
            | Event::AckedFromOutside { retain: true }
    );
    t.add_job(if retain || state == State::Done { retained(name) } else { job(name) }).await;
    if state == State::Delayed {
        return None;
    }
    let claim = t.claim(NODE, name).await;
    let parked =
        matches!(event, Event::RolledBack { parked: true } | Event::Reclaimed { parked: true, .. } | Event::Dropped);
    match state {
        State::Running if parked => {
            t.end(NODE, &claim, Change::Park).await;
            t.advance(secs(7 * 24 * 3_600)).await;
            return Some(t.claim_unacked(NODE, name).await);
        }
        State::Running if matches!(event, Event::Reclaimed { final_isolated: true, .. }) => {
            return Some(exhaust_by_crashes(t, NODE, claim).await);
        }
        State::Running => return Some(claim),
        _ => t.end(NODE, &claim, ending(state)).await,
    }
    None
}

/// Crashes `node` until the crashes have exhausted the job, then claims and isolates the job: only `on_exhausted` is left.
pub(super) async fn exhaust_by_crashes(t: &Topic, node: &str, claim: Claim) -> Claim {
    let name = claim.id.to_string();
    let mut claim = claim;
    t.isolate(node, &claim).await;
    t.crash(node).await;
    claim = t.claim(node, &name).await;
    t.isolate(node, &claim).await;
    claim
}

/// Makes the event happen to a job that [`prepare`] has made ready for it.
pub(super) async fn cause(t: &Topic, name: &str, claim: Option<&Claim>, event: Event) {
    if let (Some(claim), Some(change)) = (claim, change_of(event)) {
        let metadata = Metadata { attempts: 1, ..claim.record.metadata().expect("the record is readable") };
        return match change {
            Change::Retry(_) => t.end_with(NODE, claim, change, metadata).await,
            change => t.end(NODE, claim, change).await,
        };
    }
    match event {
        Event::Transferred => drop(t.claim(NODE, name).await),
        Event::Swept => {
            t.advance(secs(7 * 24 * 3_600)).await;
            t.claim_unacked(NODE, name).await;
        }
        Event::Reclaimed { .. } => t.crash(NODE).await,
        Event::EndedByCommand { retain } => {
            let outcome = if retain { t.ack_outside(name).await } else { t.delete(name).await };
            assert!(outcome.changed);
            t.end(NODE, claim.expect("only a running job has a pending command"), Change::Retry(secs(1))).await;
        }
        Event::Replaced => {
            t.add_job(replacing(name, "new")).await;
            if let Some(claim) = claim {
                t.end(NODE, claim, Change::Ack).await;
            }
        }
        Event::Requeued => assert!(t.requeue(name).await.changed),
        Event::Rescheduled => _ = t.changed(name, ChangeKind::Reschedule(Due::After(ms(10)))).await,
        Event::Updated => _ = t.changed(name, update("new")).await,
        Event::Deleted => assert!(t.delete(name).await.changed),
        Event::AckedFromOutside { .. } => assert!(t.ack_outside(name).await.changed),
        Event::Pruned => {
            t.advance(secs(31 * 24 * 3_600)).await;
            let swept =
                t.sweep(NODE, Sweep { park_timeout: secs(u32::MAX.into()), ..t.sweep_of(NODE, MAX_JOBS) }).await;
            assert_eq!(swept.pruned_dead + swept.pruned_done, 1);
        }
        Event::GivenUp => assert!(t.give_up(name, t.record_of(name).await).await),
        other => panic!("{other:?} happens only to a claimed job"),
    }
}

/// A tick without jobs.
fn tick(next: Option<Timestamp>) -> Change {
    Change::Tick(Box::new(Tick { next, schedule: job("a").record, unless: None, jobs: Vec::new() }))
}

fn change_of(event: Event) -> Option<Change> {
    Some(match event {
        Event::Acked { .. } => Change::Ack,
        Event::Rejoined => Change::Rejoin(RejoinDue::After(secs(1))),
        Event::Retried => Change::Retry(secs(1)),
        Event::RolledBack { .. } => Change::Rollback,
        Event::Parked => Change::Park,
        Event::Died => Change::Dead,
        Event::Dropped => Change::Drop,
        Event::Ticked { ended } => tick(if ended { None } else { Some(Timestamp::from_millis(1)) }),
        _ => return None,
    })
}

/// One outcome of each kind that takes a job out of RUNNING.
pub(super) fn all_changes() -> [Change; 8] {
    let again = Change::Rejoin(RejoinDue::After(ms(10)));
    let ticked = tick(Some(Timestamp::EPOCH));
    [Change::Ack, again, Change::Retry(ms(10)), Change::Rollback, Change::Park, Change::Dead, Change::Drop, ticked]
}

/// Ends the run of a job by the `n`-th way out of RUNNING: the [outcomes](all_changes), a reclaim of an expired lease, and a
/// reclaim from a released node.
pub(super) async fn leave_running(t: &Topic, node: &str, claim: &Claim, n: usize) {
    match all_changes().get(n) {
        Some(change) => t.end(node, claim, change.clone()).await,
        None if n == all_changes().len() => t.crash(node).await,
        None => {
            t.release(node).await;
            t.reclaim("reclaimer", node, Timestamp::EPOCH, MAX_JOBS).await;
        }
    }
}

/// The number of ways out of RUNNING that [`leave_running`] knows.
pub(super) const WAYS_OUT: usize = 10;

/// Longer than any lease and any retry of the behaviours.
pub(super) const LONG: std::time::Duration = LEASE.saturating_mul(4);
