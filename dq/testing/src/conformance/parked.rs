//! The step `sweep`: claims of aged UNACKED jobs, and pruning of DEAD and DONE jobs (rule 25).

use super::notes::exhausted;
use super::producer::{job, retained};
use super::topic::{LEASE, START, Topic, ids, ms, refused, secs};
use dq::job::{Fence, JobState, Metadata, Sequence, State};
use dq::store::step::{Change, Claim, RejoinDue, Sweep};
use dq::time::Timestamp;

const WEEK_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Parks a job and claims it by age. Returns the claim, the parking fence and the time since which the job was parked.
async fn aged(t: &Topic, node: &str, name: &str) -> (Claim, Fence, Timestamp) {
    let run = t.running(node, name).await;
    t.end(node, &run, Change::Park).await;
    let since = t.now();
    t.advance(ms(WEEK_MS)).await;
    (t.claim_unacked(node, name).await, run.token.fence, since)
}

/// A parked job is claimed when it has been UNACKED for its age, and not a millisecond earlier (rule 25).
pub async fn parked_job_is_claimed_at_its_age(t: &Topic) {
    let run = t.running("n", "a").await;
    t.end("n", &run, Change::Park).await;
    let since = t.now();
    t.set_clock(START + WEEK_MS * 1_000 - 1).await;
    assert_eq!(t.sweep("n", t.sweep_of("n", 10)).await.claims, []);
    t.set_clock(START + WEEK_MS * 1_000).await;
    let claim = t.claim_unacked("n", "a").await;
    assert_eq!((claim.token.due, claim.crashes), (since, 0));
    assert!(claim.token.fence > run.token.fence);
    assert_eq!(claim.record.metadata().map(|metadata| metadata.parked_by), Ok(Some(run.token.fence)));
}

/// The claim of an aged job has a row, a lease and a sequence number like any other (rule 25).
pub async fn aged_claim_is_a_claim(t: &Topic) {
    let (claim, ..) = aged(t, "n", "a").await;
    assert_eq!(t.state("a").await, Some(State::Running));
    assert_eq!(t.lease("n").await, Some(t.now().after(LEASE)));
    assert_eq!(t.reconcile("n").await.rows, [(claim.id.clone(), claim.token)]);
    assert_eq!(t.sweep("m", t.sweep_of("m", 10)).await.claims, []);
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
}

/// A sweep that names another sequence number claims and prunes nothing (rules 6, 25).
pub async fn sweep_under_a_wrong_sequence_number_does_nothing(t: &Topic) {
    t.add_all(vec![job("parked"), job("dead")]).await;
    let claims = t.claims("n").await;
    t.end("n", &claims[0], Change::Dead).await;
    t.end("n", &claims[1], Change::Park).await;
    t.advance(ms(10 * WEEK_MS)).await;
    t.reconcile("n").await;
    for last_seen in [Sequence(0), Sequence(t.last_seen("n").0 - 1), t.last_seen("n").next()] {
        let request = Sweep { last_seen, ..t.sweep_of("n", 10) };
        let lease_status = refused(t.link("n").step(request).await.expect("sweep is answered"));
        assert_eq!(lease_status.sequence, t.last_seen("n"));
    }
    assert_eq!((t.counts().await.unacked, t.counts().await.dead), (1, 1));
    let sequence = t.last_seen("n");
    let answer = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!((answer.lease_status.sequence, answer.lease_status.rows, answer.clock), (sequence.next(), 1, t.now()));
    assert_eq!((answer.claims.len(), answer.pruned_dead), (1, 1));
}

/// A sweep claims the longest parked jobs first, up to its limit, and reports whether there are more (rules 5, 25).
pub async fn sweeping_is_bounded(t: &Topic) {
    for n in 0..3 {
        t.add_and_run("n", &format!("j{n}"), Change::Park).await;
        t.advance(ms(5)).await;
    }
    t.advance(ms(WEEK_MS)).await;
    let answer = t.sweep("n", t.sweep_of("n", 2)).await;
    assert_eq!((ids(&answer.claims), answer.more), (vec!["j0", "j1"], true));
    let answer = t.sweep("n", t.sweep_of("n", 2)).await;
    assert_eq!((ids(&answer.claims), answer.more), (vec!["j2"], false));
}

/// An aged job that is parked again waits for another period under its first parking fence, exhausted or not (rule 25).
pub async fn kept_job_keeps_its_parking_fence(t: &Topic) {
    let (claim, fence, _) = aged(t, "n", "a").await;
    t.exhaust("n", &claim, exhausted()).await;
    assert_eq!(t.metadata("a").await, Metadata { parked_by: Some(fence), ..exhausted() });
    t.advance(secs(9)).await;
    t.end("n", &claim, Change::Park).await;
    assert_eq!(t.place("a").await, JobState::Unacked { since: t.now() });
    assert_eq!(t.metadata("a").await.parked_by, Some(fence));
    assert!(!t.ack_run("a", claim.token.fence).await.changed);
    assert!(t.ack_run("a", fence).await.changed);
}

/// An aged job that is given back or reclaimed is UNACKED since its old time, under its old fence (rule 25).
pub async fn returned_aged_job_is_parked_as_before(t: &Topic) {
    for way in ["rollback", "reclaim", "release"] {
        let (claim, fence, since) = aged(t, "n", "a").await;
        match way {
            "rollback" => t.end("n", &claim, Change::Rollback).await,
            "reclaim" => t.crash("n").await,
            _ => {
                t.release("n").await;
                assert_eq!(t.reclaim("m", "n", Timestamp::EPOCH, 10).await.moved, 1);
            }
        }
        assert_eq!(t.place("a").await, JobState::Unacked { since }, "{way}");
        assert_eq!(t.metadata("a").await.parked_by, Some(fence), "{way}");
        assert_eq!(t.claim_unacked("m", "a").await.token.due, since, "the job keeps its age");
        t.delete("a").await;
        t.crash("m").await;
    }
}

