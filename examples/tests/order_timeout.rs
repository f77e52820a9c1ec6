//! `order_timeout`: the counts of the shipped orders, bad input, interruptions, races, and that its checks can fail.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use dq::prelude::*;
use dq_tests::redis::RedisServer;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::program::{Ended, Program, run, shipped};

/// Returns the path of a file that only this test uses and that does not exist yet.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("order_timeout.{name}"));
    let _ = fs::remove_file(&path);
    path.to_str().unwrap().to_owned()
}

fn file_with(name: &str, text: &str) -> String {
    let path = file(name);
    fs::write(&path, text).unwrap();
    path
}

fn event(at_ms: u64, order: u64, event: &str) -> String {
    json!({ "at_ms": at_ms, "order": order, "event": event }).to_string() + "\n"
}

/// Returns the JSON in the last line of stdout without the lateness, which differs from run to run. There is one exactly where orders were
/// closed.
fn whole_summary(ended: &Ended) -> Value {
    let mut summary: Value = serde_json::from_str(ended.stdout.lines().last().expect("it printed something")).unwrap();
    let lateness = summary.as_object_mut().unwrap().remove("lateness_ms").unwrap();
    let of = |part: &str| lateness[part].as_f64();
    assert_eq!(of("max").is_some(), summary["closed"] != 0, "{lateness}");
    assert!(of("p50") <= of("p99") && of("p99") <= of("max"), "{lateness}");
    summary
}

/// The same without what this run alone did.
fn summary(ended: &Ended) -> Value {
    let mut summary = whole_summary(ended);
    assert!(summary.as_object_mut().unwrap().remove("this_run").is_some(), "{ended:?}");
    summary
}

/// Returns the number of ledger lines with this entry for each order.
fn entries(ledger: &str, entry: &str) -> BTreeMap<u64, usize> {
    let mut orders = BTreeMap::new();
    for line in fs::read_to_string(ledger).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["entry"] == entry {
            *orders.entry(line["order"].as_u64().unwrap()).or_default() += 1;
        }
    }
    orders
}

/// Runs the shipped orders on `store` and checks every count and every word of the output. No event is closer to the end of its order's
/// time than four seconds, which are 0.8 s at this speed.
async fn the_shipped_orders_on(store: &str, name: &str) {
    let ledger = file(name);
    let arguments = ["--speed", "5", "--json", "--ledger", &ledger];
    let ended = Program::start_on(store, "order_timeout", &arguments).end().await;
    assert!(ended.status.success(), "{ended:?}");
    let this_run = json!({ "placed": 2000, "closed": 682, "deleted": 1318, "too_late": 54 });
    let counts =
        json!({ "placed": 2000, "closed": 682, "deleted": 1318, "early": 0, "twice": 0, "this_run": this_run });
    assert_eq!(whole_summary(&ended), counts, "{ended:?}");
    assert!(!ended.stderr.contains("max 0.0 ms"), "some closing of hundreds is late: {ended:?}");
    let text = ended.stdout.trim_end().rsplit_once('\n').unwrap().0;
    assert_eq!(text, shipped("order_timeout/expected.txt").trim_end());
    let closed = entries(&ledger, "closed");
    assert!(closed.len() == 682 && closed.values().all(|times| *times == 1), "{closed:?}");
    nothing_is_left_of(store, &arguments, &counts).await;
}

/// The same command again finds the ledger of the first run, does nothing, and says that its figures are not its own.
async fn nothing_is_left_of(store: &str, arguments: &[&str], counts: &Value) {
    let ended = Program::start_on(store, "order_timeout", arguments).end().await;
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stdout.contains("\nNOTHING DONE: ") && !ended.stdout.contains("OK: "), "{ended:?}");
    let mut again = counts.clone();
    again["this_run"] = json!({ "placed": 0, "closed": 0, "deleted": 0, "too_late": 0 });
    assert_eq!(whole_summary(&ended), again, "{ended:?}");
}

