//! What another program did to the keys spoils one job and no other (PROTOCOL.md rule 1).

use dq::job::State;
use dq::store::step::{Change, Reclaim, RejoinDue, Sequenced, Sweep, Verdict};
use dq::store::{PageRequest, Store};
use dq_tests::redis::RedisServer;

use super::topic::{LEASE, Topic, id, job};

async fn three() -> (RedisServer, Topic) {
    let server = RedisServer::start();
    let topic = Topic::on(&server.url());
    topic.reconcile().await;
    topic.add(vec![job("a"), job("b"), job("c")]).await;
    topic.ready().await;
    (server, topic)
}

fn names(claims: &[dq::store::step::Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.id.as_str()).collect()
}

#[tokio::test]
async fn a_waiting_job_without_a_record_is_dropped_and_named() {
    let (server, topic) = three().await;
    server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
    let answer = topic.try_transfer(10).await.unwrap();
    assert_eq!((names(&answer.claims), answer.dropped), (vec!["a", "c"], vec![id("b")]));
    assert_eq!(answer.lease_status.rows, 2);
    assert_eq!(server.command(&["ZCARD", "dq:{shop:t}:delayed"]), ":0");
}

#[tokio::test]
async fn rubbish_counts_against_the_bound_and_does_not_stop_the_rest() {
    let (server, topic) = three().await;
    for n in 0..5 {
        server.command(&["ZADD", "dq:{shop:t}:delayed", "0", &format!("rubbish{n}")]);
    }
    let answer = topic.try_transfer(5).await.unwrap();
    assert_eq!((answer.claims.len(), answer.dropped.len(), answer.more), (0, 5, true));
    assert_eq!(topic.claims().await.len(), 3);
}

#[tokio::test]
async fn bytes_that_are_no_record_are_given_out_as_they_are() {
    let (server, topic) = three().await;
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
async fn a_running_job_without_a_record_is_dropped_when_its_run_ends_and_the_node_is_told() {
    let keeps =
        [Change::Rollback, Change::Retry(LEASE), Change::Rejoin(RejoinDue::AsAdded), Change::Park, Change::Dead];
    for change in keeps {
        let (server, topic) = three().await;
        let claims = topic.claims().await;
        server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
        let settled = topic.try_settle(&claims, change.clone()).await.unwrap();
        assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Dropped, Verdict::Done], "{change:?}");
        assert_eq!(settled.lease_status.rows, 0);
        assert_eq!(topic.link.dropped(), 0, "the answer told of it");
        let scanned = topic.link.scan(dq::store::step::Scan).await.unwrap();
        assert_eq!((scanned.records, scanned.places), (2, 2), "{change:?}");
        // What would have removed it anyway has done so.
        let again = topic.try_settle(&claims[1..2], change).await.unwrap();
        assert_eq!(again.verdicts, [Verdict::Stale]);
    }
    for change in [Change::Ack, Change::Drop] {
        let (server, topic) = three().await;
        let claims = topic.claims().await;
        server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
        let settled = topic.try_settle(&claims, change).await.unwrap();
        assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Done, Verdict::Done], "there was nothing to keep");
    }
}

#[tokio::test]
async fn what_a_step_drops_without_telling_is_counted() {
    let (server, topic) = three().await;
    topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:running:n", "b", "mine!", "stranger", "mine!"]);
    topic.reconcile().await;
    assert_eq!(topic.link.dropped(), 1, "`b` has a record and is DEAD");
    assert_eq!(topic.link.dropped(), 0);
    server.command(&["HDEL", "dq:{shop:t}:jobs", "a"]);
    server.command(&["ZADD", "dq:{shop:t}:leases", "5", "n"]);
    let node = dq::job::NodeId::new("n");
    let request = Reclaim { node, seen: dq::time::Timestamp::from_millis(5), limit: 10, max_crashes: 3 };
    topic.link.reclaim(request).await.unwrap();
    assert_eq!(topic.link.dropped(), 1);
    for (id, record) in [("line\nfeed", true), ("nothing", false)] {
        server.command(&["ZADD", "dq:{shop:t}:unacked", "1", id]);
        if record {
            server.command(&["HSET", "dq:{shop:t}:jobs", id, "mine"]);
        }
    }
    topic.reconcile().await;
    let sweep = Sweep {
        last_seen: topic.last_seen(),
        limit: 10,
        lease: LEASE,
        unacked_age: LEASE,
        dead_kept: LEASE,
        dead_most: 10,
    };
    let Sequenced::Done(aged) = topic.link.sweep(sweep).await.unwrap() else { panic!("the turn was right") };
    assert_eq!((aged.claims.len(), topic.link.dropped()), (0, 2));
}

#[tokio::test]
async fn a_row_that_dq_did_not_write_is_sorted_out_by_reconcile() {
    let (server, topic) = three().await;
    topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:running:n", "b", "mine!", "stranger", "mine!"]);
    assert_eq!(topic.reconcile().await, 2);
    assert_eq!(topic.store.get(&topic.key, &[id("b")]).await.unwrap()[0].as_ref().unwrap().place.state(), State::Dead);
    let scanned = topic.link.scan(dq::store::step::Scan).await.unwrap();
    assert_eq!((scanned.records, scanned.places), (3, 3));
}

#[tokio::test]
async fn a_row_that_dq_did_not_write_is_sorted_out_by_reclaim() {
    let (server, topic) = three().await;
    let claims = topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:running:n", "b", "mine!"]);
    server.command(&["ZADD", "dq:{shop:t}:leases", "5", "n"]);
    let node = dq::job::NodeId::new("n");
    let request = Reclaim { node, seen: dq::time::Timestamp::from_millis(5), limit: claims.len(), max_crashes: 3 };
    assert_eq!(topic.link.reclaim(request).await.unwrap().moved, 3);
    let counts = topic.store.counts(&topic.key).await.unwrap();
    assert_eq!((counts.delayed, counts.dead, counts.running), (2, 1, 0));
}

#[tokio::test]
async fn a_job_whose_id_is_none_of_dqs_is_dropped_alone() {
    let (server, topic) = three().await;
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

#[tokio::test]
async fn text_that_is_no_pending_command_is_no_pending_command() {
    let (server, topic) = three().await;
    let claims = topic.claims().await;
    server.command(&["HSET", "dq:{shop:t}:pending", "b", "what?"]);
    server.command(&["HSET", "dq:{shop:t}:crashes", "b", "many"]);
    let settled = topic.try_settle(&claims, Change::Rollback).await.unwrap();
    assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Done, Verdict::Done]);
    assert_eq!(topic.claims().await.iter().map(|claim| claim.crashes).sum::<u32>(), 0);
}

#[tokio::test]
async fn a_page_leaves_out_what_has_no_record() {
    let (server, topic) = three().await;
    server.command(&["HDEL", "dq:{shop:t}:jobs", "b"]);
    let request = PageRequest { state: State::Delayed, after: None, limit: 10 };
    let page = topic.store.page(&topic.key, request).await.unwrap();
    assert_eq!(page.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

#[tokio::test]
async fn a_record_that_is_nowhere_counts_as_running_and_shows_in_the_audit() {
    let (server, topic) = three().await;
    server.command(&["ZREM", "dq:{shop:t}:delayed", "b"]);
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().running, 1);
    let scanned = topic.link.scan(dq::store::step::Scan).await.unwrap();
    assert_eq!((scanned.records, scanned.places), (3, 2));
}
