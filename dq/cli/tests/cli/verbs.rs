//! The verbs on a server and on a directory.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dq::job::{AppName, TopicKey, TopicName};
use dq::store::redis::RedisStore;
use dq::store::{HistorySetting, Store};
use dq_tests::redis::RedisServer;

use crate::in_process::{Shop, answered, ran};
use crate::program::{export_of, topic};

/// A terminal would obey some of this.
const HOSTILE: &str = "the bank \\u001b[2J\\u009b31m\\u202e is down\\n\\r\\u007f";

fn job(id: &str, state: &str, at: u64, more: &str) -> String {
    let payload = format!("{{\"order\":\"\u{202e}{id}\"}}");
    format!(r#"{{"job":{{"topic":"orders","id":"{id}","state":"{state}","at":{at}{more},"payload":{payload}}}}}"#)
}

/// Jobs in every state that an import can make.
fn a_day() -> String {
    let failed = format!(
        r#","metadata":{{"attempts":3,"cause":"error","error":"{HOSTILE}","headers":[["h\u0007","v\u009b"]]}}"#
    );
    let mut lines = vec![topic("mails"), topic("orders")];
    lines.extend((0..5).map(|n| job(&format!("due{n}"), "delayed", 1_763_000_000_000 + n, "")));
    lines.extend((0..250).map(|n| job(&format!("later{n:03}"), "delayed", 4_000_000_000_000 + n, "")));
    lines.extend((0..150).map(|n| job(&format!("dead{n:03}"), "dead", 1_763_000_000_000 + n, &failed)));
    lines.push(job("parked\u{202e}", "unacked", 1_763_000_000_000, ""));
    lines.push(job("done", "done", 4_000_000_000_000, ",\"metadata\":{\"retain\":1000}"));
    export_of(&lines)
}

fn fill(shop: &Shop, name: &str) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.jsonl"));
    std::fs::File::create(&path).unwrap().write_all(a_day().as_bytes()).unwrap();
    shop.wrote(&["import", path.to_str().unwrap()]);
}

/// Tries something on a server, and on a directory.
fn on_each_store(name: &str, test: impl Fn(&Shop)) {
    let server = RedisServer::start();
    let shop = Shop(server.url());
    fill(&shop, name);
    test(&shop);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let shop = Shop(format!("file:{}", directory.display()));
    fill(&shop, name);
    test(&shop);
}

/// Every verb that only looks.
const LOOKS: [&[&str]; 14] = [
    &["topics"],
    &["topics", "--cursor", "mails"],
    &["topic", "orders"],
    &["nodes", "orders"],
    &["jobs", "orders"],
    &["jobs", "orders", "--state", "dead", "--error", "bank"],
    &["jobs", "orders", "--state", "unacked"],
    &["show", "orders", "dead007"],
    &["show", "orders", "dead007", "--payload"],
    &["why", "orders", "due3"],
    &["timeline", "orders"],
    &["schedules", "list", "orders"],
    &["groups", "list", "orders"],
    &["sets", "orders"],
];

#[test]
fn no_verb_writes_a_raw_control_character_and_json_is_json() {
    on_each_store("looks", |shop| {
        for words in LOOKS {
            let texts = [shop.wrote(words), shop.wrote(&[words, &["--json"]].concat())];
            for text in &texts {
                let is_raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
                assert!(!text.contains(is_raw), "{words:?}: {text:?}");
            }
            shop.json(words);
        }
        assert!(shop.wrote(&["show", "orders", "dead007"]).contains("\\u{1b}[2J"));
        let shown = &shop.json(&["show", "orders", "dead007", "--payload"])[0];
        assert_eq!(shown["payload"]["order"], "\u{202e}dead007");
        assert!(shown["error"].as_str().unwrap().contains("\u{1b}[2J"));
    });
}

