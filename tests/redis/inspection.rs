//! What looking at a topic costs, whatever waits in it.

use std::time::Duration;

use dq::store::{Due, NewJob};
use dq_tests::redis::{RedisServer, ask};

use super::doctor::inspector;
use super::topic::{Topic, job};

/// How many scripts and how many commands in all, scripts and the checks of types left out, a read takes.
async fn spent<T>(server: &RedisServer, read: impl Future<Output = T>) -> (T, u64, u64) {
    server.command(&["CONFIG", "RESETSTAT"]);
    let found = read.await;
    let calls = server.calls();
    let of = |names: &[&str]| names.iter().filter_map(|name| calls.get(*name)).sum::<u64>();
    let own = of(&["config|resetstat", "config", "info", "evalsha", "eval", "type"]);
    (found, of(&["evalsha"]), calls.values().sum::<u64>() - own)
}

/// 100,000 jobs are due over 28 days: more leaves than are counted one by one.
#[tokio::test]
async fn what_looking_at_a_topic_costs_does_not_grow_with_it() {
    const JOBS: u32 = 100_000;
    let (server, topic) = Topic::served();
    let apart = Duration::from_secs(28 * 24 * 3_600) / JOBS;
    let mut spans = Vec::new();
    for first in (0..JOBS).step_by(1_000) {
        let jobs = (first..first + 1_000).map(|n| NewJob { due: Due::After(apart * n), ..job(&format!("j{n}")) });
        topic.add(jobs.collect()).await;
        if first == 0 || first + 1_000 == JOBS {
            let look = inspector(&server);
            let name = look.topics(None).await.unwrap().topics[0].topic.to_string();
            look.timeline(&name).await.unwrap(); // the server learns the scripts
            let (timeline, scripts, commands) = spent(&server, look.timeline(&name)).await;
            assert!(scripts == 4 && (100..800).contains(&commands), "{scripts} scripts, {commands} commands");
            let (_, scripts, commands) = spent(&server, look.topic(&name)).await;
            assert!(scripts == 1 && (10..60).contains(&commands), "{scripts} scripts, {commands} commands");
            let timeline = timeline.unwrap();
            let days = timeline.ready + timeline.days.iter().map(|day| day.jobs).sum::<usize>();
            spans.push((days, timeline.days.iter().all(|day| day.is_exact)));
        }
    }
    assert_eq!(spans[0], (1_000, true), "few leaves are counted exactly");
    let (estimated, is_exact) = spans[1];
    assert!(!is_exact && estimated.abs_diff(100_000) < 2_000, "{estimated}");
}

/// 5,000 topics, and 5,000 names of topics that hold nothing.
#[tokio::test]
async fn a_page_of_topics_costs_20_commands_whatever_there_is() {
    const TOPICS: usize = 5_000;
    let server = RedisServer::start();
    let mut stream = server.connect();
    for first in (0..TOPICS).step_by(1_000) {
        let names = first..first + 1_000;
        let mut words = vec!["ZADD".to_owned(), "dq:{shop}:topics".to_owned()];
        words.extend(names.flat_map(|n| ["0".to_owned(), format!("t{n:04}"), "0".to_owned(), format!("empty-{n:04}")]));
        ask(&mut stream, &words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let fill = "for n = 0, ARGV[1] - 1 do local t = string.format('dq:{shop:t%04d}:', n) \
        redis.call('HSET', t .. 'jobs', 'a', ARGV[2]) redis.call('ZADD', t .. 'delayed', 1, 'a') end";
    ask(&mut stream, &["EVAL", fill, "0", &TOPICS.to_string(), "record"]);
    let look = inspector(&server);
    look.topics(Some("t4998")).await.unwrap(); // the server learns the scripts
    let (mut seen, mut after, mut pages) = (Vec::new(), None::<String>, 0);
    loop {
        server.command(&["CONFIG", "RESETSTAT"]);
        let page = look.topics(after.as_deref()).await.unwrap();
        let of = |name| server.calls().get(name).copied().unwrap_or_default();
        // A listing of names is one EVAL, another one if it found a topic that holds nothing, and one EXISTS for each name.
        let (listings, topics, names) = (of("eval"), of("evalsha"), of("exists"));
        assert!((1..=18).contains(&listings) && listings + topics <= 20, "{listings} listings, {topics} topics");
        let found = page.topics.len() as u64;
        assert!((found..=500 * listings).contains(&names), "{names} names in {listings} listings, {found} topics");
        seen.extend(page.topics.iter().map(|topic| topic.topic.to_string()));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
        assert!(page.topics.len() <= 18 && pages < 400, "{pages} pages");
    }
    assert_eq!(seen, (0..TOPICS).map(|n| format!("t{n:04}")).collect::<Vec<_>>());
    assert_eq!(server.command(&["ZCARD", "dq:{shop}:topics"]), format!(":{TOPICS}"), "the empty names are forgotten");
}

/// Each key that shows a topic has a wrong type in turn.
#[tokio::test]
async fn a_topic_with_a_key_of_a_wrong_type_hides_no_other_topic() {
    let server = RedisServer::start();
    let provider = dq::Provider::connect("shop", server.url()).await.unwrap();
    for name in ["a", "b", "c"] {
        provider.topic(name).unwrap().add_json(serde_json::json!(1)).after("1h").await.unwrap();
    }
    let look = provider.inspect();
    let far = ["far", "far-jobs", "far-leaves"];
    let others = ["jobs", "delayed", "unacked", "dead", "done", "broadcasts", "leases", "meta", "statistics"];
    for key in others.iter().chain(&far).map(|key| format!("dq:{{shop:b}}:{key}")) {
        server.command(&["RENAME", &key, "aside"]);
        server.command(&["SET", &key, "of another program"]);
        let page = look.topics(None).await.unwrap();
        let seen: Vec<_> = page.topics.iter().map(|topic| (topic.topic.as_str(), topic.delayed)).collect();
        assert_eq!(seen, [("a", 1), ("b", 0), ("c", 1)], "{key}");
        let error = page.topics[1].error.as_deref().unwrap_or_default();
        assert!(error.contains(&key) && error.contains("wrong type"), "{key}: {error}");
        look.topic("b").await.unwrap_err();
        server.command(&["DEL", &key]);
        server.command(&["RENAME", "aside", &key]);
    }
    let page = look.topics(None).await.unwrap();
    let seen: Vec<_> = page.topics.iter().map(|topic| (topic.topic.as_str(), topic.delayed, &topic.error)).collect();
    assert_eq!(seen, [("a", 1, &None), ("b", 1, &None), ("c", 1, &None)]);
}
