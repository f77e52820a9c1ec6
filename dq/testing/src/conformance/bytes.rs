//! Bounds on bytes: a step takes one job at least, whatever its size, stops before its bytes are exceeded, and says that there
//! is more; nothing is skipped or lost (rule 5).

use super::events::add_in_state;
use super::producer::{answered, command, with_payload};
use super::topic::{FALLBACK, LEASE, MAX_CRASHES, Topic, id, ids, ms, secs};
use dq::job::{Delivery, State};
use dq::store::step::{Change, Claim, DEFAULT_BYTES, MAX_JOBS, Publish, Reclaim, Settle, Sweep, Transfer, Verdict};
use dq::store::{AddOutcome, CommandKind, Due, NewJob, OnDuplicate, Stored};

/// The size of the payloads of these jobs.
const SIZE: usize = 10_000;
/// Room for two of them with their metadata.
const ROOM: usize = 25_000;

fn heavy(name: &str, size: usize) -> NewJob {
    with_payload(name, &"x".repeat(size))
}

/// Adds heavy jobs `j0` to `j4`, due one millisecond after the other, and lets them become due.
async fn five(t: &Topic) -> [String; 5] {
    let names = std::array::from_fn(|n| format!("j{n}"));
    for (n, name) in names.iter().enumerate() {
        let job = NewJob { due: Due::After(ms(n as u64 + 1)), ..heavy(name, SIZE) };
        assert_eq!(t.add_job(job).await, AddOutcome::Added);
    }
    t.advance(ms(10)).await;
    names
}

async fn transfer(t: &Topic, bytes: usize) -> (Vec<Claim>, bool) {
    t.enter("n").await;
    let request = Transfer { bytes, ..t.transfer_of("n", MAX_JOBS) };
    let answer = t.transfer_with("n", request).await;
    (answer.claims, answer.more)
}

/// A transfer answers no more bytes than it was asked for, in the order of the due times, and says *more* (rule 5).
pub async fn transfer_is_bounded_by_bytes(t: &Topic) {
    five(t).await;
    for (wanted, is_more) in [(&["j0", "j1"][..], true), (&["j2", "j3"], true), (&["j4"], false)] {
        let (claims, more) = transfer(t, ROOM).await;
        assert_eq!((ids(&claims), more), (wanted.to_vec(), is_more));
        assert!(claims.iter().all(|claim| claim.record.as_bytes().len() > SIZE), "with their records");
    }
}

/// One job passes, however large it is and however few bytes are asked for; also behind smaller ones (rule 5).
pub async fn one_large_job_always_passes(t: &Topic) {
    t.add_job(NewJob { due: Due::After(ms(1)), ..heavy("small", 1) }).await;
    t.add_job(NewJob { due: Due::After(ms(2)), ..heavy("large", 10 * SIZE) }).await;
    t.add_job(NewJob { due: Due::After(ms(3)), ..heavy("next", 1) }).await;
    t.advance(ms(10)).await;
    for (wanted, is_more) in [("small", true), ("large", true), ("next", false)] {
        let (claims, more) = transfer(t, 1).await;
        assert_eq!((ids(&claims), more), (vec![wanted], is_more));
    }
}

/// Metadata that an earlier run left count as well, and come back with the job (rule 5).
pub async fn transfer_of_failed_jobs_is_bounded_by_bytes(t: &Topic) {
    let names = five(t).await;
    for claim in t.claims("n").await {
        let metadata = dq::job::Metadata { attempts: 1, error: Some("x".repeat(4_000)), ..Default::default() };
        t.end_with("n", &claim, Change::Retry(ms(1)), metadata).await;
    }
    t.advance(secs(1)).await;
    let mut seen = Vec::new();
    while seen.len() < names.len() {
        let (claims, _) = transfer(t, 2 * ROOM).await;
        assert!(!claims.is_empty() && claims.len() < names.len(), "{}", claims.len());
        assert!(claims.iter().all(|claim| claim.record.metadata().expect("it is readable").attempts == 1));
        seen.extend(claims.iter().map(|claim| claim.id.to_string()));
    }
    seen.sort();
    assert_eq!(seen, names);
}

/// A sweep claims no more bytes than it was asked for, and says *more* (rules 5, 25).
pub async fn sweep_is_bounded_by_bytes(t: &Topic) {
    let names = five(t).await;
    for claim in t.claims("n").await {
        t.end("n", &claim, Change::Park).await;
        t.advance(ms(1)).await;
    }
    t.advance(secs(7 * 24 * 3_600)).await;
    let mut seen = Vec::new();
    for (count, is_more) in [(2, true), (2, true), (1, false)] {
        t.enter("n").await;
        let swept = t.sweep("n", Sweep { bytes: ROOM, ..t.sweep_of("n", MAX_JOBS) }).await;
        assert_eq!((swept.claims.len(), swept.more), (count, is_more));
        seen.extend(swept.claims.into_iter().map(|claim| claim.id.to_string()));
    }
    assert_eq!(seen, names);
}

/// A publish publishes no more bytes than it was asked for, and says *more* (rules 5, 24).
pub async fn publish_is_bounded_by_bytes(t: &Topic) {
    for n in 0..5 {
        t.add_job(NewJob { deliver: Delivery::Broadcast, ..heavy(&format!("b{n}"), SIZE) }).await;
    }
    t.advance(ms(1)).await;
    for (count, is_more, bytes) in [(2, true, ROOM), (1, true, 1), (2, false, ROOM)] {
        let request = Publish { limit: MAX_JOBS, bytes, fallback: FALLBACK, expires_after: secs(3_600) };
        let published = t.link("n").step(request).await.expect("publish is answered");
        assert_eq!((published.published, published.more), (count, is_more));
    }
    assert_eq!(t.counts().await.broadcasts, 0);
}

