//! An outage of the store is a warning when it begins, one a minute while it lasts, and a line when it ends.

use std::sync::Arc;
use std::time::Duration;

use tracing::Level;

use dq::context::Condition;
use dq::environment::{Environment, Seeded, TokioClock};
use dq::prelude::*;
use dq::testing::Harness;
use dq_tests::{Fault, Faults, FaultyStore, topics};
use serde::{Deserialize, Serialize};

use crate::backend;
use crate::recorder::{Traces, subscribe};
use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, default_settings, handler_takes};

topics!(listeners: one One "one", two Two "two", three Three "three", four Four "four");

async fn node(with: impl FnOnce(ContextFactory) -> ContextFactory) -> (Harness, Arc<Faults>) {
    let (store, faults) = FaultyStore::over(backend::store_under(Arc::new(TokioClock::new())));
    (Harness::start_on(store, 1, with).await, faults)
}

fn counts(traces: &Traces) -> (usize, usize, usize) {
    let of = |level| traces.events(level).len();
    (of(Level::ERROR), of(Level::WARN), of(Level::INFO))
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_a_warning_at_its_begin_one_a_minute_and_a_line_at_its_end_however_many_topics_there_are() {
    for fault in [Fault::Unavailable, Fault::Refused, Fault::Lost] {
        let (traces, _guard) = subscribe();
        let (dq, faults) = node(listeners).await;
        dq.advance(SECOND).await;
        counts(&traces);
        faults.fail_all(fault);
        let add = tokio::spawn(dq.provider().add(One).into_future());
        dq.advance(50 * SECOND).await;
        add.await.unwrap().unwrap_err();
        assert_eq!(counts(&traces), (0, 1, 0), "{fault:?}");
        dq.advance(10 * MINUTE).await;
        let (errors, warnings, lines) = counts(&traces);
        assert!(errors + lines == 0 && (9..=10).contains(&warnings), "{fault:?}: {warnings}");
        faults.clear();
        dq.advance(MINUTE).await;
        let (info, warn) = (traces.events(Level::INFO), traces.events(Level::WARN));
        assert!(info.len() == 1 && info[0].contains("the store answers again"), "{fault:?}: {info:#?}");
        assert!(info[0].contains("outage=10m ") || info[0].contains("outage=11m "), "{fault:?}: {info:#?}");
        assert!(warn.is_empty(), "{fault:?}: {warn:#?}");
        assert!(dq.health().ready, "{fault:?}");
    }
}

/// Whoever starts a node before its store knows that it waits: that is a line at INFO, and a warning if it lasts.
#[tokio::test(start_paused = true)]
async fn a_node_that_waits_for_its_store_says_so_once_and_warns_after_a_minute() {
    let (traces, _guard) = subscribe();
    let (store, faults) = FaultyStore::over(backend::store_under(Arc::new(TokioClock::new())));
    faults.fail_all(Fault::Refused);
    let factory = ContextFactory::new("test").without_inventory().variables([("", ""); 0]).store(store);
    let factory = factory.environment(Environment::on_this_runtime(Arc::new(Seeded::new(1))));
    let dq = listeners(factory).start_when_reachable().await.unwrap();
    let info = traces.events(Level::INFO);
    assert_eq!(info.iter().filter(|line| line.contains("the store cannot be reached yet")).count(), 1, "{info:#?}");
    handler_takes(58 * SECOND).await;
    assert_eq!(counts(&traces), (0, 0, 0), "nothing is said twice");
    handler_takes(10 * SECOND).await;
    let warn = traces.events(Level::WARN);
    assert!(warn.len() == 1 && warn[0].contains("the store still does not answer"), "{warn:#?}");
    assert!(warn[0].contains("lasted=1m"), "{warn:#?}");
    faults.clear();
    dq.ready().await;
    handler_takes(SECOND).await;
    let info = traces.events(Level::INFO);
    assert_eq!(info.iter().filter(|line| line.contains("the store answers again")).count(), 1, "{info:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_comes_back_within_a_minute_brings_no_second_warning() {
    let (traces, _guard) = subscribe();
    let (dq, faults) = node(listeners).await;
    dq.advance(SECOND).await;
    counts(&traces);
    for _ in 0..4 {
        faults.fail_all(Fault::Refused);
        dq.provider().add(One).within("200ms").await.unwrap_err();
        faults.clear();
        dq.provider().add(Two).await.unwrap();
        dq.provider().add(One).await.unwrap();
    }
    let warn = traces.events(Level::WARN);
    assert_eq!(warn.len(), 1, "{warn:#?}");
    assert!(
        warn[0].contains("dq tries again until it answers") && warn[0].contains("error=the store refuses"),
        "{warn:#?}"
    );
}

/// After a blip that was warned of, outages of 13 and of 15 seconds.
#[tokio::test(start_paused = true)]
async fn an_outage_that_lasts_for_five_seconds_is_a_warning_whatever_came_less_than_a_minute_before() {
    let (traces, _guard) = subscribe();
    let (dq, faults) = node(listeners).await;
    dq.advance(SECOND).await;
    counts(&traces);
    faults.fail_all(Fault::Refused);
    dq.provider().add(One).within("200ms").await.unwrap_err();
    faults.clear();
    dq.provider().add(One).await.unwrap();
    assert_eq!(counts(&traces), (0, 1, 1), "a blip");
    for lasts in [13, 15] {
        dq.advance(SECOND).await;
        faults.fail_all(Fault::Refused);
        dq.provider().add(One).within("200ms").await.unwrap_err();
        dq.advance(4 * SECOND).await;
        assert_eq!(counts(&traces), (0, 0, 1), "it is short so far");
        dq.provider().add(One).within("200ms").await.unwrap_err();
        dq.advance((lasts - 4) * SECOND).await;
        dq.provider().add(One).within("200ms").await.unwrap_err();
        let warn = traces.events(Level::WARN);
        assert!(warn.len() == 1 && warn[0].contains("the store still does not answer"), "{warn:#?}");
        faults.clear();
        dq.provider().add(One).await.unwrap();
        dq.advance(SECOND).await;
        assert_eq!(counts(&traces), (0, 0, 1), "it is over");
    }
    // No request fails while this one is long: its end is the warning.
    faults.fail_only("add", Fault::Refused);
    dq.provider().add(One).within("200ms").await.unwrap_err();
    faults.clear();
    dq.advance(6 * SECOND).await;
    assert_eq!(counts(&traces), (0, 0, 1), "only the failed add can tell that it is over");
    dq.provider().add(One).await.unwrap();
    let warn = traces.events(Level::WARN);
    assert!(warn.len() == 1 && warn[0].contains("the store answers again"), "{warn:#?}");
}

#[tokio::test(start_paused = true)]
async fn all_topics_say_that_the_store_is_out_of_reach_as_soon_as_one_finds_out() {
    let (traces, _guard) = subscribe();
    let (dq, faults) = node(listeners).await;
    dq.advance(SECOND).await;
    counts(&traces);
    faults.fail_all(Fault::Unavailable);
    let asked = faults.requests();
    let add = tokio::spawn(dq.provider().add(One).into_future());
    dq.settle().await;
    let asked = faults.requests() - asked;
    assert!((1..4).contains(&asked), "the other topics have asked nothing: {asked} requests");
    let health = dq.health();
    let recovers = |topic: &dq::context::TopicHealth| matches!(&topic.condition, Condition::Recovering(text) if text.contains("unavailable"));
    assert!(!health.ready && health.topics.len() == TOPICS.len() && health.topics.iter().all(recovers), "{health:#?}");
    faults.clear();
    dq.advance(3 * SECOND).await;
    add.await.unwrap().unwrap();
    assert!(dq.health().ready, "the store has answered, and nobody fails: {:#?}", dq.health());
    dq.probe().ready().await;
    drop(traces);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_has_an_answer_works_although_another_still_fails() {
    let (_traces, _guard) = subscribe();
    let (dq, faults) = node(listeners).await;
    dq.advance(SECOND).await;
    faults.fail_all(Fault::Unavailable);
    dq.advance(MINUTE).await;
    faults.fail_only("transfer", Fault::Unavailable);
    dq.advance(MINUTE).await;
    assert!(!dq.health().ready);
    faults.clear();
    dq.advance(MINUTE).await;
    assert!(dq.health().ready);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_adds_keeps_no_topic_from_working_and_is_a_warning_a_minute() {
    let (traces, _guard) = subscribe();
    let (dq, faults) = node(listeners).await;
    dq.advance(SECOND).await;
    counts(&traces);
    faults.fail_only("add", Fault::Refused);
    for _ in 0..12 {
        dq.provider().add(One).await.unwrap_err(); // 10 s each
        assert!(dq.health().ready, "claims and outcomes go on");
    }
    let (errors, warnings, lines) = counts(&traces);
    assert!(errors + lines == 0 && (2..=3).contains(&warnings), "{warnings} warnings and {lines} lines in two minutes");
    faults.clear();
    dq.provider().add(One).await.unwrap();
    assert_eq!(counts(&traces), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn what_each_topic_meets_in_an_outage_is_at_debug_and_says_that_dq_tries_again() {
    let (traces, _guard) = subscribe();
    let (store, faults) = FaultyStore::over(backend::store_under(Arc::new(TokioClock::new())));
    let script = Script::acks();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    faults.fail_all(Fault::Refused);
    dq.provider().topic("work").unwrap().add_json("1").id("a").await.unwrap_err();
    dq.advance(HOUR).await;
    let debug = traces.events(Level::DEBUG);
    let has = |text: &str| debug.iter().any(|line| line.contains(text) && line.contains("topic=work"));
    assert!(has("the store refused a request; dq sends it again"), "{debug:#?}");
    assert!(has("adds and commands were not done, or had no answer; dq sends them again"), "{debug:#?}");
}

#[tokio::test]
async fn a_server_that_goes_away_and_comes_back_is_one_warning_and_one_line() {
    use dq_tests::redis::RedisServer;
    let (traces, _guard) = subscribe();
    let mut server = RedisServer::start();
    let factory = ContextFactory::new("shop").store(server.url()).without_inventory().variables([("", ""); 0]);
    // On this thread, whose subscriber records the lines.
    let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
    let dq = listeners(factory).environment(environment).start().await.unwrap();
    dq.ready().await;
    counts(&traces);
    server.kill();
    let probe = dq.probe();
    while probe.health().topics.iter().any(|topic| topic.condition == Condition::Working) {
        tokio::task::yield_now().await;
    }
    let refused = dq.provider().add(One).await.unwrap_err();
    assert!(refused.to_string().contains("not added"), "{refused}");
    server.restart();
    dq.ready().await;
    dq.provider().add(One).await.unwrap();
    while dq.health().topics.iter().all(|topic| topic.counters.acked == 0) {
        tokio::task::yield_now().await;
    }
    // The outage is over once nobody fails any more, subscriptions included.
    let mut info = Vec::new();
    while !info.iter().any(|line: &String| line.contains("the store answers again")) {
        info.extend(traces.events(Level::INFO));
        tokio::task::yield_now().await;
    }
    let mut warn = traces.events(Level::WARN);
    // The server comes back empty, which has a warning of its own.
    warn.retain(|line| !line.contains("the store was emptied"));
    let says = "dq tries again until it answers, and jobs wait store=\"redis://";
    assert!(warn.len() == 1 && warn[0].contains(says), "{warn:#?}");
    dq.shutdown(Duration::ZERO).await;
}

/// The recorder is that of the test's thread, because these metrics have no label that would tell the outages of other tests apart.
#[tokio::test(start_paused = true)]
async fn an_outage_is_counted_measured_and_shown_while_it_lasts() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let value = |name: &str| {
        let text = page.render();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing in\n{text}")).parse::<f64>().unwrap()
    };
    let (dq, faults) = node(listeners).await;
    dq.advance(SECOND).await;
    assert_eq!(value("dq_store_outage"), 0.0);
    faults.fail_all(Fault::Unavailable);
    let add = tokio::spawn(dq.provider().add(One).into_future());
    dq.advance(50 * SECOND).await;
    add.await.unwrap().unwrap_err();
    assert_eq!((value("dq_store_outage"), value("dq_store_outages_total")), (1.0, 1.0));
    faults.clear();
    dq.advance(MINUTE).await;
    assert_eq!((value("dq_store_outage"), value("dq_store_outages_total")), (0.0, 1.0));
    let lasted = value("dq_store_outage_seconds_total");
    assert!((50.0..60.0).contains(&lasted), "{lasted}");
}
