//! What running jobs costs the server: which commands a transfer and a settle call inside their scripts, for one job and for
//! many. Each more slows down every node, so these numbers grow only for a reason.

use std::time::Duration;

use dq::job::{Codec, Delivery, JobId, Metadata, Priority, Record};
use dq::store::step::{Change, Claim, Tick, TickJob, Verdict};
use dq::store::{Due, NewJob, Store};
use dq::time::Timestamp;
use dq_tests::redis::RedisServer;

use super::cost::{Calls, counted};
use super::topic::{Topic, generated, job};

fn expected(calls: &[(&str, u64)]) -> Calls {
    calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// A server that knows the scripts, a topic on it whose node is the watcher, and a job that waits for an hour.
async fn used_topic() -> (RedisServer, Topic) {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![job("first")]).await;
    let claims = topic.claims().await;
    settle(&topic, &claims, Change::Ack).await;
    topic.add(vec![NewJob { due: Due::After(Duration::from_secs(3_600)), ..job("later") }]).await;
    (server, topic)
}

async fn settle(topic: &Topic, claims: &[Claim], change: Change) {
    let settled = topic.try_settle(claims, change).await.unwrap();
    assert_eq!(settled.verdicts, vec![Verdict::Done; claims.len()]);
}

async fn transfer(topic: &Topic) -> Vec<Claim> {
    topic.try_transfer(1_000).await.unwrap().claims
}

/// Adds jobs and waits until they are due; what is added after them is due later.
async fn add_due(topic: &Topic, jobs: Vec<NewJob>) {
    let before = topic.store.counts(&topic.key).await.unwrap();
    let due = before.ready + jobs.len();
    topic.add(jobs).await;
    let added = topic.store.counts(&topic.key).await.unwrap();
    loop {
        let now = topic.store.counts(&topic.key).await.unwrap();
        if now.ready == due && now.clock > added.clock {
            break;
        }
    }
}

/// What every transfer calls.
const TRANSFER: [(&str, u64); 7] =
    [("exists", 1), ("get", 1), ("hlen", 1), ("hmget", 1), ("set", 1), ("time", 1), ("zrange", 2)];

/// `TRANSFER`, and this.
fn transfer_with(more: &[(&str, u64)]) -> Calls {
    let mut calls = expected(&TRANSFER);
    for (name, count) in more {
        *calls.entry((*name).to_owned()).or_default() += count;
    }
    calls
}

#[tokio::test]
async fn a_transfer_of_one_job_calls_thirteen_commands_and_the_settle_nine() {
    let (server, topic) = used_topic().await;
    add_due(&topic, vec![job("now")]).await;
    let (claims, calls) = counted(&server, transfer(&topic)).await;
    let more = [("hmget", 1), ("hset", 2), ("zadd", 1), ("zremrangebyrank", 1)];
    assert_eq!((claims.len(), calls), (1, transfer_with(&more)));
    let ((), calls) = counted(&server, settle(&topic, &claims, Change::Ack)).await;
    let settled = [("exists", 1), ("get", 1), ("hdel", 2), ("hlen", 1), ("hmget", 2), ("zcard", 1), ("zrem", 1)];
    assert_eq!(calls, expected(&settled));
}

#[tokio::test]
async fn a_transfer_that_finds_nothing_due_calls_ten_commands() {
    let (server, topic) = used_topic().await;
    let (claims, calls) = counted(&server, transfer(&topic)).await;
    assert_eq!((claims.len(), calls), (0, transfer_with(&[("hdel", 1), ("hset", 1)])));
}

/// The first due jobs of each priority and the head of each, instead of one read; the first tick; and a removal by id. `used_topic` has no such job, so
/// the other tests count what a topic without priorities costs.
#[tokio::test]
async fn priorities_cost_a_transfer_six_commands() {
    let (server, topic) = used_topic().await;
    let ranked = |name: &str, priority| {
        let metadata = Metadata { priority, ..Metadata::default() };
        NewJob { record: Record::new(&metadata, Codec::Json, b"{}"), ..job(name) }
    };
    let other = |n: u16| NewJob { record: ranked("other", Priority::High).record, ..generated(n) };
    topic.add(vec![generated(30)]).await;
    let (_, plain) = counted(&server, topic.add((0..10).map(generated).collect())).await;
    let (_, first) = counted(&server, topic.add((10..20).map(other).collect())).await;
    let (_, next) = counted(&server, topic.add((20..30).map(other).collect())).await;
    let total = |calls: &Calls| calls.values().sum::<u64>();
    // The first batch also notes that its records are longer.
    assert_eq!((total(&first), total(&next)), (total(&plain) + 2, total(&plain) + 3), "{first:?} {next:?}");
    let claims = transfer(&topic).await;
    settle(&topic, &claims, Change::Ack).await;
    let (_, calls) = counted(&server, transfer(&topic)).await;
    assert_eq!(calls, transfer_with(&[("hdel", 1), ("hset", 1), ("zrange", 6)]));
    for priority in Priority::ALL {
        add_due(&topic, vec![ranked("one", priority)]).await;
        let (claims, calls) = counted(&server, transfer(&topic)).await;
        let more = [("hmget", 1), ("hset", 2), ("zadd", 1), ("zrange", 6), ("zrem", 1)];
        assert_eq!((claims.len(), calls), (1, transfer_with(&more)), "{priority}");
        settle(&topic, &claims, Change::Ack).await;
    }
}

