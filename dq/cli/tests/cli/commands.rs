//! `dq export` and `dq import` between servers.

use std::io::Write;
use std::process::{Command, Stdio};

use dq::provider::Provider;
use dq_tests::redis::RedisServer;

use crate::program::{done, export_of, fails, job, run, start, topic};

/// The shop with jobs in every state, with all that a store keeps of one.
fn a_day() -> String {
    let lines = [
        r#"{"topic":{"topic":"mails","fence":1763000000000007}}"#,
        r#"{"job":{"topic":"mails","id":"m:1","state":"delayed","at":1763000002000,"payload":null}}"#,
        r#"{"job":{"topic":"mails","id":"m:2","state":"delayed","at":1763000002001,"crashes":2,"metadata":{"attempts":3,"cause":"timeout","exhausted":true,"delay":2000,"expires_at":5000000000000,"retain":60000,"retry":"1m, 5m","headers":[["a","b"],["a","ü"]],"error":"no \"luck\""},"payload":[1, 2.50,"x"]}}"#,
        r#"{"topic":{"topic":"orders","fence":1763000000000001}}"#,
        r#"{"job":{"topic":"orders","id":"7","state":"delayed","at":4000000000000,"payload":{ "order" : 7 }}}"#,
        r#"{"job":{"topic":"orders","id":"7 b","state":"unacked","at":1763000000500,"crashes":1,"metadata":{"parked_by":1763000000000001},"payload":"text"}}"#,
        r#"{"job":{"topic":"orders","id":"dead","state":"dead","at":1763000000501,"metadata":{"attempts":6,"cause":"place lost","exhausted":true},"payload_base64":"CgD/"}}"#,
        r#"{"job":{"topic":"orders","id":"odd","state":"dead","at":1763000000502,"record_base64":"d2hhdD8="}}"#,
        r#"{"job":{"topic":"orders","id":"done","state":"done","at":4000000000001,"metadata":{"retain":1000},"payload":{}}}"#,
        r#"{"job":{"topic":"orders","id":"7","state":"delayed","broadcast":true,"at":4000000000000,"payload":{ "order" : 7 }}}"#,
    ];
    export_of(&lines.map(str::to_owned))
}

const BY_STATE: &str = ": 3 delayed, 1 unacked, 2 dead, 1 done, 1 broadcast\n";

/// The jobs of a topic, as an export of its app has them.
fn exported(server: &RedisServer) -> String {
    done(&["export", &server.url(), "--app", "shop"], "").stdout
}

#[test]
fn a_topic_moves_to_another_server_and_back_by_a_pipe() {
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let imported = done(&["import", &old.url()], &a_day());
    assert_eq!((imported.stdout.as_str(), imported.stderr.as_str()), ("", "imported 8 jobs\n"));
    let exported_once = done(&["export", &old.url(), "--app", "shop"], "");
    assert_eq!(exported_once.stdout, a_day());
    assert_eq!(exported_once.stderr, format!("exported 8 jobs of 2 topics{BY_STATE}"));

    let program = env!("CARGO_BIN_EXE_dq");
    let pipe = |from: &RedisServer, to: &RedisServer| {
        let line = format!("{program} export {} --app shop | {program} import {}", from.url(), to.url());
        let status = Command::new("sh").args(["-c", &line]).stderr(Stdio::null()).status().unwrap();
        assert!(status.success());
    };
    pipe(&old, &new);
    assert_eq!(exported(&new), a_day());
    old.command(&["FLUSHALL"]);
    pipe(&new, &old);
    assert_eq!(exported(&old), a_day());
}

