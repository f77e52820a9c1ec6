//! Nodes and providers that start before their store.

use std::time::Duration;

use tokio::time::Instant;

use super::{Good, Lines, Mood, Moody, shop, start_error};
use crate::context::{Condition, Error, Problem};

#[tokio::test(start_paused = true)]
async fn a_node_that_may_wait_starts_its_topics_once_the_store_can_be_reached() {
    let store = Moody::new(Mood::Down);
    let lines = Lines::default();
    let log = tracing::subscriber::set_default(lines.clone());
    let context = shop(store.clone()).listener::<Good>().start_when_reachable().await.unwrap();
    drop(log);
    let text = lines.0.lock().unwrap().join("\n");
    assert!(text.contains("the store cannot be reached yet") && text.contains("connection refused"), "{text}");

    let why = "the store cannot be reached, so ping was not sent: connection refused";
    for _ in 0..2 {
        let health = context.health();
        assert!(!health.ready);
        assert_eq!(health.topics[0].condition, Condition::Recovering(why.into()));
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert!((10..60).contains(&store.asked()), "the pauses grow: asked {} times in two minutes", store.asked());
    store.is_now(Mood::Well);
    context.ready().await;
    assert!(context.health().ready);
    assert_eq!(context.health().topics[0].condition, Condition::Working);
    let jobs = context.provider();
    jobs.topic("good").unwrap().add_json("null").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(jobs.topic("good").unwrap().counts().await.unwrap().delayed, 0, "it has run");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_for_a_silent_store_is_there_after_the_time_of_one_call_and_can_be_stopped() {
    let before = Instant::now();
    let context = shop(Moody::new(Mood::Silent)).listener::<Good>().start_when_reachable().await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert!(matches!(context.health().topics[0].condition, Condition::Recovering(_)));
    let stopped = context.shutdown(Duration::from_secs(60)).await;
    assert_eq!(stopped.left, 0);
    assert_eq!(before.elapsed(), Duration::from_secs(2), "a topic that waits stops at once");
}

#[tokio::test(start_paused = true)]
async fn what_waiting_does_not_mend_is_a_problem_at_once() {
    for (mood, text) in [(Mood::Denied, "WRONGPASS"), (Mood::Newer, "protocol version 2")] {
        match shop(Moody::new(mood)).listener::<Good>().start_when_reachable().await {
            Err(Error::Start(error)) => assert!(error.to_string().contains(text), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    let error = start_error(shop(Moody::new(Mood::Down)).listener::<Good>().lease("10m")).await;
    assert!(matches!(error.problems(), [Problem::Setting(_), Problem::StoreUnreachable { .. }]), "{error}");
    let text = "2. the store moody: cannot be reached: connection refused";
    assert!(error.to_string().ends_with(text), "without it a start fails: {error}");
}

#[tokio::test(start_paused = true)]
async fn a_lazy_provider_asks_for_nothing_until_it_is_used() {
    let store = Moody::new(Mood::Down);
    let jobs = shop(store.clone()).connect_lazy().await.unwrap();
    assert_eq!(store.asked(), 0);
    assert!(shop(store.clone()).connect().await.unwrap_err().to_string().contains("connection refused"));
    store.is_now(Mood::Well);
    jobs.topic("good").unwrap().add_json("null").await.unwrap();
}

#[tokio::test]
async fn a_provider_has_the_settings_of_its_factory() {
    let path = std::env::temp_dir().join(format!("dq-{}-provider.toml", std::process::id()));
    std::fs::write(&path, "max_payload = 3\n").unwrap();
    let jobs = shop(Moody::new(Mood::Well)).config_file(&path).connect().await;
    std::fs::remove_file(&path).unwrap();
    let error = jobs.unwrap().topic("good").unwrap().add_json("null").await.unwrap_err();
    assert_eq!(error.to_string(), "the payload of topic `good` has 4 bytes; the limit is 3 (`max_payload`)");
}
