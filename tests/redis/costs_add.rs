//! What an add costs on its common path, and that this path leaves the same behind as the path for everything else.

use std::time::Duration;

use dq::job::{Codec, Delivery, GroupName, Metadata, Record, State};
use dq::store::step::Change;
use dq::store::{AddOutcome, BatchAnswer, CommandKind, Due, HistorySetting, MaxWaiting, NewJob, OnDuplicate, Store};
use dq::time::Timestamp;
use dq_tests::redis::RedisServer;

use super::cost::{spent, total};
use super::topic::{Topic, generated, job};

/// A topic that holds a job which is due later than any other, so no add finds it empty.
async fn with_one_job(server: &RedisServer) -> Topic {
    let topic = Topic::on(&server.url());
    for number in [60_000, 60_001] {
        topic.add(vec![generated(number)]).await;
    }
    topic
}

/// Later than the head, but soon enough to wait in `delayed`.
fn later(job: NewJob) -> NewJob {
    NewJob { due: Due::After(Duration::from_secs(250)), ..job }
}

#[tokio::test]
async fn a_plain_add_calls_seven_commands_for_one_job_or_a_thousand_and_sends_nothing_behind_it() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    for (first, count) in [(0, 1), (1_000, 100), (2_000, 1_000)] {
        let add = spent(&server, topic.add((first..first + count).map(generated).map(later).collect())).await;
        let one_each = ["get", "hmget", "hset", "set", "time", "zadd", "zrange"].map(|name| (name.to_owned(), 1));
        assert_eq!(add, one_each.into(), "{count} jobs");
    }
}

#[tokio::test]
async fn a_bound_on_what_waits_costs_an_add_two_commands_and_a_refused_one_writes_only_its_answer() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    let bounded = |most, ids: std::ops::Range<u16>| {
        ids.map(|n| NewJob { max_waiting: Some(MaxWaiting { topic: Some(most), group: None }), ..later(generated(n)) })
            .collect::<Vec<_>>()
    };
    for ids in [0..1, 1_000..2_000] {
        assert_eq!(total(&spent(&server, topic.add(bounded(10_000, ids))).await), 9);
    }
    let refused = spent(&server, async { drop(topic.try_add(bounded(5, 3_000..4_000)).await) }).await;
    let one_each = ["get", "hlen", "hmget", "set", "time", "zcard"].map(|name| (name.to_owned(), 1));
    assert_eq!(refused, one_each.into());
}

#[tokio::test]
async fn a_bound_on_what_waits_of_a_group_costs_an_add_two_commands_and_one_for_each_group() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    let group = |n: u16| Some(GroupName::new(format!("customer-{}", n % 3)).unwrap());
    let of_groups = |ids: std::ops::Range<u16>, most: Option<usize>| {
        let max_waiting = most.map(|most| MaxWaiting { topic: None, group: Some(most) });
        let record = |n| Record::new(&Metadata { group: group(n), ..Metadata::default() }, Codec::Json, b"{}");
        ids.map(|n| NewJob { max_waiting, record: record(n), ..later(generated(n)) }).collect::<Vec<_>>()
    };
    topic.add(of_groups(0..9, None)).await;
    let free = total(&spent(&server, topic.add(of_groups(10..19, None))).await);
    assert_eq!(total(&spent(&server, topic.add(of_groups(20..29, Some(10_000)))).await), free + 2 + 3);
}

#[tokio::test]
async fn ids_that_stay_taken_cost_their_topic_only_while_some_are_and_what_is_kept_of_them_goes_by_itself() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    let (meta, taken) = ("dq:{shop:t}:meta", "dq:{shop:t}:taken");
    let unique = |n: u16| NewJob { unique_for: Some(Duration::from_secs(60)), ..later(job(&format!("u{n}"))) };
    topic.add((0..10).map(unique).collect()).await;
    let number = |command: &str| server.command(&[command, taken]).trim_start_matches(':').parse::<u64>().unwrap();
    let left = number("TTL");
    assert!(number("ZCARD") == 10 && (3_600..=3_661).contains(&left), "{left}");
    // Forgotten are at most two for each that is written, and ten.
    for n in 0..100 {
        server.command(&["ZADD", taken, "1", &format!("old{n}")]);
    }
    topic.add((10..20).map(unique).collect()).await;
    assert_eq!(number("ZCARD"), 10 + 100 + 10 - 30);
    let add = async |name: &str| spent(&server, topic.add(vec![later(job(name))])).await;
    assert_eq!(add("while some are taken").await.get("zmscore").copied(), Some(1));
    // The time of all is over.
    server.command(&["HSET", meta, "taken", "1"]);
    assert_eq!(total(&add("once none is").await), 9);
}

#[tokio::test]
async fn a_producer_learns_once_that_its_topic_needs_more_keys() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    let scripts = async |n| spent(&server, topic.add(vec![later(generated(n))])).await.get("time").copied();
    assert_eq!(scripts(0).await, Some(1));
    topic.store.keep_history(&topic.key, HistorySetting { moves: 5, after: Duration::ZERO }).await.unwrap();
    assert_eq!((scripts(1).await, scripts(2).await), (Some(2), Some(1)));
    let first = generated(1).id;
    assert!(topic.store.history(&topic.key, &first).await.unwrap().is_some());
}

