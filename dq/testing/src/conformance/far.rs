//! Jobs that are due much later. A store may keep them in another way than those that are due soon, and nobody may see that: a job is
//! in one place, waits under its due time, and is claimed when it is due (rules 2, 4, 23).

use std::time::Duration;

use super::producer::{answered, command, delayed, job, replacing, retained};
use super::topic::{Topic, id, ms, secs};
use dq::job::State;
use dq::store::step::Transfer;
use dq::store::{AddOutcome, CommandKind, NewJob, OnDuplicate};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Delays of a minute to a day, in no order; none is another's.
fn scattered(n: u64) -> Duration {
    secs(60 + n * 7_919 % 86_340)
}

async fn names_in(t: &Topic, state: State, limit: usize) -> Vec<String> {
    t.pages(state, limit).await.into_iter().map(|job| job.id.to_string()).collect()
}

/// It is found, counted and listed like any other, and is not ready before it is due (queries).
pub async fn far_job_waits_like_any_other(t: &Topic) {
    assert_eq!(t.add_job(delayed("far", DAY)).await, AddOutcome::Added);
    let stored = t.stored("far").await;
    assert_eq!(stored.record, delayed("far", DAY).record);
    let counts = t.counts().await;
    assert_eq!((counts.delayed, counts.ready, counts.head), (1, 0, Some(t.due("far").await)));
    t.add_later("near", secs(1)).await;
    assert_eq!((t.counts().await.delayed, t.counts().await.head), (2, Some(t.due("near").await)));
    t.advance(DAY - ms(1)).await;
    assert_eq!(t.counts().await.ready, 1);
    t.advance(ms(1)).await;
    assert_eq!(t.counts().await.ready, 2);
    assert_eq!(t.claimed_ids("n").await, ["near", "far"]);
}

/// However often nodes look before, it is claimed at its due time and not earlier (rule 4).
pub async fn far_job_is_claimed_when_it_is_due(t: &Topic) {
    t.add_later("a", 2 * HOUR).await;
    let due = t.due("a").await;
    for (step, passed) in [HOUR, HOUR - secs(1), ms(999)].into_iter().enumerate() {
        t.advance(passed).await;
        assert!(t.claims("n").await.is_empty(), "step {step}");
        assert_eq!(t.due("a").await, due);
    }
    t.advance(ms(1)).await;
    assert_eq!(t.claim("n", "a").await.token.due, due);
}

/// The watcher sleeps until the head at most, also if that was much later when it was added (rule 23).
pub async fn watcher_does_not_sleep_past_a_far_job(t: &Topic) {
    t.add_later("a", 2 * HOUR).await;
    t.enter("w").await;
    let mut passed = Duration::ZERO;
    for transfers in 0.. {
        let answer = t.transfer_with("w", Transfer { fallback: DAY, ..t.transfer_of("w", 10) }).await;
        if !answer.claims.is_empty() {
            return assert_eq!((passed, answer.claims.len()), (2 * HOUR, 1), "the watcher came in time");
        }
        assert!(transfers < 4 && !answer.more, "{transfers} transfers, and the job is not due");
        t.advance(answer.sleep).await;
        passed += answer.sleep;
    }
}

/// While nobody claims, jobs become due that were much later. They are claimed earliest first, however many (rule 4).
pub async fn overdue_far_jobs_are_claimed_in_order(t: &Topic) {
    let new = |n: u64| delayed(&format!("{n:03}"), scattered(n));
    t.add_all((0..600).map(new).collect()).await;
    t.advance(DAY).await;
    assert_eq!(t.counts().await.ready, 600);
    let (mut last, mut claimed) = (dq::time::Timestamp::EPOCH, 0);
    for _ in 0..50 {
        let answer = t.transfer("n", 100).await;
        for claim in &answer.claims {
            assert!(claim.token.due >= last, "earliest first");
            last = claim.token.due;
        }
        claimed += answer.claims.len();
        assert!(answer.more || claimed == 600, "what is left is reported");
        if claimed == 600 {
            return;
        }
    }
    panic!("{claimed} of 600 jobs were claimed");
}

/// Delete, cancel and ack end it, and a requeue leaves it (rule 13).
pub async fn commands_end_far_jobs(t: &Topic) {
    let names = ["acked", "cancelled", "deleted", "kept"];
    t.add_all(names.iter().map(|name| delayed(name, HOUR)).collect()).await;
    assert!(t.delete("deleted").await.changed && t.cancel("cancelled").await.changed);
    assert!(t.ack_outside("acked").await.changed && !t.requeue("kept").await.changed);
    assert_eq!(names_in(t, State::Delayed, 10).await, ["kept"]);
    assert!(!t.delete("deleted").await.changed);
    let far_and_retained = NewJob { due: delayed("done", HOUR).due, ..retained("done") };
    t.add_job(far_and_retained).await;
    t.ack_outside("done").await;
    assert_eq!(t.state("done").await, Some(State::Done));
    t.advance(HOUR).await;
    assert_eq!(t.claimed_ids("n").await, ["kept"]);
}

