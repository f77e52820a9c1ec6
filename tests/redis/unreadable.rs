//! Rows that another program, or a later version of dq, wrote and that dq cannot read: they are passed over, the doctor names them and sets
//! them aside, and all else continues (rules 1, 18).

use std::time::Duration;

use dq::inspect::{FindingCode, Severity};
use dq::job::{GroupName, Metadata, NodeId, Record, TopicName};
use dq::prelude::*;
use dq::provider::OnDead;
use dq::store::step::{Change, Claim, Scan};
use dq::store::{
    BatchAnswer, GroupsRequest, NewJob, OutboxPosition, Relay, SetChange, SetOutcome, SetRefusal, SetVerb, SetsRequest,
    Store, relay_of,
};
use dq_tests::redis::RedisServer;

use super::doctor::{codes, examined, found, inspector, is_whole, repair, sound};
use super::follow_ups::{First, first};
use super::topic::{Topic, factory, id, job, until};

/// Adds a job whose run has a follow-up, and waits until that has come as the job `count` of its topic.
async fn follows(node: &Context, server: &RedisServer, count: u32) {
    node.provider().add(First(count)).await.unwrap();
    let arrived = format!(":{count}");
    until(|| server.command(&["HLEN", "dq:{shop:second}:jobs"]) == arrived).await;
}

/// Something that is no entry, before and after the entries of a target, and one without a number.
const NO_ENTRIES: [&str; 6] =
    ["\0", "rubbish", "second\0", "second\0a number\0", "second\0zzzzzzzzzzzzzzzz\x000\0d", "zzz"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_follow_up_in_an_outbox_holds_up_none_and_is_set_aside() {
    let server = RedisServer::start();
    for member in NO_ENTRIES {
        server.command(&["ZADD", "dq:{shop:first}:outbox", "0", member]);
    }
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 1).await;
    follows(&node, &server, 2).await;
    until(|| server.command(&["ZCARD", "dq:{shop:first}:outbox"]) == format!(":{}", NO_ENTRIES.len())).await;
    let outbox = Topic::named(&server.url(), "first");
    assert_eq!(outbox.store.outbox(&outbox.key, None, 10).await.unwrap(), [], "none waits");
    node.shutdown(Duration::ZERO).await;
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    let rows: Vec<_> = findings.iter().filter(|finding| finding.code == FindingCode::ForeignChange).collect();
    assert_eq!(rows.len(), NO_ENTRIES.len(), "{findings:#?}");
    assert!(rows.iter().all(|finding| finding.severity == Severity::Error), "{rows:#?}");
    assert!(rows.iter().any(|finding| finding.id.as_deref() == Some("outbox/second\\x00a number\\x00")), "{rows:#?}");
    assert_eq!(repair(&mut doctor).await, NO_ENTRIES.len());
    assert_eq!(server.command(&["EXISTS", "dq:{shop:first}:outbox"]), ":0");
    let aside = "local all = redis.call('KEYS', 'dq:set-aside:*:{shop:first}:outbox') local n = 0 \
                 for _, key in ipairs(all) do n = n + redis.call('HEXISTS', key, ARGV[1]) end return n";
    for member in NO_ENTRIES {
        assert_eq!(server.command(&["EVAL", aside, "0", member]), ":1", "{member:?} is kept");
    }
    let again = found(&server).await;
    assert!(again.iter().all(|finding| finding.code != FindingCode::ForeignChange), "{again:#?}");
}

/// Another program has given members a score, so that a range by name does not find them, or what is behind them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_score_of_an_entry_holds_up_neither_it_nor_others() {
    let server = RedisServer::start();
    for (score, member) in [("-1", "zzz"), ("3", "second\x000000000000000007\x000\0Z"), ("0", "a")] {
        server.command(&["ZADD", "dq:{shop:first}:outbox", score, member]);
    }
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 1).await;
    until(|| server.command(&["ZCOUNT", "dq:{shop:first}:outbox", "0", "0"]) == ":3").await;
    assert_eq!(server.command(&["ZCARD", "dq:{shop:first}:outbox"]), ":3", "what cannot be read stays");
    node.shutdown(Duration::ZERO).await;
}

