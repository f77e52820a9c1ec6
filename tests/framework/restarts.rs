//! Panics of dq itself, which are defects: each task starts again, says so, and loses nothing.

use dq::prelude::*;
use dq::testing::Harness;
use dq_tests::Fault;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{Log, MINUTE, SECOND, Script, default_settings, faulty_store, test_job};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "news", deliver = "broadcast")]
struct News(String);

#[broadcast_listener(channels = ["news"], register = false)]
struct Reader {
    log: Log,
}

impl BroadcastListener for Reader {
    type Message = News;

    async fn on_message(&self, news: Broadcast<News>) -> Result<(), JobError> {
        self.log.record(format_args!("news {}", news.message.0));
        Ok(())
    }
}

stores!(a_channel_that_panicked_starts_again_and_delivers: memory, file, redis);
async fn a_channel_that_panicked_starts_again_and_delivers() {
    let log = Log::new();
    let (store, faults) = faulty_store();
    let with = log.clone();
    let dq = Harness::start_on(store, 1, |factory| factory.provide(with).broadcast_listener::<Reader>()).await;
    faults.fail_next("publish", Fault::Panics);
    dq.provider().add(News("one".into())).after(SECOND).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(log.take_without_times(), ["news one"]);
    let channel = &dq.health().channels[0];
    assert_eq!((channel.restarts, channel.received), (1, 1));
    assert!(dq.health().ready);
}

stores!(a_topic_that_panicked_starts_again_and_loses_no_job: memory, file, redis);
async fn a_topic_that_panicked_starts_again_and_loses_no_job() {
    for step in ["transfer", "settle"] {
        let script = Script::acks();
        let (dq, faults) = script.on_faulty(default_settings).await;
        faults.fail_next(step, Fault::Panics);
        dq.provider().add(test_job("a")).after(SECOND).await.unwrap();
        dq.advance(MINUTE).await;
        assert_eq!(dq.health().topics[0].counters.restarts, 1, "{step}");
        let mut ran = script.log.take_without_times();
        ran.dedup();
        assert_eq!(ran, ["due a 0"], "{step}");
        assert!(dq.health().ready, "{step}");
    }
}

stores!(a_provider_that_panicked_serves_the_next_caller_and_health_counts_it: memory, file, redis);
async fn a_provider_that_panicked_serves_the_next_caller_and_health_counts_it() {
    let (store, faults) = faulty_store();
    let dq = Harness::start_on(store, 1, |factory| factory.without_listeners()).await;
    faults.fail_next("add", Fault::Panics);
    assert!(dq.provider().add(test_job("a")).await.is_err());
    dq.provider().add(test_job("b")).await.unwrap();
    assert_eq!(dq.health().provider_restarts, 1);
    assert_eq!(dq.probe().health().provider_restarts, 1);
}
