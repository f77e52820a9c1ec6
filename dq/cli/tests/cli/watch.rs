//! `dq watch`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use dq_tests::redis::RedisServer;

use crate::program::{done, fails};

#[test]
fn watch_prints_a_line_for_each_event_as_it_happens() {
    let server = RedisServer::start();
    let url = server.url();
    let add = |id: &str| done(&["--store", &url, "--app", "shop", "add", "mails", "{}", "--id", id], "");
    let mut watching = Command::new(env!("CARGO_BIN_EXE_dq"))
        .args(["--store", &url, "--app", "shop", "--json", "watch", "mails", "--count", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"listening":true}"#);
    add("m:1");
    let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&line["id"], &line["event"]), (&"m:1".into(), &"added".into()), "{line}");
    assert_eq!(line["due"].as_u64(), Some(line["due"].as_u64().unwrap().max(line["at"].as_u64().unwrap())));
    add("m:2");
    assert!(lines.next().unwrap().unwrap().contains(r#""id":"m:2""#));
    assert!(lines.next().is_none() && watching.wait().unwrap().success(), "it ends after two events");
}

#[test]
fn watch_refuses_a_file_store_and_says_why() {
    let words = ["cannot see the events of a `file:` store", "`dq top`"];
    fails(1, &["--store", "file:/nowhere/at-all", "--app", "shop", "watch", "mails"], "", &words);
}