#[test]
fn a_payload_is_shown_only_if_that_is_asked_for() {
    on_each_store("payload", |shop| {
        for words in [["show", "orders", "dead007"], ["why", "orders", "dead007"]] {
            assert!(!shop.wrote(&words).contains("order\""), "{words:?}");
            assert!(shop.json(&words)[0].get("payload").is_none());
        }
        assert!(
            shop.wrote(&["show", "orders", "dead007", "--payload"])
                .contains(r#"payload   {"order":"\u{202e}dead007"}"#)
        );
    });
}

#[test]
fn pages_lead_on_and_filters_say_how_far_they_looked() {
    on_each_store("pages", |shop| {
        let page = shop.json(&["jobs", "orders"]);
        let next = page.last().unwrap()["page"]["next"].as_str().unwrap().to_owned();
        assert_eq!((page.len(), page[0]["id"].as_str(), page[5]["id"].as_str()), (101, Some("due0"), Some("later000")));
        let second = shop.json(&["jobs", "orders", "--cursor", &next]);
        assert_eq!(second[0]["id"], "later095");
        let all = shop.json(&["jobs", "orders", "--all"]);
        assert_eq!(all.iter().filter(|line| line.get("id").is_some()).count(), 255);
        let some = shop.json(&["jobs", "orders", "--id-prefix", "later24"]);
        assert_eq!((some.len(), some[10]["page"]["looked_at"].as_u64()), (11, Some(255)));
        let due = shop.json(&["jobs", "orders", "--until", "now"]);
        assert_eq!(due.len(), 6);
        let dead = ["jobs", "orders", "-s", "dead", "--header", "h\u{7}=v\u{9b}", "--attempts", "3"];
        assert_eq!(shop.json(&dead).len(), 101);
        assert_eq!(shop.json(&[&dead[..], &["--error", "no such text"]].concat()).len(), 1);
    });
}

#[test]
fn a_job_is_added_changed_and_deleted() {
    on_each_store("one", |shop| {
        shop.wrote(&["add", "orders", r#"{"a":1}"#, "--id", "new", "--delay", "1h", "--header", "a=b"]);
        let again = shop.ran(&["add", "orders", "1", "--id", "new"]);
        assert!(again.code == 1 && again.error.contains("`--replace`"), "{again:?}");
        shop.wrote(&["add", "orders", "[2]", "--id", "new", "--at", "2030-01-01T00:00:00Z", "--replace"]);
        let shown = &shop.json(&["show", "orders", "new", "--payload"])[0];
        assert_eq!((&shown["payload"][0], &shown["at"]), (&2.into(), &1_893_456_000_000_u64.into()));
        shop.wrote(&["run-now", "orders", "new"]);
        shop.wrote(&["reschedule", "orders", "new", "--at", "2031-01-01T00:00:00Z"]);
        assert_eq!(shop.json(&["show", "orders", "new"])[0]["at"], 1_924_992_000_000_u64);
        let refused = shop.ran(&["delete", "orders", "new"]);
        assert!(refused.code == 4 && refused.error.contains("`--yes`"), "{refused:?}");
        shop.wrote(&["show", "orders", "new"]);
        assert_eq!(shop.json(&["delete", "orders", "new", "--yes"])[0]["found"], "delayed");
        for words in [
            &["show", "orders", "new"][..],
            &["why", "orders", "new"],
            &["run-now", "orders", "new"],
            &["requeue", "orders", "new"],
        ] {
            let ran = shop.ran(words);
            assert!(ran.code == 3 && ran.error.contains("has no job `new`"), "{words:?}: {ran:?}");
        }
        shop.wrote(&["requeue", "orders", "dead000"]);
        let waits = shop.ran(&["requeue", "orders", "dead000"]);
        assert!(waits.code == 1 && waits.error.contains("was not requeued: it is delayed"), "{waits:?}");
    });
}

#[test]
fn a_pipe_gets_colours_only_if_it_asks_and_no_live_picture() {
    on_each_store("pipe", |shop| {
        assert!(!shop.wrote(&["topics"]).contains('\u{1b}'));
        let coloured = shop.wrote(&["topics", "--color", "always"]);
        assert!(coloured.contains("\u{1b}["), "dead jobs are an alarm: {coloured}");
        let refused = shop.ran(&["top"]);
        assert!(refused.code == 2 && refused.error.contains("`dq top` needs a terminal"), "{refused:?}");
    });
}

#[test]
fn many_jobs_are_changed_only_after_a_yes() {
    on_each_store("many", |shop| {
        let dead = |shop: &Shop| shop.json(&["topic", "orders"])[0]["dead"].as_u64();
        let requeue = ["requeue", "orders", "--error", "bank"];
        let refused = shop.ran(&requeue);
        assert_eq!(refused.code, 4, "{refused:?}");
        assert!(
            refused.error.contains("requeue 100 or more dead jobs (100 of 150 looked at) of topic orders"),
            "{refused:?}"
        );
        let no = answered(&shop.words(&requeue), "no\n");
        assert!(no.code == 4 && no.error.contains("was not confirmed"), "{no:?}");
        assert_eq!(dead(shop), Some(150));
        let few = ["delete", "orders", "--state", "dead", "--id-prefix", "dead14"];
        assert_eq!(answered(&shop.words(&few), "y\n").out, "deleted 10 jobs of 150 looked at\n");
        assert_eq!(shop.wrote(&[&requeue[..], &["--yes"]].concat()), "requeued 140 jobs of 140 looked at\n");
        assert_eq!(dead(shop), Some(0));
        let later = shop.json(&["reschedule", "orders", "--id-prefix", "later", "--at", "2032-01-01T00:00:00Z", "-y"]);
        assert_eq!((&later[0]["changed"], &later[0]["is_done"]), (&250.into(), &true.into()));
        assert_eq!(shop.json(&["run-now", "orders", "--id-prefix", "later00", "-y"])[0]["changed"], 10);
        for words in [&["requeue", "orders"][..], &["requeue", "orders", "--all", "--state", "delayed"]] {
            assert_eq!(shop.ran(words).code, 2, "{words:?}");
        }
    });
}

#[test]
fn a_pause_says_who_and_why_and_a_resume_ends_it() {
    on_each_store("pause", |shop| {
        shop.wrote(&["pause", "orders", "--reason", "bank \u{1b}[1m", "--for", "2h", "--by", "ann\u{202e}@desk"]);
        let said = shop.wrote(&["why", "orders", "due1"]);
        assert!(said.contains("by ann\\u{202e}@desk: bank \\u{1b}[1m"), "{said}");
        assert!(shop.wrote(&["topics"]).contains("paused by ann\\u{202e}@desk"));
        shop.wrote(&["drain", "orders", "--reason", "moving"]);
        let by = shop.json(&["topic", "orders"])[0]["state"]["drain"]["by"].as_str().unwrap().to_owned();
        assert!(by.contains('@'), "{by}");
        let added = shop.ran(&["add", "orders", "1"]);
        assert_eq!(added.code, 1, "{added:?}");
        assert_eq!(shop.wrote(&["resume", "orders"]), "orders runs again and takes jobs; it was paused and draining\n");
        assert_eq!(shop.wrote(&["resume", "orders"]), "orders was neither paused nor draining\n");
    });
}

#[test]
fn what_is_unknown_exits_with_3_and_what_may_come_first_with_0() {
    on_each_store("unknown", |shop| {
        let unknown: [&[&str]; 12] = [
            &["topic", "typo"],
            &["nodes", "typo"],
            &["jobs", "typo"],
            &["timeline", "typo"],
            &["doctor", "typo"],
            &["resume", "typo"],
            &["requeue", "typo", "--all", "-y"],
            &["groups", "list", "typo"],
            &["groups", "resume", "orders", "typo"],
            &["sets", "typo"],
            &["sets", "orders", "typo"],
            &["schedules", "list", "typo"],
        ];
        for words in unknown {
            let ran = shop.ran(words);
            assert!(ran.code == 3 && ran.error.contains("typo"), "{words:?}: {ran:?}");
            assert_eq!(shop.ran(&[words, &["--json"]].concat()).code, 3, "{words:?}");
        }
        for words in [&["limit", "new"][..], &["pause", "new", "--reason", "x"], &["topic", "new"], &["resume", "new"]]
        {
            shop.wrote(words);
        }
        let told = shop.wrote(&["why", "orders", "dead001"]);
        assert!(told.ends_with("; requeue it to run it again\n    dq requeue orders dead001\n"), "{told}");
    });
}

#[test]
fn a_limit_of_what_runs_is_set_and_taken_away() {
    on_each_store("limit", |shop| {
        let set =
            shop.json(&["limit", "orders", "--cluster-concurrency", "3", "--reason", "the bank asked", "--by", "anna"]);
        let now = &set[0]["now"][0];
        assert_eq!(
            (&now["kind"], &now["value"], &now["by"]),
            (&"cluster_concurrency".into(), &3.into(), &"anna".into())
        );
        let both = shop.wrote(&["limit", "orders", "--cluster-concurrency", "4", "--max-waiting", "500"]);
        let [runs, waits] = both.lines().collect::<Vec<_>>().try_into().unwrap();
        assert!(runs.starts_with("cluster_concurrency: 4 jobs at a time on all nodes, set by "), "{both}");
        assert!(runs.contains("; before: 3 jobs at a time on all nodes, set by anna at "), "{both}");
        assert!(runs.ends_with(": the bank asked"), "{both}");
        assert!(waits.starts_with("max_waiting: 500 waiting jobs, set by "), "{both}");
        assert_eq!(shop.json(&["topic", "orders"])[0]["state"]["limits"][1]["value"], 500);
        let cleared = shop.wrote(&["limit", "orders", "--clear", "cluster_concurrency"]);
        assert!(cleared.starts_with("cluster_concurrency: as in the code; before: 4 jobs "), "{cleared}");
        let shown = shop.wrote(&["limit", "orders"]);
        assert!(
            shown.starts_with("cluster_concurrency: as in the code\nrate: as in the code\nmax_waiting: 500 "),
            "{shown}"
        );
        let rate = shop.wrote(&["limit", "orders", "--rate", "1000/h, burst 50"]);
        assert!(rate.starts_with("rate: 1000/h, burst 50 on all nodes, set by "), "{rate}");
        assert_eq!(shop.json(&["topic", "orders"])[0]["state"]["limits"][0]["value"], "1000/h, burst 50");
        assert_eq!(shop.json(&["limit", "orders"])[0]["now"][1]["value"], 500);
        let none = shop.ran(&["limit", "orders", "--cluster-concurrency", "0"]);
        assert!(none.code == 1 && none.error.contains("run at a time is 0; the least is 1"), "{none:?}");
        let groups = shop.wrote(&["limit", "orders", "--group-max-waiting", "1"]);
        assert!(groups.starts_with("group_max_waiting: 1 waiting jobs of each group, set by "), "{groups}");
        shop.wrote(&["add", "orders", "1", "--group", "a"]);
        assert_eq!(shop.ran(&["add", "orders", "1", "--group", "a"]).code, 1);
        shop.wrote(&["limit", "orders", "--clear", "group_max_waiting"]);
        assert!(shop.wrote(&["topics"]).contains("/500"));
        shop.wrote(&["add", "orders", "1"]);
        shop.wrote(&["limit", "orders", "--max-waiting", "1"]);
        assert!(shop.wrote(&["topics"]).contains("full: adds are refused"));
        assert_eq!(shop.ran(&["add", "orders", "1"]).code, 1);
    });
}

#[test]
fn schedules_are_listed_paused_resumed_and_removed() {
    on_each_store("schedules", |shop| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let provider = dq::Provider::connect("shop", shop.0.as_str()).await.unwrap();
            let orders = provider.topic("orders").unwrap();
            orders.add_schedule_json("nightly", "1").cron("0 3 * * *", "UTC").await.unwrap();
            orders.add_schedule_json("often", "1").every("10m").await.unwrap();
            provider.close().await;
        });
        drop(runtime);
        let names: Vec<_> = shop.json(&["schedules", "list", "orders"]);
        assert_eq!((&names[0]["name"], &names[1]["times"]), (&"nightly".into(), &"every 10m 00s".into()));
        shop.wrote(&["schedules", "pause", "orders", "nightly", "--reason", "audit", "--by", "ann"]);
        let listed = shop.wrote(&["schedules", "list", "orders"]);
        assert!(listed.contains("0 3 * * *, UTC") && listed.contains("paused by ann: audit"), "{listed}");
        let paused = &shop.json(&["schedules", "list", "orders"])[0];
        assert_eq!((&paused["paused"], &paused["paused_by"]), (&"audit".into(), &"ann".into()));
        shop.wrote(&["schedules", "resume", "orders", "nightly"]);
        assert_eq!(shop.ran(&["schedules", "remove", "orders", "nightly"]).code, 4);
        shop.wrote(&["schedules", "remove", "orders", "nightly", "-y"]);
        assert_eq!(shop.ran(&["schedules", "pause", "orders", "nightly", "--reason", "x"]).code, 3);
        assert_eq!(shop.ran(&["schedules", "remove", "orders", "nightly", "-y"]).code, 3);
        assert_eq!(shop.json(&["schedules", "list", "orders"]).len(), 1);
    });
}

