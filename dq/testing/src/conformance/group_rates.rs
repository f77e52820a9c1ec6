//! How many jobs of each group all nodes together claim within a period (rules 4 and 29).

use super::groups::{add, limit, member};
use super::producer::weighing;
use super::rates::{claims_in, rate};
use super::setting::limit_to;
use super::stopped::{group, named};
use super::topic::{Topic, ids, ms, secs};
use dq::job::State;
use dq::store::step::Change;
use dq::store::{AddOutcome, Limit, LimitKind, LinkOptions, NewJob, TopicChange};

/// Nodes whose code says this rate.
fn nodes(t: &Topic, text: &str, names: &[&str]) {
    let options = LinkOptions { group_rate: Some(rate(text)), ..LinkOptions::default() };
    names.iter().for_each(|name| t.linked(name, options));
}

/// In no window of a period do all nodes claim more jobs of a group than its rate and its burst, whatever becomes of the jobs; each group has a rate
/// of its own, and has all of it but half a percent while enough of its jobs are due (rules 4, 29).
pub async fn no_window_has_more_claims_of_a_group_than_its_rate(t: &Topic) {
    nodes(t, "20/s, burst 4", &["n", "m"]);
    limit(t, 2).await;
    for name in ["a", "b"] {
        t.add_all((0..40).map(|n| member(&format!("{name}-{n}"), ms(0))).collect()).await;
    }
    let claims = claims_in(t, secs(3)).await;
    for name in ["a", "b"] {
        let of_group = claims.iter().filter(|(id, _)| id.as_str().starts_with(name));
        let at: Vec<_> = of_group.map(|(_, at)| *at).collect();
        for window in at.windows(25) {
            assert!(window[24] - window[0] >= 1_000_000, "25 claims in {} µs", window[24] - window[0]);
        }
        assert!(at.len() >= 4 + 58, "{} claims in three seconds", at.len());
    }
}

/// A group that has spent its rate is due later, and shows when; others, and jobs without a group, run meanwhile (rules 4, 29).
pub async fn group_that_has_spent_its_rate_is_due_later(t: &Topic) {
    nodes(t, "10/s", &["n"]);
    limit(t, 1).await;
    add(t, &["a-1", "a-2", "b-1"]).await;
    t.add("plain").await;
    let claims = t.claims("n").await;
    assert_eq!(ids(&claims), ["a-1", "b-1", "plain"]);
    t.advance(ms(1)).await;
    t.end("n", &claims[0], Change::Ack).await;
    let none = t.transfer("n", 10).await;
    assert_eq!((none.claims.len(), none.more, none.sleep), (0, false, ms(95)), "its interval less the slack");
    let seen = group(t, "a").await.expect("it has jobs");
    assert_eq!((seen.is_full, seen.opens), (true, Some(t.in_ms(95))));
    t.advance(ms(94)).await;
    t.add("other").await;
    t.run("n", "other", Change::Ack).await;
    t.advance(ms(1)).await;
    let second = t.claim("n", "a-2").await;
    assert_eq!(second.token.due.after(ms(96)), t.now(), "the time is no due time");
    t.end("n", &second, Change::Retry(ms(0))).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "a retry spends it too");
    t.advance(ms(101)).await;
    t.run("n", "a-2", Change::Ack).await;
    assert_eq!(group(t, "a").await, None, "a group without jobs is not listed");
    add(t, &["a-3"]).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "what it has spent outlives its jobs");
    t.advance(secs(10)).await;
    t.claim("n", "a-3").await;
}

