//! The links and producers of the memory store.
//!
//! A call executes its step at once, and the future that it returns already holds the answer. So steps have the order of
//! their calls, and a link that is dropped leaves nothing in flight.

use std::future::ready;
use std::sync::Arc;

use super::cell::Cell;
use super::now::Now;
use super::topic::Topic;
use crate::job::{NodeId, ProducerId};
use crate::store::step::{
    Exhaust, Isolate, LeaseStatus, Noted, Publish, Published, Reclaim, Reclaimed, Reconcile, Reconciled, Release,
    Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept, Transfer, Transferred, Wake,
};
use crate::store::{
    AddOutcome, BatchAnswer, Command, CommandOutcome, Link, NewJob, Numbered, Pending, Producer, StoreError,
};

/// The link of one node to one topic.
#[derive(Debug)]
pub(super) struct MemoryLink {
    pub(super) cell: Arc<Cell>,
    pub(super) node: NodeId,
}

impl MemoryLink {
    fn step<T: Send + 'static>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&mut Topic, Now, &NodeId) -> Result<T, StoreError>,
    ) -> Pending<T> {
        Box::pin(ready(self.cell.step(operation, |topic, now| step(topic, now, &self.node))))
    }
}

impl Link for MemoryLink {
    fn transfer(&self, request: Transfer) -> Pending<Sequenced<Transferred>> {
        self.step("transfer", |topic, now, node| topic.transfer(now, node, &request))
    }

    fn settle(&self, request: Settle) -> Pending<Settled> {
        self.step("settle", |topic, now, node| topic.settle(now, node, request))
    }

    fn renew(&self, request: Renew) -> Pending<LeaseStatus> {
        self.step("renew", |topic, now, node| Ok(topic.renew(now, node, request)))
    }

    fn isolate(&self, request: Isolate) -> Pending<Noted> {
        self.step("isolate", |topic, now, node| Ok(topic.isolate(now, node, &request)))
    }

    fn exhaust(&self, request: Exhaust) -> Pending<Noted> {
        self.step("exhaust", |topic, now, node| Ok(topic.exhaust(now, node, request)))
    }

    fn reconcile(&self, request: Reconcile) -> Pending<Sequenced<Reconciled>> {
        self.step("reconcile", |topic, now, node| topic.reconcile(now, node, &request))
    }

    fn reclaim(&self, request: Reclaim) -> Pending<Reclaimed> {
        self.step("reclaim", |topic, now, _| topic.reclaim(now, &request))
    }

    fn release(&self, request: Release) -> Pending<LeaseStatus> {
        self.step("release", |topic, now, node| Ok(topic.release(now, node, request)))
    }

    fn sweep(&self, request: Sweep) -> Pending<Sequenced<Swept>> {
        self.step("sweep", |topic, now, node| topic.sweep(now, node, &request))
    }

    fn publish(&self, request: Publish) -> Pending<Published> {
        self.step("publish", |topic, now, node| topic.publish(now, node, request))
    }

    fn wake(&self, Wake: Wake) -> Pending<()> {
        self.step("wake", |topic, _, node| {
            topic.wake(node);
            Ok(())
        })
    }

    fn scan(&self, Scan: Scan) -> Pending<Scanned> {
        self.step("scan", |topic, now, _| Ok(topic.scan(now)))
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
        Box::pin(ready(self.cell.step("add", |topic, now| topic.add(now, &self.producer, batch))))
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        Box::pin(ready(self.cell.step("command", |topic, now| topic.command(now, &self.producer, &batch))))
    }
}