#[test]
fn groups_are_listed_paused_and_resumed() {
    on_each_store("groups", |shop| {
        let grouped = job("g", "delayed", 1_763_000_000_010, r#","metadata":{"group":"customer-42","group_order":1}"#);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("grouped.jsonl");
        std::fs::write(&path, export_of(&[topic("orders"), grouped])).unwrap();
        shop.wrote(&["import", path.to_str().unwrap()]);
        let groups = shop.json(&["groups", "list", "orders"]);
        assert_eq!(groups[0]["group"], "customer-42");
        assert_eq!(
            (groups.len(), &groups[0]["waiting"], &groups[0]["stopped_by"]),
            (1, &1.into(), &serde_json::Value::Null)
        );
        assert!(shop.wrote(&["groups", "list", "orders"]).contains("customer-42"));
        assert!(shop.wrote(&["groups", "list", "orders", "--cursor", "customer-42"]).is_empty());
        let pause = ["groups", "pause", "orders", "customer-42", "--reason", "audit", "--by", "ann"];
        assert_eq!(
            shop.wrote(&pause),
            "customer-42 is paused by ann until `dq groups resume orders customer-42`: audit\n"
        );
        assert!(shop.wrote(&["groups", "list", "orders"]).contains("paused by ann: audit"));
        let paused = &shop.json(&["groups", "list", "orders"])[0]["pause"];
        assert_eq!((&paused["by"], &paused["reason"]), (&"ann".into(), &"audit".into()));
        let resume = ["groups", "resume", "orders", "customer-42"];
        assert_eq!(shop.wrote(&resume), "customer-42 runs again; it was paused by ann: audit\n");
        assert_eq!(shop.wrote(&resume), "customer-42 waits for no job\n");
        assert_eq!(
            shop.json(&["groups", "resume", "orders", "customer-42"])[0]["passed"].as_array().map(Vec::len),
            Some(0)
        );
    });
}

#[test]
fn completions_and_man_pages_name_every_verb() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(crate::in_process::wrote(&["completions", shell]).contains("run-now"), "{shell}");
    }
    assert!(crate::in_process::wrote(&["man"]).contains("dq"));
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    crate::in_process::wrote(&["man", directory.to_str().unwrap()]);
    for page in ["dq.1", "dq-requeue.1", "dq-schedules-pause.1"] {
        assert!(directory.join(page).is_file(), "{page}");
    }
}