/// A retry or rejoin of an aged job makes it DELAYED and clears its parking fence (rule 25).
pub async fn retried_aged_job_is_no_longer_parked(t: &Topic) {
    for change in [Change::Retry(ms(10)), Change::Rejoin(RejoinDue::After(ms(10)))] {
        let (claim, fence, _) = aged(t, "n", "a").await;
        let metadata = Metadata { attempts: 1, parked_by: Some(fence), ..Metadata::default() };
        match change {
            Change::Retry(_) => t.end_with("n", &claim, change.clone(), metadata).await,
            _ => t.end("n", &claim, change.clone()).await,
        }
        assert_eq!((t.due("a").await, t.metadata("a").await.parked_by), (t.in_ms(10), None), "{change:?}");
        t.advance(ms(10)).await;
        let claim = t.claim("n", "a").await;
        t.end("n", &claim, Change::Rollback).await;
        assert_eq!(t.state("a").await, Some(State::Delayed), "after a rollback of a claim that was not aged");
        t.delete("a").await;
    }
}

/// Crashes of `on_park_timeout` count like others, and a requeue clears them (rules 19, 25).
pub async fn requeue_clears_the_crashes_of_an_aged_job(t: &Topic) {
    aged(t, "n", "a").await;
    t.crash("n").await;
    assert_eq!(t.claim_unacked("n", "a").await.crashes, 1);
    t.crash("n").await;
    t.requeue("a").await;
    assert_eq!(t.claim("n", "a").await.crashes, 0);
}

/// A fence from outside is compared with the parking fence while `on_park_timeout` runs (rules 13, 25).
pub async fn ack_of_the_parked_run_ends_an_aged_job(t: &Topic) {
    for change in [Change::Park, Change::Rollback, Change::Retry(ms(1))] {
        let (claim, fence, _) = aged(t, "n", "a").await;
        assert_eq!(t.ack_run("a", fence).await.found, Some(State::Running));
        t.end("n", &claim, change.clone()).await;
        assert_eq!(t.find("a").await, None, "{change:?}");
        let (claim, fence, _) = aged(t, "n", "a").await;
        t.ack_run("a", Fence(fence.0 - 1)).await;
        t.end("n", &claim, change.clone()).await;
        assert!(t.find("a").await.is_some(), "{change:?} under an ack of another run");
        t.delete("a").await;
    }
}

/// A DEAD job is pruned after `dead_retention` (step `sweep`).
pub async fn dead_jobs_are_pruned_by_age(t: &Topic) {
    t.add_and_run("n", "a", Change::Dead).await;
    let request = Sweep { dead_retention: secs(100), ..t.sweep_of("n", 10) };
    t.advance(ms(99_999)).await;
    assert_eq!(t.sweep("n", request.clone()).await.pruned_dead, 0);
    assert_eq!(t.state("a").await, Some(State::Dead));
    t.advance(ms(2)).await;
    assert_eq!(t.sweep("n", request).await.pruned_dead, 1);
    assert_eq!(t.find("a").await, None);
}

/// If there are more DEAD jobs than `dead_max`, the oldest are pruned (step `sweep`).
pub async fn dead_jobs_are_pruned_by_number(t: &Topic) {
    for n in 0..5 {
        t.add_and_run("n", &format!("j{n}"), Change::Dead).await;
        t.advance(ms(5)).await;
    }
    assert_eq!(t.sweep("n", Sweep { dead_max: 5, ..t.sweep_of("n", 10) }).await.pruned_dead, 0);
    assert_eq!(t.sweep("n", Sweep { dead_max: 2, ..t.sweep_of("n", 10) }).await.pruned_dead, 3);
    let kept: Vec<_> = t.pages(State::Dead, 10).await.into_iter().map(|job| job.id.to_string()).collect();
    assert_eq!(kept, ["j3", "j4"]);
}

/// A DONE job is pruned when its own retention has passed (step `sweep`).
pub async fn done_jobs_are_pruned_after_their_retention(t: &Topic) {
    t.add_job(retained("a")).await;
    t.run("n", "a", Change::Ack).await;
    t.advance(ms(59_999)).await;
    assert_eq!(t.sweep("n", t.sweep_of("n", 10)).await.pruned_done, 0);
    assert_eq!(t.state("a").await, Some(State::Done));
    t.advance(ms(2)).await;
    assert_eq!(t.sweep("n", t.sweep_of("n", 10)).await.pruned_done, 1);
    assert_eq!(t.find("a").await, None);
}

/// Pruning is bounded and reports whether there is more (rule 5).
pub async fn pruning_is_bounded(t: &Topic) {
    t.add_all((0..10).map(|n| retained(&format!("j{n}"))).collect()).await;
    for (n, claim) in t.claims("n").await.iter().enumerate() {
        t.end("n", claim, if n % 2 == 0 { Change::Dead } else { Change::Ack }).await;
    }
    t.advance(ms(10 * WEEK_MS)).await;
    for (pruned, more) in [(2, true), (2, true), (1, false)] {
        let answer = t.sweep("n", t.sweep_of("n", 2)).await;
        assert_eq!((answer.pruned_dead, answer.pruned_done, answer.more), (pruned, pruned, more));
    }
    assert_eq!(t.scan().await.records, 0);
}
