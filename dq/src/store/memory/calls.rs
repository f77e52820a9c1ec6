//! The answers to numbered batches, so that a repeated batch does nothing (rule 18).
//!
//! The store keeps the answers to the last 16 batches of each producer, for an hour after their last use. A producer whose
//! answer was lost sends the batch again under the same number. A batch whose number is below the highest executed one and
//! whose answer is not kept is late: the store will never execute it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::now::Now;
use crate::job::ProducerId;
use crate::store::{
    AddOutcome, BatchAnswer, CALL_SLOTS, ChangeOutcome, CommandOutcome, ImportOutcome, StoreError, TopicSet,
};
use crate::time::Timestamp;

/// How long the store keeps the answers of a producer after their last use.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// A kept answer.
#[derive(Debug, Clone)]
pub(super) enum KeptAnswer {
    /// That many jobs, and all of them were added.
    AllAdded(usize),
    Added(Vec<AddOutcome>),
    /// Without the records that were removed.
    Commanded(Vec<CommandOutcome>),
    Changed(Vec<ChangeOutcome>),
    Imported(Vec<ImportOutcome>),
    Set(Box<TopicSet>),
    /// No answer: the batch is late.
    Late,
}

impl KeptAnswer {
    /// The answer to an `add` that has just been executed.
    pub(super) fn of_added(outcomes: &[AddOutcome]) -> Self {
        let are_all_added = outcomes.iter().all(|outcome| *outcome == AddOutcome::Added);
        if are_all_added { Self::AllAdded(outcomes.len()) } else { Self::Added(outcomes.to_vec()) }
    }

    /// The kept answer as the answer to an `add`.
    pub(super) fn added(self) -> Result<BatchAnswer<AddOutcome>, StoreError> {
        match self {
            Self::AllAdded(jobs) => Ok(BatchAnswer::Done(vec![AddOutcome::Added; jobs])),
            Self::Added(outcomes) => Ok(BatchAnswer::Done(outcomes)),
            Self::Late => Ok(BatchAnswer::Late),
            Self::Commanded(_) | Self::Changed(_) | Self::Imported(_) | Self::Set(_) => {
                Err(number_of_other_kind("add"))
            }
        }
    }

    /// The kept answer as the answer to a `command`.
    pub(super) fn commanded(self) -> Result<BatchAnswer<CommandOutcome>, StoreError> {
        match self {
            Self::Commanded(outcomes) => Ok(BatchAnswer::Done(outcomes)),
            Self::Late => Ok(BatchAnswer::Late),
            Self::AllAdded(_) | Self::Added(_) | Self::Changed(_) | Self::Imported(_) | Self::Set(_) => {
                Err(number_of_other_kind("command"))
            }
        }
    }

    /// The kept answer as the answer to a `change`.
    pub(super) fn changed(self) -> Result<BatchAnswer<ChangeOutcome>, StoreError> {
        match self {
            Self::Changed(outcomes) => Ok(BatchAnswer::Done(outcomes)),
            Self::Late => Ok(BatchAnswer::Late),
            Self::AllAdded(_) | Self::Added(_) | Self::Commanded(_) | Self::Imported(_) | Self::Set(_) => {
                Err(number_of_other_kind("change"))
            }
        }
    }

    /// The kept answer as the answer to an `import`.
    pub(super) fn imported(self) -> Result<BatchAnswer<ImportOutcome>, StoreError> {
        match self {
            Self::Imported(outcomes) => Ok(BatchAnswer::Done(outcomes)),
            Self::Late => Ok(BatchAnswer::Late),
            Self::AllAdded(_) | Self::Added(_) | Self::Commanded(_) | Self::Changed(_) | Self::Set(_) => {
                Err(number_of_other_kind("import"))
            }
        }
    }

    /// The kept answer as the answer to a `set`.
    pub(super) fn set(self) -> Result<BatchAnswer<TopicSet>, StoreError> {
        match self {
            Self::Set(set) => Ok(BatchAnswer::Done(vec![*set])),
            Self::Late => Ok(BatchAnswer::Late),
            Self::AllAdded(_) | Self::Added(_) | Self::Commanded(_) | Self::Changed(_) | Self::Imported(_) => {
                Err(number_of_other_kind("set"))
            }
        }
    }
}

fn number_of_other_kind(operation: &'static str) -> StoreError {
    StoreError::Other {
        operation,
        source: "the number of this batch was used before for a batch of the other kind".into(),
    }
}

/// The calls of one producer.
#[derive(Debug, Clone, Default)]
struct ProducerCalls {
    /// The highest number that was executed.
    highest: u64,
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
}

impl Calls {
    /// The answer to a batch that was executed before or is late; `None`: the step must execute it.
    pub(super) fn kept(&mut self, now: Now, producer: &ProducerId, number: u64) -> Option<KeptAnswer> {
        self.sweep(now);
        let calls = self.producers.get_mut(producer)?;
        match calls.slots.get(&(number % CALL_SLOTS)) {
            Some((kept, answer)) if *kept == number => {
                calls.used = now.floor();
                Some(answer.clone())
            }
            _ => (number < calls.highest).then_some(KeptAnswer::Late),
        }
    }

    /// Keeps the answer to a batch that the step has executed.
    pub(super) fn keep(&mut self, now: Now, producer: &ProducerId, number: u64, answer: KeptAnswer) {
        let calls = self.producers.entry(producer.clone()).or_default();
        calls.highest = calls.highest.max(number);
        calls.used = now.floor();
        calls.slots.insert(number % CALL_SLOTS, (number, answer));
    }

    /// Forgets producers that were silent for an hour; checks at most every ten minutes.
    fn sweep(&mut self, now: Now) {
        const EVERY: Duration = Duration::from_secs(600);
        let now = now.floor();
        if now >= self.swept && now.since(self.swept) < EVERY {
            return;
        }
        self.swept = now;
        self.producers.retain(|_, calls| now.since(calls.used) < KEPT_FOR);
    }
}
