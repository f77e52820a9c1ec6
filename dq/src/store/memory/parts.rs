//! A step and its confirmation apart, for simulations: they judge a step when it is done, and see its answer only later.

use super::MemoryStore;
use super::durable::Waits;
use crate::job::{NodeId, ProducerId, TopicKey};
use crate::store::{Answer, Batch, BatchReply, Pending, Request, StoreError};

/// The answer of a step, and what the caller waits for before it may see it.
pub type InParts<T> = (Result<T, StoreError>, Option<Pending<()>>);

impl MemoryStore {
    /// Executes the step that a node asks for.
    pub fn ask_in_parts(&self, topic: &TopicKey, node: &NodeId, request: Request) -> InParts<Answer> {
        let kind = request.kind();
        let cell = self.topics.cell(topic);
        cell.ask_in_parts(kind.name(), Waits::of(kind), |topic, now| topic.answer(now, node, request))
    }

    /// Executes a batch of a producer.
    pub fn execute_in_parts(&self, topic: &TopicKey, producer: &ProducerId, batch: Batch) -> InParts<BatchReply> {
        let cell = self.topics.cell(topic);
        cell.ask_in_parts(batch.name(), Waits::CHANGES, |topic, now| topic.execute(now, producer, batch))
    }
}
