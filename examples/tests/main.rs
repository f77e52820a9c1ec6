//! Runs the examples as users do.

mod monitoring;
mod order_timeout;
mod program;

use dq_tests::file::Folder;
use futures_util::future::join_all;
use program::{Program, names, run, shipped};
use rustix::process::Signal;

async fn prints_what_is_expected(name: &str) {
    let ended = run(name, &[]).await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stdout, shipped(&format!("{name}/expected.txt")), "{}", ended.stderr);
}

/// An empty folder that goes with the test. It is in memory: when a disk holds up a claim for longer than `call_timeout`, the node
/// gives that job back, and jobs that are due later run before it.
fn empty() -> Folder {
    let folder = Folder::in_memory();
    std::fs::create_dir(folder.path()).unwrap();
    folder
}

/// As a user runs it: on its own store, again after a clean end, and again after a `kill -9` behind the first line. On a machine that
/// stands still a program may end before it is killed; then it is started again.
async fn prints_the_same_each_time_in_files(name: &str) {
    let folder = empty();
    let run = || async {
        let ended = Program::start_in(folder.path(), name).end().await;
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(ended.stdout, shipped(&format!("{name}/expected.txt")), "{}", ended.stderr);
    };
    run().await;
    assert!(folder.path().join("dq-data").join(name).join("LOCK").exists());
    run().await;
    loop {
        let mut killed = Program::start_in(folder.path(), name);
        killed.line().await;
        killed.signal(Signal::KILL);
        if !killed.end().await.status.success() {
            break;
        }
    }
    run().await;
}

/// The examples that one run tests completely.
const RUN_ONCE: [&str; 12] = [
    "cache_invalidation",
    "closing_in_batches",
    "meeting_reminder",
    "metrics",
    "one_time_code",
    "payment_notify",
    "payment_webhook",
    "price_change",
    "producer",
    "session_expiry",
    "stock_report",
    "traces",
];

/// `dashboard`, `order_timeout`, `listing` and `survives_restart` have tests of their own; `double_charge` simulates its store.
#[test]
fn every_example_is_run_on_redis() {
    let mut named =
        [&RUN_ONCE[..], &["dashboard", "double_charge", "listing", "order_timeout", "survives_restart"]].concat();
    named.sort_unstable();
    assert_eq!(names(), named);
}

/// No example depends on its store, so the output on a server is the same.
#[tokio::test]
async fn every_example_prints_the_same_on_redis() {
    join_all(RUN_ONCE.map(async |name| {
        let server = dq_tests::redis::RedisServer::start();
        let ended = Program::start_on(&server.url(), name, &[]).end().await;
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(ended.stdout, shipped(&format!("{name}/expected.txt")), "{}", ended.stderr);
        assert!(!ended.stderr.contains("lost the connection to the store"), "{}", ended.stderr);
    }))
    .await;
}

/// It goes on until somebody ends it.
#[tokio::test]
async fn dashboard_serves_beside_the_shop() {
    use std::io::{Read, Write};
    let server = dq_tests::redis::RedisServer::start();
    let mut shop = Program::start_on(&server.url(), "dashboard", &["127.0.0.1:0"]);
    let line = shop.line().await;
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let ask = |request: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("POST /orders/7").contains("order 7 is open"), "{line}");
    assert!(ask("GET /admin/dq").contains("location: /admin/dq/login"), "{line}");
    shop.signal(Signal::TERM);
    assert!(shop.end().await.status.success());
}

#[tokio::test]
async fn payment_notify_prints_the_same_each_time() {
    prints_the_same_each_time_in_files("payment_notify").await;
}

#[tokio::test]
async fn double_charge_prints_what_is_expected() {
    prints_what_is_expected("double_charge").await;
}

#[tokio::test]
async fn meeting_reminder_prints_the_same_each_time() {
    prints_the_same_each_time_in_files("meeting_reminder").await;
}

