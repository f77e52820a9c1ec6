//! Keys that another program changed: only the changed job is affected (rule 1).

use std::collections::BTreeMap;
use std::time::Duration;

use dq::job::{Codec, Fence, JobId, Metadata, Record, State};
use dq::store::step::{Change, DEFAULT_BYTES, RejoinDue, Sweep, Verdict};
use dq::store::{CommandKind, NewJob, PageRequest, Store, StoreError};
use dq_tests::redis::RedisServer;

use super::topic::{LEASE, Topic, id, job};

async fn three_jobs() -> (RedisServer, Topic) {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![job("a"), job("b"), job("c")]).await;
    topic.ready().await;
    (server, topic)
}

fn names(claims: &[dq::store::step::Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.id.as_str()).collect()
}

#[tokio::test]
async fn a_waiting_job_without_a_record_is_dropped_and_named() {
    let (server, topic) = three_jobs().await;
    server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
    let answer = topic.try_transfer(10).await.unwrap();
    assert_eq!((names(&answer.claims), answer.dropped), (vec!["a", "c"], vec![id("b")]));
    assert_eq!(answer.lease_status.rows, 2);
    assert_eq!(server.command(&["ZCARD", "dq:{shop:t}:delayed"]), ":0");
}

#[tokio::test]
async fn invalid_entries_count_against_the_limit_and_do_not_block_the_rest() {
    let (server, topic) = three_jobs().await;
    for n in 0..5 {
        server.command(&["ZADD", "dq:{shop:t}:delayed", "0", &format!("rubbish{n}")]);
    }
    let answer = topic.try_transfer(5).await.unwrap();
    assert_eq!((answer.claims.len(), answer.dropped.len(), answer.more), (0, 5, true));
    assert_eq!(topic.claims().await.len(), 3);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_claimed_unchanged() {
    let (server, topic) = three_jobs().await;
    server.command(&["HSET", "dq:{shop:t}:jobs", "b", "rubbish"]);
    let claims = topic.claims().await;
    let mangled = claims.iter().find(|claim| claim.id == id("b")).unwrap();
    assert_eq!(mangled.record.as_bytes().as_ref(), b"rubbish");
    let settled = topic.try_settle(&claims, Change::Dead).await.unwrap();
    assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Done, Verdict::Done]);
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().dead, 3);
    assert_eq!(server.command(&["HGET", "dq:{shop:t}:jobs", "b"]), "rubbish");
}

#[tokio::test]
async fn a_parked_job_whose_record_cannot_be_read_is_known_by_its_parking_fence() {
    let (server, topic) = three_jobs().await;
    server.command(&["HSET", "dq:{shop:t}:jobs", "b", "rubbish"]);
    let claims = topic.claims().await;
    let fence = claims[1].token.fence;
    topic.try_settle(&claims[1..2], Change::Park).await.unwrap();
    assert!(!topic.command_for(CommandKind::Ack, "b", Some(Fence(fence.0 + 1))).await.changed);
    assert!(topic.command_for(CommandKind::Ack, "b", Some(fence)).await.changed);
}

#[tokio::test]
async fn a_running_job_without_a_record_is_dropped_when_its_run_ends_and_the_answer_says_so() {
    let keeps =
        [Change::Rollback, Change::Retry(LEASE), Change::Rejoin(RejoinDue::AsAdded), Change::Park, Change::Dead];
    for change in keeps {
        let (server, topic) = three_jobs().await;
        let claims = topic.claims().await;
        server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
        let settled = topic.try_settle(&claims, change.clone()).await.unwrap();
        assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Dropped, Verdict::Done], "{change:?}");
        assert_eq!(settled.lease_status.rows, 0);
        assert_eq!(topic.link.dropped(), 0, "the answer reported the drop");
        let scanned = topic.link.step(dq::store::step::Scan).await.unwrap();
        assert_eq!((scanned.records, scanned.places), (2, 2), "{change:?}");
        // The settle has removed the job anyway.
        let again = topic.try_settle(&claims[1..2], change).await.unwrap();
        assert_eq!(again.verdicts, [Verdict::Stale]);
    }
    for change in [Change::Ack, Change::Drop] {
        let (server, topic) = three_jobs().await;
        let claims = topic.claims().await;
        server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
        let settled = topic.try_settle(&claims, change).await.unwrap();
        assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Done, Verdict::Done], "there was no record to keep");
    }
}

