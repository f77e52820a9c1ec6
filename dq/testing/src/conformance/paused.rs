//! A paused topic (rule 29): nothing is claimed, and everything else goes on.

use super::broadcasts::publish;
use super::changes::update;
use super::producer::{job, replacing};
use super::setting::{by_anna, pause, pause_for};
use super::topic::{FALLBACK, LEASE, START, Topic, ids, ms, secs};
use dq::job::{Delivery, State};
use dq::store::step::{Change, MAX_JOBS, Role, Transfer, Verdict};
use dq::store::{
    BatchAnswer, ChangeKind, Due, MAX_AUTHOR, MAX_REASON, NewJob, Pause, SetTopic, Signal, StoreError, TopicChange,
    TopicState,
};
use dq::time::Timestamp;

fn paused(reason: &str, until: Option<Timestamp>, since: Timestamp) -> TopicState {
    let pause = Pause { reason: reason.into(), until, by: "anna".into(), since };
    TopicState { pause: Some(pause), ..TopicState::default() }
}

/// The state of a topic that is paused since now.
fn paused_now(t: &Topic) -> TopicState {
    paused("why", None, t.now())
}

/// A transfer of a paused topic claims nothing, says why, reports no more, and takes its number (rule 29).
pub async fn paused_topic_claims_nothing(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    let state = paused_now(t);
    t.pause().await;
    t.advance(secs(3)).await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.more, answer.left), (0, false, 0));
    assert_eq!(answer.state.as_deref(), Some(&state));
    assert_eq!((answer.role, answer.sleep), (Some(Role::Watcher), FALLBACK), "it does not come again at once");
    assert_eq!(t.state("a").await, Some(State::Delayed));
    t.resume().await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.state), (2, None));
}

/// Sweep, scan and the query say nothing of an untouched topic, and tell of its pause once it is paused (rule 29).
pub async fn every_answer_about_a_topic_tells_of_its_pause(t: &Topic) {
    t.add("a").await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.state, answer.left), (None, 0));
    for state in [None, Some(paused_now(t))] {
        if state.is_some() {
            t.pause().await;
        }
        assert_eq!(t.sweep("n", t.sweep_of("n", 10)).await.state.as_deref(), state.as_ref());
        assert_eq!(t.scan().await.state.as_deref(), state.as_ref());
        assert_eq!(t.topic_state().await, state.unwrap_or_default());
    }
}

/// The transfers of a paused topic renew the leases of what runs (rule 29).
pub async fn transfer_of_a_paused_topic_renews(t: &Topic) {
    t.running("n", "a").await;
    t.pause().await;
    t.advance(secs(3)).await;
    t.transfer("n", 10).await;
    assert_eq!(t.lease("n").await, Some(t.now().after(LEASE)));
}

/// The first transfer after a resume claims at once, earliest first (rule 29).
pub async fn resumed_topic_claims_what_became_due_in_order(t: &Topic) {
    t.pause().await;
    for (name, delay) in [("c", 3), ("a", 1), ("b", 2)] {
        t.add_later(name, secs(delay)).await;
    }
    t.advance(secs(600)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.resume().await;
    let claims = t.transfer("n", 2).await;
    assert_eq!((ids(&claims.claims), claims.more), (vec!["a", "b"], true));
}

/// Jobs that are due much later are claimed after a pause like any other (rule 29).
pub async fn far_jobs_are_claimed_after_a_pause(t: &Topic) {
    t.add_later("far", secs(3_600)).await;
    t.pause().await;
    for _ in 0..5 {
        t.advance(secs(1_000)).await;
        let answer = t.transfer("n", 10).await;
        assert_eq!((answer.claims.len(), answer.more), (0, false));
    }
    t.resume().await;
    t.claim("n", "far").await;
}

/// A pause ends at its time, to the millisecond, in every step. The watcher is told to come then (rule 29).
pub async fn pause_ends_by_itself(t: &Topic) {
    t.add("a").await;
    t.set(pause_for("why", secs(5))).await;
    let until = t.in_ms(5_000);
    assert_eq!(t.topic_state().await, paused("why", Some(until), t.now()));
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.sleep), (0, secs(5)));
    t.set_clock(START + 4_999_999).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set_clock(START + 5_000_000).await;
    assert_eq!(t.topic_state().await, TopicState::default());
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.state), (1, None));
    assert_eq!(t.resume().await.before, TopicState::default(), "there was no pause any more");
}

