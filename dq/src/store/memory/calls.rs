//! Numbered calls: a repeated call is the same call (PROTOCOL.md rule 18).
//!
//! Of each producer the answers of its last 16 batches are kept, for an hour beyond their last use, so that a batch whose
//! answer was lost can be sent again under its number and does nothing twice. One that comes behind a later one and is
//! not kept was never executed, and never will be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::now::Now;
use crate::job::ProducerId;
use crate::store::{AddOutcome, BatchAnswer, CALL_SLOTS, CommandOutcome, StoreError};
use crate::time::Timestamp;

/// How long calls are kept beyond their last use.
const KEPT: Duration = Duration::from_secs(3600);

/// An answer that is kept.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    Added(Vec<AddOutcome>),
    /// Without the records that were removed.
    Commanded(Vec<CommandOutcome>),
    /// Nothing: the call came too late.
    Late,
}

impl Kept {
    /// As the answer to an `add`.
    pub(super) fn added(self) -> Result<BatchAnswer<AddOutcome>, StoreError> {
        match self {
            Self::Added(outcomes) => Ok(BatchAnswer::Done(outcomes)),
            Self::Late => Ok(BatchAnswer::Late),
            Self::Commanded(_) => Err(number_of_another("add")),
        }
    }

    /// As the answer to a `command`.
    pub(super) fn commanded(self) -> Result<BatchAnswer<CommandOutcome>, StoreError> {
        match self {
            Self::Commanded(outcomes) => Ok(BatchAnswer::Done(outcomes)),
            Self::Late => Ok(BatchAnswer::Late),
            Self::Added(_) => Err(number_of_another("command")),
        }
    }
}

fn number_of_another(operation: &'static str) -> StoreError {
    StoreError::Other { operation, source: "the number of the batch was used for a batch of another kind".into() }
}

#[derive(Debug, Clone, Default)]
struct Executed {
    highest: u64,
    used: Timestamp,
    slots: BTreeMap<u64, (u64, Kept)>,
}

/// The calls of all producers of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    producers: BTreeMap<ProducerId, Executed>,
    swept: Timestamp,
}

impl Calls {
    /// The answer to a call that was executed before, or that comes too late; `None`: execute it.
    pub(super) fn kept(&mut self, now: Now, producer: &ProducerId, number: u64) -> Option<Kept> {
        self.sweep(now);
        let calls = self.producers.get_mut(producer)?;
        match calls.slots.get(&(number % CALL_SLOTS)) {
            Some((kept, answer)) if *kept == number => {
                calls.used = now.floor();
                Some(answer.clone())
            }
            _ => (number < calls.highest).then_some(Kept::Late),
        }
    }

    /// Keeps the answer of a call that was executed.
    pub(super) fn keep(&mut self, now: Now, producer: &ProducerId, number: u64, answer: Kept) {
        let calls = self.producers.entry(producer.clone()).or_default();
        calls.highest = calls.highest.max(number);
        calls.used = now.floor();
        calls.slots.insert(number % CALL_SLOTS, (number, answer));
    }

    /// Forgets producers that were silent for an hour; looks every ten minutes.
    fn sweep(&mut self, now: Now) {
        const EVERY: Duration = Duration::from_secs(600);
        let now = now.floor();
        if now >= self.swept && now.since(self.swept) < EVERY {
            return;
        }
        self.swept = now;
        self.producers.retain(|_, calls| now.since(calls.used) < KEPT);
    }
}
