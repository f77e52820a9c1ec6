//! How many jobs of each group all nodes together claim within a period (rules 4 and 29).

use super::groups::{add, limit, member};
use super::setting::limit_to;
use super::stopped::group;
use super::topic::{FALLBACK, Topic, ms, secs};
use dq::store::step::{Change, RejoinDue};
use dq::store::{Limit, LimitKind, LinkOptions, Rate, TopicChange};

fn rate(text: &str) -> Rate {
    text.parse().expect("it is a rate")
}

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
    let (start, mut at) = (t.micros(), [Vec::new(), Vec::new()]);
    let mut ends = 0;
    while t.micros() < start + 3_000_000 {
        let mut sleep = FALLBACK;
        for node in ["n", "m"] {
            let mut more = true;
            while more {
                let answer = t.transfer(node, 10).await;
                for claim in &answer.claims {
                    let changes = [Change::Retry(ms(0)), Change::Rejoin(RejoinDue::After(ms(0))), Change::Rollback];
                    ends += 1;
                    t.end(node, claim, changes[ends % 3].clone()).await;
                    at[usize::from(claim.id.as_str().starts_with('b'))].push(t.micros());
                }
                more = answer.more;
                sleep = answer.sleep.min(if answer.claims.is_empty() { sleep } else { ms(0) });
            }
        }
        assert!(sleep <= ms(51), "the watcher comes when the rate opens: {sleep:?}");
        t.advance(sleep.max(ms(1))).await;
    }
    for at in &at {
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
    assert_eq!(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(), ["a-1", "b-1", "plain"]);
    t.advance(ms(1)).await;
    t.end("n", &claims[0], Change::Ack).await;
    let none = t.transfer("n", 10).await;
    assert_eq!((none.claims.len(), none.more, none.sleep), (0, false, ms(95)), "its interval less the slack");
    let seen = group(t, "a").await.expect("it has jobs");
    assert_eq!((seen.is_full, seen.opens), (true, Some(t.in_ms(95))));
    t.advance(ms(94)).await;
    t.add("other").await;
    let other = t.claim("n", "other").await;
    t.end("n", &other, Change::Ack).await;
    t.advance(ms(1)).await;
    let second = t.claim("n", "a-2").await;
    assert_eq!(second.token.due.after(ms(96)), t.now(), "the time is no due time");
    t.end("n", &second, Change::Retry(ms(0))).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "a retry spends it too");
    t.advance(ms(101)).await;
    let again = t.claim("n", "a-2").await;
    t.end("n", &again, Change::Ack).await;
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