/// A pause that has ended by itself stays until the next pause or resume: if the clock jumps back, it applies again (rule 29).
pub async fn ended_pause_stays_until_the_next_pause_or_resume(t: &Topic) {
    let state = paused("why", Some(t.in_ms(5_000)), t.now());
    t.set(pause_for("why", secs(5))).await;
    t.set_clock(START + 6_000_000).await;
    t.set(TopicChange::Undrain).await;
    t.set_clock(START + 1_000_000).await;
    assert_eq!(t.topic_state().await, state);
    t.set_clock(START + 6_000_000).await;
    t.resume().await;
    t.set_clock(START + 1_000_000).await;
    assert_eq!(t.topic_state().await, TopicState::default());
}

/// A pause until a time that has passed is none, and one until a time ends then (rule 29).
pub async fn pause_may_end_at_a_time(t: &Topic) {
    t.add("a").await;
    let until = |at| TopicChange::Pause { group: None, reason: "why".into(), until: Some(Due::At(at)) };
    t.set(until(t.in_ms(20_000))).await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.sleep), (0, FALLBACK), "the end is behind the fallback");
    t.set(until(t.now())).await;
    t.claim("n", "a").await;
    t.set_clock(START + 20_000_001).await;
    let lasts = t.set(pause_for("why", secs(5))).await.now.pause.expect("it is paused");
    assert_eq!(lasts.until, Some(Timestamp::from_millis(START / 1_000 + 25_001)), "not a microsecond shorter");
}

/// A watcher that looks ahead comes at the end of a pause, not before it (rules 4 and 29).
pub async fn lookahead_does_not_shorten_a_pause(t: &Topic) {
    t.add("a").await;
    t.set(pause_for("why", ms(40))).await;
    t.enter("n").await;
    let ahead = |t: &Topic| Transfer { lookahead: ms(50), ..t.transfer_of("n", 10) };
    let answer = t.transfer_with("n", ahead(t)).await;
    assert_eq!((answer.claims.len(), answer.sleep), (0, ms(40)));
}

/// Adds, commands and changes go on (rule 29).
pub async fn adds_and_commands_of_a_paused_topic_go_on(t: &Topic) {
    super::events::add_in_state(t, "dead", State::Dead).await;
    t.pause().await;
    t.add("a").await;
    t.add("b").await;
    t.add_job(replacing("b", "new")).await;
    t.add_later("c", secs(1)).await;
    assert!(t.delete("a").await.changed);
    assert!(t.ack_outside("c").await.changed);
    t.add_later("d", secs(1)).await;
    assert!(t.cancel("d").await.changed && t.requeue("dead").await.changed);
    t.changed("b", update("newer")).await;
    t.changed("b", ChangeKind::Reschedule(Due::After(secs(1)))).await;
    t.resume().await;
    t.claim("n", "dead").await;
    t.advance(secs(1)).await;
    t.claim("n", "b").await;
    assert_eq!(t.payload("b").await, "newer");
}