#[test]
fn a_provider_of_the_new_server_finds_what_another_one_added_on_the_old_server() {
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let provider = Provider::connect("shop", old.url()).await.unwrap();
        provider.topic("orders").unwrap().add_json(r#"{"order":7}"#).after("1h").id("7").await.unwrap();
        provider.close().await;
    });
    done(&["import", &new.url()], &exported(&old));
    runtime.block_on(async {
        let seen = |server: &RedisServer| {
            let url = server.url();
            async move {
                let provider = Provider::connect("shop", url).await.unwrap();
                format!("{:?}", provider.topic("orders").unwrap().get("7").await.unwrap().unwrap())
            }
        };
        assert_eq!(seen(&new).await, seen(&old).await);
    });
}

#[test]
fn an_import_that_is_repeated_adds_nothing() {
    let server = RedisServer::start();
    done(&["import", &server.url()], &a_day());
    let again = done(&["import", &server.url()], &a_day());
    let were_there = "8 were there already (4 delayed, 1 unacked, 2 dead, 1 done)";
    assert_eq!(again.stderr, format!("imported 0 jobs; {were_there}\n"));
    assert_eq!(exported(&server), a_day());
    let replaced = done(&["import", &server.url(), "--on-duplicate", "replace"], &a_day());
    assert_eq!(replaced.stderr, "imported 8 jobs, 8 of them in place of others\n");
    assert_eq!(exported(&server), a_day());
}

#[test]
fn a_job_that_is_there_stays_stops_the_import_or_is_replaced() {
    let server = RedisServer::start();
    let url = server.url();
    let (old, new) = (job("a", "dead"), job("a", "unacked"));
    done(&["import", &url], &export_of(&[topic("orders"), old.clone()]));
    let import = export_of(&[topic("orders"), job("b", "dead"), new.clone()]);
    let words =
        ["line 4: topic `orders` already has job `a`, which is dead; nothing is imported", "--on-duplicate keep"];
    fails(1, &["import", &url, "--on-duplicate", "reject"], &import, &words);
    assert_eq!(exported(&server), export_of(&[topic("orders"), old.clone()]), "nothing of the batch is done");
    done(&["import", &url, "--on-duplicate", "keep"], &import);
    assert_eq!(exported(&server), export_of(&[topic("orders"), old, job("b", "dead")]));
    done(&["import", &url, "--on-duplicate", "replace"], &import);
    assert_eq!(exported(&server), export_of(&[topic("orders"), new, job("b", "dead")]));
}

#[test]
fn topics_and_states_can_be_chosen_and_the_app_be_renamed() {
    let server = RedisServer::start();
    let url = server.url();
    done(&["import", &url], &a_day());
    let chosen = ["export", &url, "--app", "shop", "--topic", "orders", "--state", "dead", "--state", "broadcast"];
    let dead = done(&chosen, "");
    assert_eq!(dead.stderr, "exported 3 jobs of 1 topic: 2 dead, 1 broadcast\n");
    done(&["import", &url, "--app", "archive"], &dead.stdout);
    let renamed = done(&["export", &url, "--app", "archive"], "").stdout;
    assert_eq!(renamed, dead.stdout.replace("shop", "archive"));
    assert_eq!(done(&["export", &url, "--app", "nobody"], "").stderr, "app nobody has no topics: is that its name?\n");
    let of_topic = ["export", &url, "--app", "nobody", "--topic", "orders"];
    let nothing =
        fails(3, &of_topic, "", &["exported 0 jobs of 1 topic\n", "app `nobody` has nothing of topic `orders`"]);
    assert_eq!(done(&["import", &url], &nothing.stdout).stderr, "imported 0 jobs\n");
}

/// Makes job `running` of topic `orders` RUNNING on a node that is gone.
fn with_a_running_job(server: &RedisServer) -> String {
    done(&["import", &server.url()], &export_of(&[topic("orders"), job("running", "delayed"), job("a", "dead")]));
    let key = |name: &str| format!("dq:{{shop:orders}}:{name}");
    server.command(&["ZREM", &key("delayed"), "running"]);
    server.command(&["HSET", &key("running:gone"), "running", "1763000000000001:4000000000000"]);
    server.command(&["ZADD", &key("leases"), "1763000015000", "gone"]);
    export_of(&[topic("orders"), job("a", "dead"), job("running", "delayed")])
}

