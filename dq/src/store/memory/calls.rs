//! The answers to numbered batches, so that a repeated batch does nothing (rule 18).
//!
//! The store keeps the answers to the last 16 batches of each producer, for an hour after their last use. A producer whose
//! answer was lost sends the batch again under the same number. A batch whose number is below the highest executed one and
//! whose answer is not kept is late: the store will never execute it.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::kept::Touches;
use super::now::Now;
use crate::job::ProducerId;
use crate::store::{
    AddOutcome, Batch, BatchAnswer, BatchReply, CALL_SLOTS, CommandOutcome, OutboxPosition, StoreError, is_relay,
};
use crate::time::Timestamp;

/// How long the store keeps the answers of a producer after their last use.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// A kept answer.
#[derive(Debug, Clone)]
enum KeptAnswer {
    /// That many jobs, and all of them were added.
    AllAdded(usize),
    Other(Arc<BatchReply>),
}

impl KeptAnswer {
    fn of(reply: &BatchReply) -> Self {
        match reply {
            BatchReply::Add(BatchAnswer::Done(outcomes)) if outcomes.iter().all(|one| *one == AddOutcome::Added) => {
                Self::AllAdded(outcomes.len())
            }
            // The records of jobs that commands removed are given out once.
            BatchReply::Command(BatchAnswer::Done(outcomes)) => {
                let states = outcomes.iter().map(|outcome| CommandOutcome { removed: None, ..outcome.clone() });
                Self::Other(Arc::new(BatchReply::Command(BatchAnswer::Done(states.collect()))))
            }
            other => Self::Other(Arc::new(other.clone())),
        }
    }

    fn reply(&self) -> BatchReply {
        match self {
            Self::AllAdded(jobs) => BatchReply::Add(BatchAnswer::Done(vec![AddOutcome::Added; *jobs])),
            Self::Other(reply) => BatchReply::clone(reply),
        }
    }
}

/// The calls of one producer.
#[derive(Debug, Clone, Default)]
struct ProducerCalls {
    /// The highest number that was executed; of a relay, the position of its last entry.
    highest: OutboxPosition,
    /// When an answer was last stored or returned.
    used: Timestamp,
    /// Number and answer, by number mod [`CALL_SLOTS`].
    slots: BTreeMap<u64, (u64, KeptAnswer)>,
}

/// The calls of all producers of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    producers: BTreeMap<ProducerId, ProducerCalls>,
    swept: Timestamp,
    /// The relays whose positions the step has moved.
    pub(super) moved: Touches<ProducerId>,
}

impl Calls {
    /// The answer to a batch that was executed before or is late; `None`: the step must execute it.
    pub(super) fn kept(
        &mut self,
        now: Now,
        producer: &ProducerId,
        batch: &Batch,
    ) -> Result<Option<BatchReply>, StoreError> {
        self.sweep(now);
        let (late, number) = (batch.late(), batch.number());
        let Some(calls) = self.producers.get_mut(producer) else { return Ok(None) };
        let is_last = calls.highest == position_of(batch);
        match calls.slots.get(&(number % CALL_SLOTS)) {
            // Of a position only the last answer is kept.
            Some((kept, answer)) if *kept == number && (is_last || !is_relay(producer.as_str())) => {
                calls.used = now.floor();
                let reply = answer.reply();
                if mem::discriminant(&reply) != mem::discriminant(&late) {
                    let source = "the number of this batch was used before for a batch of the other kind".into();
                    return Err(StoreError::Other { operation: batch.name(), source });
                }
                Ok(Some(reply))
            }
            // A store on a disk keeps the position of an outbox, and not the answer.
            _ if number <= calls.highest.at => Ok(Some(late)),
            _ => Ok(None),
        }
    }

    /// Keeps the answer to a batch that the step has executed.
    pub(super) fn keep(&mut self, now: Now, producer: &ProducerId, number: OutboxPosition, reply: &BatchReply) {
        if is_relay(producer.as_str()) {
            self.moved.add(|| producer.clone());
        }
        let calls = self.producers.entry(producer.clone()).or_default();
        if number.at >= calls.highest.at {
            calls.highest = number;
        }
        calls.used = now.floor();
        calls.slots.insert(number.at % CALL_SLOTS, (number.at, KeptAnswer::of(reply)));
    }

    /// The highest number that was executed: of a relay, the position of its last entry that has arrived.
    pub(super) fn highest(&self, producer: &ProducerId) -> OutboxPosition {
        self.producers.get(producer).map_or(OutboxPosition::START, |calls| calls.highest)
    }

    /// Sets the position of a relay, as a journal has it.
    pub(super) fn put(&mut self, relay: &ProducerId, position: OutboxPosition) {
        let calls = self.producers.entry(relay.clone()).or_default();
        (calls.highest, calls.slots) = (position, BTreeMap::new());
        self.moved.add(|| relay.clone());
    }

    /// Sets the position of a relay back, if it is this one. Returns whether it was.
    pub(super) fn set_back(&mut self, relay: &ProducerId, from: OutboxPosition, to: OutboxPosition) -> bool {
        let is_there = self.highest(relay) == from;
        if is_there {
            self.put(relay, to);
        }
        is_there
    }

    /// The relays, each with its position.
    pub(super) fn positions(&self) -> impl Iterator<Item = (&ProducerId, OutboxPosition)> {
        let relays = self.producers.iter().filter(|(producer, _)| is_relay(producer.as_str()));
        relays.map(|(relay, calls)| (relay, calls.highest))
    }

    /// Forgets producers that were silent for an hour; checks at most every ten minutes.
    fn sweep(&mut self, now: Now) {
        const EVERY: Duration = Duration::from_secs(600);
        let now = now.floor();
        if now >= self.swept && now.since(self.swept) < EVERY {
            return;
        }
        self.swept = now;
        let is_kept = |producer: &ProducerId| is_relay(producer.as_str());
        self.producers.retain(|producer, calls| is_kept(producer) || now.since(calls.used) < KEPT_FOR);
    }
}

/// The position of an entry of an outbox. What any other producer sends has a number alone.
pub(super) const fn position_of(batch: &Batch) -> OutboxPosition {
    match batch {
        Batch::Relay { entry } => entry.position,
        other => OutboxPosition::clock(other.number()),
    }
}
