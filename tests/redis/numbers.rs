//! The numbers of batches, in any order and with gaps, against the rule in its simplest form (rule 18).

use std::collections::BTreeMap;

use dq::job::ProducerId;
use dq::store::{AddOutcome, BatchAnswer, CALL_SLOTS, Command, CommandKind, Numbered, Producer, Store};

use super::topic::{Topic, generated, id, job};

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
        let items =
            vec![Command { verb: CommandKind::Ack, id: id("exists"), fence: Some(dq::job::Fence(1)), by: None }; 2];
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