#[tokio::test]
async fn the_shipped_orders_end_as_expected() {
    the_shipped_orders_on("memory:", "day.ledger").await;
}

#[tokio::test]
async fn the_shipped_orders_end_the_same_on_redis() {
    let server = RedisServer::start();
    the_shipped_orders_on(&server.url(), "day-on-redis.ledger").await;
}

#[tokio::test]
async fn the_shipped_orders_are_the_generated_ones() {
    let ended = run("order_timeout", &["--generate", "2000"]).await;
    assert!(ended.status.success());
    assert!(
        ended.stdout == shipped("order_timeout/orders.jsonl"),
        "generate the file again: see the README of the example"
    );
}

#[tokio::test]
async fn a_line_that_cannot_be_used_is_reported_with_its_number_and_skipped() {
    let lines = [
        event(0, 1, "placed"),
        "{\"at_ms\":1,\n".into(),
        event(2, 2, "eaten"),
        "\n".into(),
        event(20, 3, "paid"),
        event(10, 1, "paid"),
        event(5, 4, "placed"),
        event(6, 1, "placed"),
        "{\"at_ms\":-1,\"order\":1,\"event\":\"paid\"}\n".into(),
    ];
    let (orders, ledger) = (file_with("bad.jsonl", &lines.concat()), file("bad.ledger"));
    let ended = run("order_timeout", &[&orders, "--timeout", "3s", "--json", "--ledger", &ledger]).await;
    assert!(ended.status.success(), "{ended:?}");
    for reported in [
        ":2: skipped: EOF while parsing",
        ":3: skipped: unknown variant `eaten`, expected one of `placed`, `paid`, `cancelled`",
        ":5: skipped: order 3 was never placed",
        ":8: skipped: order 1 was already placed by line 1",
        ":9: skipped: invalid value: integer `-1`",
    ] {
        assert!(ended.stderr.contains(&format!("{orders}{reported}")), "{reported}\n{}", ended.stderr);
    }
    assert!(ended.stdout.contains("malformed lines                 5\n"), "{}", ended.stdout);
    assert_eq!(summary(&ended), json!({ "placed": 2, "closed": 1, "deleted": 1, "early": 0, "twice": 0 }));
}

/// Stops the program with `signal` and checks that a second one resumes. `name` is the name of the ledger.
async fn resumes_after(signal: Signal, store: &str, name: &str) {
    let ledger = file(name);
    let arguments = ["--speed", "8", "--json", "--ledger", &ledger];
    let mut first = Program::start_on(store, "order_timeout", &arguments);
    first.line_of_stderr(|line| line.contains("  placed ") && !line.contains("  closed 0 ")).await;
    first.signal(signal);
    let ended = first.end().await;
    if signal == Signal::INT {
        assert!(ended.status.success(), "{ended:?}");
        assert!(ended.stderr.contains("run the same command again, without --fresh, to resume"), "{ended:?}");
    }
    let before = entries(&ledger, "closed").len();
    assert!((1..682).contains(&before), "{before} were closed by the first run");

    let ended = Program::start_on(store, "order_timeout", &arguments).end().await;
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains("resuming: the ledger has "), "{ended:?}");
    let kept = ended.stderr.split("resuming: the store still has ").nth(1).expect("it says what the store has");
    let kept: usize = kept.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(kept > 0, store != "memory:", "{ended:?}");
    let summary = whole_summary(&ended);
    let this_run = &summary["this_run"];
    assert_eq!((&summary["placed"], &summary["early"], &summary["twice"]), (&json!(2000), &json!(0), &json!(0)));
    let closed = summary["closed"].as_u64().unwrap();
    assert_eq!(closed + summary["deleted"].as_u64().unwrap(), 2000);
    assert_eq!(this_run["closed"], closed - before as u64, "{ended:?}");
    for (entry, orders) in [("placed", 2000), ("closed", closed)] {
        let times = entries(&ledger, entry);
        assert!(times.len() as u64 == orders && times.values().all(|times| *times == 1), "{entry}: {times:?}");
    }
}

