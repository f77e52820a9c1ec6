//! How many jobs of a topic all nodes together claim within a period (rule 29).

use std::time::Duration;

use super::producer::{changed, job, weighing};
use super::topic::{FALLBACK, Topic, ids, ms, secs};
use dq::job::JobId;
use dq::store::step::{Change, RejoinDue};
use dq::store::{Limit, LimitKind, LinkOptions, NewJob, Pause, Rate, Signal, TopicChange, TopicState};

pub(super) fn rate(text: &str) -> Rate {
    text.parse().expect("it is a rate")
}

/// Nodes whose code says this rate.
fn nodes(t: &Topic, text: &str, names: &[&str]) {
    let options = LinkOptions { rate: Some(rate(text)), ..LinkOptions::default() };
    names.iter().for_each(|name| t.linked(name, options));
}

fn jobs(of: &str, count: usize) -> Vec<NewJob> {
    (0..count).map(|n| job(&format!("{of}-{n}"))).collect()
}

/// What two nodes claim in this time, and when: each job that they claim is due again at once.
pub(super) async fn claims_in(t: &Topic, time: Duration) -> Vec<(JobId, u64)> {
    let changes = [Change::Retry(ms(0)), Change::Rejoin(RejoinDue::After(ms(0))), Change::Rollback];
    let (end, mut at) = (t.micros() + time.as_micros() as u64, Vec::new());
    while t.micros() < end {
        let mut sleep = FALLBACK;
        for node in ["n", "m"] {
            let mut more = true;
            while more {
                let answer = t.transfer(node, 10).await;
                for claim in &answer.claims {
                    t.end(node, claim, changes[at.len() % 3].clone()).await;
                    at.push((claim.id.clone(), t.micros()));
                }
                more = answer.more;
                sleep = answer.sleep.min(if answer.claims.is_empty() { sleep } else { ms(0) });
            }
        }
        assert!(sleep <= ms(51), "the watcher comes when the rate opens: {sleep:?}");
        t.advance(sleep.max(ms(1))).await;
    }
    at
}

/// In no window of a period do all nodes claim more than the rate and its burst, whatever becomes of the jobs; and as long as enough is
/// due, they claim all but half a percent of it (rule 29).
pub async fn no_window_has_more_claims_than_the_rate_and_its_burst(t: &Topic) {
    nodes(t, "20/s, burst 4", &["n", "m"]);
    t.add_all(jobs("j", 60)).await;
    let at: Vec<_> = claims_in(t, secs(5)).await.into_iter().map(|(_, at)| at).collect();
    for window in at.windows(25) {
        assert!(window[24] - window[0] >= 1_000_000, "25 claims in {} µs", window[24] - window[0]);
    }
    assert!(at.len() >= 4 + 99, "{} claims in five seconds", at.len());
}

/// A topic that was quiet has its burst again, and one that was not waits for an interval (rule 29).
pub async fn burst_comes_back_in_a_quiet_time(t: &Topic) {
    nodes(t, "10/s, burst 3", &["n"]);
    t.add_all(jobs("j", 12)).await;
    let claimed = async || t.transfer("n", 10).await.claims.len();
    assert_eq!((claimed().await, claimed().await), (4, 0), "the burst and one");
    t.advance(ms(101)).await;
    assert_eq!((claimed().await, claimed().await), (1, 0));
    t.advance(secs(10)).await;
    assert_eq!((claimed().await, claimed().await), (4, 0));
}

/// What the rate leaves to later has a time, at which the watcher comes; a job that is not due yet waits for the later of the two (rules
/// 23 and 29).
pub async fn watcher_comes_when_the_rate_opens(t: &Topic) {
    nodes(t, "10/s", &["n"]);
    t.add_all(jobs("j", 2)).await;
    let opens = async || t.store.overview(&t.key, 0).await.expect("overview is answered").opens;
    assert_eq!(opens().await, None);
    let first = t.transfer("n", 10).await;
    assert_eq!(
        (first.claims.len(), first.more, first.sleep),
        (1, false, ms(96)),
        "an interval, less what it may be late"
    );
    assert_eq!(opens().await, Some(t.in_ms(96)));
    t.advance(ms(96)).await;
    let second = t.transfer("n", 10).await;
    assert_eq!((second.claims.len(), second.more, second.sleep), (1, false, FALLBACK), "nothing waits");
    t.add_later("later", ms(30)).await;
    assert_eq!(t.transfer("n", 10).await.sleep, ms(100), "not before the rate opens");
    t.advance(ms(101)).await;
    t.claim("n", "later").await;
}