/// What opens a connection and a store, and asks for nothing of a topic.
const OPENING: [&str; 9] = ["HELLO", "CLIENT", "INFO", "PING", "TIME", "SCRIPT", "FUNCTION", "CONFIG", "SELECT"];

#[test]
fn every_verb_keeps_to_20_commands_of_the_store_a_page() {
    let server = RedisServer::start();
    let shop = Shop(server.url());
    fill(&shop, "commands");
    let lines = (0..30).flat_map(|n| {
        let name = format!("t{n:02}");
        [topic(&name), job("a", "dead", 1, "").replace("\"orders\"", &format!("\"{name}\""))]
    });
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("topics.jsonl");
    std::fs::write(&path, export_of(&lines.collect::<Vec<_>>())).unwrap();
    shop.wrote(&["import", path.to_str().unwrap()]);
    let changes: [&[&str]; 9] = [
        &["add", "orders", "1", "--id", "new"],
        &["run-now", "orders", "later001"],
        &["reschedule", "orders", "later002", "--delay", "1h"],
        &["requeue", "orders", "dead001"],
        &["delete", "orders", "dead002", "-y"],
        &["pause", "orders", "--reason", "x"],
        &["drain", "orders", "--reason", "x"],
        &["resume", "orders"],
        &["requeue", "orders", "--id-prefix", "dead00", "-y"],
    ];
    for words in LOOKS {
        // The server has no script yet, so the first use of each takes one command more.
        shop.wrote(words);
    }
    for words in LOOKS.iter().chain(&changes) {
        let mut monitor = dq_tests::Monitor::start(&server);
        shop.wrote(words);
        server.command(&["ECHO", "the end"]);
        let seen = monitor.until("the end");
        // A list of topics also asks of each name whether it holds anything, all in one write.
        let is_asked =
            |line: &&String| !OPENING.iter().chain(&["EXISTS"]).any(|opening| line.contains(&format!("\"{opening}\"")));
        let asked = seen.iter().filter(is_asked).count();
        assert!((1..=20).contains(&asked), "{words:?}: {asked} commands: {seen:#?}");
    }
}

