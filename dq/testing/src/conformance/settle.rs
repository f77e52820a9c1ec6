//! The step `settle`: RUNNING → wherever the outcomes say (rule 10).

use super::producer::{delayed, job, retained, with_metadata};
use super::topic::{LEASE, Topic, id, ms, secs};
use dq::job::{Cause, Fence, JobState, Metadata, State, Token};
use dq::store::step::{Change, Claim, Outcome, RejoinDue, Verdict};
use dq::time::Timestamp;

/// An acked job with a retention is DONE until the retention ends (step `settle`).
pub async fn acked_job_is_kept_for_its_retention(t: &Topic) {
    t.add_job(retained("a")).await;
    let claim = t.claim("n", "a").await;
    t.advance(secs(3)).await;
    t.end("n", &claim, Change::Ack).await;
    let stored = t.stored("a").await;
    assert_eq!(stored.place, JobState::Done { until: t.in_ms(60_000) });
    assert_eq!(stored.record, retained("a").record);
}

/// A rejoined job is due after its original delay, after a given delay, or at a given time. If that is past, it is due after its
/// original delay (rule 4).
pub async fn rejoined_job_is_due_at_the_requested_time(t: &Topic) {
    let at = t.in_ms(500_000);
    let cases = [
        (RejoinDue::AsAdded, Some(30_000)),
        (RejoinDue::After(ms(700)), Some(700)),
        (RejoinDue::After(ms(0)), Some(0)),
        (RejoinDue::At(at), None),
        (RejoinDue::At(Timestamp::from_millis(5)), Some(30_000)),
    ];
    t.add_later("a", secs(30)).await;
    for (again, wait) in cases {
        t.set_clock(t.due("a").await.as_millis() * 1_000).await;
        let claim = t.claim("n", "a").await;
        t.advance(ms(1)).await;
        t.end("n", &claim, Change::Rejoin(again)).await;
        assert_eq!(t.due("a").await, wait.map_or(at, |wait| t.in_ms(wait)), "{again:?}");
    }
}

/// A rejoined job keeps its record, attempts included (step `settle`).
pub async fn rejoined_job_keeps_its_record(t: &Topic) {
    let metadata = Metadata { attempts: 2, cause: Some(Cause::Error), error: Some("no".into()), ..Metadata::default() };
    t.add_job(with_metadata("a", &metadata)).await;
    t.run("n", "a", Change::Rejoin(RejoinDue::After(secs(1)))).await;
    assert_eq!(t.metadata("a").await, metadata);
    assert_eq!(t.payload("a").await, "a");
}

/// A retried job waits for its backoff, counted from now, with its new metadata and its old payload (step `settle`).
pub async fn retried_job_waits_with_its_new_metadata(t: &Topic) {
    t.add_job(delayed("a", secs(1))).await;
    t.advance(secs(5)).await;
    let claim = t.claim("n", "a").await;
    let metadata =
        Metadata { attempts: 1, cause: Some(Cause::Panic), error: Some("boom".into()), ..t.metadata("a").await };
    t.end_with("n", &claim, Change::Retry(secs(10)), metadata.clone()).await;
    assert_eq!(t.due("a").await, t.in_ms(10_000));
    assert_eq!((t.metadata("a").await, t.payload("a").await), (metadata.clone(), "a".into()));
    t.advance(secs(10)).await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.record.metadata(), claim.token.due), (Ok(metadata), t.now()));
}

/// A delay counts from the microsecond of the step and rounds up (rule 4).
pub async fn retry_is_due_after_the_exact_backoff(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.advance(std::time::Duration::from_micros(1)).await;
    t.end("n", &claim, Change::Retry(ms(10))).await;
    assert_eq!(t.due("a").await, t.in_ms(11));
}

/// A job that is given back keeps its due time and its record (step `settle`).
pub async fn rolled_back_job_keeps_its_due_time(t: &Topic) {
    t.add_later("a", secs(1)).await;
    let (due, before) = (t.due("a").await, t.stored("a").await.record);
    t.advance(secs(100)).await;
    let claim = t.claim("n", "a").await;
    t.advance(secs(5)).await;
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!((t.due("a").await, t.stored("a").await.record), (due, before));
}

/// A parked job is UNACKED from now on and keeps the fence of its run (rule 13).
pub async fn parked_job_keeps_the_fence_of_its_run(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.advance(secs(2)).await;
    t.end("n", &claim, Change::Park).await;
    assert_eq!(t.place("a").await, JobState::Unacked { since: t.now() });
    assert_eq!(t.metadata("a").await, Metadata { parked_by: Some(claim.token.fence), ..Metadata::default() });
    assert_eq!(t.payload("a").await, "a");
}

/// A job that is given up is DEAD from now on, with the cause and error of its new metadata (step `settle`).
pub async fn dead_job_keeps_its_cause(t: &Topic) {
    for cause in Cause::ALL {
        let claim = t.running("n", cause.as_str()).await;
        t.advance(secs(2)).await;
        let metadata = Metadata { attempts: 5, cause: Some(cause), error: Some("late".into()), ..Metadata::default() };
        t.end_with("n", &claim, Change::Dead, metadata.clone()).await;
        assert_eq!(t.place(cause.as_str()).await, JobState::Dead { since: t.now() });
        assert_eq!(
            (t.metadata(cause.as_str()).await, t.payload(cause.as_str()).await),
            (metadata, cause.as_str().into())
        );
    }
}

