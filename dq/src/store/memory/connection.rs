//! The links and producers of the memory store.
//!
//! A call executes its step at once, and the future that it returns already holds the answer; over a sink it may still wait
//! until the changes are durable. So steps have the order of their calls, and a link that is dropped leaves nothing in flight.

use std::sync::Arc;

use super::calls::position_of;
use super::cell::Cell;
use super::durable::Waits;
use super::now::Now;
use super::topic::Topic;
use crate::job::{NodeId, ProducerId};
use crate::store::step::{Audited, Recovered, Scan, Wake};
use crate::store::{Answer, Batch, BatchAnswer, BatchReply, Link, LinkOptions, Pending, Producer, Request, StoreError};

/// The link of one node to one topic.
#[derive(Debug)]
pub(super) struct MemoryLink {
    pub(super) cell: Arc<Cell>,
    pub(super) node: NodeId,
    pub(super) options: LinkOptions,
}

impl Link for MemoryLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        let kind = request.kind();
        self.cell.ask(kind.name(), Waits::of(kind), |topic, now| topic.answer(now, &self.node, self.options, request))
    }
}

impl Topic {
    /// Executes the step that a node asks for.
    pub(crate) fn answer(
        &mut self,
        now: Now,
        node: &NodeId,
        options: LinkOptions,
        request: Request,
    ) -> Result<Answer, StoreError> {
        request.check()?;
        self.record.count(options.counts);
        self.by_code = options;
        Ok(match request {
            Request::Transfer(request) => Answer::Transfer(self.transfer(now, node, &request)?),
            Request::Settle(request) => Answer::Settle(self.settle(now, node, request)?),
            Request::Renew(request) => Answer::Renew(self.renew(now, node, request)),
            Request::Isolate(request) => Answer::Isolate(self.isolate(now, node, &request)?),
            Request::Exhaust(request) => Answer::Exhaust(self.exhaust(now, node, request)),
            Request::Note(request) => Answer::Note(self.note_of_run(now, node, request)),
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
            // A slot has exactly one place, so no job is ever lost.
            Request::Audit(_) => Answer::Audit(Audited { lost: Vec::new(), next: None }),
            Request::Recover(request) => {
                Answer::Recover(Recovered { recovered: Vec::new(), examined: request.ids.len() })
            }
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
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        self.cell.ask(batch.name(), Waits::CHANGES, |topic, now| topic.execute(now, &self.producer, batch))
    }
}

impl Topic {
    /// Executes the batch that a producer asks for, unless it was executed before or is late.
    pub(super) fn execute(&mut self, now: Now, producer: &ProducerId, batch: Batch) -> Result<BatchReply, StoreError> {
        batch.check()?;
        let number = position_of(&batch);
        if let Some(kept) = self.calls.kept(now, producer, &batch)? {
            return Ok(kept);
        }
        let reply = match batch {
            Batch::Add { batch } => BatchReply::Add(BatchAnswer::Done(self.add(now, producer, batch.items)?)),
            Batch::Command { batch } => {
                BatchReply::Command(BatchAnswer::Done(self.command(now, producer, &batch.items)))
            }
            Batch::Change { batch } => {
                BatchReply::Change(BatchAnswer::Done(self.change(now, producer, &batch.items)?))
            }
            Batch::Import { import, .. } => BatchReply::Import(BatchAnswer::Done(self.import(now, import)?)),
            Batch::Set { set, .. } => BatchReply::Set(BatchAnswer::Done(vec![self.set(now, set)])),
            Batch::JobSet { change, .. } => {
                BatchReply::JobSet(BatchAnswer::Done(vec![self.job_set(now, producer, change)?]))
            }
            Batch::Relay { entry } => {
                BatchReply::Relay(BatchAnswer::Done(self.take_follow_ups(now, producer, &entry)?))
            }
        };
        self.calls.keep(now, producer, number, &reply);
        Ok(reply)
    }
}