/// The entry in front of all others is of a later version: the others name it as the one before them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_cannot_be_read_is_passed_over_and_counted_and_stays_until_it_is_set_aside() {
    let server = RedisServer::start();
    let entry = "second\x000000000000000007\x007\0Z of a later version, which names itself";
    server.command(&["ZADD", "dq:{shop:first}:outbox", "0", entry]);
    server.command(&[
        "HSET",
        "dq:{shop:first}:meta",
        "outbox",
        "0000000000000007",
        "outbox:second",
        "0000000000000007",
    ]);
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 1).await;
    follows(&node, &server, 2).await;
    until(|| server.command(&["ZCARD", "dq:{shop:first}:outbox"]) == ":1").await;
    assert_ne!(server.command(&["ZSCORE", "dq:{shop:first}:outbox", entry]), "", "it stays");
    let topic = node.health().topics.remove(0);
    let refused: Vec<_> = topic.refused_follow_ups.iter().map(|refused| refused.job.as_str()).collect();
    assert_eq!((topic.counters.refused_follow_ups, refused), (1, vec!["at position 7"]));
    node.shutdown(Duration::ZERO).await;
    let mut doctor = inspector(&server).doctor(Some("first")).unwrap();
    let findings = examined(&mut doctor).await;
    let lost = findings.iter().find(|finding| finding.code == FindingCode::ForeignChange).unwrap();
    assert!(lost.text.contains("a follow-up for topic second at position 7 cannot be read"), "{lost}");
    assert_eq!(repair(&mut doctor).await, 1);
    assert_eq!(server.command(&["EXISTS", "dq:{shop:first}:outbox"]), ":0");
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 3).await;
    node.shutdown(Duration::ZERO).await;
}

/// Its target would refuse it for ever. What follows gets positions by the clock again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_above_all_positions_is_passed_over_and_set_aside() {
    let server = RedisServer::start();
    let position = "9007199254740993";
    server.command(&["ZADD", "dq:{shop:first}:outbox", "0", &format!("second\0{position}\x000\0a")]);
    server.command(&["HSET", "dq:{shop:first}:meta", "outbox", position, "outbox:second", position]);
    let mut doctor = inspector(&server).doctor(Some("first")).unwrap();
    let findings = examined(&mut doctor).await;
    let named = |id: &str| findings.iter().any(|finding| finding.id.as_deref() == Some(id));
    assert!(named("meta/outbox") && named("meta/outbox:second"), "{findings:#?}");
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 1).await;
    follows(&node, &server, 2).await;
    until(|| server.command(&["ZCARD", "dq:{shop:first}:outbox"]) == ":1").await;
    assert_eq!(node.health().topics.remove(0).counters.refused_follow_ups, 1);
    node.shutdown(Duration::ZERO).await;
    let mut doctor = inspector(&server).doctor(Some("first")).unwrap();
    let findings = examined(&mut doctor).await;
    let rows: Vec<_> = findings.iter().filter(|finding| finding.code == FindingCode::ForeignChange).collect();
    assert!(rows.len() == 1 && rows[0].text.contains(position), "{findings:#?}");
    assert_eq!(repair(&mut doctor).await, 1);
    assert_eq!(server.command(&["EXISTS", "dq:{shop:first}:outbox"]), ":0");
}

/// A repair takes the entry away between one that has arrived and one that has not: that is sent as the first that there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_after_one_that_was_set_aside_is_sent_as_the_first_that_there_is() {
    let server = RedisServer::start();
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 1).await;
    until(|| server.command(&["EXISTS", "dq:{shop:first}:outbox"]) == ":0").await;
    node.shutdown(Duration::ZERO).await;
    let last = server.command(&["HGET", "dq:{shop:first}:meta", "outbox"]);
    let position = format!("{:016}", last.parse::<u64>().unwrap() + 1);
    server.command(&["ZADD", "dq:{shop:first}:outbox", "0", &format!("second\0{position}\0{last}\0Z")]);
    server.command(&["HSET", "dq:{shop:first}:meta", "outbox", &position, "outbox:second", &position]);
    let mut doctor = inspector(&server).doctor(Some("first")).unwrap();
    examined(&mut doctor).await;
    assert_eq!(repair(&mut doctor).await, 1);
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 2).await;
    node.shutdown(Duration::ZERO).await;
}

