//! The step `reclaim`, and how crashes count (rules 15, 19, 20).

use super::events::exhaust_by_crashes;
use super::notes::exhausted;
use super::producer::job;
use super::topic::{LEASE, MAX_CRASHES, Topic, ms, secs};
use dq::job::{Cause, Metadata, State};
use dq::store::step::{Change, Claim, DEFAULT_BYTES, MAX_JOBS, NoteVerdict, Reclaim, Reclaimed};
use dq::time::Timestamp;

/// A job that the node has claimed and that its crashes have quarantined.
async fn quarantined(t: &Topic, node: &str, name: &str) -> Claim {
    let mut claim = t.running(node, name).await;
    for _ in 1..MAX_CRASHES {
        t.crash(node).await;
        claim = t.claim(node, name).await;
    }
    assert_eq!(claim.crashes, MAX_CRASHES - 1);
    claim
}

/// A reclaimed job has its old due time, its old record and one crash more (rules 19, 20).
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

/// A lease that changed since the reclaimer saw it protects the jobs of its node, even if it has expired again (rule
/// 20).
pub async fn changed_lease_is_not_reclaimed(t: &Topic) {
    t.running("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    t.renew("n").await;
    let renewed = t.lease("n").await;
    assert_eq!(t.reclaim("m", "n", seen, 10).await, Reclaimed { moved: 0, left: 0 });
    t.advance(LEASE + ms(1)).await;
    for wrong in [seen, Timestamp::EPOCH, t.now()] {
        assert_eq!(t.reclaim("m", "n", wrong, 10).await, Reclaimed { moved: 0, left: 0 });
    }
    assert_eq!((t.lease("n").await, t.state("a").await), (renewed, Some(State::Running)));
}

/// A reclaim is bounded and returns the number of rows left, which keep the lease and which the next reclaim takes
/// (rules 5, 8, 20).
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

/// A reclaim in several steps stops when the node renews (rule 20).
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

/// A second reclaim finds nothing, and an unknown node has nothing to reclaim (rule 20).
pub async fn reclaim_happens_once(t: &Topic) {
    t.running("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    assert_eq!(t.reclaim("m", "n", seen, 10).await.moved, 1);
    assert_eq!(t.reclaim("o", "n", seen, 10).await, Reclaimed { moved: 0, left: 0 });
    assert_eq!(t.reclaim("o", "nobody", Timestamp::EPOCH, 10).await, Reclaimed { moved: 0, left: 0 });
    assert_eq!(t.claim("m", "a").await.crashes, 1);
}

/// Crashes add up; rollbacks between them count nothing and clear nothing (rule 19).
pub async fn crashes_add_up(t: &Topic) {
    t.add_and_run("n", "a", Change::Rollback).await;
    for crashes in 0..MAX_CRASHES - 1 {
        let claim = t.claim("n", "a").await;
        assert_eq!(claim.crashes, crashes);
        t.end("n", &claim, Change::Rollback).await;
        assert_eq!(t.claim("n", "a").await.crashes, crashes);
        t.crash("n").await;
    }
    assert_eq!(t.claim("n", "a").await.crashes, MAX_CRASHES - 1);
}

/// A quarantined job that had not started when its node died is not charged (rule 19).
pub async fn quarantined_job_that_had_not_started_is_not_charged(t: &Topic) {
    quarantined(t, "n", "a").await;
    for _ in 0..3 {
        t.crash("n").await;
        assert!(!t.metadata("a").await.exhausted);
        assert_eq!(t.claim("n", "a").await.crashes, MAX_CRASHES - 1);
    }
}

/// A quarantined job that ran in groups is charged each crash up to the last but one, and never convicted (rule 19).
pub async fn grouped_job_is_never_convicted(t: &Topic) {
    let mut claim = quarantined(t, "n", "a").await;
    for crashes in [MAX_CRASHES, MAX_CRASHES + 1, MAX_CRASHES + 1, MAX_CRASHES + 1] {
        assert_eq!(t.group("n", &claim).await, NoteVerdict::Done);
        t.crash("n").await;
        assert!(!t.metadata("a").await.exhausted);
        claim = t.claim("n", "a").await;
        assert_eq!(claim.crashes, crashes);
    }
}

/// A job that ran alone is convicted: it comes back once, exhausted by crashes, at its old due time (rule 19).
pub async fn job_that_ran_alone_is_convicted(t: &Topic) {
    let claim = quarantined(t, "n", "a").await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    t.crash("n").await;
    let metadata = t.metadata("a").await;
    assert_eq!((metadata.exhausted, metadata.cause), (true, Some(Cause::Crashes)));
    assert_eq!((t.due("a").await, t.payload("a").await), (claim.token.due, "a".into()));
    assert_eq!(crashes_and_exhausted(&t.claim("n", "a").await), (MAX_CRASHES + 2, true));
}

/// If the `on_exhausted` of such a job crashes its node too, the job is DEAD because of its crashes (rule 19).
pub async fn final_run_that_crashes_is_the_last(t: &Topic) {
    let claim = t.running("n", "a").await;
    exhaust_by_crashes(t, "n", claim).await;
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Dead));
    let metadata = t.metadata("a").await;
    assert_eq!((metadata.exhausted, metadata.cause), (true, Some(Cause::Crashes)));
    assert_eq!(t.payload("a").await, "a");
}

