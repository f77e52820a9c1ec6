//! The links and producers of the memory store.
//!
//! A call executes its step at once, and the future that it returns already holds the answer; over a sink it may still wait
//! until the changes are durable. So steps have the order of their calls, and a link that is dropped leaves nothing in flight.

use std::sync::Arc;

use super::cell::Cell;
use super::durable::Waits;
use super::now::Now;
use super::topic::Topic;
use crate::job::{NodeId, ProducerId};
use crate::store::step::{Scan, Wake};
use crate::store::{
    AddOutcome, Answer, BatchAnswer, ChangeOutcome, Command, CommandOutcome, Import, ImportOutcome, JobChange, Link,
    NewJob, Numbered, Pending, Producer, Request, SetTopic, StoreError, TopicSet,
};

/// The link of one node to one topic.
#[derive(Debug)]
pub(super) struct MemoryLink {
    pub(super) cell: Arc<Cell>,
    pub(super) node: NodeId,
    /// Whether the topic counts what its steps do.
    pub(super) counts: bool,
}

impl Link for MemoryLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        let kind = request.kind();
        self.cell.ask(kind.name(), Waits::of(kind), |topic, now| {
            topic.statistics.begin(now, self.counts);
            topic.answer(now, &self.node, request)
        })
    }
}

impl Topic {
    /// Executes the step that a node asks for.
    pub(crate) fn answer(&mut self, now: Now, node: &NodeId, request: Request) -> Result<Answer, StoreError> {
        Ok(match request {
            Request::Transfer(request) => Answer::Transfer(self.transfer(now, node, &request)?),
            Request::Settle(request) => Answer::Settle(self.settle(now, node, request)?),
            Request::Renew(request) => Answer::Renew(self.renew(now, node, request)),
            Request::Isolate(request) => Answer::Isolate(self.isolate(now, node, &request)?),
            Request::Exhaust(request) => Answer::Exhaust(self.exhaust(now, node, request)),
            Request::Reconcile(request) => Answer::Reconcile(self.reconcile(now, node, &request)?),
            Request::Reclaim(request) => Answer::Reclaim(self.reclaim(now, &request)?),
            Request::Release(request) => Answer::Release(self.release(now, node, request)),
            Request::Sweep(request) => Answer::Sweep(self.sweep(now, node, &request)?),
            Request::Publish(request) => Answer::Publish(self.publish(now, node, request)?),
            Request::Wake(Wake) => {
                self.wake(node);
                Answer::Wake(())
            }
            Request::Scan(Scan) => Answer::Scan(self.scan(now)),
            Request::Audit(request) => Answer::Audit(self.audit(&request)?),
            Request::Recover(request) => Answer::Recover(self.recover(&request)?),
        })
    }
}

/// The producer of one provider on one topic.
#[derive(Debug)]
pub(super) struct MemoryProducer {
    pub(super) cell: Arc<Cell>,
    pub(super) producer: ProducerId,
}

impl Producer for MemoryProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        self.cell.ask("add", Waits::CHANGES, |topic, now| topic.add(now, &self.producer, batch))
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        self.cell.ask("command", Waits::CHANGES, |topic, now| topic.command(now, &self.producer, &batch))
    }

    fn change(&self, batch: Numbered<JobChange>) -> Pending<BatchAnswer<ChangeOutcome>> {
        self.cell.ask("change", Waits::CHANGES, |topic, now| topic.change(now, &self.producer, &batch))
    }

    fn set(&self, number: u64, set: SetTopic) -> Pending<BatchAnswer<TopicSet>> {
        self.cell.ask("set", Waits::CHANGES, |topic, now| topic.set(now, &self.producer, number, set))
    }

    fn import(&self, number: u64, import: Import) -> Pending<BatchAnswer<ImportOutcome>> {
        self.cell.ask("import", Waits::CHANGES, |topic, now| topic.import(now, &self.producer, number, import))
    }
}