/// A rate that a caller has set overrides the code, and a change of it reaches groups that wait (rule 29).
pub async fn rate_of_groups_that_was_set_overrides_the_code(t: &Topic) {
    nodes(t, "100/s", &["n"]);
    let slow = Limit::GroupRate(rate("1/h"));
    let set = t.set(limit_to(slow, "why")).await;
    assert_eq!((set.before.limits.len(), set.now.limits[0].limit), (0, slow));
    assert_eq!(t.topic_state().await.limits[0].limit, slow);
    add(t, &["a-1", "a-2"]).await;
    let first = t.transfer("n", 10).await;
    assert_eq!((first.claims.len(), first.state.expect("it is told").limits[0].limit), (1, slow));
    assert_eq!((t.claimed_ids("n").await, t.claimed_ids("m").await), (Vec::new(), Vec::new()));
    t.advance(secs(60)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set(TopicChange::ClearLimit(LimitKind::GroupRate)).await;
    t.advance(ms(11)).await;
    let mut claimed = t.claimed_ids("n").await;
    if claimed.is_empty() {
        t.advance(ms(11)).await;
        claimed = t.claimed_ids("n").await;
    }
    assert_eq!(claimed, ["a-2"]);
}

/// A due job of this weight, with the group that its name begins with.
fn heavy(name: &str, weight: u16) -> NewJob {
    weighing(weight, member(name, ms(0)))
}

/// The start of a job spends its weight of the rate of its group. One for which there is no room waits for as much, one that is heavier than the
/// burst for all of its weight, and other groups do not wait (rule 29).
pub async fn job_spends_its_weight_of_the_rate_of_its_group(t: &Topic) {
    nodes(t, "10/s, burst 4", &["n"]);
    limit(t, 1).await;
    t.add_all(vec![heavy("a-1", 3), heavy("a-2", 4), heavy("a-3", 9), heavy("b-1", 2)]).await;
    let first = t.transfer("n", 10).await.claims;
    assert_eq!(ids(&first), ["a-1", "b-1"]);
    t.end("n", &first[0], Change::Ack).await;
    let none = t.transfer("n", 10).await;
    assert_eq!(
        (none.claims.len(), none.more, none.sleep),
        (0, false, ms(196)),
        "seven intervals less the burst and the slack"
    );
    let seen = group(t, "a").await.expect("it has jobs");
    assert_eq!((seen.is_full, seen.opens), (true, Some(t.in_ms(196))));
    t.advance(ms(195)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(1)).await;
    t.run("n", "a-2", Change::Ack).await;
    assert_eq!(t.transfer("n", 10).await.sleep, ms(905), "nine intervals, as nothing is left of the burst");
    t.advance(ms(904)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(1)).await;
    t.run("n", "a-3", Change::Retry(ms(0))).await;
    assert_eq!(t.transfer("n", 10).await.sleep, ms(905), "a retry spends as much");
}

/// A job that has been UNACKED for its age waits while its group is paused, and spends the rate of its group; others do not wait for it, and a
/// pause lets no node come (rules 25, 29).
pub async fn parked_job_obeys_the_pause_and_the_rate_of_its_group(t: &Topic) {
    for name in ["a-1", "a-2", "b-1", "c-1"] {
        assert_eq!(t.add_job(member(name, ms(0))).await, AddOutcome::Added);
        let claim = t.claim("m", name).await;
        t.end("m", &claim, Change::Park).await;
    }
    nodes(t, "1/m", &["n"]);
    let pause = TopicChange::Pause { group: Some(named("b")), reason: "why".into(), until: None };
    t.set(pause).await;
    t.advance(secs(8 * 24 * 3_600)).await;
    let sweep = async || {
        let swept = t.sweep("n", t.sweep_of("n", 10)).await;
        (swept.claims.into_iter().map(|claim| claim.id.to_string()).collect::<Vec<_>>(), swept.more)
    };
    assert_eq!(sweep().await, (vec!["a-1".into(), "c-1".into()], true));
    assert_eq!(sweep().await, (Vec::new(), true), "the rate of a opens");
    add(t, &["a-3"]).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "it is the same rate");
    t.advance(secs(61)).await;
    assert_eq!(sweep().await, (vec!["a-2".into()], false), "only a paused one is left");
    assert_eq!(t.state("b-1").await, Some(State::Unacked));
    t.set(TopicChange::Resume { group: Some(named("b")) }).await;
    assert_eq!(sweep().await, (vec!["b-1".into()], false));
}

/// After a change to a faster rate, a retry that waits with its seat runs when that one opens (rule 29).
pub async fn faster_rate_of_groups_reaches_a_retry_that_waits(t: &Topic) {
    t.set(limit_to(Limit::GroupRate(rate("1/h")), "why")).await;
    limit(t, 1).await;
    add(t, &["a-1", "a-2"]).await;
    let claim = t.claim("n", "a-1").await;
    t.end("n", &claim, Change::Retry(ms(0))).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set(limit_to(Limit::GroupRate(rate("10/s")), "why")).await;
    let none = t.transfer("n", 10).await;
    assert_eq!((none.claims.len(), none.sleep), (0, ms(101)), "an interval of the new one at most");
    t.advance(ms(101)).await;
    t.claim("n", "a-1").await;
}

/// A group that waited for its rate while the clock was ahead continues within an interval once the clock has fallen back (rule 29).
pub async fn group_that_waits_for_its_rate_continues_after_the_clock_fell_back(t: &Topic) {
    nodes(t, "10/s", &["n"]);
    limit(t, 1).await;
    add(t, &["a-1", "a-2", "b-1", "b-2"]).await;
    let now = t.micros();
    t.set_clock(now + 86_400_000_000).await;
    let claims = t.claims("n").await;
    assert_eq!(ids(&claims), ["a-1", "b-1"]);
    t.advance(ms(1)).await;
    for claim in &claims {
        t.end("n", claim, Change::Ack).await;
    }
    assert_eq!(t.transfer("n", 10).await.claims.len(), 0);
    t.set_clock(now + 2_000).await;
    let none = t.transfer("n", 10).await;
    assert!(none.claims.is_empty() && (ms(1)..=ms(101)).contains(&none.sleep), "{none:?}");
    t.advance(ms(101)).await;
    assert_eq!(ids(&t.claims("n").await), ["a-2", "b-2"]);
}