/// An add finds its id known, and a replacement takes its place, from much later to soon and back (rule 2).
pub async fn far_job_is_replaced(t: &Topic) {
    t.add_later("a", HOUR).await;
    for on_duplicate in [OnDuplicate::Reject, OnDuplicate::Keep] {
        for delay in [secs(1), HOUR] {
            let outcome = t.add_job(NewJob { on_duplicate, ..delayed("a", delay) }).await;
            assert_eq!(outcome, AddOutcome::Exists(State::Delayed));
        }
    }
    for (payload, delay) in [("soon", secs(1)), ("later", DAY), ("earlier", HOUR)] {
        let new = NewJob { due: delayed("a", delay).due, ..replacing("a", payload) };
        assert_eq!(t.add_job(new).await, AddOutcome::Replaced(State::Delayed));
        assert_eq!((t.due("a").await, t.payload("a").await), (t.in_ms(delay.as_millis() as u64), payload.to_owned()));
        let scanned = t.scan().await;
        assert_eq!(scanned.records, scanned.places, "{payload}");
    }
    assert_eq!(t.counts().await.delayed, 1);
    t.advance(HOUR).await;
    t.claim("n", "a").await;
    t.advance(DAY).await;
    assert!(t.claims("n").await.is_empty(), "the places that it left are empty");
}

/// One batch may have jobs that are due soon and much later, known ones and repeated ones; its answers are in its order (step `add`).
pub async fn batch_of_near_and_far_jobs_is_answered_in_order(t: &Topic) {
    t.add_later("m", DAY).await;
    let names = ["z", "m", "b", "z", "a"];
    let outcomes = t.add_all(names.iter().map(|name| delayed(name, HOUR)).chain([job("c"), job("m")]).collect()).await;
    let (added, known) = (AddOutcome::Added, AddOutcome::Exists(State::Delayed));
    assert_eq!(
        outcomes,
        [
            added,
            known,
            AddOutcome::Added,
            AddOutcome::Repeated,
            AddOutcome::Added,
            AddOutcome::Added,
            AddOutcome::Repeated
        ]
    );
    assert_eq!(names_in(t, State::Delayed, 2).await, ["c", "a", "b", "z", "m"]);
}

/// Pages of DELAYED go on from jobs that are due soon to those that are due much later, in order of due time, then id (query `page`).
pub async fn pages_cross_from_near_to_far(t: &Topic) {
    let new = |n: u64| delayed(&format!("{n:03}"), scattered(n));
    // A job that has come near through a rejoin or a retry may be due after one that is far.
    let claim = t.running("n", "rejoined").await;
    for n in 0..40 {
        t.add_job(new(n)).await;
    }
    t.end("n", &claim, dq::store::step::Change::Rejoin(dq::store::step::RejoinDue::After(HOUR))).await;
    let mut expected: Vec<_> = (0..40).map(|n| (scattered(n), format!("{n:03}"))).collect();
    expected.push((HOUR, "rejoined".into()));
    expected.sort();
    let expected: Vec<_> = expected.into_iter().map(|(_, name)| name).collect();
    for limit in [1, 3, 40, 41, 1_000] {
        assert_eq!(names_in(t, State::Delayed, limit).await, expected, "pages of {limit}");
    }
}

/// Many jobs that are due in one millisecond, and were added in any order, stay in order, and any of them can be deleted (query `page`).
pub async fn many_far_jobs_may_be_due_together(t: &Topic) {
    let name = |n: u64| format!("{:04}", n * 367 % 1_000);
    let at = dq::store::Due::At(t.in_ms(7_200_000));
    for from in [0, 300, 600, 601, 602, 603] {
        let to = if from < 600 { from + 300 } else { from + 1 };
        let outcomes = t.add_all((from..to).map(|n| NewJob { due: at, ..job(&name(n)) }).collect()).await;
        assert!(outcomes.iter().all(|outcome| *outcome == AddOutcome::Added));
    }
    let deleted = (0..604).step_by(3).map(|n| command(CommandKind::Delete, &name(n), None)).collect();
    let batch = t.numbered(deleted);
    let answer = t.producer().command(batch).await.expect("command is answered");
    assert!(answered(answer).iter().all(|outcome| outcome.changed));
    let mut left: Vec<_> = (0..604).filter(|n| n % 3 != 0).map(name).collect();
    left.sort();
    assert_eq!(names_in(t, State::Delayed, 99).await, left);
    assert_eq!((t.counts().await.delayed, t.counts().await.ready), (left.len(), 0));
    t.advance(2 * HOUR).await;
    let mut claimed = 0;
    for _ in 0..10 {
        claimed += t.claims("n").await.len();
    }
    assert_eq!((claimed, t.counts().await.delayed), (left.len(), 0));
}

/// Jobs that come in any order of due times, each alone or in batches, are listed and claimed in the order of due times.
pub async fn far_jobs_may_come_in_any_order(t: &Topic) {
    let new = |n: u64| delayed(&format!("{n:03}"), scattered(n));
    for n in 0..30 {
        t.add_job(new(n)).await;
    }
    t.add_all((30..500).map(new).collect()).await;
    // Earlier and earlier, and later and later.
    for n in 0..200 {
        let (early, late) = (format!("early{n}"), format!("late{n:03}"));
        t.add_all(vec![delayed(&early, 2 * DAY - secs(n)), delayed(&late, 2 * DAY + secs(n))]).await;
    }
    let pages = t.pages(State::Delayed, 200).await;
    let dues = pages.iter().filter_map(|job| match job.place {
        dq::job::JobState::Delayed { due } => Some((due, job.id.clone())),
        _ => None,
    });
    let dues: Vec<_> = dues.collect();
    assert!(dues.len() == 900 && dues.is_sorted());
    assert!(t.delete("late100").await.changed && t.delete("early100").await.changed);
    assert_eq!(t.stored("000").await.id, id("000"));
    assert_eq!(t.counts().await.delayed, 898);
}
