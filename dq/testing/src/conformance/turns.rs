//! How groups take turns while more of their jobs are due than may run (rule 4).

use super::changes::update;
use super::groups::{add, limit, member, ranked};
use super::setting::drain;
use super::topic::{Topic, ids, ms, secs};
use dq::job::{Priority, State};
use dq::store::step::{Change, Claim, Transfer};
use dq::store::{AddOutcome, ChangeKind, Due, OnDuplicate, Signal, TopicChange};

/// Claims one job, which must be this one.
async fn next(t: &Topic, name: &str) -> Claim {
    let claims = t.transfer("n", 1).await.claims;
    assert_eq!(ids(&claims), [name]);
    claims.into_iter().next().expect("it is claimed")
}

/// Runs the next job, which must be this one, for a millisecond.
async fn serve(t: &Topic, name: &str) {
    let claim = next(t, name).await;
    t.advance(ms(1)).await;
    t.end("n", &claim, Change::Ack).await;
    t.advance(ms(1)).await;
}

/// A group that was served goes behind the groups that are due then: one with many jobs that have been due for long delays another by a turn
/// at most (rule 4).
pub async fn groups_take_turns_however_long_the_jobs_of_one_have_been_due(t: &Topic) {
    for most in [1, 2] {
        limit(t, most).await;
        add(t, &["a-1", "a-2", "a-3", "a-4", "a-5"]).await;
        t.advance(secs(60)).await;
        add(t, &["b-1", "b-2", "b-3"]).await;
        t.advance(secs(1)).await;
        add(t, &["c-1"]).await;
        t.advance(ms(1)).await;
        for name in ["a-1", "b-1", "c-1", "a-2", "b-2", "a-3", "b-3", "a-4", "a-5"] {
            serve(t, name).await;
        }
    }
}

/// The turn is no time of the job: its token, every query, and every way back have its due time (rule 4).
pub async fn job_at_the_turn_of_its_group_keeps_its_due_time(t: &Topic) {
    limit(t, 1).await;
    let due = t.now();
    add(t, &["a-1", "a-2", "a-3"]).await;
    t.advance(secs(1)).await;
    let mut watcher = t.subscribe("n").await;
    let first = t.claim("n", "a-1").await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    watcher.received(t).await;
    t.end("n", &first, Change::Ack).await;
    assert_eq!(watcher.received(t).await, [Signal::Due(Some(t.now()))]);
    t.advance(secs(1)).await;
    add(t, &["b-1"]).await;
    let pages: Vec<_> = t.pages(State::Delayed, 2).await.iter().map(|job| job.id.to_string()).collect();
    assert_eq!((t.due("a-2").await, pages), (due, ["a-2", "a-3", "b-1"].map(str::to_owned).to_vec()));
    let times = [due, due.after(ms(1)), t.in_ms(1)];
    let counts = t.store.due_counts(&t.key, &times).await.expect("it is answered");
    assert_eq!((counts[0].jobs, counts[1].jobs, t.counts().await.ready), (2, 1, 3));
    let claim = next(t, "a-2").await;
    assert_eq!(claim.token.due, due);
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.due("a-2").await, due);
    let claim = next(t, "a-2").await;
    t.crash("n").await;
    assert_eq!((claim.token.due, t.due("a-2").await), (due, due));
}

