//! Where limits or priorities hold jobs back, the ticks of schedules pass them (rules 29 and 30).

use super::copies::copy;
use super::priorities::ranked;
use super::producer::{job, replacing};
use super::setting::{drain, limit_to, pause_for};
use super::subscriber::Subscriber;
use super::ticks::{new, tick};
use super::topic::{FALLBACK, Topic, ids, ms, secs};
use dq::job::State;
use dq::store::step::{Change, Claim};
use dq::store::{ChangeKind, Due, Limit, LimitKind, LinkOptions, Rate, Signal, TopicChange};

const S: &str = "dq:schedule:s";

/// A topic whose only slot a job has, and in which another job waits for it.
async fn full(t: &Topic) -> Claim {
    t.set(limit_to(Limit::ClusterConcurrency(1), "")).await;
    let claim = t.running("r", "runs").await;
    t.add("waits").await;
    assert_eq!(t.transfer("n", 10).await.sleep, FALLBACK);
    claim
}

async fn settle(t: &Topic, claim: &Claim, jobs: &[&str]) {
    let jobs = jobs.iter().map(|name| new(name)).collect();
    t.end("n", claim, Change::Tick(Box::new(tick(t, jobs)))).await;
}

/// A tick needs no slot, and the job that it adds waits for one. The watcher comes for the next tick while the topic stays full (rules 23, 29
/// and 30).
pub async fn tick_passes_a_full_topic(t: &Topic) {
    let runs = full(t).await;
    t.add(S).await;
    for n in 0..3 {
        let ticks = t.transfer("n", 10).await;
        assert_eq!((ids(&ticks.claims), ticks.more), (vec![S], true), "what else is due is for the next transfer");
        settle(t, &ticks.claims[0], &[&format!("job-{n}")]).await;
        let after = t.transfer("n", 10).await;
        assert_eq!((ids(&after.claims), after.more, after.sleep), (vec![], false, secs(10)), "until the next tick");
        t.advance(after.sleep).await;
    }
    let ticks = t.transfer("n", 10).await;
    settle(t, &ticks.claims[0], &[]).await;
    t.end("r", &runs, Change::Ack).await;
    let jobs = t.transfer("n", 10).await;
    assert_eq!(jobs.claims.len(), 1, "the slot is free");
    assert!(!ids(&jobs.claims).contains(&S));
}

/// A tick passes a rate that is spent, and spends nothing; the watcher comes for the next tick or when the rate opens, whichever is
/// earlier (rules 23, 29 and 30).
pub async fn tick_passes_a_spent_rate(t: &Topic) {
    let rate: Rate = "1/m".parse().expect("it is a rate");
    t.linked("n", LinkOptions { rate: Some(rate), ..LinkOptions::default() });
    t.add_all(vec![job("a"), job("b")]).await;
    let jobs = t.transfer("n", 10).await;
    assert_eq!((jobs.claims.len(), jobs.sleep), (1, FALLBACK));
    t.add(S).await;
    let ticks = t.transfer("n", 10).await;
    assert_eq!((ids(&ticks.claims), ticks.more), (vec![S], true));
    settle(t, &ticks.claims[0], &["c"]).await;
    let after = t.transfer("n", 10).await;
    assert_eq!((ids(&after.claims), after.more, after.sleep), (vec![], false, secs(10)));
    for _ in 0..5 {
        t.advance(secs(10)).await;
        let ticks = t.transfer("n", 10).await;
        assert_eq!(ids(&ticks.claims), [S]);
        settle(t, &ticks.claims[0], &[]).await;
    }
    t.advance(ms(9_900)).await;
    assert_eq!(t.transfer("n", 10).await.sleep, ms(100), "the rate opens after the tick");
    t.advance(ms(401)).await;
    let ticks = t.transfer("n", 10).await;
    assert_eq!(ids(&ticks.claims), [S]);
    settle(t, &ticks.claims[0], &[]).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1, "the ticks have spent nothing");
}

/// A tick waits behind no job of a topic with a limit or of another priority, and gates of a group concern it no more (rules 4, 29 and 30).
pub async fn tick_goes_before_the_jobs_that_a_gate_may_hold_back(t: &Topic) {
    t.set(limit_to(Limit::ClusterConcurrency(1), "")).await;
    t.add_all(vec![job("a"), job("b")]).await;
    t.advance(secs(1)).await;
    t.add(S).await;
    let ticks = t.transfer("n", 1).await;
    assert_eq!(ids(&ticks.claims), [S], "the limit has room for one, and two are due longer");
    settle(t, &ticks.claims[0], &[]).await;
    t.set(TopicChange::ClearLimit(LimitKind::ClusterConcurrency)).await;
    for claim in t.transfer("n", 10).await.claims {
        t.end("n", &claim, Change::Ack).await;
    }
    t.add_all(["high-c", "high-d"].map(|name| ranked(name, ms(0))).to_vec()).await;
    t.advance(secs(10)).await;
    let ticks = t.transfer("n", 1).await;
    assert_eq!(ids(&ticks.claims), [S], "and no high job goes before it");
    settle(t, &ticks.claims[0], &[]).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 2);
}