/// Two reads more, of the ids and of the next head; the last score; and the removal that makes the rows a table.
#[tokio::test]
async fn a_transfer_of_many_jobs_calls_four_commands_more() {
    for count in [100, 500] {
        let (server, topic) = used_topic().await;
        add_due(&topic, (0..count).map(generated).collect()).await;
        let (claims, calls) = counted(&server, transfer(&topic)).await;
        let more =
            [("hdel", 1), ("hmget", 1), ("hset", 2), ("zadd", 1), ("zrange", 2), ("zremrangebyrank", 1), ("zscore", 1)];
        assert_eq!((claims.len(), calls), (usize::from(count), transfer_with(&more)));
        let ((), calls) = counted(&server, settle(&topic, &claims, Change::Ack)).await;
        let total: u64 = calls.values().sum();
        assert_eq!(total, 9, "{calls:?}");
        assert!(calls["hdel"] == 2 && calls["hmget"] == 2, "{calls:?}");
    }
}

#[tokio::test]
async fn each_of_a_few_due_times_costs_one_count_and_one_score() {
    let (server, topic) = used_topic().await;
    for from in [0, 50, 100] {
        add_due(&topic, (from..from + 50).map(generated).collect()).await;
    }
    let (claims, calls) = counted(&server, transfer(&topic)).await;
    let dues: std::collections::BTreeSet<_> = claims.iter().map(|claim| claim.token.due).collect();
    assert_eq!((claims.len(), dues.len()), (150, 3));
    assert_eq!((calls["zcount"], calls["zscore"], calls["zrange"]), (2, 3, 4), "{calls:?}");
}

#[tokio::test]
async fn many_due_times_are_read_at_once() {
    let (server, topic) = used_topic().await;
    for n in 0..60 {
        add_due(&topic, vec![generated(n)]).await;
    }
    let (claims, calls) = counted(&server, transfer(&topic)).await;
    assert_eq!(claims.len(), 60);
    for claim in &claims {
        assert_eq!(claim.token.fence, claims[0].token.fence);
    }
    assert!(calls["zcount"] <= 4 && calls["zscore"] <= 4 && calls["zrange"] == 5, "{calls:?}");
}

/// A topic with a job that failed goes the same way: its overriding metadata cost one count and one read.
#[tokio::test]
async fn failed_jobs_elsewhere_cost_a_transfer_two_commands() {
    let (server, topic) = used_topic().await;
    add_due(&topic, vec![job("dead")]).await;
    let claims = transfer(&topic).await;
    server.command(&["HSET", "dq:{shop:t}:metadata", "dead", "x"]);
    settle(&topic, &claims, Change::Dead).await;
    server.command(&["HSET", "dq:{shop:t}:metadata", "another", "x"]);
    add_due(&topic, (0..100).map(generated).collect()).await;
    let (claims, calls) = counted(&server, transfer(&topic)).await;
    assert_eq!((claims.len(), calls["hlen"], calls["hmget"]), (100, 2, 3), "{calls:?}");
    assert!(!calls.contains_key("hstrlen"), "no record is measured: {calls:?}");
    let ((), calls) = counted(&server, settle(&topic, &claims, Change::Ack)).await;
    assert_eq!((calls["hdel"], calls["hlen"], calls["exists"]), (4, 3, 2), "{calls:?}");
}

#[tokio::test]
async fn stale_acks_hold_back_no_other_and_cost_no_command_more() {
    let (server, topic) = used_topic().await;
    add_due(&topic, (0..40).map(generated).collect()).await;
    let mut claims = transfer(&topic).await;
    claims[7].token.fence.0 -= 1;
    claims[30].token.due = claims[30].token.due.after(Duration::from_millis(1));
    let (settled, calls) = counted(&server, topic.try_settle(&claims, Change::Ack)).await;
    let settled = settled.unwrap();
    let stale: Vec<_> = (0..40).filter(|n| settled.verdicts[*n] == Verdict::Stale).collect();
    assert_eq!((stale, settled.lease_status.rows), (vec![7, 30], 2));
    assert_eq!(calls.values().sum::<u64>(), 10, "rows are left, so the lease is renewed: {calls:?}");
    let again = topic.try_settle(&claims, Change::Ack).await.unwrap();
    assert_eq!(again.verdicts, vec![Verdict::Stale; claims.len()]);
    assert_eq!(again.lease_status.rows, 2);
}

#[tokio::test]
async fn a_page_of_rows_that_has_all_of_them_is_complete_in_any_order() {
    let (_server, topic) = used_topic().await;
    add_due(&topic, (0..500).map(generated).collect()).await;
    assert_eq!(transfer(&topic).await.len(), 500);
    assert_eq!(topic.reconcile().await, 500);
}

/// It checks the types of all keys, adds a job, moves the schedule, and enters it into the index, which are two of the calls.
#[tokio::test]
async fn a_tick_that_adds_one_job_calls_forty_five_commands() {
    let (server, topic) = used_topic().await;
    add_due(&topic, vec![job("dq:schedule:s")]).await;
    let claims = transfer(&topic).await;
    let new = TickJob {
        id: JobId::new("dq:tick:s@1").unwrap(),
        due: Timestamp::EPOCH,
        deliver: Delivery::Queue,
        record: claims[0].record.clone(),
    };
    let next = Some(claims[0].token.due.after(Duration::from_secs(3_600)));
    let tick = Tick { next, schedule: claims[0].record.clone(), unless: None, jobs: vec![new] };
    let ((), calls) = counted(&server, settle(&topic, &claims, Change::Tick(Box::new(tick)))).await;
    let reads =
        [("exists", 2), ("get", 2), ("hexists", 2), ("hget", 1), ("hlen", 1), ("hmget", 3), ("time", 1), ("type", 18)];
    let more = [("zcard", 1), ("zrange", 1), ("zscore", 2), ("publish", 2)];
    let writes = [("hdel", 4), ("hset", 1), ("zadd", 3), ("zrem", 1)];
    assert_eq!(calls, expected(&[&reads[..], &more, &writes].concat()));
}