/// Claims five jobs, each with a heavy replacement that waits.
async fn replaced(t: &Topic) -> Vec<Claim> {
    let names = five(t).await;
    let claims = t.claims("n").await;
    for name in &names {
        let replacement = NewJob { on_duplicate: OnDuplicate::Replace, ..heavy(name, SIZE + 1) };
        assert_eq!(t.add_job(replacement).await, AddOutcome::ReplacementWaits);
    }
    claims
}

async fn all_are_replaced(t: &Topic) {
    t.advance(LEASE).await;
    let claims = t.claims("m").await;
    assert_eq!(claims.len(), 5);
    assert!(claims.iter().all(|claim| claim.record.as_bytes().len() > SIZE + 1), "each is the replacement");
}

/// A settle moves no more bytes of replacements than it was asked to, and leaves the other outcomes for later (rules 5, 13).
pub async fn settle_is_bounded_by_the_bytes_of_replacements(t: &Topic) {
    let mut left = replaced(t).await;
    for settled in [2, 2, 1] {
        let outcomes = left.iter().map(|claim| claim.outcome(Change::Ack)).collect();
        let request = Settle { last_seen: t.last_seen("n"), lease: LEASE, bytes: ROOM, outcomes };
        let verdicts = t.link("n").step(request).await.expect("settle is answered").verdicts;
        let done = verdicts.iter().filter(|verdict| **verdict == Verdict::Done).count();
        assert_eq!((done, verdicts.len()), (settled, left.len()));
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Done | Verdict::Later)), "{verdicts:?}");
        let mut verdicts = verdicts.into_iter();
        left.retain(|_| verdicts.next() == Some(Verdict::Later));
        t.audit().await;
    }
    all_are_replaced(t).await;
}

/// A reclaim moves no more bytes of replacements than it was asked to, and says how many rows are left (rules 5, 13).
pub async fn reclaim_is_bounded_by_the_bytes_of_replacements(t: &Topic) {
    replaced(t).await;
    t.advance(LEASE + ms(1)).await;
    let seen = t.lease("n").await.expect("the node holds jobs");
    for (moved, left) in [(2, 3), (2, 1), (1, 0)] {
        let request = Reclaim { node: t.node("n"), seen, limit: MAX_JOBS, bytes: ROOM, max_crashes: MAX_CRASHES };
        let reclaimed = t.link("m").step(request).await.expect("reclaim is answered");
        assert_eq!((reclaimed.moved, reclaimed.left), (moved, left));
        t.audit().await;
    }
    all_are_replaced(t).await;
}

/// A page has no more bytes than it was asked for, and the next one continues there, in every place; the oldest job of each state
/// leads them, but RUNNING jobs have no order of time (rule 5, query `oldest`).
pub async fn pages_are_bounded_by_bytes(t: &Topic) {
    for state in State::ALL {
        for n in 0..4 {
            add_in_state(t, &format!("{state}{n}"), state).await;
            t.advance(ms(1)).await;
        }
    }
    let names = |jobs: &[Stored]| jobs.iter().map(|job| job.id.to_string()).collect::<Vec<_>>();
    let mut oldest = Vec::new();
    for state in State::ALL {
        let expected = [0, 1, 2, 3].map(|n| format!("{state}{n}"));
        for bytes in [1, 40, DEFAULT_BYTES] {
            assert_eq!(names(&t.pages_of(state, MAX_JOBS, bytes).await), expected, "pages of {bytes} bytes");
        }
        let jobs = t.pages(state, 2).await;
        assert_eq!(names(&jobs), expected);
        if state != State::Running {
            oldest.push((jobs[0].id.clone(), jobs[0].place.clone()));
        }
    }
    assert_eq!(t.store.oldest(&t.key).await.expect("oldest is answered"), oldest);
}

/// A query by ids answers for the first ids, as many as have 1 MiB, and at least one (rule 5).
pub async fn get_is_bounded_by_bytes(t: &Topic) {
    for name in ["a", "b"] {
        t.add_job(heavy(name, DEFAULT_BYTES * 2 / 3)).await;
    }
    t.add_job(heavy("c", DEFAULT_BYTES + 1)).await;
    let ids = ["x", "a", "b", "c"].map(id);
    for (asked, answered) in [(&ids[..], 2), (&ids[2..], 1), (&ids[3..], 1)] {
        let found = t.store.get(&t.key, asked).await.expect("get is answered");
        assert_eq!(found.len(), answered);
        assert_eq!(found.last().and_then(Option::as_ref).map(|job| &job.id), Some(&asked[answered - 1]));
    }
}

/// The answer to a batch of deletes has at most 1 MiB of removed records; every job is deleted (rule 5).
pub async fn removed_records_are_bounded_by_bytes(t: &Topic) {
    let names = ["a", "b", "c"];
    for name in names {
        t.add_job(heavy(name, DEFAULT_BYTES * 2 / 3)).await;
    }
    let commands = names.map(|name| command(CommandKind::Delete, name, None)).to_vec();
    let answer = t.producer().command(t.numbered(commands)).await.expect("command is answered");
    let outcomes = answered(answer);
    let removed: Vec<_> = outcomes.iter().map(|outcome| outcome.removed.is_some()).collect();
    assert_eq!(removed, [true, false, false]);
    assert!(outcomes.iter().all(|outcome| outcome.changed));
    assert_eq!(t.counts().await.delayed, 0);
}