#[test]
fn a_verb_has_no_argument_of_the_frame() {
    use clap::CommandFactory;
    fn check(command: &clap::Command, frame: &[String]) {
        for verb in command.get_subcommands() {
            for argument in verb.get_arguments() {
                assert!(!frame.contains(&argument.get_id().to_string()), "{} {}", verb.get_name(), argument.get_id());
            }
            check(verb, frame);
        }
    }
    let command = dq_cli::arguments::Arguments::command();
    command.clone().debug_assert();
    let frame: Vec<_> = command.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    assert!(frame.len() >= 8, "{frame:?}");
    check(&command, &frame);
    assert_eq!(ran(&["topics", "--store", "redis://127.0.0.1:1", "--app", "shop"]).code, 1);
}

/// A topic keeps histories, as a node with `history_max = 20` and `history_retention = "1d"` tells the store.
fn keep_histories(shop: &Shop, topic: &str) {
    let key = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new(topic).unwrap() };
    let setting = HistorySetting { moves: 20, after: Duration::from_secs(86_400) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { RedisStore::new(&shop.0).unwrap().keep_history(&key, setting).await.unwrap() });
}

#[test]
fn show_and_why_tell_what_happened_and_who_deleted_a_job() {
    let server = RedisServer::start();
    let shop = Shop(server.url());
    keep_histories(&shop, "orders");
    shop.wrote(&["add", "orders", "{}", "--id", "a", "--after", "1h"]);
    shop.wrote(&["reschedule", "orders", "a", "--delay", "2h"]);
    let shown = shop.wrote(&["show", "orders", "a"]);
    assert!(shown.contains("\nhistory   ") && shown.contains(" added, due "), "{shown}");
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "unknown".into());
    assert!(shown.contains(&format!(", by {user}@")), "{shown}");
    shop.wrote(&["delete", "orders", "a", "--yes", "--by", "anna\u{1b}[2J"]);
    let told = shop.wrote(&["why", "orders", "a"]);
    assert!(told.starts_with("it was deleted by anna") && told.lines().count() == 4, "{told}");
    assert!(!told.contains('\u{1b}'), "{told:?}");
    let told = shop.json(&["why", "orders", "a"]).remove(0);
    assert_eq!((&told["job"], &told["reasons"][0]["reason"]), (&serde_json::Value::Null, &"gone".into()), "{told}");
    assert_eq!((&told["history"][2]["event"], &told["history"][2]["by"]), (&"deleted".into(), &"anna\u{1b}[2J".into()));
    assert_eq!(shop.ran(&["show", "orders", "a"]).code, shop.ran(&["show", "orders", "b"]).code);
}

