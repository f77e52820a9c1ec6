//! `dq doctor` on a server that another program has changed, and on a directory.

use std::path::PathBuf;

use dq_tests::redis::RedisServer;

use crate::in_process::{Shop, answered};
use crate::program::done;

/// A server that keeps what it has, with three jobs that wait.
fn shop() -> (RedisServer, Shop) {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "appendonly", "yes"]);
    let shop = Shop(server.url());
    for id in ["1", "2", "3"] {
        shop.wrote(&["add", "orders", "{}", "--id", id, "--delay", "2m"]);
    }
    (server, shop)
}

fn damage(server: &RedisServer) {
    server.command(&["ZREM", "dq:{shop:orders}:delayed", "1"]);
    server.command(&["HSET", "dq:{shop:orders}:jobs", "2", "rubbish\u{1b}[2J"]);
}

#[test]
fn a_sound_store_is_said_to_be_sound() {
    let (_server, shop) = shop();
    let wrote = shop.wrote(&["doctor"]);
    assert!(wrote.starts_with("1 topic and ") && wrote.ends_with(" entries examined: nothing is wrong\n"), "{wrote}");
    assert!(shop.wrote(&["doctor", "orders"]).contains("nothing is wrong"));
    let end = &shop.json(&["doctor"])[0]["end"];
    assert_eq!((&end["findings"], &end["topics"]), (&0.into(), &1.into()));
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("doctor");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let shop = Shop(format!("file:{}", directory.display()));
    shop.wrote(&["add", "orders", "{}", "--delay", "2m"]);
    assert!(shop.wrote(&["doctor"]).contains("nothing is wrong"));
}

#[test]
fn findings_are_a_table_with_a_next_step_and_exit_with_5() {
    let (server, shop) = shop();
    damage(&server);
    let ran = shop.ran(&["doctor"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    for word in ["job-without-place", "orders/1", "mangled-record", "orders/2", "--repair: put it back", "By hand: "] {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
    assert!(ran.error.contains("2 findings; `dq doctor --repair` makes the repairs"), "{ran:?}");
    assert!(!ran.out.contains('\u{1b}'), "{ran:?}");
    let json = shop.ran(&["doctor", "--json"]);
    let lines: Vec<serde_json::Value> = json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((json.code, lines.len()), (5, 3), "{json:?}");
    assert_eq!(lines[0]["finding"]["code"], "job-without-place");
    assert_eq!((&lines[0]["finding"]["topic"], &lines[0]["finding"]["id"]), (&"orders".into(), &"1".into()));
    assert_eq!(lines[2]["end"]["findings"], 2);
}

#[test]
fn a_repair_asks_says_each_step_and_leaves_nothing() {
    let (server, shop) = shop();
    damage(&server);
    let changes = server.changes();
    let refused = shop.ran(&["doctor", "--repair"]);
    assert_eq!(refused.code, 4, "nobody can be asked: {refused:?}");
    assert_eq!(answered(&shop.words(&["doctor", "--repair"]), "n\n").code, 4);
    assert_eq!(server.changes(), changes);
    let ran = answered(&shop.words(&["doctor", "--repair"]), "y\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    for word in
        ["job-without-place orders/1: put it back", "mangled-record orders/2: make the job DEAD", "2 repaired; "]
    {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
    assert!(shop.wrote(&["doctor"]).contains("nothing is wrong"));
    assert_eq!(shop.json(&["jobs", "orders", "--state", "dead"]).len(), 3, "two jobs and the end of the page");
    assert_eq!(shop.json(&["jobs", "orders"]).len(), 2);
    assert!(shop.wrote(&["show", "orders", "1"]).contains("place lost"));
}

#[test]
fn what_needs_a_hand_is_left_and_said() {
    let (server, shop) = shop();
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    damage(&server);
    let ran = shop.ran(&["doctor", "--repair", "--yes"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("2 repaired; ") && ran.error.contains("1 finding; docs/guide/doctor.md"), "{ran:?}");
    assert!(ran.out.contains("evicts-jobs") && ran.out.contains("set `maxmemory-policy` to `noeviction`"), "{ran:?}");
    // The program itself, with its exit code.
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    done(&["doctor", "--store", &server.url(), "--app", "shop"], "");
}
