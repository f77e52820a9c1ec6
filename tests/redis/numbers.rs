//! The numbers of batches, in any order and with gaps, against the rule in its simplest form (rule 18); and numbers near the end of those
//! with which Lua calculates exactly (rule 9).

use std::collections::BTreeMap;

use dq::job::{Delivery, Fence, ProducerId, State};
use dq::store::step::{Change, DEFAULT_BYTES, Publish};
use dq::store::{
    AddOutcome, BatchAnswer, CALL_SLOTS, Command, CommandKind, Examine, FindingCode, Import, Mismatch, NewJob,
    Numbered, OnDuplicate, PageRequest, Producer, Repair, Store,
};
use dq_tests::redis::RedisServer;

use super::topic::{LEASE, Topic, generated, id, job};

/// A number that depends on all before it.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What a batch does: its answer tells which one it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All jobs are added.
    Added,
    /// A job exists, others are added.
    Exists,
    /// Commands without effect.
    Commands,
}

/// Sends a batch. Returns whether it was done or repeated; otherwise it was late.
async fn send(producer: &dyn Producer, number: u64, kind: Kind) -> bool {
    if kind == Kind::Commands {
        let items = vec![Command { fence: Some(dq::job::Fence(1)), ..Command::new(CommandKind::Ack, id("exists")) }; 2];
        return match producer.command(Numbered { number, items }).await.unwrap() {
            BatchAnswer::Done(outcomes) => {
                assert!(outcomes.len() == 2 && outcomes.iter().all(|outcome| !outcome.changed), "{outcomes:?}");
                true
            }
            BatchAnswer::Late => false,
        };
    }
    let new = generated(u16::try_from(number).unwrap());
    let items = if kind == Kind::Added { vec![new] } else { vec![new, job("exists")] };
    match producer.add(Numbered { number, items }).await.unwrap() {
        BatchAnswer::Done(outcomes) => {
            let exists = outcomes.iter().filter(|outcome| matches!(outcome, AddOutcome::Exists(_))).count();
            assert_eq!((outcomes[0].clone(), exists), (AddOutcome::Added, usize::from(kind == Kind::Exists)));
            true
        }
        BatchAnswer::Late => false,
    }
}

#[tokio::test]
async fn a_batch_is_new_repeated_or_late_as_the_slots_say() {
    let (_server, topic) = Topic::served();
    topic.add(vec![job("exists")]).await;
    let mut draw = Draw(7);
    for round in 0..40 {
        let producer = topic.store.producer(&topic.key, &ProducerId::new(format!("q{round}")));
        let (mut slots, mut high) = (BTreeMap::new(), 0);
        let mut kinds = BTreeMap::new();
        for step in 0..60 {
            let number = match draw.below(8) {
                0 => 1 + draw.below(high + 3),
                1 => high.saturating_sub(draw.below(20)).max(1),
                2 => high + 1 + draw.below(20),
                _ => high + 1,
            };
            let only_adds = round % 4 == 0;
            let drawn = [Kind::Added, Kind::Added, Kind::Exists, Kind::Commands][draw.below(4) as usize];
            let kind = *kinds.entry(number).or_insert(if only_adds { Kind::Added } else { drawn });
            let is_repeated = slots.get(&(number % CALL_SLOTS)) == Some(&number);
            let done = is_repeated || number > high;
            assert_eq!(send(&*producer, number, kind).await, done, "{number} under {high}, round {round}, step {step}");
            if done && !is_repeated {
                slots.insert(number % CALL_SLOTS, number);
                high = number;
            }
        }
    }
}

/// The last fence that a claim gets.
const LAST: u64 = 1 << 52;

/// A topic whose last fence is this.
async fn after_fence(last: &str) -> (RedisServer, Topic) {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![job("a")]).await;
    server.command(&["HSET", "dq:{shop:t}:meta", "fence", last]);
    (server, topic)
}

async fn last_fence(topic: &Topic) -> u64 {
    let request = PageRequest { state: State::Dead, after: None, limit: 10, bytes: DEFAULT_BYTES };
    topic.store.export(&topic.key, request, false).await.unwrap().fence.0
}

async fn parked_by(topic: &Topic, name: &str) -> Option<Fence> {
    topic.store.get(&topic.key, &[id(name)]).await.unwrap()[0].as_ref().unwrap().record.fixed().parked_by
}