/// What is no entry, and an entry that does not say which one it follows, do not tell whether a target is ahead.
#[tokio::test]
async fn what_cannot_be_read_in_front_of_an_outbox_makes_no_target_ahead() {
    let (server, home) = Topic::entered().await;
    for member in
        ["t\0!", "t\x000000000000000007\0x\0Z", "t\x000000000000000008\0", "t\x000000000000000600\x00500,499;550\0Z"]
    {
        server.command(&["ZADD", "dq:{shop:t}:outbox", "0", member]);
    }
    let back_to = OutboxPosition { at: 500, written: 499 };
    for (position, ahead) in [("500,499", None), ("555", Some(back_to)), ("600", Some(back_to)), ("600,550", None)] {
        server.command(&["SET", "dq:{shop:t}:calls:outbox:t", position]);
        let request = dq::store::Relay {
            node: dq::job::NodeId::new("n"),
            lease: Duration::from_secs(5),
            arrived: vec![(home.key.topic.clone(), u64::MAX)],
            unread: vec![],
            without: vec![],
            limit: 100,
            bytes: 1 << 20,
        };
        let relayed = home.store.relay(&home.key, &request).await.unwrap();
        assert_eq!(relayed.ahead.first().map(|ahead| ahead.back_to), ahead, "{position}");
        let waiting = if position == "600,550" { 3 } else { 4 };
        assert_eq!(relayed.waiting, waiting, "{position}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_of_a_target_that_is_none_holds_up_no_other_target() {
    let server = RedisServer::start();
    server.command(&["SET", "dq:{shop:second}:calls:outbox:first", "rubbish"]);
    let node = factory(&server.url()).listener::<first>().start().await.unwrap();
    follows(&node, &server, 1).await;
    until(|| server.command(&["EXISTS", "dq:{shop:first}:outbox"]) == ":0").await;
    node.shutdown(Duration::ZERO).await;
    // Another program writes over it while the answers to entries are on their way.
    let source = Topic::named(&server.url(), "first");
    server.command(&["ZADD", "dq:{shop:first}:outbox", "0", "second\x000000000000000007\x000\0a"]);
    server.command(&["SET", "dq:{shop:second}:calls:outbox:first", "rubbish"]);
    server.command(&["HSET", "dq:{shop:third}:calls:outbox:first", "of another", "type"]);
    let arrived = ["second", "third"].map(|target| (TopicName::new(target).unwrap(), 7)).to_vec();
    let (node, lease) = (NodeId::new("n"), Duration::from_secs(1));
    let request = Relay { node, lease, arrived, unread: vec![], without: vec![], limit: 10, bytes: 1_000 };
    let relayed = source.store.relay(&source.key, &request).await.unwrap();
    assert_eq!(relayed.entries.len(), 1, "it comes again");
}

async fn joined(home: &Topic, set: &str, number: u64) -> SetOutcome {
    let change =
        SetChange { set: id(set), what: SetVerb::Add(OnDead::Count, vec![(home.key.topic.clone(), job("a"))]) };
    match home.producer.job_set(number, change).await.unwrap() {
        BatchAnswer::Done(mut outcomes) => outcomes.remove(0),
        BatchAnswer::Late => panic!("the call numbers increase"),
    }
}

/// A set that is none, one whose numbers are too large to count with, and a name that is none.
const NO_SETS: [(&str, &str); 3] =
    [("bad", "rubbish"), ("huge", "c,18446744073709551615,9,9,9,1,0"), ("line\nfeed", "o,1,0,0,0,1,0")];

#[tokio::test]
async fn a_row_of_sets_that_is_none_ends_no_list_and_the_doctor_continues_with_the_next_topic() {
    let (server, home) = Topic::entered().await;
    let next = Topic::named(&server.url(), "u");
    next.add(vec![job("b")]).await;
    server.command(&["HSET", "dq:{shop:u}:sets", "bad", "rubbish"]);
    for (set, row) in NO_SETS {
        server.command(&["HSET", "dq:{shop:t}:sets", set, row]);
        server.command(&["ZADD", "dq:{shop:t}:set-order", "0", set]);
    }
    assert!(matches!(joined(&home, "good", 1).await, SetOutcome::Done(_)));
    let page = home.store.job_sets(&home.key, &SetsRequest::Page { from: 0, limit: 10 }).await.unwrap();
    assert_eq!(page.iter().map(|seen| seen.set.as_str()).collect::<Vec<_>>(), ["good"]);
    let error = home.store.job_sets(&home.key, &SetsRequest::One(id("bad"), 10)).await.unwrap_err();
    assert!(error.to_string().contains("`sets` has a row that cannot be read: bad"), "{error}");
    assert_eq!(joined(&home, "bad", 2).await, SetOutcome::Refused(SetRefusal::Unreadable));
    assert_eq!(joined(&home, "huge", 3).await, SetOutcome::Refused(SetRefusal::Unreadable));
    // The end of a member of such a set, and what follows it, arrive at home.
    let entries = ["\0\x02\x03bad\x02\x01u\x01\x01m\0", "\0\x02\x04good\x02\x01t\x01\x01a\0"];
    let producer = home.store.producer(&home.key, &relay_of(&next.key.topic));
    for (n, batch) in entries.into_iter().enumerate() {
        let batch = dq::store::Packed::from_bytes(batch.as_bytes().to_vec().into());
        let [after, position] = [n as u64, n as u64 + 1].map(OutboxPosition::clock);
        let target = home.key.topic.clone();
        producer.relay(dq::store::OutboxEntry { target, position, after, batch }).await.unwrap();
    }
    let good = home.store.job_sets(&home.key, &SetsRequest::One(id("good"), 10)).await.unwrap().remove(0);
    assert_eq!(good.counts.acked, 1);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    let rows: Vec<_> = findings.iter().filter(|finding| finding.code == FindingCode::ForeignChange).collect();
    let of = |topic: &str| rows.iter().filter(|finding| finding.topic.as_ref().unwrap().as_str() == topic).count();
    assert_eq!((of("t"), of("u")), (4, 1), "{findings:#?}");
    assert_eq!(repair(&mut doctor).await, 5);
    assert!(matches!(joined(&home, "bad", 4).await, SetOutcome::Done(_)));
}

fn in_group(group: &str, name: &str) -> NewJob {
    let metadata = Metadata { group: Some(GroupName::new(group).unwrap()), ..Metadata::default() };
    NewJob { record: Record::new(&metadata, dq::job::Codec::Json, b"{}"), ..job(name) }
}

/// What is no entry of a group: a NUL alone, turns, pauses and rates without a time, and names without an end.
const NO_GROUPS: [&str; 14] = [
    "\0",
    "\x000",
    "\x000rubbish",
    "\x007",
    "\x003rubbish",
    "\x003",
    "\x004later",
    "\x005",
    "\x006",
    "\x006two",
    "\0z",
    "aa",
    "one",
    "two\0",
];

#[tokio::test]
async fn what_is_no_entry_of_a_group_stops_no_group() {
    for garbage in NO_GROUPS.map(|member| vec![member]).into_iter().chain([NO_GROUPS.to_vec()]) {
        let (server, topic) = Topic::entered().await;
        topic.add(vec![in_group("one", "a"), in_group("one", "b"), in_group("two", "c")]).await;
        for member in &garbage {
            server.command(&["ZADD", "dq:{shop:t}:grouped", "0", member]);
        }
        let mut ran = Vec::new();
        while ran.len() < 3 {
            let claims: Vec<Claim> = topic.claims().await;
            topic.link.step(Scan).await.unwrap();
            topic.try_settle(&claims, Change::Ack).await.unwrap();
            ran.extend(claims.into_iter().map(|claim| claim.id.to_string()));
        }
        ran.sort();
        assert_eq!(ran, ["a", "b", "c"], "{garbage:?}");
        topic.add(vec![in_group("one", "d"), in_group("two", "e")]).await;
        let request = GroupsRequest { after: None, only: None, limit: 10 };
        let page = topic.store.groups(&topic.key, &request).await.unwrap();
        assert_eq!(
            page.groups.iter().map(|seen| seen.name.as_str()).collect::<Vec<_>>(),
            ["one", "two"],
            "{garbage:?}"
        );
    }
}

/// Another program has removed one of two notes that dq writes together.
#[tokio::test]
async fn jobs_of_groups_run_also_without_the_note_of_priorities() {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![in_group("one", "a")]).await;
    server.command(&["HDEL", "dq:{shop:t}:meta", "priorities"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    assert!(codes(&examined(&mut doctor).await).contains(&(FindingCode::NotesBehind, "priorities")));
    let claims = topic.claims().await;
    assert_eq!(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(), ["a"]);
}

/// A row in each structure that the doctor reads row by row, and what it is called.
const ROWS: [(&str, &[&str]); 29] = [
    ("jobs/line\\nfeed", &["HSET", "dq:{shop:t}:jobs", "line\nfeed", "x"]),
    ("running:n/line\\nfeed", &["HSET", "dq:{shop:t}:running:n", "line\nfeed", "1:1"]),
    ("broadcast-jobs/line\\nfeed", &["HSET", "dq:{shop:t}:broadcast-jobs", "line\nfeed", "x"]),
    ("set-order/line\\nfeed", &["ZADD", "dq:{shop:t}:set-order", "0", "line\nfeed"]),
    ("members/b", &["HSET", "dq:{shop:t}:members", "b", "rubbish"]),
    ("members/c", &["HSET", "dq:{shop:t}:members", "c", "t\0s\0?"]),
    ("grouped/\\x00", &["ZADD", "dq:{shop:t}:grouped", "0", "\0"]),
    ("grouped/one\\x00wrong", &["ZADD", "dq:{shop:t}:grouped", "0", "one\0wrong"]),
    ("meta/opens", &["HSET", "dq:{shop:t}:meta", "opens", "soon"]),
    ("meta/far-lost", &["HSET", "dq:{shop:t}:meta", "far-lost", "some"]),
    ("meta/taken", &["HSET", "dq:{shop:t}:meta", "taken", "long"]),
    ("meta/history", &["HSET", "dq:{shop:t}:meta", "history", "all"]),
    ("meta/relay-until", &["HSET", "dq:{shop:t}:meta", "relay", "x", "relay-until", "never"]),
    ("meta/outbox:second", &["HSET", "dq:{shop:t}:meta", "outbox:second", "first"]),
    ("leases/m", &["ZADD", "dq:{shop:t}:leases", "-inf", "m"]),
    ("delayed/c", &["ZADD", "dq:{shop:t}:delayed", "+inf", "c"]),
    ("far/!", &["ZADD", "dq:{shop:t}:far", "0", "!"]),
    ("far-jobs/later", &["HSET", "dq:{shop:t}:far-jobs", "later", "x"]),
    ("far-leaves/x", &["HSET", "dq:{shop:t}:far-leaves", "x", "y"]),
    ("dead/dead", &["ZADD", "dq:{shop:t}:dead", "-1", "dead"]),
    ("done/line\\nfeed", &["ZADD", "dq:{shop:t}:done", "99999999999999", "line\nfeed"]),
    ("broadcasts/b", &["ZADD", "dq:{shop:t}:broadcasts", "inf", "b"]),
    ("pending/b", &["HSET", "dq:{shop:t}:pending", "b", "rubbish"]),
    ("crashes/b", &["HSET", "dq:{shop:t}:crashes", "b", "some"]),
    ("schedules/line\\nfeed", &["ZADD", "dq:{shop:t}:schedules", "0", "line\nfeed"]),
    ("ticks/line\\nfeed", &["ZADD", "dq:{shop:t}:ticks", "99999999999999", "line\nfeed"]),
    ("taken/b", &["ZADD", "dq:{shop:t}:taken", "-1", "b"]),
    ("statistics/noon", &["HSET", "dq:{shop:t}:statistics", "noon", "busy"]),
    ("history/line\\nfeed", &["HSET", "dq:{shop:t}:history", "line\nfeed", "x"]),
];

#[tokio::test]
async fn each_row_that_cannot_be_read_is_named_and_set_aside_and_stops_no_step() {
    for (wanted, command) in ROWS {
        let (server, topic) = sound().await;
        server.command(command);
        if let Err(error) = topic.link.step(Scan).await {
            panic!("{wanted}: {error}");
        }
        if let Err(error) = topic.try_transfer(1).await {
            panic!("{wanted}: {error}");
        }
        topic.store.overview(&topic.key, 10).await.unwrap();
        topic.add(vec![job("more")]).await;
        topic.command(dq::store::CommandKind::Delete, "more").await;
        let mut doctor = inspector(&server).doctor(None).unwrap();
        let findings = examined(&mut doctor).await;
        let rows: Vec<_> = findings.iter().filter(|finding| finding.code == FindingCode::ForeignChange).collect();
        let named: Vec<_> = rows.iter().map(|finding| finding.id.as_deref().unwrap()).collect();
        // What only a step wrote of it is gone or right by now.
        assert!(named == [wanted] || named.is_empty() && wanted.starts_with("far/"), "{wanted}: {findings:#?}");
        // A repair of what else is wrong with the row changes it, and another one then moves it.
        repair(&mut doctor).await;
        let mut again = inspector(&server).doctor(None).unwrap();
        examined(&mut again).await;
        repair(&mut again).await;
        let left = found(&server).await;
        assert!(left.iter().all(|finding| finding.code != FindingCode::ForeignChange), "{wanted}: {left:#?}");
    }
}

/// Numbers of `meta` that are none, all at the same time.
#[tokio::test]
async fn notes_of_a_topic_that_are_no_numbers_stop_no_step() {
    let (server, topic) = sound().await;
    for field in ["largest", "far", "far-lost", "opens", "shut", "fence", "groups", "watcher-until", "taken", "rates"] {
        server.command(&["HSET", "dq:{shop:t}:meta", field, "rubbish"]);
    }
    server.command(&["HSET", "dq:{shop:t}:meta", "rate", "1:5/1000/5:me:"]);
    topic.add((0..20).map(|n| job(&format!("more{n}"))).collect()).await;
    while topic.store.counts(&topic.key).await.unwrap().ready < 20 {}
    let claims = topic.try_transfer(10).await.unwrap().claims;
    assert!(!claims.is_empty(), "the rate lets some start");
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    topic.link.step(Scan).await.unwrap();
}

/// A node whose sequence number is none begins again.
#[tokio::test]
async fn a_sequence_number_that_is_none_is_written_again() {
    let (server, topic) = sound().await;
    server.command(&["SET", "dq:{shop:t}:sequence:n", "rubbish", "EX", "1000"]);
    topic.reconcile().await;
    topic.try_transfer(1).await.unwrap();
    is_whole(&topic).await;
}

/// The name of a node that is no text names no node: the others are counted and examined.
#[tokio::test]
async fn a_lease_whose_node_is_no_text_stops_no_scan() {
    let (server, topic) = sound().await;
    let add = "redis.call('ZADD', KEYS[1], 5, '\\255\\254') return 1";
    server.command(&["EVAL", add, "1", "dq:{shop:t}:leases"]);
    topic.link.step(Scan).await.unwrap();
    topic.store.overview(&topic.key, 10).await.unwrap();
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    assert_eq!(codes(&findings), [(FindingCode::ForeignChange, "leases/\\xff\\xfe")], "{findings:#?}");
    assert_eq!(repair(&mut doctor).await, 1);
    assert_eq!(found(&server).await, []);
}
