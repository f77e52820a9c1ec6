//! The kept answers to numbered batches (rule 18).

use std::collections::BTreeMap;

use super::Topic;
use dq::job::ProducerId;
use dq::store::{AddOutcome, BatchAnswer, CALL_SLOTS, CommandOutcome};

/// The batches of one producer: the kept answers by slot, and the highest executed number.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    slots: BTreeMap<u64, (u64, KeptAnswer)>,
    highest: u64,
}

/// A kept answer.
#[derive(Debug, Clone)]
pub(super) enum KeptAnswer {
    Added(Vec<AddOutcome>),
    Commanded(Vec<CommandOutcome>),
}

/// How to answer a batch: execute it, repeat the kept answer, or answer *late*.
pub(super) enum Call {
    New,
    Repeat(KeptAnswer),
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

    pub(super) fn keep(&mut self, producer: &ProducerId, number: u64, answer: KeptAnswer) {
        let calls = self.calls.entry(producer.clone()).or_default();
        calls.highest = calls.highest.max(number);
        calls.slots.insert(number % CALL_SLOTS, (number, answer));
    }
}

impl KeptAnswer {
    pub(super) fn added(self) -> BatchAnswer<AddOutcome> {
        match self {
            Self::Added(outcomes) => BatchAnswer::Done(outcomes),
            Self::Commanded(_) => unreachable!("the model repeats a batch unchanged"),
        }
    }

    pub(super) fn commanded(self) -> BatchAnswer<CommandOutcome> {
        match self {
            Self::Commanded(outcomes) => BatchAnswer::Done(outcomes),
            Self::Added(_) => unreachable!("the model repeats a batch unchanged"),
        }
    }
}