/// A job whose attempts were spent while it ran alone still gets its `on_exhausted` after a crash (rules 15, 19).
pub async fn on_exhausted_is_owed_after_a_crash_before_it(t: &Topic) {
    let claim = quarantined(t, "n", "a").await;
    t.isolate("n", &claim).await;
    let spent = Metadata { exhausted: true, cause: Some(Cause::Error), ..Metadata::default() };
    t.exhaust("n", &claim, spent).await;
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    assert_eq!(crashes_and_exhausted(&t.claim("n", "a").await), (MAX_CRASHES + 2, true));
}

/// A final run that was not alone comes back as it was (rule 19).
pub async fn final_run_that_was_not_alone_comes_back(t: &Topic) {
    let claim = t.running("n", "a").await;
    let last = exhaust_by_crashes(t, "n", claim).await;
    t.end("n", &last, Change::Rollback).await;
    for is_grouped in [false, true, false, true] {
        let claim = t.claim("n", "a").await;
        assert_eq!(crashes_and_exhausted(&claim), (MAX_CRASHES + 2, true));
        if is_grouped {
            t.group("n", &claim).await;
        }
        t.crash("n").await;
        assert_eq!(t.state("a").await, Some(State::Delayed));
    }
}

/// A job is charged as `isolate` noted last, so that one that made room for others is no longer alone. What it noted ends when the job leaves
/// RUNNING, and a job of a released node is not charged, isolated or not (rules 8, 19).
pub async fn isolation_ends_with_the_run(t: &Topic) {
    for (name, crashes) in [("room", MAX_CRASHES), ("rollback", MAX_CRASHES - 1), ("release", MAX_CRASHES - 1)] {
        let claim = quarantined(t, "n", name).await;
        assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
        match name {
            "room" => assert_eq!(t.group("n", &claim).await, NoteVerdict::Done),
            "rollback" => t.end("n", &claim, Change::Rollback).await,
            _ => {
                t.release("n").await;
                assert_eq!(t.reclaim("m", "n", Timestamp::EPOCH, 10).await.moved, 1);
            }
        }
        if name != "room" {
            t.claim("n", name).await;
        }
        t.crash("n").await;
        let claim = t.claim("n", name).await;
        assert_eq!(crashes_and_exhausted(&claim), (crashes, false), "{name}");
        t.end("n", &claim, Change::Ack).await;
    }
}

/// The reclaimer sets the cap. A cap of zero counts as one (rule 19).
pub async fn cap_is_an_argument(t: &Topic) {
    for (cap, convicted) in [(1, 3), (0, 3), (7, 9)] {
        t.add_all(vec![job("alone"), job("beside")]).await;
        let claims = t.claims("n").await;
        let alone = claims.iter().find(|claim| claim.id.as_str() == "alone").expect("it is due");
        assert_eq!(t.isolate("n", alone).await, NoteVerdict::Done);
        let seen = t.lease("n").await.expect("n holds them");
        t.advance(LEASE + ms(1)).await;
        let request = Reclaim { node: t.node("n"), seen, limit: MAX_JOBS, bytes: DEFAULT_BYTES, max_crashes: cap };
        t.link("m").step(request).await.expect("reclaim is answered");
        let claims = t.claims("n").await;
        let mut seen: Vec<_> =
            claims.iter().map(|claim| (claim.id.to_string(), crashes_and_exhausted(claim))).collect();
        seen.sort();
        assert_eq!(seen, [("alone".to_owned(), (convicted, true)), ("beside".to_owned(), (1, false))]);
        for claim in &claims {
            t.end("n", claim, Change::Ack).await;
        }
    }
}

fn crashes_and_exhausted(claim: &Claim) -> (u32, bool) {
    (claim.crashes, claim.record.metadata().expect("the record is readable").exhausted)
}

/// A delete and an ack from outside clear the crash count (rule 19).
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

/// A job stays exhausted when its node crashes: what `exhaust` wrote comes back with the job (rule 15).
pub async fn exhaustion_survives_a_crash(t: &Topic) {
    let claim = t.running("n", "a").await;
    assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Done);
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    assert_eq!(t.claim("m", "a").await.record.metadata(), Ok(exhausted()));
}
