//! A step and its confirmation apart, for simulations: they judge a step when it is done, and see its answer only later.

use super::MemoryStore;
use super::durable::Waits;
use crate::job::{NodeId, ProducerId, TopicKey};
use crate::store::{
    AddOutcome, Answer, BatchAnswer, ChangeOutcome, Command, CommandOutcome, JobChange, NewJob, Numbered, Pending,
    Request, SetTopic, StoreError, TopicSet,
};

/// The answer of a step, and what the caller waits for before it may see it.
pub type InParts<T> = (Result<T, StoreError>, Option<Pending<()>>);

impl MemoryStore {
    /// Executes the step that a node asks for.
    pub fn ask_in_parts(&self, topic: &TopicKey, node: &NodeId, request: Request) -> InParts<Answer> {
        let kind = request.kind();
        let cell = self.topics.cell(topic);
        cell.ask_in_parts(kind.name(), Waits::of(kind), |topic, now| topic.answer(now, node, request))
    }

    /// Adds a batch of a producer.
    pub fn add_in_parts(
        &self,
        topic: &TopicKey,
        producer: &ProducerId,
        batch: Numbered<NewJob>,
    ) -> InParts<BatchAnswer<AddOutcome>> {
        let cell = self.topics.cell(topic);
        cell.ask_in_parts("add", Waits::CHANGES, |topic, now| topic.add(now, producer, batch))
    }

    /// Executes a batch of changes of a producer.
    pub fn change_in_parts(
        &self,
        topic: &TopicKey,
        producer: &ProducerId,
        batch: &Numbered<JobChange>,
    ) -> InParts<BatchAnswer<ChangeOutcome>> {
        let cell = self.topics.cell(topic);
        cell.ask_in_parts("change", Waits::CHANGES, |topic, now| topic.change(now, producer, batch))
    }

    /// Changes the state of the topic as a whole, as a batch of a producer.
    pub fn set_in_parts(
        &self,
        topic: &TopicKey,
        producer: &ProducerId,
        number: u64,
        set: SetTopic,
    ) -> InParts<BatchAnswer<TopicSet>> {
        let cell = self.topics.cell(topic);
        cell.ask_in_parts("set", Waits::CHANGES, |topic, now| topic.set(now, producer, number, set))
    }

    /// Executes a batch of commands of a producer.
    pub fn command_in_parts(
        &self,
        topic: &TopicKey,
        producer: &ProducerId,
        batch: &Numbered<Command>,
    ) -> InParts<BatchAnswer<CommandOutcome>> {
        let cell = self.topics.cell(topic);
        cell.ask_in_parts("command", Waits::CHANGES, |topic, now| topic.command(now, producer, batch))
    }
}