#[tokio::test]
async fn a_second_run_resumes_where_the_first_was_stopped() {
    resumes_after(Signal::INT, "memory:", "stopped.ledger").await;
}

#[tokio::test]
async fn a_second_run_resumes_where_the_first_was_killed() {
    resumes_after(Signal::KILL, "memory:", "killed.ledger").await;
}

/// What the killed run left in the directory is done by the second one, also what it held.
#[tokio::test]
async fn a_second_run_resumes_where_the_first_was_killed_in_files() {
    let folder = dq_tests::file::Folder::unmade();
    resumes_after(Signal::KILL, &folder.url(), "killed-in-files.ledger").await;
}

/// What the killed run left in the server is done by the second one, also what it held.
#[tokio::test]
async fn a_second_run_resumes_where_the_first_was_killed_on_redis() {
    let server = RedisServer::start();
    resumes_after(Signal::KILL, &server.url(), "killed-on-redis.ledger").await;
}

/// What the example keeps in the store.
#[derive(Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "0s")]
struct CloseOrder {
    #[job(id)]
    order_id: u64,
    placed_ms: u64,
}

/// The node runs jobs while the program is still adding them again, some after they are done.
#[tokio::test]
async fn orders_whose_jobs_are_due_when_the_program_resumes_are_closed_once() {
    let server = RedisServer::start();
    let placed = |order| json!({ "entry": "placed", "order": order, "at_ms": 0, "due_ms": 0 }).to_string() + "\n";
    let paid = |order| json!({ "entry": "ended", "order": order, "event": "paid" }).to_string() + "\n";
    // The program deletes the jobs of paid orders first, which gives the node time to begin with the others.
    let lines: String = (0..4_000).map(placed).chain((3_990..4_000).map(paid)).collect();
    let ledger = file_with("due-on-redis.ledger", &lines);
    let provider = Provider::connect("shop", &server.url()).await.unwrap();
    for from in (0..4_000).step_by(1_000) {
        let jobs = (from..from + 1_000).map(|order_id| CloseOrder { order_id, placed_ms: 0 });
        provider.add_many(jobs).await.unwrap().all().unwrap();
    }

    let orders = file_with("no-events.jsonl", "");
    let arguments = [&*orders, "--json", "--ledger", &ledger];
    let ended = Program::start_on(&server.url(), "order_timeout", &arguments).end().await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(summary(&ended), json!({ "placed": 4000, "closed": 3990, "deleted": 10, "early": 0, "twice": 0 }));
    let closed = entries(&ledger, "closed");
    assert!(closed.len() == 3990 && closed.values().all(|times| *times == 1), "{closed:?}");
}

#[tokio::test]
async fn a_payment_at_the_moment_of_the_closing_is_either_in_time_or_too_late() {
    let mut events = String::new();
    for order in 0..300 {
        events += &event(order, order, "placed");
        events += &event(order + 199 + order % 4, order, "paid");
    }
    let (orders, ledger) = (file_with("race.jsonl", &events), file("race.ledger"));
    let ended = run("order_timeout", &[&orders, "--timeout", "200ms", "--json", "--ledger", &ledger]).await;
    assert!(ended.status.success(), "{ended:?}");
    let (closed, in_time) = (entries(&ledger, "closed"), entries(&ledger, "ended"));
    assert_eq!(closed.len() + in_time.len(), 300);
    assert_eq!(entries(&ledger, "too_late").into_keys().collect::<Vec<_>>(), closed.into_keys().collect::<Vec<_>>());
}