#[test]
fn running_jobs_are_exported_only_if_that_is_asked_for() {
    let server = RedisServer::start();
    let lines = with_a_running_job(&server);
    let export = ["export", &server.url(), "--app", "shop"];
    let refused =
        fails(1, &export, "", &["topic `orders` has 1 RUNNING jobs, and nothing was exported", "`--running`"]);
    assert_eq!(refused.stdout, "");
    let all = done(&[&export[..], &["--running"]].concat(), "");
    assert_eq!(all.stdout, lines);
    let dead = done(&[&export[..], &["--state", "dead"]].concat(), "");
    assert_eq!(dead.stdout, export_of(&[topic("orders"), job("a", "dead")]));
}

#[test]
fn an_import_does_not_replace_a_running_job_and_says_so() {
    let server = RedisServer::start();
    let lines = with_a_running_job(&server);
    let replace = ["import", &server.url(), "--on-duplicate", "replace"];
    let words =
        ["imported 1 job, 1 of them in place of others; 1 were there already (1 running)", "`orders` `running`"];
    fails(1, &replace, &lines, &words);
    done(&["import", &server.url()], &lines);
}

#[test]
fn a_job_that_lost_its_place_counts_as_running_and_is_warned_about() {
    let server = RedisServer::start();
    done(&["import", &server.url()], &export_of(&[topic("orders"), job("a", "dead")]));
    server.command(&["HSET", "dq:{shop:orders}:jobs", "lost", "x"]);
    fails(1, &["export", &server.url(), "--app", "shop"], "", &["topic `orders` has 1 RUNNING jobs"]);
    let warned = done(&["export", &server.url(), "--app", "shop", "--running"], "");
    let warning = "warning: topic `orders` changed while it was read (1 running jobs before, 0 read, 1 after)";
    assert!(warned.stderr.starts_with(warning), "{}", warned.stderr);
}

#[test]
fn an_import_that_loses_its_server_says_how_far_it_came_and_can_be_repeated() {
    let settings = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut server = RedisServer::start_with(&settings);
    let lines: Vec<_> = (0..2_500).map(|n| job(&format!("{n:04}"), "dead")).collect();
    let all = export_of(&[&[topic("orders")][..], &lines].concat());
    let (first, rest) = all.split_at(all.match_indices('\n').nth(1_100).unwrap().0);
    let mut child = start(&["import", &server.url(), "--wait", "0s"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(first.as_bytes()).unwrap();
    // Three batches are there, the fourth one is not full.
    while server.command(&["HLEN", "dq:{shop:orders}:jobs"]) != ":900" {}
    server.kill();
    // The program ends with the next batch, and need not read the rest.
    let _ = stdin.write_all(rest.as_bytes());
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    for words in ["cannot import into topic `orders`", "Run the same command again"] {
        assert!(stderr.contains(words), "{stderr}");
    }
    // The answer to the third batch may be lost with the server.
    let lines = [602, 902].map(|line| format!("the lines up to {line} are imported"));
    assert!(lines.iter().any(|words| stderr.contains(words)), "{stderr}");
    server.restart();
    let again = done(&["import", &server.url()], &all);
    assert_eq!(again.stderr, "imported 1,600 jobs; 900 were there already (900 dead)\n");
    assert_eq!(exported(&server), all);
}

#[test]
fn a_file_is_imported_like_stdin() {
    let server = RedisServer::start();
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("a-day.jsonl");
    std::fs::write(&path, a_day()).unwrap();
    assert_eq!(done(&["import", &server.url(), path.to_str().unwrap()], "").stderr, "imported 8 jobs\n");
    assert_eq!(exported(&server), a_day());
    let ended = run(&["import", &server.url(), "/no/such/file"], "");
    assert_eq!(ended.stderr, "dq: cannot open `/no/such/file`: No such file or directory (os error 2)\n");
}
