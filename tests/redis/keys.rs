//! Which keys the scripts touch, and that no command has keys of two slots of a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use dq::environment::TokioClock;
use dq_testing::conformance::run_all;
use dq_tests::Fixture;
use dq_tests::Monitor;
use dq_tests::redis::{Keyspace, RedisServer};

/// The words of a line of `MONITOR`, without their quotes. No key has a quote or a backslash.
fn words(line: &str) -> Vec<&str> {
    line.split_once("] ").expect("the time and the database").1.split('"').skip(1).step_by(2).collect()
}

/// The keys that a script of a client declares: `EVALSHA script count keys.. arguments..`.
fn declared<'a>(words: &[&'a str]) -> Option<BTreeSet<&'a str>> {
    let is_script = words.first().is_some_and(|name| matches!(name.to_ascii_uppercase().as_str(), "EVAL" | "EVALSHA"));
    is_script.then(|| words[3..].iter().take(words[2].parse().unwrap()).copied().collect())
}

/// The hash tags of the keys of a client's command. Channels are no keys.
fn tags<'a>(words: &[&'a str]) -> BTreeSet<&'a str> {
    let is_of_channels = words[0].to_ascii_uppercase().ends_with("SUBSCRIBE");
    let keys = words.iter().filter(|word| word.starts_with("dq-test:") && !is_of_channels);
    keys.filter_map(|key| Some(key.split_once('{')?.1.split_once('}')?.0)).collect()
}

/// A behaviour that takes 10 s under `MONITOR`, and calls no other scripts than the rest.
const LONGEST: &str = "far_jobs_may_come_in_any_order";

/// All other behaviours of the conformance suite run on one server, which reports each command.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_declare_their_keys_and_each_command_has_those_of_one_slot() {
    let server = RedisServer::start();
    let mut monitor = Monitor::start(&server);
    let reader = thread::spawn(move || monitor.all_until("the end"));
    let open = async || Fixture::redis_within(Keyspace::on_shared_server(server.url()));
    run_all(open, |name| name != LONGEST).await;
    server.command(&["ECHO", "the end"]);
    let lines = reader.join().unwrap();
    let (mut keys, mut is_of_a_test, mut touched, mut undeclared) = (BTreeSet::new(), false, 0, BTreeSet::new());
    let mut of_two_slots = BTreeSet::new();
    for line in &lines {
        let words = words(line);
        if !line.contains(" lua] ") && tags(&words).len() > 1 {
            of_two_slots
                .insert(words.iter().map(|word| word.chars().take(100).collect::<String>()).collect::<Vec<_>>());
        }
        if let Some(declared) = declared(&words) {
            (keys, is_of_a_test) = (declared, line.contains("'SCAN'")); // that removes a keyspace
        } else if !is_of_a_test && line.contains(" lua] ") && !words[0].eq_ignore_ascii_case("publish") {
            let of_topics = words[1..].iter().filter(|word| word.starts_with("dq-test:") && word.contains('{'));
            touched += of_topics.clone().count();
            undeclared.extend(of_topics.filter(|key| !keys.contains(*key)).map(|_| line));
        }
    }
    assert!(touched > 100_000, "{touched}");
    assert!(undeclared.is_empty(), "{undeclared:#?}");
    assert!(of_two_slots.is_empty(), "{of_two_slots:#?}");
}

/// A function of Lua has 200 locals at most. What the next feature needs must find room in each script, with the clock of the server and with
/// that of a test.
#[test]
fn every_script_has_room_for_sixty_more_locals() {
    let keyspace = Keyspace::create();
    let mut connection = keyspace.connect();
    let more: Vec<_> = (0..60).map(|n| format!("more_{n}")).collect();
    let mut loaded = 0;
    for store in [keyspace.store(), keyspace.store_under(Arc::new(TokioClock::at(1)))] {
        for script in store.scripts() {
            connection.command(&["SCRIPT", "LOAD", &format!("local {}\n{script}", more.join(", "))]);
            loaded += 1;
        }
    }
    assert!(loaded > 70, "{loaded}");
}