#[tokio::test]
async fn closing_in_batches_prints_what_is_expected() {
    prints_what_is_expected("closing_in_batches").await;
}

#[tokio::test]
async fn session_expiry_prints_the_same_each_time() {
    prints_the_same_each_time_in_files("session_expiry").await;
}

#[tokio::test]
async fn cache_invalidation_prints_what_is_expected() {
    prints_what_is_expected("cache_invalidation").await;
}

#[tokio::test]
async fn payment_webhook_prints_what_is_expected() {
    prints_what_is_expected("payment_webhook").await;
}

#[tokio::test]
async fn metrics_prints_what_is_expected() {
    prints_what_is_expected("metrics").await;
}

#[tokio::test]
async fn traces_shows_both_runs_linked_to_the_request() {
    prints_what_is_expected("traces").await;
}

#[tokio::test]
async fn one_time_code_prints_what_is_expected() {
    prints_what_is_expected("one_time_code").await;
}

#[tokio::test]
async fn price_change_prints_what_is_expected() {
    prints_what_is_expected("price_change").await;
}

#[tokio::test]
async fn producer_prints_what_is_expected_on_its_own_store_and_refuses_one_that_no_worker_can_share() {
    let folder = empty();
    let ended = Program::start_in(folder.path(), "producer").end().await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stdout, shipped("producer/expected.txt"), "{}", ended.stderr);
    let refused = run("producer", &[]).await; // on a plain `memory:`
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
}

#[tokio::test]
async fn survives_restart_loses_nothing_when_its_node_is_killed() {
    let server = dq_tests::redis::RedisServer::start();
    // `--store` overrides the variable.
    let ended = run("survives_restart", &["--store", &server.url()]).await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stdout, shipped("survives_restart/expected.txt"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("killed after").count(), 2, "{}", ended.stderr);
}

#[tokio::test]
async fn survives_restart_loses_nothing_in_files() {
    let folder = dq_tests::file::Folder::unmade();
    let ended = run("survives_restart", &["--store", &folder.url()]).await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stdout, shipped("survives_restart/expected.txt"), "{}", ended.stderr);
}

#[tokio::test]
async fn survives_restart_refuses_a_store_that_ends_with_its_process() {
    let ended = run("survives_restart", &[]).await;
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("`memory:` ends with its process"), "{}", ended.stderr);
}

#[tokio::test]
async fn every_example_says_how_to_use_it() {
    for name in [&RUN_ONCE[..], &["double_charge", "listing", "order_timeout", "survives_restart"]].concat() {
        let help = run(name, &["--help"]).await;
        assert!(help.status.success() && help.stdout.contains(&format!("Usage: {name}")), "{name}: {help:?}");
        let mistake = run(name, &["--no-such-option"]).await;
        assert_eq!(mistake.status.code(), Some(2), "{name}: {mistake:?}");
    }
}

#[tokio::test]
async fn the_listing_ends_cleanly_on_a_signal() {
    the_listing_ends_cleanly("memory:").await;
}

#[tokio::test]
async fn the_listing_says_what_waits_since_an_earlier_start() {
    let folder = empty();
    for waiting in [0, 1, 1] {
        let mut listing = Program::start_in(folder.path(), "listing");
        assert_eq!(listing.line().await, shipped("listing/expected.txt").trim_end());
        listing.signal(Signal::TERM);
        let ended = listing.end().await;
        assert!(ended.status.success(), "{ended:?}");
        let expected = format!("{waiting} order(s) wait since an earlier start");
        assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn the_listing_ends_cleanly_on_redis_too() {
    let server = dq_tests::redis::RedisServer::start();
    the_listing_ends_cleanly(&server.url()).await;
}

async fn the_listing_ends_cleanly(store: &str) {
    for signal in [Signal::TERM, Signal::INT] {
        let mut listing = Program::start_on(store, "listing", &[]);
        assert_eq!(listing.line().await, shipped("listing/expected.txt").trim_end());
        listing.signal(signal);
        let ended = listing.end().await;
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    }
}