#[tokio::test]
async fn reconcile_repairs_rows_that_dq_did_not_write_and_drops_that_no_answer_reports_are_counted() {
    let (server, topic) = three_jobs().await;
    topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:running:n", "b", "mine!", "stranger", "mine!"]);
    assert_eq!(topic.reconcile().await, 2);
    assert_eq!(topic.store.get(&topic.key, &[id("b")]).await.unwrap()[0].as_ref().unwrap().place.state(), State::Dead);
    let scanned = topic.link.step(dq::store::step::Scan).await.unwrap();
    assert_eq!((scanned.records, scanned.places), (3, 3));
    assert_eq!(topic.link.dropped(), 1, "`b` has a record and is DEAD");
    assert_eq!(topic.link.dropped(), 0);
    server.command(&["HDEL", "dq:{shop:t}:jobs", "a"]);
    topic.reclaim(&server, "n", 3).await;
    assert_eq!(topic.link.dropped(), 1);
    for (id, record) in [("line\nfeed", true), ("nothing", false)] {
        server.command(&["ZADD", "dq:{shop:t}:unacked", "1", id]);
        if record {
            server.command(&["HSET", "dq:{shop:t}:jobs", id, "mine"]);
        }
    }
    topic.reconcile().await;
    let swept = topic.swept(topic.sweep(LEASE, LEASE, 10)).await;
    assert_eq!((swept.claims.len(), topic.link.dropped()), (0, 2));
}

#[tokio::test]
async fn reclaim_repairs_rows_that_dq_did_not_write() {
    let (server, topic) = three_jobs().await;
    topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:running:n", "b", "mine!"]);
    assert_eq!(topic.reclaim(&server, "n", 3).await, 3);
    let counts = topic.store.counts(&topic.key).await.unwrap();
    assert_eq!((counts.delayed, counts.dead, counts.running), (2, 1, 0));
}

#[tokio::test]
async fn a_job_with_an_invalid_id_is_dropped_and_no_other() {
    let (server, topic) = three_jobs().await;
    let long = "x".repeat(300);
    for stranger in ["line\nfeed", long.as_str()] {
        server.command(&["HSET", "dq:{shop:t}:jobs", stranger, "mine"]);
        server.command(&["ZADD", "dq:{shop:t}:delayed", "1", stranger]);
    }
    let answer = topic.try_transfer(10).await.unwrap();
    assert_eq!((names(&answer.claims), answer.lease_status.rows), (vec!["a", "b", "c"], 3));
    let settled = topic.try_settle(&answer.claims, Change::Ack).await.unwrap();
    assert_eq!(settled.lease_status.rows, 0);
    assert_eq!(server.command(&["EXISTS", "dq:{shop:t}:jobs", "dq:{shop:t}:running:n"]), ":0");
    server.command(&["HSET", "dq:{shop:t}:running:n", "line\nfeed", "1:2"]);
    assert_eq!(topic.reconcile().await, 0);
}

/// Jobs of which more than 32 are claimed, so the answer has ids and records packed: one is large, and one has an id of bytes that
/// are not UTF-8, in this place.
async fn many_jobs(place: &str) -> (RedisServer, Topic, Vec<NewJob>) {
    let (server, topic) = Topic::entered().await;
    let of = |n: usize| {
        let payload = format!("\"{}\"", "x".repeat(if n == 20 { 70_000 } else { n }));
        NewJob { record: Record::new(&Metadata::default(), Codec::Json, payload.as_bytes()), ..job(&format!("j{n}")) }
    };
    let jobs: Vec<_> = (0..40).map(of).collect();
    topic.add(jobs.clone()).await;
    topic.ready().await;
    let foreign = "redis.call('HSET', KEYS[1], '\\255', 'mine') return redis.call('ZADD', KEYS[2], 1, '\\255')";
    server.command(&["EVAL", foreign, "2", "dq:{shop:t}:jobs", &format!("dq:{{shop:t}}:{place}")]);
    (server, topic, jobs)
}

fn payloads_of<'a>(jobs: impl Iterator<Item = (&'a JobId, &'a Record)>) -> BTreeMap<&'a JobId, &'a [u8]> {
    jobs.map(|(id, record)| (id, record.payload().unwrap().1)).collect()
}