/// Outcomes count, and what they put back waits (rule 29).
pub async fn runs_of_a_paused_topic_end_as_usual(t: &Topic) {
    let changes = [
        ("a", Change::Ack),
        ("b", Change::Rollback),
        ("c", Change::Retry(ms(0))),
        ("d", Change::Park),
        ("e", Change::Dead),
    ];
    t.add_all(changes.iter().map(|(name, _)| job(name)).collect()).await;
    let claims = t.claims("n").await;
    t.pause().await;
    for (claim, (_, change)) in claims.iter().zip(changes) {
        assert_eq!(t.settle("n", claim, change).await, Verdict::Done);
    }
    t.advance(secs(1)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.resume().await;
    assert_eq!(t.claimed_ids("n").await, ["b", "c"]);
}

/// The jobs of a dead node go back, and wait (rule 29).
pub async fn jobs_of_a_paused_topic_are_reclaimed(t: &Topic) {
    t.running("n", "a").await;
    t.pause().await;
    t.crash("n").await;
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
    t.resume().await;
    assert_eq!(t.claim("m", "a").await.crashes, 1);
}

/// A sweep of a paused topic prunes, and claims nothing (rule 29).
pub async fn sweep_of_a_paused_topic_only_prunes(t: &Topic) {
    super::events::add_in_state(t, "parked", State::Unacked).await;
    super::events::add_in_state(t, "dead", State::Dead).await;
    t.pause().await;
    t.advance(secs(31 * 24 * 3_600)).await;
    t.enter("n").await;
    let swept = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!((swept.claims.len(), swept.pruned_dead, swept.more), (0, 1, false));
    t.resume().await;
    t.claim_unacked("n", "parked").await;
}

/// Broadcasts wait, and do not keep the publisher busy. Those that expire meanwhile are dropped (rule 29).
pub async fn broadcasts_of_a_paused_topic_wait_or_expire(t: &Topic) {
    t.pause().await;
    for (name, expires_after) in [("long", 600), ("short", 5), ("longer", 900)] {
        let news = NewJob { deliver: Delivery::Broadcast, expires_after: Some(secs(expires_after)), ..job(name) };
        t.add_job(news).await;
    }
    let ask = || publish(t, "n", MAX_JOBS);
    let answer = ask().await;
    assert_eq!((answer.published, answer.dropped, answer.more, answer.sleep), (0, 0, false, FALLBACK));
    t.advance(secs(6)).await;
    let answer = ask().await;
    assert_eq!((answer.published, answer.dropped, answer.more), (0, 1, false));
    t.set(pause_for("why", secs(3))).await;
    assert_eq!(ask().await.sleep, secs(3), "the publisher comes at the end");
    t.resume().await;
    let answer = ask().await;
    assert_eq!((answer.published, answer.dropped, answer.last_number), (2, 0, 2));
}

/// A pause is signalled to every node, and so is what changes or ends it (rule 29).
pub async fn pause_and_resume_are_signalled(t: &Topic) {
    let (mut n, mut m) = (t.subscribe("n").await, t.subscribe("m").await);
    t.transfer("n", 10).await;
    t.pause().await;
    t.resume().await;
    for subscriber in [&mut n, &mut m] {
        assert_eq!(subscriber.received(t).await, [Signal::Paused, Signal::StateChanged]);
    }
}

/// A second pause replaces reason and end, not the beginning. The answer says what was there (rule 29).
pub async fn pausing_again_changes_the_pause(t: &Topic) {
    let since = t.now();
    let answer = t.set(pause("first")).await;
    assert_eq!((answer.before, answer.now), (TopicState::default(), paused("first", None, since)));
    t.advance(secs(7)).await;
    let second = paused("second", Some(t.in_ms(9_000)), since);
    let answer = t.set(pause_for("second", secs(9))).await;
    assert_eq!((answer.before, answer.now), (paused("first", None, since), second.clone()));
    assert_eq!(t.topic_state().await, second);
    let answer = t.resume().await;
    assert_eq!((answer.before, answer.now), (second, TopicState::default()));
    let answer = t.resume().await;
    assert_eq!((answer.before, answer.now), (TopicState::default(), TopicState::default()));
}

/// A pause concerns its topic only (rule 29).
pub async fn pause_is_of_one_topic(t: &Topic) {
    let other = t.beside("conformance", "beside-a-paused-one").await;
    t.pause().await;
    other.add("a").await;
    other.claim("n", "a").await;
    assert_eq!(other.topic_state().await, TopicState::default());
}

/// A repeated call answers what it answered, and does nothing. It shares the numbers of adds (rules 18 and 29).
pub async fn repeated_set_does_nothing(t: &Topic) {
    let p = t.producer_named("p");
    let set = |reason| by_anna(pause(reason));
    let first = p.set(2, set("first")).await.expect("set is answered");
    p.set(3, by_anna(TopicChange::Resume { group: None })).await.expect("set is answered");
    t.advance(secs(1)).await;
    assert_eq!(t.producer_named("p").set(2, set("first")).await.expect("set is answered"), first);
    assert_eq!(t.topic_state().await, TopicState::default());
    assert_eq!(p.set(1, set("late")).await.expect("set is answered"), BatchAnswer::Late);
    let batch = dq::store::Numbered { number: 3, items: vec![job("a")] };
    assert!(matches!(p.add(batch).await, Err(StoreError::Other { .. })), "3 was no add");
}

/// Any text comes back, and one over its limit is refused (rule 29).
pub async fn reasons_and_authors_are_any_texts_within_their_limits(t: &Topic) {
    let texts = ["100 % off: a;b\n\t\r\0", "预订系统 – ünïcode", " ", "%", "-", "+5", "s;", &"x".repeat(MAX_AUTHOR)];
    for (n, text) in texts.into_iter().enumerate() {
        let p = t.producer_named(&format!("p{n}"));
        let set = || SetTopic { by: text.into(), change: pause(text) };
        let first = p.set(1, set()).await.expect("set is answered");
        assert_eq!(p.set(1, set()).await.expect("set is answered"), first, "the kept answer to {text:?}");
        let found = t.topic_state().await.pause.expect("it is paused");
        assert_eq!((found.reason.as_str(), found.by.as_str()), (text, text));
        let told = t.transfer("n", 1).await.state.expect("the transfer tells of it");
        assert_eq!(told.pause, Some(found));
    }
    t.resume().await;
    let long = by_anna(pause(&"x".repeat(MAX_REASON + 1)));
    let author = SetTopic { by: "x".repeat(MAX_AUTHOR + 1), change: pause("why") };
    for set in [long, author] {
        let error = t.producer_named("q").set(1, set).await.expect_err("it is too long");
        assert!(matches!(error, StoreError::OverLimit { .. }), "{error}");
    }
    assert_eq!(t.topic_state().await, TopicState::default());
}
