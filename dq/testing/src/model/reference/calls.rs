//! Numbered calls: a repeated call is the same call (rule 18).

use std::collections::BTreeMap;

use super::Topic;
use dq::job::ProducerId;
use dq::store::{AddOutcome, BatchAnswer, CALL_SLOTS, CommandOutcome};

/// The calls of a producer: the answers that are kept, by slot, and the highest number that was executed.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    slots: BTreeMap<u64, (u64, Kept)>,
    highest: u64,
}

/// An answer that is kept.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    Added(Vec<AddOutcome>),
    Commanded(Vec<CommandOutcome>),
}

/// What to do with a call.
pub(super) enum Call {
    New,
    Repeat(Kept),
    Late,
}

impl Topic {
    pub(super) fn call(&self, producer: &ProducerId, number: u64) -> Call {
        let Some(calls) = self.calls.get(producer) else { return Call::New };
        match calls.slots.get(&(number % CALL_SLOTS)) {
            Some((kept, answer)) if *kept == number => Call::Repeat(answer.clone()),
            _ if number < calls.highest => Call::Late,
            _ => Call::New,
        }
    }

    pub(super) fn keep(&mut self, producer: &ProducerId, number: u64, answer: Kept) {
        let calls = self.calls.entry(producer.clone()).or_default();
        calls.highest = calls.highest.max(number);
        calls.slots.insert(number % CALL_SLOTS, (number, answer));
    }
}

impl Kept {
    pub(super) fn added(self) -> BatchAnswer<AddOutcome> {
        match self {
            Self::Added(outcomes) => BatchAnswer::Done(outcomes),
            Self::Commanded(_) => unreachable!("the model repeats a batch as it was"),
        }
    }

    pub(super) fn commanded(self) -> BatchAnswer<CommandOutcome> {
        match self {
            Self::Commanded(outcomes) => BatchAnswer::Done(outcomes),
            Self::Added(_) => unreachable!("the model repeats a batch as it was"),
        }
    }
}