/// Shows that the other tests can fail: the ledger here breaks every rule.
#[tokio::test]
async fn a_broken_rule_is_reported_and_the_program_exits_with_1() {
    let mut broken = json!({ "entry": "started", "at_ms": 0 }).to_string() + "\n";
    for order in 1..=4 {
        writeln!(broken, "{}", json!({ "entry": "placed", "order": order, "at_ms": 0, "due_ms": 1000 })).unwrap();
    }
    let closed = |order: u64, at_us: u64| {
        json!({ "entry": "closed", "order": order, "fence": 7, "due_ms": 1000, "at_us": at_us }).to_string() + "\n"
    };
    broken += &closed(1, 999_999);
    broken += &closed(2, 1_000_000);
    writeln!(broken, "{}", json!({ "entry": "ran_again", "order": 2, "fence": 8 })).unwrap();
    writeln!(broken, "{}", json!({ "entry": "ended", "order": 3, "event": "paid" })).unwrap();
    broken += &closed(3, 1_000_000);
    // A job that was added again once may run again once.
    writeln!(broken, "{}", json!({ "entry": "resumed", "order": 4 })).unwrap();
    broken += &closed(4, 1_000_000);
    writeln!(broken, "{}", json!({ "entry": "ran_again", "order": 4, "fence": 8 })).unwrap();
    writeln!(broken, "{}", json!({ "entry": "ran_again", "order": 4, "fence": 9 })).unwrap();
    let (orders, ledger) = (file_with("none.jsonl", ""), file_with("broken.ledger", &broken));
    let ended = run("order_timeout", &[&orders, "--json", "--ledger", &ledger]).await;
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    for rule in ["closed early: 1", "closed twice: 2", "closed although paid, cancelled or never placed: 1"] {
        assert!(ended.stdout.contains(&format!("WRONG: {rule}\n")), "{rule}\n{}", ended.stdout);
    }
    assert!(ended.stdout.contains("run again after a restart       1\n"), "{}", ended.stdout);
    assert_eq!(summary(&ended), json!({ "placed": 4, "closed": 4, "deleted": 1, "early": 1, "twice": 2 }));
}

#[tokio::test]
async fn a_line_of_the_ledger_that_was_cut_by_a_crash_is_dropped() {
    let ledger =
        file_with("torn.ledger", "{\"entry\":\"placed\",\"order\":1,\"at_ms\":0,\"due_ms\":1}\n{\"entry\":\"clo");
    let orders = file_with("nothing.jsonl", "");
    let ended = run("order_timeout", &[&orders, "--json", "--ledger", &ledger]).await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(summary(&ended), json!({ "placed": 1, "closed": 1, "deleted": 0, "early": 0, "twice": 0 }));
}

#[tokio::test]
async fn a_command_line_mistake_prints_the_usage_and_exits_with_2() {
    for (arguments, mistake) in [
        (&["--sped", "2"][..], "unexpected argument '--sped'"),
        (&["--speed", "fast"], "'fast' for '--speed <FACTOR>': expected a number from 0.01 to 1000"),
        (&["--timeout", "8"], "'8' for '--timeout <TIME>': "),
        (&["--ledger"], "a value is required for '--ledger <PATH>'"),
        (&["--generate", "0"], "0 is not in 1..=10000000"),
        (&["--generate", "5", "--json"], "cannot be used with one or more of the other"),
        (&["a.jsonl", "b.jsonl"], "unexpected argument 'b.jsonl'"),
    ] {
        let ended = run("order_timeout", arguments).await;
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(ended.stderr.contains(mistake) && ended.stderr.contains("--help"), "{mistake}: {}", ended.stderr);
    }
    let help = run("order_timeout", &["--help"]).await;
    assert!(help.status.success() && help.stdout.contains("Usage: order_timeout [OPTIONS] [FILE]"), "{help:?}");
}

#[tokio::test]
async fn an_error_about_a_missing_file_names_it() {
    let ended = run("order_timeout", &["no-such-file.jsonl"]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("no-such-file.jsonl: "), "{}", ended.stderr);
}