/// The tick of a schedule spends nothing, so a job that it adds can start at once (rule 29).
pub async fn tick_spends_none_of_the_rate(t: &Topic) {
    t.add("dq:schedule:s").await;
    nodes(t, "1/h", &["n"]);
    t.claim("n", "dq:schedule:s").await;
    t.add_all(jobs("j", 2)).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1);
}

/// A due job of this weight.
fn heavy(name: &str, weight: u16) -> NewJob {
    weighing(weight, changed(job(name), |metadata| metadata.delay = ms(300)))
}

/// The start of a job spends its weight, and the first one for which there is no room waits for as much, and all behind it (rule 29).
pub async fn job_spends_its_weight_of_the_rate(t: &Topic) {
    nodes(t, "10/s, burst 4", &["n"]);
    t.add_all(vec![heavy("a", 3), heavy("b", 2), heavy("c", 4), job("d")]).await;
    let first = t.transfer("n", 10).await;
    assert_eq!((ids(&first.claims), first.more, first.sleep), (vec!["a", "b"], false, ms(397)), "four intervals");
    assert_eq!(first.claims[0].record.weight().get(), 3);
    t.advance(ms(396)).await;
    let none = t.transfer("n", 10).await;
    assert_eq!((none.claims.len(), none.more, none.sleep), (0, false, ms(1)));
    t.advance(ms(1)).await;
    let second = t.transfer("n", 10).await;
    assert_eq!((ids(&second.claims), second.sleep), (vec!["c"], ms(101)));
    // A rejoin keeps the weight.
    t.end("n", &second.claims[0], Change::Rejoin(RejoinDue::After(ms(0)))).await;
    t.advance(ms(101)).await;
    assert_eq!(t.claimed_ids("n").await, ["d"]);
    t.advance(ms(100)).await;
    let again = t.transfer("n", 10).await;
    assert_eq!((again.claims.len(), again.sleep), (0, ms(302)));
    t.advance(ms(302)).await;
    assert_eq!(t.claim("n", "c").await.record.weight().get(), 4);
}

/// A job that is heavier than the burst and one starts once it has waited for all of its weight, so it spends that before its start (rule 29).
pub async fn job_heavier_than_the_burst_waits_for_its_weight(t: &Topic) {
    nodes(t, "10/s", &["n"]);
    t.add_all(vec![job("a")]).await;
    t.claim("n", "a").await;
    t.add_all(vec![heavy("b", 5), job("c")]).await;
    let none = t.transfer("n", 10).await;
    assert_eq!(
        (none.claims.len(), none.more, none.sleep),
        (0, false, ms(96)),
        "nothing is looked at before the rate opens"
    );
    t.advance(ms(96)).await;
    let none = t.transfer("n", 10).await;
    assert_eq!((none.claims.len(), none.more, none.sleep), (0, false, ms(402)), "four intervals more");
    t.advance(ms(401)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(1)).await;
    assert_eq!(t.claimed_ids("n").await, ["b"]);
    t.advance(ms(100)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(1)).await;
    assert_eq!(t.claimed_ids("n").await, ["c"]);
}

/// A sweep spends the rate as well, and comes again for what it had to leave (rules 25 and 29).
pub async fn sweep_spends_the_rate(t: &Topic) {
    for name in ["a", "b"] {
        t.add_and_run("plain", name, Change::Park).await;
    }
    nodes(t, "10/s", &["n"]);
    t.advance(secs(8 * 24 * 3_600)).await;
    let first = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!((first.claims.len(), first.more), (1, true));
    let none = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!((none.claims.len(), none.more), (0, true));
    t.add("c").await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "the sweep has spent it");
    t.advance(ms(101)).await;
    assert_eq!(t.claimed_ids("n").await, ["c"]);
}

