//! Taking jobs from a node whose lease ran out, and counting crashes (rules 19, 20).

use super::calls::job;
use super::drive::exhaust_by_crashes;
use super::topic::{LEASE, MAX_CRASHES, Topic, ms, secs};
use dq::job::{Cause, Metadata, State};
use dq::store::StoreError;
use dq::store::step::{Change, Claim, MOST_JOBS, NoteVerdict, Reclaim, Reclaimed};
use dq::time::Timestamp;

/// A job that the node runs, one crash short of the cap.
async fn one_crash_short(t: &Topic, node: &str, name: &str) -> Claim {
    let mut claim = t.running(node, name).await;
    for _ in 1..MAX_CRASHES {
        t.crash(node).await;
        claim = t.claim(node, name).await;
    }
    assert_eq!(claim.crashes, MAX_CRASHES - 1);
    claim
}

/// A reclaimed job is due when it was, with the record it had, and one crash counted (rules 19, 20).
pub async fn reclaimed_job_is_due_when_it_was(t: &Topic) {
    t.add_later("a", secs(1)).await;
    let (due, record) = (t.due("a").await, t.stored("a").await.record);
    t.advance(secs(9)).await;
    t.claim("n", "a").await;
    t.crash("n").await;
    assert_eq!((t.due("a").await, t.stored("a").await.record), (due, record));
    let claim = t.claim("m", "a").await;
    assert_eq!((claim.crashes, claim.token.due), (1, due));
}

/// A lease that has not run out protects its node (rule 20).
pub async fn live_lease_is_not_reclaimed(t: &Topic) {
    t.running("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE - ms(1)).await;
    assert_eq!(t.reclaim("m", "n", seen, 10).await.moved, 0);
    assert_eq!(t.state("a").await, Some(State::Running));
}

/// A lease that changed since it was seen protects its node, also one that has run out again (rule 20).
pub async fn changed_lease_is_not_reclaimed(t: &Topic) {
    t.running("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    t.renew("n").await;
    let renewed = t.lease("n").await;
    assert_eq!(t.reclaim("m", "n", seen, 10).await.moved, 0);
    t.advance(LEASE + ms(1)).await;
    for wrong in [seen, Timestamp::EPOCH, t.now()] {
        assert_eq!(t.reclaim("m", "n", wrong, 10).await.moved, 0);
    }
    assert_eq!((t.lease("n").await, t.state("a").await), (renewed, Some(State::Running)));
}

/// Reclaim is bounded and says how much is left; the lease stays with what is left, and the next step takes it (rules 5, 8,
/// 20).
pub async fn reclaim_is_bounded(t: &Topic) {
    t.add_all((0..5).map(|n| job(&format!("j{n}"))).collect()).await;
    t.claims("n").await;
    let seen = t.lease("n").await.expect("n holds them");
    t.advance(LEASE + ms(1)).await;
    assert_eq!(t.reclaim("m", "n", seen, 2).await, Reclaimed { moved: 2, left: 3 });
    assert_eq!(t.lease("n").await, Some(seen));
    assert_eq!(t.reclaim("m", "n", seen, 2).await, Reclaimed { moved: 2, left: 1 });
    assert_eq!(t.reclaim("other", "n", seen, 2).await, Reclaimed { moved: 1, left: 0 });
    assert_eq!(t.lease("n").await, None);
    assert_eq!(t.counts().await.delayed, 5);
}

/// A half-done reclaim stops when the node renews (rule 20).
pub async fn reclaim_stops_when_the_node_renews(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    t.claims("n").await;
    let seen = t.lease("n").await.expect("n holds them");
    t.advance(LEASE + ms(1)).await;
    assert_eq!(t.reclaim("m", "n", seen, 1).await, Reclaimed { moved: 1, left: 1 });
    t.renew("n").await;
    assert_eq!(t.reclaim("m", "n", seen, 1).await.moved, 0);
    assert_eq!(t.counts().await.running, 1);
}

/// What one reclaimed, another finds gone; a node nobody knows has nothing to reclaim (rule 20).
pub async fn reclaim_happens_once(t: &Topic) {
    t.running("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    assert_eq!(t.reclaim("m", "n", seen, 10).await.moved, 1);
    assert_eq!(t.reclaim("o", "n", seen, 10).await, Reclaimed { moved: 0, left: 0 });
    assert_eq!(t.reclaim("o", "nobody", Timestamp::EPOCH, 10).await, Reclaimed { moved: 0, left: 0 });
    assert_eq!(t.claim("m", "a").await.crashes, 1);
}

/// Crashes add up, and rollbacks between them count nothing and clear nothing (rule 19).
pub async fn crashes_add_up(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.end("n", &claim, Change::Rollback).await;
    for crashes in 0..MAX_CRASHES - 1 {
        let claim = t.claim("n", "a").await;
        assert_eq!(claim.crashes, crashes);
        t.end("n", &claim, Change::Rollback).await;
        assert_eq!(t.claim("n", "a").await.crashes, crashes);
        t.crash("n").await;
    }
    assert_eq!(t.claim("n", "a").await.crashes, MAX_CRASHES - 1);
}

/// A job one crash short of its cap that had not begun is not charged: it only sat beside a killer (rule 19).
pub async fn job_that_was_not_isolated_is_not_charged_the_last_crash(t: &Topic) {
    one_crash_short(t, "n", "a").await;
    for _ in 0..3 {
        t.crash("n").await;
        assert!(!t.metadata("a").await.exhausted);
        assert_eq!(t.claim("n", "a").await.crashes, MAX_CRASHES - 1);
    }
}

/// One that had begun is: it comes back once, exhausted by its crashes, due when it was (rule 19).
pub async fn isolated_job_is_charged_the_last_crash(t: &Topic) {
    let claim = one_crash_short(t, "n", "a").await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    t.crash("n").await;
    let metadata = t.metadata("a").await;
    assert_eq!((metadata.exhausted, metadata.cause), (true, Some(Cause::Crashes)));
    assert_eq!((t.due("a").await, t.says("a").await), (claim.token.due, "a".into()));
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.crashes, claim.record.metadata().map(|metadata| metadata.exhausted)), (MAX_CRASHES, Ok(true)));
}

/// If the `final_retry` of such a job takes its node too, the job is DEAD of its crashes (rule 19).
pub async fn final_run_that_crashes_is_the_last(t: &Topic) {
    let claim = t.running("n", "a").await;
    exhaust_by_crashes(t, "n", claim).await;
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Dead));
    let metadata = t.metadata("a").await;
    assert_eq!((metadata.exhausted, metadata.cause), (true, Some(Cause::Crashes)));
    assert_eq!(t.says("a").await, "a");
}

