//! The default delay of a topic (rule 29): it takes the place of the usual delay of jobs that bring one.

use super::producer::{delayed, detailed, job, with_metadata};
use super::topic::{Topic, ms, secs};
use dq::job::{Delivery, Metadata};
use dq::store::step::{Change, RejoinDue};
use dq::store::{AddOutcome, Due, NewJob, OnDuplicate, TopicChange, TopicDelay, TopicState};

fn usual(name: &str, seconds: u64) -> NewJob {
    NewJob { due: Due::Usual(secs(seconds)), ..delayed(name, secs(seconds)) }
}

async fn set_delay(t: &Topic, seconds: u64) {
    t.set(TopicChange::Delay(Some(secs(seconds)))).await;
}

/// Without a default delay of the topic, a job waits for the usual one that it brings (rule 29).
pub async fn usual_delay_applies_while_the_topic_has_none(t: &Topic) {
    t.add_job(usual("a", 60)).await;
    assert_eq!((t.due("a").await, t.metadata("a").await.delay), (t.in_ms(60_000), secs(60)));
}

/// The default delay of the topic takes its place, for chosen and generated ids, alone and in batches. Jobs with a delay or a time of
/// their own keep it (rule 29).
pub async fn default_delay_takes_the_place_of_the_usual_one(t: &Topic) {
    set_delay(t, 7).await;
    t.add_job(NewJob { generated: true, ..usual("generated", 60) }).await;
    t.add_job(NewJob { generated: true, ..usual("at-once", 0) }).await;
    t.add_job(usual("chosen", 600)).await;
    let at = t.in_ms(9_000);
    t.add_all(vec![
        usual("first", 60),
        delayed("own", secs(30)),
        NewJob { due: Due::At(at), ..delayed("at", secs(30)) },
        usual("last", 1),
    ])
    .await;
    for name in ["generated", "at-once", "chosen", "first", "last"] {
        assert_eq!((t.due(name).await, t.metadata(name).await.delay), (t.in_ms(7_000), secs(7)), "{name}");
        assert_eq!(t.payload(name).await, name);
    }
    assert_eq!((t.due("own").await, t.metadata("own").await.delay), (t.in_ms(30_000), secs(30)));
    assert_eq!((t.due("at").await, t.metadata("at").await.delay), (at, secs(30)));
}

/// All other metadata stay, the expiry counts from the new due time, and a rejoin as added takes the new delay (rules 4 and 29).
pub async fn job_with_a_default_delay_keeps_the_rest_of_its_metadata(t: &Topic) {
    for (name, seconds) in [("short", 1), ("none", 0), ("long", 100_000)] {
        set_delay(t, seconds).await;
        let metadata = detailed();
        let new = NewJob { due: Due::Usual(secs(60)), expires_after: Some(secs(9)), ..with_metadata(name, &metadata) };
        t.add_job(new).await;
        let expires_at = Some(t.in_ms((seconds + 9) * 1_000));
        assert_eq!(t.metadata(name).await, Metadata { delay: secs(seconds), expires_at, ..metadata });
        assert_eq!(t.payload(name).await, name);
        t.delete(name).await;
    }
    set_delay(t, 7).await;
    t.add_job(usual("a", 60)).await;
    t.advance(secs(7)).await;
    t.run("n", "a", Change::Rejoin(RejoinDue::AsAdded)).await;
    assert_eq!(t.due("a").await, t.in_ms(7_000));
}

/// Broadcasts, replacements and large jobs obey it too (rule 29).
pub async fn default_delay_applies_to_jobs_of_every_kind(t: &Topic) {
    set_delay(t, 7).await;
    t.add_job(NewJob { deliver: Delivery::Both, ..usual("both", 60) }).await;
    assert_eq!(t.due("both").await, t.in_ms(7_000));
    let old = t.running("n", "running").await;
    let new = NewJob { on_duplicate: OnDuplicate::Replace, ..usual("running", 60) };
    assert_eq!(t.add_job(new).await, AddOutcome::ReplacementWaits);
    t.end("n", &old, Change::Ack).await;
    assert_eq!((t.due("running").await, t.metadata("running").await.delay), (t.in_ms(7_000), secs(7)));
    for size in [1_020, 1_030, 4_088, 4_092, 4_096, 5_000] {
        let name = format!("large-{size}");
        let record = super::producer::with_payload(&name, &"x".repeat(size)).record;
        t.add_job(NewJob { record, generated: true, ..usual(&name, 0) }).await;
        assert_eq!((t.due(&name).await, t.metadata(&name).await.delay), (t.in_ms(7_000), secs(7)), "{name}");
    }
}

/// A default delay may be long or short, whatever the usual one is (rule 29).
pub async fn default_delay_may_be_much_longer_or_shorter_than_the_usual_one(t: &Topic) {
    set_delay(t, 3_600).await;
    t.add_all(vec![usual("a", 0), usual("b", 7_200)]).await;
    t.add_job(NewJob { generated: true, ..usual("c", 7_200) }).await;
    set_delay(t, 0).await;
    t.add_all(vec![usual("d", 7_200), usual("e", 0)]).await;
    t.add_job(NewJob { generated: true, ..usual("f", 7_200) }).await;
    assert_eq!(t.claimed_ids("n").await, ["d", "e", "f"]);
    t.advance(secs(3_600)).await;
    assert_eq!(t.claimed_ids("n").await, ["a", "b", "c"]);
}

/// It is kept with its author and time, rounded up to the millisecond, until somebody takes it away (rule 29).
pub async fn default_delay_is_kept_with_its_author(t: &Topic) {
    let delay = std::time::Duration::from_micros(1_500);
    let state = |t: &Topic, delay| {
        let delay = Some(TopicDelay { delay, by: "anna".into(), since: t.now() });
        TopicState { delay, ..TopicState::default() }
    };
    let first = state(t, ms(2));
    let answer = t.set(TopicChange::Delay(Some(delay))).await;
    assert_eq!((answer.before, answer.now), (TopicState::default(), first.clone()));
    assert_eq!((t.topic_state().await, t.transfer("n", 1).await.state.as_deref()), (first.clone(), Some(&first)));
    t.advance(secs(1)).await;
    let second = state(t, secs(9));
    let answer = t.set(TopicChange::Delay(Some(secs(9)))).await;
    assert_eq!((answer.before, answer.now), (first, second.clone()));
    assert_eq!(t.set(TopicChange::Delay(None)).await.before, second);
    t.add_job(job("a")).await;
    t.add_job(usual("b", 3)).await;
    assert_eq!((t.due("b").await, t.topic_state().await), (t.in_ms(3_000), TopicState::default()));
}
