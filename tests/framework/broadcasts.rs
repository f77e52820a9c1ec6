//! Broadcast listeners: what they receive, and what happens when they fail.

use std::sync::Arc;

use dq::context::Condition;
use dq::job::Delivery;
use dq::prelude::*;
use dq::testing::Harness;
use dq_tests::{Fault, Faults};
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{
    HOUR, Log, MINUTE, SECOND, Script, TestJob, default_settings, faulty_store, handler_takes, start, test_job,
};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "prices", deliver = "broadcast")]
struct Prices {
    what: String,
}

fn prices(what: &str) -> Prices {
    Prices { what: what.into() }
}

/// Listens to two channels. The message says what it does.
#[broadcast_listener(channels = ["prices", "work"], register = false)]
struct Subscriber {
    log: Log,
}

impl BroadcastListener for Subscriber {
    type Message = serde_json::Value;

    async fn on_message(&self, received: Broadcast<serde_json::Value>) -> Result<(), JobError> {
        let what = received.message["what"].as_str().unwrap_or("-");
        self.log.record(format_args!("{} {what}", received.channel));
        match what {
            "fail" => Err("no".into()),
            "panic" => panic!("no"),
            "hang" => std::future::pending().await,
            "slow" => {
                handler_takes(10 * SECOND).await;
                self.log.record("slow is over");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A second listener of one of the channels.
#[broadcast_listener(channels = ["prices"], register = false)]
struct OtherSubscriber {
    log: Log,
}

impl BroadcastListener for OtherSubscriber {
    type Message = Prices;

    async fn on_message(&self, received: Broadcast<Prices>) -> Result<(), JobError> {
        self.log.record(format_args!("other {}", received.message.what));
        Ok(())
    }
}

fn subscriber(log: &Log) -> impl FnOnce(ContextFactory) -> ContextFactory {
    let log = log.clone();
    move |factory| factory.provide(log).broadcast_listener::<Subscriber>()
}

stores!(a_listener_receives_from_all_its_channels_and_a_channel_reaches_all_its_listeners: memory, file, redis);
async fn a_listener_receives_from_all_its_channels_and_a_channel_reaches_all_its_listeners() {
    let log = Log::new();
    let dq = start(|factory| subscriber(&log)(factory).broadcast_listener::<OtherSubscriber>()).await;
    dq.provider().add(prices("a")).after(SECOND).await.unwrap();
    dq.provider().add(test_job("w")).broadcast().after(2 * SECOND).await.unwrap();
    dq.advance(HOUR).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["1s other a", "1s prices a", "2s work -"]);
}

#[tokio::test(start_paused = true)]
async fn deliver_both_is_one_run_and_one_broadcast_and_retries_publish_nothing() {
    let log = Log::new();
    let script = Script::fails("no");
    let dq = start(|factory| script.on(subscriber(&log)(factory), |topic| topic.retry("1m, 1m"))).await;
    dq.provider().add(test_job("a")).deliver(Delivery::Both).after(SECOND).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(log.take(), ["1s work -"]);
    assert_eq!(script.log.take(), ["1s due a 0", "61s due a 1", "121s due a 2", "121s final a 3 error"]);
}

#[tokio::test(start_paused = true)]
async fn job_listeners_get_no_broadcasts_and_broadcast_listeners_get_no_jobs() {
    let log = Log::new();
    let script = Script::acks();
    let dq = start(|factory| script.on(subscriber(&log)(factory), default_settings)).await;
    dq.provider().add(test_job("queue")).await.unwrap();
    dq.settle().await;
    assert!(log.take().is_empty());
    assert_eq!(script.log.take_without_times(), ["due queue 0"]);
    dq.provider().add(test_job("broadcast")).broadcast().await.unwrap();
    dq.settle().await;
    assert!(script.log.take().is_empty());
    assert_eq!(log.take_without_times(), ["work -"]);
}

stores!(a_subscribed_node_publishes_the_broadcasts_of_a_topic_without_a_listener: memory, file, redis);
async fn a_subscribed_node_publishes_the_broadcasts_of_a_topic_without_a_listener() {
    let log = Log::new();
    let producer = start(|factory| factory.without_listeners()).await;
    let subscriber = producer.another(2, subscriber(&log)).await;
    producer.provider().add(prices("a")).after(MINUTE).await.unwrap();
    subscriber.advance(MINUTE).await;
    assert_eq!(log.take_without_times(), ["prices a"]);
}

#[tokio::test(start_paused = true)]
async fn errors_panics_timeouts_and_bad_payloads_are_counted_and_the_channel_keeps_working() {
    let log = Log::new();
    let dq = start(|factory| subscriber(&log)(factory).broadcast_listener::<OtherSubscriber>()).await;
    for what in ["fail", "panic", "hang", "fine"] {
        dq.provider().add(prices(what)).await.unwrap();
        dq.advance(MINUTE).await;
    }
    let received: Vec<_> = log.take_without_times().into_iter().filter(|line| line.starts_with("prices")).collect();
    assert_eq!(received, ["prices fail", "prices panic", "prices hang", "prices fine"]);
    dq.provider().topic("prices").unwrap().add_json(r#"{"odd": 1}"#).broadcast().await.unwrap();
    dq.settle().await;
    assert_eq!(log.take_without_times(), ["prices -"], "only the listener that accepts any payload receives it");
    let channel = &dq.health().channels[0];
    assert_eq!((channel.channel.as_str(), &channel.condition), ("prices", &Condition::Working));
    assert_eq!((channel.received, channel.published, channel.failed), (5, 5, 4));
    assert_eq!(channel.listeners, "Subscriber, OtherSubscriber");
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_receives_one_broadcast_at_a_time_and_delays_no_other_listener() {
    let log = Log::new();
    let dq = start(|factory| subscriber(&log)(factory).broadcast_listener::<OtherSubscriber>()).await;
    for what in ["slow", "next"] {
        dq.provider().add(prices(what)).await.unwrap();
    }
    dq.advance(MINUTE).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["0ns other next", "0ns other slow", "0ns prices slow", "10s prices next", "10s slow is over"]);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_node_lets_its_broadcast_listeners_finish_within_the_grace() {
    let log = Log::new();
    for (grace, expected) in [(MINUTE, vec!["prices slow", "slow is over"]), (SECOND, vec!["prices slow"])] {
        let dq = start(subscriber(&log)).await;
        dq.provider().add(prices("slow")).await.unwrap();
        dq.settle().await;
        dq.shutdown(grace).await;
        assert_eq!(log.take_without_times(), expected);
    }
}

stores!(a_stopping_node_hands_its_broadcasts_over: memory, file, redis);
/// The first node is the publisher. The second would otherwise publish only after the fallback of up to 15 s.
async fn a_stopping_node_hands_its_broadcasts_over() {
    let (log, other) = (Log::new(), Log::new());
    let dq = start(subscriber(&log)).await;
    let successor = dq.another(2, subscriber(&other)).await;
    dq.provider().add(prices("a")).after(2 * SECOND).await.unwrap();
    dq.settle().await;
    dq.shutdown(MINUTE).await;
    successor.advance(2 * SECOND).await;
    assert_eq!(other.take(), ["2s prices a"]);
    assert!(log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stopping_node_receives_and_publishes_broadcasts_until_its_handlers_are_done() {
    let (log, other) = (Log::new(), Log::new());
    let script = Script::new(|_, channel| async {
        handler_takes(10 * SECOND).await;
        Ok(channel.ack())
    });
    let dq = start(|factory| script.on(subscriber(&log)(factory), default_settings)).await;
    let successor = dq.another(2, subscriber(&other)).await;
    dq.provider().add(test_job("long")).await.unwrap();
    for (what, after) in [("during", 2), ("after", 11)] {
        dq.provider().add(prices(what)).after(after * SECOND).await.unwrap();
    }
    dq.settle().await;
    dq.shutdown(MINUTE).await;
    successor.advance(MINUTE).await;
    assert_eq!(log.take(), ["2s prices during"]);
    assert_eq!(other.take(), ["2s prices during", "11s prices after"]);
}

stores!(a_broadcast_that_no_node_published_in_time_is_dropped_and_counted: memory, file, redis);
async fn a_broadcast_that_no_node_published_in_time_is_dropped_and_counted() {
    let log = Log::new();
    let producer = start(|factory| factory.without_listeners()).await;
    producer.provider().add(prices("stale")).await.unwrap();
    producer.provider().add(prices("fresh")).after(30 * MINUTE).await.unwrap();
    producer.provider().add(prices("brief")).after(30 * MINUTE).expires_after("1m").await.unwrap();
    producer.advance(HOUR + SECOND).await;
    let dq = producer.another(2, subscriber(&log)).await;
    dq.advance(MINUTE).await;
    assert_eq!(log.take_without_times(), ["prices fresh"]);
    assert_eq!(dq.health().channels[0].expired, 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_with_only_broadcast_listeners_is_ready_once_it_is_subscribed() {
    let log = Log::new();
    let dq = start(subscriber(&log)).await;
    let health = dq.health();
    assert!(health.ready && health.topics.is_empty());
    assert_eq!(health.channels.len(), 2);
    assert_eq!(dq.counts::<TestJob>().await.delayed, 0);
}

/// A node that only listens to broadcasts, on a store that can fail.
async fn on_faulty_store(log: &Log) -> (Harness, Arc<Faults>) {
    let (store, faults) = faulty_store();
    (Harness::start_on(store, 1, subscriber(log)).await, faults)
}

stores!(a_refused_publish_is_repeated_after_growing_pauses_until_it_works: memory, file, redis);
async fn a_refused_publish_is_repeated_after_growing_pauses_until_it_works() {
    let log = Log::new();
    let (dq, faults) = on_faulty_store(&log).await;
    faults.fail_only("publish", Fault::Refused);
    let before = faults.requests_for("publish");
    dq.provider().add(prices("late")).await.unwrap();
    dq.advance(5 * MINUTE).await;
    let asked = faults.requests_for("publish") - before;
    assert!((20..500).contains(&asked), "{asked}");
    assert!(log.take().is_empty());
    faults.clear();
    dq.advance(MINUTE).await;
    assert_eq!(log.take_without_times(), ["prices late"]);
    let health = dq.health();
    let restarts: Vec<_> = health.channels.iter().map(|channel| channel.restarts).collect();
    assert_eq!(restarts, [0, 0], "{health:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_channel_waits_for_the_answer_to_its_release_for_the_call_timeout() {
    for (fault, expected) in [(Fault::AnsweredAfter(SECOND), SECOND), (Fault::AnswerLost, 2 * SECOND)] {
        let (dq, faults) = on_faulty_store(&Log::new()).await;
        dq.advance(MINUTE).await;
        faults.fail_only("release", fault);
        let begin = tokio::time::Instant::now();
        dq.shutdown(MINUTE).await;
        assert_eq!(begin.elapsed(), expected, "{fault:?}");
    }
}

stores!(broadcasts_go_out_at_the_end_of_a_pause_that_was_shortened: memory, file, redis);
async fn broadcasts_go_out_at_the_end_of_a_pause_that_was_shortened() {
    let log = Log::new();
    let dq = start(subscriber(&log)).await;
    dq.advance(SECOND).await;
    dq.provider().pause::<Prices>().reason("the bank is down").await.unwrap();
    dq.provider().add(prices("a")).await.unwrap();
    dq.advance(SECOND).await;
    dq.provider().pause::<Prices>().reason("it comes back").for_duration(SECOND).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!(log.take_without_times(), ["prices a"]);
    dq.shutdown(SECOND).await;
}