/// A node whose code names no rate claims what is due, and its claims count once a rate comes: the next one waits for an interval (rule 29).
pub async fn claims_before_a_rate_count_as_one(t: &Topic) {
    t.add_all(jobs("j", 5)).await;
    assert_eq!(t.transfer("plain", 3).await.claims.len(), 3);
    nodes(t, "10/s, burst 9", &["n"]);
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(101)).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1);
}

/// A clock that jumps back costs one interval, and no more (rules 9 and 29).
pub async fn clock_that_jumps_back_costs_one_interval(t: &Topic) {
    nodes(t, "10/s", &["n"]);
    t.set_clock(t.micros() + 7_200_000_000).await;
    t.add_all(jobs("j", 3)).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1);
    t.set_clock(t.micros() - 3_600_000_000).await;
    // Those are due in an hour now.
    t.add_all(jobs("again", 3)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(50)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(ms(51)).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1);
}

/// A rate that a caller has set counts instead of that of the code (rule 29).
pub async fn rate_that_was_set_overrides_the_code(t: &Topic) {
    nodes(t, "1/m", &["n"]);
    t.add_all(jobs("j", 20)).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1);
    let limit = Limit::Rate(rate("100/s, burst 4"));
    let set = t.set(TopicChange::Limit { limit, reason: "why".into() }).await;
    assert_eq!((set.before.limits.len(), set.now.limits[0].limit), (0, limit));
    assert_eq!(t.topic_state().await.limits[0].limit, limit);
    let first = t.transfer("n", 10).await;
    assert_eq!((first.claims.len(), first.state.expect("it is told").limits[0].limit), (0, limit));
    t.advance(ms(11)).await;
    assert_eq!(t.transfer("m", 10).await.claims.len(), 1, "a node whose code says nothing obeys, too");
    t.advance(secs(1)).await;
    assert_eq!(t.transfer("m", 10).await.claims.len(), 5);
    t.set(TopicChange::ClearLimit(LimitKind::Rate)).await;
    assert_eq!(t.transfer("m", 5).await.claims.len(), 5, "its code says nothing");
    assert_eq!(t.transfer("n", 10).await.claims.len(), 0);
}

/// A handler that backs off gets its job back then, and pauses the topic until then, with its node as the author; a longer pause stays, and
/// a shorter one goes on for longer (rule 29).
pub async fn back_off_pauses_the_topic_in_the_same_step(t: &Topic) {
    let back_off = |millis| Change::Rejoin(RejoinDue::BackOff(ms(millis)));
    t.add_all(jobs("j", 3)).await;
    let claims = t.transfer("n:1 %;", 2).await.claims;
    let mut m = t.subscribe("m").await;
    t.end("n:1 %;", &claims[0], back_off(500)).await;
    while m.signals.next().await.expect("the store keeps the subscription") != Signal::Paused {}
    let paused = |id: &JobId, until| Pause {
        reason: format!("the handler of job {id} backed off"),
        until: Some(until),
        by: "n:1 %;".into(),
        since: t.now(),
    };
    let pause = paused(&claims[0].id, t.in_ms(500));
    assert_eq!(t.topic_state().await, TopicState { pause: Some(pause.clone()), ..TopicState::default() });
    assert_eq!(t.claimed_ids("m").await, [""; 0], "a job is due, and may not start");
    // Another one backs off for less, and nothing changes; then one for more.
    t.end("n:1 %;", &claims[1], back_off(100)).await;
    assert_eq!(t.topic_state().await.pause, Some(pause.clone()));
    t.advance(ms(500)).await;
    assert_eq!(t.topic_state().await.pause, None, "it ends by itself");
    let all = t.claims("m").await;
    assert_eq!(all.len(), 3, "with the jobs that backed off");
    let began = t.now();
    t.end("m", &all[0], back_off(1_000)).await;
    t.advance(ms(10)).await;
    t.end("m", &all[1], back_off(2_000)).await;
    let pause = t.topic_state().await.pause.expect("it is paused");
    assert_eq!((pause.since, pause.until), (began, Some(t.in_ms(2_000))), "longer, since the first");
    t.set(TopicChange::Pause { group: None, reason: "why".into(), until: None }).await;
    t.end("m", &all[2], back_off(5_000)).await;
    assert_eq!(t.topic_state().await.pause.expect("it is paused").reason, "why", "that pause has no end");
}