/// Whatever makes a tick due while a topic waits for a gate tells the watcher, which would sleep past it (rules 23 and 30).
pub async fn watcher_of_a_full_topic_is_told_of_ticks(t: &Topic) {
    full(t).await;
    let mut n = t.subscribe("n").await;
    let mut sleeps = async |what: &str, by| {
        let received = n.received(t).await;
        let dues = received.iter().filter(|signal| matches!(signal, Signal::Due(_))).count();
        assert_eq!(dues, 1, "{what}: {received:?}");
        let answer = t.transfer("n", 10).await;
        assert_eq!((ids(&answer.claims), answer.sleep), (vec![], by), "{what}");
    };
    t.add_later(S, secs(9)).await;
    sleeps("an add", secs(9)).await;
    t.change(S, ChangeKind::Reschedule(Due::After(secs(5)))).await;
    sleeps("a change", secs(5)).await;
    t.import_new(copy("dq:schedule:t", State::Delayed, t.in_ms(4_000))).await;
    sleeps("an import", secs(4)).await;
    t.delete("dq:schedule:t").await;
    t.delete(S).await;
    assert_eq!(t.transfer("n", 10).await.sleep, FALLBACK, "they are gone");
}

/// Whatever makes a tick due while a topic waits for a gate tells all nodes if none watches, the role of the watcher has lapsed, or the watcher
/// is dead: the others sleep until the gate may open (rules 23 and 30).
pub async fn nodes_of_a_full_topic_without_a_watcher_are_told_of_ticks(t: &Topic) {
    full(t).await;
    let mut m = t.subscribe("m").await;
    t.wake("n").await;
    let dues = async |m: &mut Subscriber| {
        let received = m.received(t).await;
        received.into_iter().filter(|signal| matches!(signal, Signal::Due(_))).collect::<Vec<_>>()
    };
    dues(&mut m).await;
    t.add_later(S, secs(9)).await;
    assert_eq!(dues(&mut m).await, [Signal::Due(None)], "no node watches");
    assert_eq!(t.transfer("n", 10).await.sleep, secs(9));
    t.change(S, ChangeKind::Reschedule(Due::After(secs(60)))).await;
    t.advance(secs(20)).await;
    dues(&mut m).await;
    t.change(S, ChangeKind::Reschedule(Due::After(secs(5)))).await;
    assert_eq!(dues(&mut m).await, [Signal::Due(None)], "the watcher has not come");
    t.delete(S).await;
    assert_eq!(t.transfer("n", 10).await.sleep, FALLBACK);
    t.add_later(S, FALLBACK).await;
    assert_eq!(dues(&mut m).await, [Signal::Due(None)], "the watcher would come just then, and does not listen");
}

/// A tick of the schedule that was claimed, deleted, replaced or set to another time is not claimed at the time that it had (rule 30).
pub async fn tick_of_a_full_topic_has_the_time_of_its_schedule(t: &Topic) {
    full(t).await;
    let claimed = async || ids(&t.transfer("n", 10).await.claims).join(" ");
    t.add_later(S, secs(1)).await;
    t.add_later("dq:schedule:gone", secs(1)).await;
    t.delete("dq:schedule:gone").await;
    t.change(S, ChangeKind::Reschedule(Due::After(secs(3)))).await;
    t.advance(secs(2)).await;
    assert_eq!(claimed().await, "");
    t.add_job(replacing(S, "again")).await;
    let claim = t.claim("n", S).await;
    assert_eq!(claimed().await, "", "it is RUNNING");
    t.end("n", &claim, Change::Rollback).await;
    let claim = t.claim("n", S).await;
    t.crash("n").await;
    assert_eq!(t.claim("m", S).await.token.due, claim.token.due);
    t.crash("m").await;
    t.set(limit_to(Limit::ClusterConcurrency(2), "")).await;
    assert_eq!(claimed().await, S);
    assert_eq!(t.state(S).await, Some(State::Running));
}

/// A pause holds ticks back as it does jobs, and a drain those that are due later (rule 29).
pub async fn tick_of_a_full_topic_waits_for_the_end_of_a_pause(t: &Topic) {
    full(t).await;
    t.set(pause_for("the bank", secs(12))).await;
    t.add(S).await;
    let paused = t.transfer("n", 10).await;
    assert_eq!((ids(&paused.claims), paused.more, paused.sleep), (vec![], false, secs(12)));
    t.advance(secs(12)).await;
    let ticks = t.transfer("n", 10).await;
    assert_eq!(ids(&ticks.claims), [S]);
    t.set(drain("a move")).await;
    settle(t, &ticks.claims[0], &[]).await;
    t.advance(secs(10)).await;
    let drains = t.transfer("n", 10).await;
    assert_eq!((ids(&drains.claims), drains.sleep), (vec![], FALLBACK));
}