#[tokio::test]
async fn every_script_calculates_exactly_with_fences_up_to_the_last_one() {
    for last in [1 << 51, LAST - 4] {
        let (server, topic) = after_fence(&last.to_string()).await;
        // transfer, settle, command: a job is parked, and only its own fence names the run that parked it.
        let claims = topic.claims().await;
        assert_eq!((claims[0].token.fence.0, last_fence(&topic).await), (last + 1, last + 1));
        topic.try_settle(&claims, Change::Park).await.unwrap();
        assert_eq!(parked_by(&topic, "a").await, Some(Fence(last + 1)));
        for other in [last, last + 2] {
            assert!(!topic.command_for(CommandKind::Requeue, "a", Some(Fence(other))).await.changed, "{other}");
            assert!(!topic.command_for(CommandKind::Ack, "a", Some(Fence(other))).await.changed, "{other}");
        }
        // sweep, and a rollback that keeps the parking fence.
        let swept = topic.swept(topic.sweep(std::time::Duration::ZERO, LEASE, 10)).await;
        assert_eq!(swept.claims[0].token.fence.0, last + 2);
        topic.reconcile().await;
        topic.try_settle(&swept.claims, Change::Rollback).await.unwrap();
        assert_eq!(parked_by(&topic, "a").await, Some(Fence(last + 1)));
        assert!(topic.command_for(CommandKind::Requeue, "a", Some(Fence(last + 1))).await.changed);
        // Of two fenced acks the larger fence wins.
        let claims = topic.claims().await;
        assert_eq!(claims[0].token.fence.0, last + 3);
        for (fence, changes) in [(last + 2, true), (last + 1, false), (last + 3, true), (last + 2, false)] {
            let acked = topic.command_for(CommandKind::Ack, "a", Some(Fence(fence))).await;
            assert_eq!(acked.changed, changes, "{fence} after {last}");
        }
        // import: a smaller fence changes nothing.
        let import = Import { copies: Vec::new(), on_duplicate: OnDuplicate::Keep, fence: Fence(7) };
        topic.store.producer(&topic.key, &ProducerId::new("i")).import(1, import).await.unwrap();
        assert_eq!(last_fence(&topic).await, last + 3);
        // reclaim, and recover of a job that two nodes hold: the newest run stays.
        server.command(&["HSET", "dq:{shop:t}:running:m", "a", &format!("{}:1", last + 4)]);
        server.command(&["ZADD", "dq:{shop:t}:leases", "5", "m"]);
        let twice = Mismatch {
            code: FindingCode::ForeignChange,
            topic: topic.key.topic.clone(),
            id: "a".into(),
            detail: "rr".into(),
        };
        assert!(
            topic.store.repair(&topic.key, &Repair::Mismatch { mismatch: twice, nodes: Vec::new() }).await.unwrap()
        );
        assert_eq!(server.command(&["HGET", "dq:{shop:t}:running:m", "a"]), format!("{}:1", last + 4));
        assert_eq!(topic.reclaim(&server, "m", 3).await, 1);
    }
}

#[tokio::test]
async fn a_fence_that_no_dq_gives_out_stops_no_topic_and_is_found_and_repaired() {
    for last in
        [(LAST + 1).to_string(), u64::MAX.to_string(), "1e300".into(), "inf".into(), "nan".into(), "a fence".into()]
    {
        let (server, topic) = after_fence(&last).await;
        let examined = topic.store.examine(&topic.key, Examine::default()).await.unwrap();
        assert_eq!(examined.mismatches[0].code, FindingCode::FenceTooLarge, "{last}");
        assert_eq!(examined.mismatches[0].detail, last);
        // Runs keep different fences, and an import does its work.
        let import = Import { copies: Vec::new(), on_duplicate: OnDuplicate::Keep, fence: Fence(7) };
        topic.store.producer(&topic.key, &ProducerId::new("i")).import(1, import).await.unwrap();
        let first = topic.claims().await;
        topic.try_settle(&first, Change::Rollback).await.unwrap();
        let second = topic.claims().await;
        let fences = [first[0].token.fence.0, second[0].token.fence.0];
        assert!(fences[0] < 1 << 52 && fences[0] < fences[1], "{fences:?} after {last}");

        server.command(&["HSET", "dq:{shop:t}:meta", "fence", &last]);
        let repair = Repair::Mismatch { mismatch: examined.mismatches[0].clone(), nodes: Vec::new() };
        for is_done in [true, false] {
            assert_eq!(topic.store.repair(&topic.key, &repair).await.unwrap(), is_done);
        }
        assert_eq!(topic.store.examine(&topic.key, Examine::default()).await.unwrap().mismatches, []);
    }
}

#[tokio::test]
async fn a_number_of_broadcasts_that_no_dq_counts_stops_no_channel() {
    for published in [((1_u64 << 53) - 1).to_string(), "1e300".into(), "-5".into(), "many".into(), "nan".into()] {
        let (server, topic) = Topic::entered().await;
        topic.add(vec![NewJob { deliver: Delivery::Broadcast, ..job("a") }]).await;
        server.command(&["HSET", "dq:{shop:t}:meta", "published", &published]);
        let request = Publish { limit: 10, bytes: DEFAULT_BYTES, fallback: LEASE, expires_after: LEASE };
        let answer = loop {
            let answer = topic.link.step(request).await.unwrap();
            if answer.published > 0 {
                break answer;
            }
        };
        assert_eq!((answer.published, answer.last_number), (1, 1), "{published}");
    }
}