#[tokio::test]
async fn jobs_with_ids_or_delays_of_their_own_cost_no_command_each() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    let own_delays =
        (0..100).map(|n| NewJob { due: Due::After(Duration::from_secs(100 + u64::from(n))), ..generated(n) });
    assert_eq!(total(&spent(&server, topic.add(own_delays.collect())).await), 7);
    for (name, count) in [("one", 1), ("many", 100)] {
        let jobs = (0..count).map(|n| later(job(&format!("{name}{n}")))).collect();
        assert_eq!(
            total(&spent(&server, topic.add(jobs)).await),
            9,
            "one command looks for the ids, and one for broadcasts"
        );
    }
}

#[tokio::test]
async fn an_add_reads_no_records_that_may_have_more_than_a_mebibyte_together() {
    let server = RedisServer::start();
    let topic = with_one_job(&server).await;
    let large = Record::new(&Metadata::default(), Codec::Json, &vec![b'1'; 100 << 10]);
    topic.add(vec![later(NewJob { record: large, ..job("large") })]).await;
    for (count, asked) in [(8, 0), (9, 9)] {
        let jobs = (0..count).map(|n| later(job(&format!("{count}-{n}")))).collect();
        let add = spent(&server, topic.add(jobs)).await;
        assert_eq!(add.get("hexists").copied().unwrap_or_default(), asked, "{count} jobs");
    }
}

#[tokio::test]
async fn a_producer_enters_its_topic_once_a_minute() {
    let server = RedisServer::start();
    // Now the server knows the script.
    Topic::named(&server.url(), "other").add(vec![job("a")]).await;
    let topic = Topic::on(&server.url());
    topic.reconcile().await;
    // The add itself has one ZADD, and the entry into the directory another.
    let zadds = async |job: NewJob| spent(&server, topic.add(vec![job])).await.get("zadd").copied();
    assert_eq!(zadds(job("first batch")).await, Some(2));
    assert_eq!(zadds(job("b")).await, Some(1));
    let claims = topic.claims().await;
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    assert_eq!(zadds(job("finds it empty")).await, Some(1), "the directory keeps what was entered within two minutes");
}

#[tokio::test]
async fn a_producer_that_only_adds_keeps_a_number_that_expires() {
    let (server, topic) = Topic::served();
    let calls = "dq:{shop:t}:calls:p";
    for number in 1..=20 {
        topic.add(vec![generated(number)]).await;
        assert_eq!(server.command(&["GET", calls]), number.to_string());
        let left: u64 = server.command(&["TTL", calls]).trim_start_matches(':').parse().unwrap();
        assert!((3_500..=3_600).contains(&left), "{left}");
    }
    topic.command(CommandKind::Delete, "none").await;
    assert_eq!(server.command(&["GET", calls]), "21 5=21:c*--");
    for number in 22..=36 {
        topic.add(vec![generated(number)]).await;
    }
    assert_eq!(server.command(&["GET", calls]), "36 5=21:c*--");
    topic.add(vec![generated(37)]).await;
    assert_eq!(server.command(&["GET", calls]), "37");
}

/// Jobs of every kind that the common path takes.
fn kinds() -> Vec<NewJob> {
    let soon = |ms| Due::At(Timestamp::from_millis(4_000_000_000_000 + ms));
    let payload = |text: String| Record::new(&Metadata::default(), Codec::Json, text.as_bytes());
    let retained = Metadata { retain: Duration::from_secs(60), ..Metadata::default() };
    let kind = |n: u16, new: NewJob| NewJob { due: soon(u64::from(n % 3)), record: payload(format!("\"{n}\"")), ..new };
    let mut jobs: Vec<_> = (0..5).map(|n| kind(n, generated(n))).collect();
    jobs.extend((5..10).map(|n| kind(n, job(&format!("j{n}")))));
    for (n, on_duplicate) in [(10, OnDuplicate::Keep), (11, OnDuplicate::Replace)] {
        jobs.push(NewJob { on_duplicate, ..kind(n, job(&format!("j{n}"))) });
    }
    jobs.push(NewJob { record: Record::new(&retained, Codec::Json, b"1"), ..kind(12, generated(12)) });
    jobs
}

#[tokio::test]
async fn the_common_path_leaves_the_same_behind_as_the_other() {
    let server = RedisServer::start();
    let mut found = Vec::new();
    // A broadcast makes a batch take the other path.
    for others in [vec![], vec![NewJob { deliver: Delivery::Broadcast, ..job("broadcast") }]] {
        let topic = with_one_job(&server).await;
        let batch = [kinds(), others.clone()].concat();
        let calls = spent(&server, topic.add(batch)).await;
        assert_eq!(calls.contains_key("type"), !others.is_empty(), "only the other path checks all keys: {calls:?}");
        let batch = [vec![job("j5"), job("new")], others].concat();
        let BatchAnswer::Done(mut outcomes) = topic.try_add(batch).await.unwrap() else {
            panic!("the call numbers increase")
        };
        outcomes.truncate(2);
        assert_eq!(outcomes, [AddOutcome::Exists(State::Delayed), AddOutcome::Added]);
        let mut stream = server.connect();
        let mut read = |words: &[&str]| dq_tests::redis::ask(&mut stream, words);
        let mut left = Vec::new();
        for job in kinds() {
            left.push(read(&["HGET", "dq:{shop:t}:jobs", job.id.as_str()]));
            left.push(read(&["ZSCORE", "dq:{shop:t}:delayed", job.id.as_str()]));
        }
        for field in ["protocol", "retains", "largest"] {
            left.push(read(&["HGET", "dq:{shop:t}:meta", field]));
        }
        left.push(read(&["HLEN", "dq:{shop:t}:jobs"]));
        left.push(read(&["ZCARD", "dq:{shop:t}:delayed"]));
        found.push(left);
        server.command(&["FLUSHALL"]);
    }
    assert_eq!(found[0], found[1]);
}
