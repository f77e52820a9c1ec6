//! Which keys the scripts touch.

use std::collections::BTreeSet;
use std::thread;

use dq_testing::conformance::run_all;
use dq_tests::Monitor;
use dq_tests::redis::{Keyspace, RedisFixture, RedisServer};

/// The words of a line of `MONITOR`, without their quotes. No key has a quote or a backslash.
fn words(line: &str) -> Vec<&str> {
    line.split_once("] ").expect("the time and the database").1.split('"').skip(1).step_by(2).collect()
}

/// The keys that a script of a client declares: `EVALSHA script count keys.. arguments..`.
fn declared<'a>(words: &[&'a str]) -> Option<BTreeSet<&'a str>> {
    let is_script = words.first().is_some_and(|name| matches!(name.to_ascii_uppercase().as_str(), "EVAL" | "EVALSHA"));
    is_script.then(|| words[3..].iter().take(words[2].parse().unwrap()).copied().collect())
}

/// Whether `key` is the leaf of a tree of far jobs whose key is declared.
fn is_leaf(key: &str, declared: &BTreeSet<&str>) -> bool {
    declared
        .iter()
        .any(|far| far.ends_with(":far") && key.strip_prefix(far).is_some_and(|bound| bound.starts_with(':')))
}

/// The topic of a key of histories.
fn topic_of_histories(key: &str) -> Option<&str> {
    key.strip_suffix(":history").or_else(|| key.strip_suffix(":history-ends"))
}

/// Whether `key` has the histories of a topic whose `meta` is declared: a step touches them only if that says so.
fn is_history(key: &str, declared: &BTreeSet<&str>) -> bool {
    let topic = topic_of_histories(key);
    topic.is_some_and(|topic| declared.iter().any(|meta| meta.strip_suffix(":meta") == Some(topic)))
}

/// Whether the command counts the far jobs of a topic whose `meta` is declared: an add to a topic with a limit of what waits does.
fn counts_far_jobs(words: &[&str], declared: &BTreeSet<&str>) -> bool {
    let topic = words[1].strip_suffix(":far-jobs").filter(|_| words[0] == "HLEN");
    topic.is_some_and(|topic| declared.iter().any(|meta| meta.strip_suffix(":meta") == Some(topic)))
}

/// The topic, if the command is one by which a step asks whether a job is gone before it writes its history.
fn asks_for_histories<'a>(words: &[&'a str]) -> Option<&'a str> {
    let key = words.get(1)?;
    match words[0] {
        "ZMSCORE" => key.strip_suffix(":done").or_else(|| key.strip_suffix(":broadcasts")),
        "HEXISTS" => key.strip_suffix(":jobs"),
        _ => None,
    }
}

/// The commands that touch keys that are not declared.
#[derive(Default)]
struct Undeclared<'a> {
    found: BTreeSet<&'a str>,
    /// Those of the present step that ask whether a job is gone.
    asked: Vec<(&'a str, &'a str)>,
}

impl<'a> Undeclared<'a> {
    /// A step begins: what the last one asked was for no history.
    fn begin(&mut self) {
        self.found.extend(self.asked.drain(..).map(|(_, line)| line));
    }

    fn add(&mut self, line: &'a str, words: &[&'a str]) {
        match asks_for_histories(words) {
            Some(topic) => self.asked.push((topic, line)),
            None => _ = self.found.insert(line),
        }
    }

    fn touch_histories(&mut self, key: &str) {
        self.asked.retain(|(topic, _)| Some(*topic) != topic_of_histories(key));
    }
}

/// A behaviour that takes 10 s under `MONITOR`, and calls no other scripts than the rest.
const LONGEST: &str = "far_jobs_may_come_in_any_order";

/// All other behaviours of the conformance suite run on one server, which reports each command.
#[tokio::test(flavor = "multi_thread")]
async fn every_key_a_script_touches_is_declared_or_follows_from_a_declared_one() {
    let server = RedisServer::start();
    let mut monitor = Monitor::start(&server);
    let reader = thread::spawn(move || monitor.all_until("the end"));
    let open = async || RedisFixture::within(Keyspace::on_shared_server(server.url()));
    run_all(open, |name| name != LONGEST).await;
    server.command(&["ECHO", "the end"]);
    let lines = reader.join().unwrap();
    let (mut keys, mut is_of_a_test, mut touched, mut undeclared) = (BTreeSet::new(), false, 0, Undeclared::default());
    for line in &lines {
        let words = words(line);
        if let Some(declared) = declared(&words) {
            (keys, is_of_a_test) = (declared, line.contains("'SCAN'")); // that removes a keyspace
            undeclared.begin();
        } else if !is_of_a_test && line.contains(" lua] ") && !words[0].eq_ignore_ascii_case("publish") {
            for key in words[1..].iter().filter(|word| word.starts_with("dq-test:") && word.contains('{')) {
                touched += 1;
                if is_history(key, &keys) {
                    undeclared.touch_histories(key);
                } else if !keys.contains(key) && !is_leaf(key, &keys) && !counts_far_jobs(&words, &keys) {
                    undeclared.add(line, &words);
                }
            }
        }
    }
    undeclared.begin();
    let undeclared = undeclared.found;
    assert!(touched > 100_000, "{touched}");
    assert!(undeclared.is_empty(), "{undeclared:#?}");
}