/// A final run that had not begun comes back as it was (rule 19).
pub async fn final_run_that_was_not_isolated_comes_back(t: &Topic) {
    let claim = t.running("n", "a").await;
    let last = exhaust_by_crashes(t, "n", claim).await;
    t.end("n", &last, Change::Rollback).await;
    for _ in 0..3 {
        let claim = t.claim("n", "a").await;
        assert_eq!(
            (claim.crashes, claim.record.metadata().map(|metadata| metadata.exhausted)),
            (MAX_CRASHES, Ok(true))
        );
        t.crash("n").await;
        assert_eq!(t.state("a").await, Some(State::Delayed));
    }
}

/// *Begun* goes whenever the job leaves RUNNING: the next run has to begin again to be charged (rule 19).
pub async fn isolation_ends_with_the_run(t: &Topic) {
    let claim = one_crash_short(t, "n", "a").await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    t.end("n", &claim, Change::Rollback).await;
    t.claim("n", "a").await;
    t.crash("n").await;
    let claim = t.claim("n", "a").await;
    assert_eq!(
        (claim.crashes, claim.record.metadata().map(|metadata| metadata.exhausted)),
        (MAX_CRASHES - 1, Ok(false))
    );
}

/// A job that was handed over by a released node is not charged, begun or not (rules 8, 19).
pub async fn isolated_job_of_a_released_node_is_not_charged(t: &Topic) {
    let claim = one_crash_short(t, "n", "a").await;
    t.isolate("n", &claim).await;
    t.release("n").await;
    assert_eq!(t.reclaim("m", "n", Timestamp::EPOCH, 10).await.moved, 1);
    t.claim("n", "a").await;
    t.crash("n").await;
    let claim = t.claim("n", "a").await;
    assert_eq!(
        (claim.crashes, claim.record.metadata().map(|metadata| metadata.exhausted)),
        (MAX_CRASHES - 1, Ok(false))
    );
}

/// The cap is the reclaimer's: with a cap of one the first crash of a begun job exhausts it, of another charges nothing
/// (rule 19).
pub async fn cap_is_an_argument(t: &Topic) {
    t.add_all(vec![job("begun"), job("aside")]).await;
    let claims = t.claims("n").await;
    assert_eq!(claims[1].id.as_str(), "begun");
    assert_eq!(t.isolate("n", &claims[1]).await, NoteVerdict::Done);
    let seen = t.lease("n").await.expect("n holds them");
    t.advance(LEASE + ms(1)).await;
    let request = Reclaim { node: t.node("n"), seen, limit: MOST_JOBS, max_crashes: 1 };
    t.link("m").reclaim(request).await.expect("reclaim is answered");
    assert!(t.metadata("begun").await.exhausted);
    assert!(!t.metadata("aside").await.exhausted);
    let crashes: Vec<_> = t.claims("m").await.iter().map(|claim| (claim.id.to_string(), claim.crashes)).collect();
    assert_eq!(crashes, [("aside".to_owned(), 0), ("begun".to_owned(), 1)]);
}

/// Requeue, delete and an ack from outside clear the crash count with the rest (rule 19).
pub async fn commands_clear_the_crash_count(t: &Topic) {
    for name in ["delete", "ack"] {
        t.running("n", name).await;
        t.crash("n").await;
        if name == "delete" {
            t.delete(name).await
        } else {
            t.ack_outside(name).await
        };
        let claim = t.running("n", name).await;
        assert_eq!(claim.crashes, 0, "after {name}");
        t.end("n", &claim, Change::Ack).await;
    }
}

/// That a job is exhausted survives its node: what `exhaust` wrote comes back with the job (rule 15).
pub async fn exhaustion_survives_a_crash(t: &Topic) {
    let claim = t.running("n", "a").await;
    let metadata = Metadata {
        attempts: 6,
        exhausted: true,
        cause: Some(Cause::Error),
        error: Some("no".into()),
        ..Metadata::default()
    };
    assert_eq!(t.exhaust("n", &claim, metadata.clone()).await, NoteVerdict::Done);
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    assert_eq!(t.claim("m", "a").await.record.metadata(), Ok(metadata));
}

/// A reclaim over the limit is refused whole (rule 5).
pub async fn reclaim_over_the_limit_changes_nothing(t: &Topic) {
    t.running("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    let request = Reclaim { node: t.node("n"), seen, limit: 1_001, max_crashes: MAX_CRASHES };
    let error = t.link("m").reclaim(request).await.expect_err("1,001 are too many");
    assert!(matches!(error, StoreError::OverLimit { size: 1_001, limit: 1_000, .. }), "{error}");
    assert_eq!(t.state("a").await, Some(State::Running));
}
