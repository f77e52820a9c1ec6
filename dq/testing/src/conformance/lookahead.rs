//! A transfer that looks ahead: it claims jobs shortly before they are due, for a node that starts them when they are (rule 4).

use std::time::Duration;

use super::topic::{LEASE, START, Topic, ids, ms, secs};
use dq::job::State;
use dq::store::step::{Change, ROLE_SLACK, Role, STANDBY_DELAY, Transfer, Transferred};
use dq::store::{CommandKind, Signal};

const AHEAD: Duration = Duration::from_millis(5);

async fn look_ahead(t: &Topic, node: &str, limit: usize) -> Transferred {
    t.enter(node).await;
    t.transfer_with(node, Transfer { lookahead: AHEAD, ..t.transfer_of(node, limit) }).await
}

/// It claims what is due within the lookahead, to the millisecond, earliest first, and under its own due time (rule 4).
pub async fn lookahead_claims_what_is_due_within_it(t: &Topic) {
    for (name, delay) in [("b", 5), ("c", 6), ("a", 2)] {
        t.add_later(name, ms(delay)).await;
    }
    let due = [t.due("a").await, t.due("b").await];
    t.set_clock(START + 999).await;
    let answer = look_ahead(t, "n", 10).await;
    assert_eq!((ids(&answer.claims), answer.more), (vec!["a", "b"], false));
    assert_eq!(answer.claims.iter().map(|claim| claim.token.due).collect::<Vec<_>>(), due);
    assert_eq!(
        (answer.clock.as_millis() * 1_000, answer.micros),
        (START, START + 999),
        "the clock, to the microsecond"
    );
    assert_eq!(t.state("c").await, Some(State::Delayed));
    t.set_clock(START + 1_000).await;
    assert_eq!(ids(&look_ahead(t, "n", 10).await.claims), ["c"]);
}

/// It is bounded by its limit, and says whether more could be claimed now (rule 5).
pub async fn lookahead_is_bounded_and_reports_more(t: &Topic) {
    for (name, delay) in [("a", 3), ("b", 4), ("c", 60)] {
        t.add_later(name, ms(delay)).await;
    }
    let first = look_ahead(t, "n", 1).await;
    assert_eq!((ids(&first.claims), first.more, first.sleep), (vec!["a"], true, ms(1)));
    let second = look_ahead(t, "n", 1).await;
    assert_eq!((ids(&second.claims), second.more, second.sleep), (vec!["b"], false, ms(57)));
}

/// A watcher and a standby watcher that look ahead come half of it earlier, and their roles lapse accordingly (rule 23).
pub async fn watchers_that_look_ahead_come_earlier(t: &Topic) {
    t.add_later("a", secs(10)).await;
    let role_and_sleep = async |node: &str| {
        let answer = look_ahead(t, node, 1).await;
        (answer.role, answer.sleep)
    };
    assert_eq!(role_and_sleep("w").await, (Some(Role::Watcher), secs(10) - ms(3)));
    assert_eq!(role_and_sleep("s").await, (Some(Role::Standby), secs(10) - ms(3) + STANDBY_DELAY));
    t.advance(secs(10) - ms(3) + ROLE_SLACK).await;
    assert_eq!(t.transfer("o", 1).await.role, None, "the watcher is still in time");
    t.advance(ms(1)).await;
    assert_eq!(t.transfer("o", 1).await.role, Some(Role::Watcher));
}

/// A job that was claimed early and goes back, by a rollback or a reclaim, waits for its due time as before, and an ordinary
/// transfer does not claim it before (rules 4, 20).
pub async fn job_claimed_early_goes_back_to_its_due_time(t: &Topic) {
    t.add_later("a", ms(5)).await;
    let due = t.due("a").await;
    let claim = look_ahead(t, "n", 1).await.claims.remove(0);
    assert_eq!(t.state("a").await, Some(State::Running));
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.due("a").await, due);
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
    look_ahead(t, "n", 1).await;
    t.release("n").await;
    let lease = t.lease("n").await.expect("a row is left");
    t.reclaim("m", "n", lease, 10).await;
    assert_eq!(t.due("a").await, due);
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
    t.advance(ms(5)).await;
    let claim = t.claim("m", "a").await;
    assert_eq!((claim.token.due, claim.crashes), (due, 0));
}

/// A delete or cancel of a job that was claimed early waits for the end of its run, and is signalled, so that the node gives the
/// job back unstarted (rule 13).
pub async fn end_of_a_job_claimed_early_is_signalled_and_takes_effect_when_it_goes_back(t: &Topic) {
    let mut n = t.subscribe("n").await;
    for verb in [CommandKind::Delete, CommandKind::Cancel] {
        t.add_later("a", ms(5)).await;
        let claim = look_ahead(t, "n", 1).await.claims.remove(0);
        n.received(t).await;
        let outcome = if verb == CommandKind::Delete { t.delete("a").await } else { t.cancel("a").await };
        assert_eq!((outcome.found, outcome.changed), (Some(State::Running), true));
        assert_eq!(n.received(t).await, [Signal::Command(verb, claim.id.clone())]);
        t.end("n", &claim, Change::Rollback).await;
        assert_eq!(t.state("a").await, None);
        t.advance(LEASE).await;
    }
}