/// Only the store sets the parking fence: it ignores one in new metadata (rule 13).
pub async fn parking_fence_of_new_metadata_is_ignored(t: &Topic) {
    let forged = Metadata { attempts: 1, parked_by: Some(Fence(7)), ..Metadata::default() };
    let claim = t.running("n", "a").await;
    t.end_with("n", &claim, Change::Retry(ms(1)), forged.clone()).await;
    assert_eq!(t.metadata("a").await.parked_by, None);
    t.advance(ms(1)).await;
    let claim = t.claim("n", "a").await;
    t.end_with("n", &claim, Change::Park, forged).await;
    assert_eq!(t.metadata("a").await.parked_by, Some(claim.token.fence));
}

/// An outcome with another fence, due time, node or job than the run's changes nothing (rule 10).
pub async fn stale_token_settles_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    let older = Claim { token: Token { fence: Fence(claim.token.fence.0 - 1), ..claim.token }, ..claim.clone() };
    let other_due = Claim { token: Token { due: t.in_ms(1), ..claim.token }, ..claim.clone() };
    let unknown = Claim { id: id("b"), ..claim.clone() };
    let before = t.stored("a").await;
    for change in super::events::all_changes() {
        for (node, stale) in [("n", &older), ("n", &other_due), ("n", &unknown), ("m", &claim)] {
            assert_eq!(t.settle(node, stale, change.clone()).await, Verdict::Stale, "{change:?}");
        }
    }
    assert_eq!(t.stored("a").await, before);
    assert_eq!(t.rows("n").await, [id("a")]);
    t.end("n", &claim, Change::Ack).await;
}

/// An outcome of a reclaimed run is stale, even if the same node runs the job again (rule 10).
pub async fn outcome_of_a_reclaimed_run_is_stale(t: &Topic) {
    let old = t.running("n", "a").await;
    t.crash("n").await;
    assert_eq!(t.settle("n", &old, Change::Ack).await, Verdict::Stale);
    assert_eq!(t.state("a").await, Some(State::Delayed));
    let new = t.claim("n", "a").await;
    assert_eq!(t.settle("n", &old, Change::Ack).await, Verdict::Stale);
    assert_eq!(t.state("a").await, Some(State::Running));
    t.end("n", &new, Change::Ack).await;
}

/// The same outcome applies once; a repeat is stale (rule 10).
pub async fn repeated_outcome_is_stale(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.end("n", &claim, Change::Retry(ms(0))).await;
    assert_eq!(t.settle("n", &claim, Change::Retry(ms(0))).await, Verdict::Stale);
    assert_eq!(t.settle("n", &claim, Change::Ack).await, Verdict::Stale);
    t.claim("m", "a").await;
}

/// An outcome that cannot be settled does not hold back the others of its batch (rule 10).
pub async fn stale_outcome_does_not_hold_back_the_others(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    let claims = t.claims("n").await;
    let stale = Outcome { token: Token { fence: Fence(1), ..claims[1].token }, ..claims[1].outcome(Change::Ack) };
    let outcomes = vec![claims[0].outcome(Change::Ack), stale, claims[2].outcome(Change::Dead)];
    let settled = t.settle_all("n", outcomes).await;
    assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Stale, Verdict::Done]);
    assert_eq!((t.state("a").await, t.state("c").await), (None, Some(State::Dead)));
    assert_eq!(t.rows("n").await, [id("b")]);
}

/// A batch that names a job twice settles it once (rules 1, 10).
pub async fn job_named_twice_is_settled_once(t: &Topic) {
    let claim = t.running("n", "a").await;
    let settled = t.settle_all("n", vec![claim.outcome(Change::Retry(ms(0))), claim.outcome(Change::Ack)]).await;
    assert_eq!(settled.verdicts[0], Verdict::Done);
    assert_ne!(settled.verdicts[1], Verdict::Done);
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// An outcome applies after the lease has expired, as long as no node has reclaimed the job (rule 10).
pub async fn outcome_under_an_expired_lease_applies(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.advance(LEASE * 3).await;
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.find("a").await, None);
}

/// An outcome applies even if its request names a wrong sequence number: the token decides (rules 6, 10).
pub async fn outcome_under_a_wrong_sequence_number_applies(t: &Topic) {
    let claim = t.running("n", "a").await;
    let request = t.settle_of("n", &claim, Change::Ack);
    let request = dq::store::step::Settle { last_seen: dq::job::Sequence(77), ..request };
    let settled = t.link("n").step(request).await.expect("settle is answered");
    assert_eq!(settled.verdicts, [Verdict::Done]);
    assert_eq!((settled.lease_status.sequence, settled.lease_status.rows), (t.last_seen("n"), 0));
}

/// Every outcome except a rollback clears the crash count (rule 19).
pub async fn settled_outcome_clears_the_crash_count(t: &Topic) {
    let changes =
        [Change::Retry(ms(0)), Change::Rejoin(RejoinDue::After(ms(0))), Change::Park, Change::Dead, Change::Rollback];
    for change in changes {
        t.running("n", "a").await;
        t.crash("n").await;
        let claim = t.claim("n", "a").await;
        assert_eq!(claim.crashes, 1);
        t.end("n", &claim, change.clone()).await;
        if t.state("a").await != Some(State::Delayed) {
            t.requeue("a").await;
        }
        let claim = t.claim("n", "a").await;
        assert_eq!(claim.crashes, u32::from(change == Change::Rollback), "after {change:?}");
        t.end("n", &claim, Change::Ack).await;
    }
}