#[tokio::test]
async fn many_claims_come_whole_beside_an_id_that_is_not_utf_8() {
    let (_server, topic, jobs) = many_jobs("delayed").await;
    let claims = topic.try_transfer(100).await.unwrap().claims;
    assert_eq!(claims.len(), jobs.len());
    let claimed = payloads_of(claims.iter().map(|claim| (&claim.id, &claim.record)));
    assert_eq!(claimed, payloads_of(jobs.iter().map(|job| (&job.id, &job.record))));
    assert_eq!(topic.try_settle(&claims, Change::Ack).await.unwrap().lease_status.rows, 0);
}

#[tokio::test]
async fn many_parked_jobs_come_whole_beside_an_id_that_is_not_utf_8() {
    let (_server, topic, jobs) = many_jobs("unacked").await;
    let claims = topic.try_transfer(100).await.unwrap().claims;
    topic.try_settle(&claims, Change::Park).await.unwrap();
    while topic.store.counts(&topic.key).await.unwrap().clock <= claims[0].token.due {}
    let swept = topic.swept(Sweep { limit: 100, ..topic.sweep(Duration::ZERO, LEASE, 10) }).await;
    assert_eq!(swept.claims.len(), jobs.len());
    let claimed = payloads_of(swept.claims.iter().map(|claim| (&claim.id, &claim.record)));
    assert_eq!(claimed, payloads_of(jobs.iter().map(|job| (&job.id, &job.record))));
    assert_eq!(topic.link.dropped(), 1);
}

#[tokio::test]
async fn the_end_of_a_role_that_is_not_a_number_fails_no_step() {
    let (server, topic) = three_jobs().await;
    let spoil = || {
        let roles = ["watcher", "w", "watcher-until", "x", "standby", "s", "standby-until", "x"];
        server.command(&[&["HSET", "dq:{shop:t}:meta"][..], &roles].concat());
    };
    spoil();
    let claims = topic.try_transfer(10).await.unwrap().claims;
    assert_eq!(claims.len(), 3);
    topic.try_settle(&claims, Change::Park).await.unwrap();
    spoil();
    while topic.store.counts(&topic.key).await.unwrap().clock <= claims[0].token.due {}
    let swept = topic.swept(topic.sweep(Duration::ZERO, LEASE, 10)).await;
    assert_eq!((swept.claims.len(), swept.lease_status.rows), (3, 3));
    topic.add(vec![job("d")]).await;
}

#[tokio::test]
async fn a_page_needs_only_the_keys_that_it_shows() {
    let (server, topic) = three_jobs().await;
    topic.try_transfer(1).await.unwrap();
    for key in ["crashes", "pending", "replacements"] {
        server.command(&["SET", &format!("dq:{{shop:t}}:{key}"), "mine"]);
    }
    for (state, count) in [(State::Delayed, 2), (State::Running, 1)] {
        let request = PageRequest { state, after: None, limit: 10, bytes: DEFAULT_BYTES };
        assert_eq!(topic.store.page(&topic.key, request.clone()).await.unwrap().jobs.len(), count, "{state}");
        let error = topic.store.export(&topic.key, request, false).await.unwrap_err();
        assert!(matches!(&error, StoreError::WrongType { key, .. } if key.ends_with("crashes")), "{error}");
    }
}

#[tokio::test]
async fn an_unreadable_pending_command_is_ignored() {
    let (server, topic) = three_jobs().await;
    let claims = topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:pending", "b", "what?"]);
    server.command(&["HSET", "dq:{shop:t}:crashes", "b", "many"]);
    let settled = topic.try_settle(&claims, Change::Rollback).await.unwrap();
    assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Done, Verdict::Done]);
    assert_eq!(topic.claims().await.iter().map(|claim| claim.crashes).sum::<u32>(), 0);
}

#[tokio::test]
async fn a_page_leaves_out_jobs_without_a_record() {
    let (server, topic) = three_jobs().await;
    server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
    let request = PageRequest { state: State::Delayed, after: None, limit: 10, bytes: DEFAULT_BYTES };
    let page = topic.store.page(&topic.key, request).await.unwrap();
    assert_eq!(page.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

#[tokio::test]
async fn a_record_without_a_place_counts_as_running_and_shows_in_a_scan() {
    let (server, topic) = three_jobs().await;
    server.command(&["ZREM", "dq:{shop:t}:delayed", "b"]);
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().running, 1);
    let scanned = topic.link.step(dq::store::step::Scan).await.unwrap();
    assert_eq!((scanned.records, scanned.places), (3, 2));
}
