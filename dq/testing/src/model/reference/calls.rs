//! The kept answers to numbered batches (rule 18).

use std::collections::BTreeMap;

use super::Topic;
use dq::job::ProducerId;
use dq::store::{AddOutcome, BatchAnswer, CALL_SLOTS, ChangeOutcome, CommandOutcome, TopicSet};

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
    Changed(Vec<ChangeOutcome>),
    Set(Box<TopicSet>),
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
        let Self::Added(outcomes) = self else { unreachable!("the model repeats a batch unchanged") };
        BatchAnswer::Done(outcomes)
    }

    pub(super) fn commanded(self) -> BatchAnswer<CommandOutcome> {
        let Self::Commanded(outcomes) = self else { unreachable!("the model repeats a batch unchanged") };
        BatchAnswer::Done(outcomes)
    }

    pub(super) fn changed(self) -> BatchAnswer<ChangeOutcome> {
        let Self::Changed(outcomes) = self else { unreachable!("the model repeats a batch unchanged") };
        BatchAnswer::Done(outcomes)
    }

    pub(super) fn set(self) -> BatchAnswer<TopicSet> {
        let Self::Set(set) = self else { unreachable!("the model repeats a batch unchanged") };
        BatchAnswer::Done(vec![*set])
    }
}