#[test]
fn an_id_stays_taken_for_its_time_after_its_job_is_gone() {
    on_each_store("taken", |shop| {
        let once = ["add", "orders", "1", "--id", "once", "--delay", "1h", "--unique-for"];
        let add = |more: &[&str]| shop.ran(&[&once[..], more].concat());
        assert_eq!(add(&["1d"]).out, "added once\n");
        assert_eq!((add(&["1d"]).code, add(&["1d", "--keep"]).out), (1, "kept once\n".into()));
        let other = shop.ran(&["delete", "orders", "once", "--if-version", "1", "--yes"]);
        assert!(other.code == 1 && other.error.contains("its version is 0"), "{other:?}");
        shop.wrote(&["delete", "orders", "once", "--if-version", "0", "--yes"]);
        let refused = add(&["1d"]);
        assert!(refused.code == 1 && refused.error.contains("was deleted, and its id stays taken"), "{refused:?}");
        assert_eq!(
            shop.json(&[&once[..], &["1d", "--keep"]].concat())[0],
            serde_json::json!({ "id": "once", "replaced": false, "kept": true })
        );
        let short = ["add", "orders", "1", "--id", "short", "--unique-for", "1s"];
        let begin = Instant::now();
        assert_eq!(shop.wrote(&short), "added short\n");
        shop.wrote(&["delete", "orders", "short", "--yes"]);
        // It is free once its second is over, and not before. A busy machine may need that long to come here.
        while shop.ran(&short).code == 1 {}
        assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
        assert_eq!(shop.json(&["show", "orders", "short"])[0]["id"], "short");
    });
}
