//! Driving a job along the edges of the picture in `job/state.rs`: any event, from any state it may happen in.

use super::calls::{job, replacing, retained};
use super::topic::{LEASE, MAX_CRASHES, Topic, ms, secs};
use dq::job::state::Event;
use dq::job::{Metadata, State};
use dq::store::step::{Change, Claim, MOST_JOBS, RejoinDue, Sweep};
use dq::store::{AddOutcome, NewJob};

/// The node that runs what is driven.
pub(super) const NODE: &str = "driver";

/// Adds a job that is retained if acked and brings it to this state, by way of `NODE`; nothing else may be due.
pub(super) async fn bring(t: &Topic, name: &str, state: State) -> Option<Claim> {
    assert_eq!(t.add_job(retained(name)).await, AddOutcome::Added);
    if state == State::Delayed {
        t.delete(name).await;
        assert_eq!(
            t.add_job(NewJob { due: dq::store::Due::After(secs(3_600)), ..retained(name) }).await,
            AddOutcome::Added
        );
        return None;
    }
    let claim = t.claim(NODE, name).await;
    let change = match state {
        State::Unacked => Change::Park,
        State::Dead => Change::Dead,
        State::Done => Change::Ack,
        State::Delayed | State::Running => return Some(claim),
    };
    t.end(NODE, &claim, change).await;
    None
}

/// A job in this state, ready for this event: aged where the event is about an aged claim, retained where it says so,
/// exhausted and begun where a final run is to crash.
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
        State::Unacked => t.end(NODE, &claim, Change::Park).await,
        State::Dead => t.end(NODE, &claim, Change::Dead).await,
        State::Done => t.end(NODE, &claim, Change::Ack).await,
        State::Delayed => {}
    }
    None
}

/// Has `node` die over the job until its crashes are exhausted, and claims it once more, begun: only `final_retry` is left.
pub(super) async fn exhaust_by_crashes(t: &Topic, node: &str, claim: Claim) -> Claim {
    let name = claim.id.to_string();
    let mut claim = claim;
    for _ in 0..MAX_CRASHES {
        t.isolate(node, &claim).await;
        t.crash(node).await;
        claim = t.claim(node, &name).await;
    }
    t.isolate(node, &claim).await;
    claim
}

/// Makes the event happen to a job that was [prepared](prepare) for it.
pub(super) async fn happen(t: &Topic, name: &str, claim: Option<&Claim>, event: Event) {
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
            let pending = if retain { t.ack_outside(name).await } else { t.delete(name).await };
            assert!(pending.changed);
            t.end(NODE, claim.expect("a mark waits for a run"), Change::Retry(secs(1))).await;
        }
        Event::Replaced => {
            t.add_job(replacing(name, "new")).await;
            if let Some(claim) = claim {
                t.end(NODE, claim, Change::Ack).await;
            }
        }
        Event::Requeued => assert!(t.requeue(name).await.changed),
        Event::Deleted => assert!(t.delete(name).await.changed),
        Event::AckedFromOutside { .. } => assert!(t.ack_outside(name).await.changed),
        Event::Pruned => {
            t.advance(secs(31 * 24 * 3_600)).await;
            let aged = t.sweep(NODE, Sweep { unacked_age: secs(u32::MAX.into()), ..t.age_of(NODE, MOST_JOBS) }).await;
            assert_eq!(aged.pruned_dead + aged.pruned_done, 1);
        }
        other => panic!("{other:?} happens to a claimed job only"),
    }
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
        _ => return None,
    })
}

/// Every way out of RUNNING by an outcome.
pub(super) fn exits() -> [Change; 7] {
    let again = Change::Rejoin(RejoinDue::After(ms(10)));
    [Change::Ack, again, Change::Retry(ms(10)), Change::Rollback, Change::Park, Change::Dead, Change::Drop]
}

/// Ends the run of a job by the `n`-th way out of RUNNING: the [outcomes](exits), a reclaim of an expired lease, one of a
/// node that was released.
pub(super) async fn leave_running(t: &Topic, node: &str, claim: &Claim, n: usize) {
    match exits().get(n) {
        Some(change) => t.end(node, claim, change.clone()).await,
        None if n == exits().len() => t.crash(node).await,
        None => {
            t.release(node).await;
            t.reclaim("reclaimer", node, dq::time::Timestamp::EPOCH, MOST_JOBS).await;
        }
    }
}

/// How many ways out of RUNNING [`leave_running`] knows.
pub(super) const WAYS_OUT: usize = 9;

/// Longer than any lease or retry here.
pub(super) const LONG: std::time::Duration = LEASE.saturating_mul(4);