/// Whatever happens to the job at the turn of its group, the turn stays with the group (rule 4).
pub async fn turn_stays_with_its_group(t: &Topic) {
    limit(t, 1).await;
    for what in ["delete", "cancel", "ack", "reschedule", "replace", "update"] {
        add(t, &["a-1", "a-2", "a-3", "b-1", "b-2"]).await;
        t.advance(secs(1)).await;
        serve(t, "a-1").await;
        serve(t, "b-1").await;
        let mut first = "a-3";
        match what {
            "delete" => drop(t.delete("a-2").await),
            "cancel" => drop(t.cancel("a-2").await),
            "ack" => drop(t.ack_outside("a-2").await),
            "reschedule" => drop(t.change("a-2", ChangeKind::Reschedule(Due::After(secs(9)))).await),
            "replace" => {
                let new = dq::store::NewJob { on_duplicate: OnDuplicate::Replace, ..member("a-2", secs(9)) };
                assert_eq!(t.add_job(new).await, AddOutcome::Replaced(State::Delayed));
            }
            _ => {
                t.change("a-2", update("new")).await;
                first = "a-2";
            }
        }
        serve(t, first).await;
        serve(t, "b-2").await;
        if what == "update" {
            serve(t, "a-3").await;
        }
        t.advance(secs(9)).await;
        if matches!(what, "reschedule" | "replace") {
            serve(t, "a-2").await;
        }
        assert_eq!(t.claimed_ids("n").await, [""; 0], "{what}");
    }
}

/// A draining topic runs what was due when the drain began, wherever it stands, and asks for no more (rule 29).
pub async fn draining_topic_asks_the_due_time_at_a_turn(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "a-2"]).await;
    t.add_job(member("a-later", secs(5))).await;
    let claim = t.claim("n", "a-1").await;
    t.advance(secs(1)).await;
    t.set(drain("why")).await;
    t.advance(secs(9)).await;
    t.end("n", &claim, Change::Ack).await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims[0].id.as_str(), answer.claims.len(), answer.left), ("a-2", 1, 0));
    t.end("n", &answer.claims[0], Change::Ack).await;
    let mut left = 3;
    while t.transfer("n", 10).await.more {
        left -= 1;
        assert!(left > 0, "it ends to ask for more");
    }
    t.set(TopicChange::Undrain).await;
    t.claim("n", "a-later").await;
}

/// A clock that jumps back makes no job early that stands at a turn (rule 4).
pub async fn turn_is_no_time_before_the_due_time(t: &Topic) {
    limit(t, 1).await;
    let start = t.micros();
    add(t, &["a-1"]).await;
    t.add_job(member("a-2", secs(5))).await;
    let claim = t.claim("n", "a-1").await;
    t.advance(secs(6)).await;
    t.end("n", &claim, Change::Ack).await;
    t.set_clock(start).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set_clock(start + 5_000_000).await;
    t.claim("n", "a-2").await;
}

/// A turn counts like a due time where priorities compete (rule 4).
pub async fn turns_compete_by_priority(t: &Topic) {
    limit(t, 1).await;
    for (group, priority) in [("a", Priority::Low), ("b", Priority::Normal), ("c", Priority::High)] {
        for n in 1..4 {
            t.add_job(ranked(&format!("{group}-{n}"), priority)).await;
        }
    }
    t.advance(ms(1)).await;
    for name in ["c-1", "c-2", "c-3", "b-1", "b-2"] {
        serve(t, name).await;
    }
    t.advance(secs(600)).await;
    add(t, &["d-1"]).await;
    for name in ["b-3", "a-1", "d-1", "a-2", "a-3"] {
        serve(t, name).await;
    }
}

/// A claim takes as many jobs at turns as it may, and the others keep their turns (rule 5).
pub async fn claim_of_turns_is_bounded(t: &Topic) {
    limit(t, 1).await;
    let names = ["a-1", "b-1", "c-1", "a-2", "b-2", "c-2", "a-3"];
    add(t, &names).await;
    t.advance(secs(1)).await;
    for name in &names[..3] {
        serve(t, name).await;
    }
    let claims = t.transfer_with("n", Transfer { bytes: 1, ..t.transfer_of("n", 10) }).await.claims;
    assert_eq!(ids(&claims), ["a-2"]);
    t.advance(ms(1)).await;
    t.end("n", &claims[0], Change::Ack).await;
    let rest = t.transfer("n", 2).await;
    assert_eq!(ids(&rest.claims), ["b-2", "c-2"]);
    assert!(rest.more);
    next(t, "a-3").await;
}
