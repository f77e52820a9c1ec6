//! The ways to a topic. A step is executed when it is called, and its future is only the answer, which is there already;
//! so the order of the calls is the order of the steps, and a link that is dropped leaves nothing under way.

use std::future::ready;
use std::sync::Arc;

use super::cell::Cell;
use super::now::Now;
use super::topic::Topic;
use crate::job::{NodeId, ProducerId};
use crate::store::step::{
    Age, Aged, Begin, Cast, Casted, Exhaust, Hold, Noted, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Scan,
    Scanned, Settle, Settled, Standing, Transfer, Transferred, Turned, Wake,
};
use crate::store::{
    AddOutcome, BatchAnswer, Link, NewJob, Numbered, Pending, Producer, StoreError, WithdrawOutcome, Withdrawal,
};

/// The way of a node.
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
    fn transfer(&self, request: Transfer) -> Pending<Turned<Transferred>> {
        self.step("transfer", |topic, now, node| topic.transfer(now, node, &request))
    }

    fn settle(&self, request: Settle) -> Pending<Settled> {
        self.step("settle", |topic, now, node| topic.settle(now, node, request))
    }

    fn hold(&self, request: Hold) -> Pending<Standing> {
        self.step("hold", |topic, now, node| Ok(topic.hold(now, node, request)))
    }

    fn begin(&self, request: Begin) -> Pending<Noted> {
        self.step("begin", |topic, now, node| Ok(topic.begin(now, node, &request)))
    }

    fn exhaust(&self, request: Exhaust) -> Pending<Noted> {
        self.step("exhaust", |topic, now, node| Ok(topic.exhaust(now, node, request)))
    }

    fn reconcile(&self, request: Reconcile) -> Pending<Turned<Reconciled>> {
        self.step("reconcile", |topic, now, node| topic.reconcile(now, node, &request))
    }

    fn reclaim(&self, request: Reclaim) -> Pending<Reclaimed> {
        self.step("reclaim", |topic, now, _| topic.reclaim(now, &request))
    }

    fn release(&self, request: Release) -> Pending<Standing> {
        self.step("release", |topic, now, node| Ok(topic.release(now, node, request)))
    }

    fn age(&self, request: Age) -> Pending<Turned<Aged>> {
        self.step("age", |topic, now, node| topic.age(now, node, &request))
    }

    fn cast(&self, request: Cast) -> Pending<Casted> {
        self.step("cast", |topic, now, node| topic.cast(now, node, request))
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

/// The way of a caller.
#[derive(Debug)]
pub(super) struct MemoryProducer {
    pub(super) cell: Arc<Cell>,
    pub(super) producer: ProducerId,
}

impl Producer for MemoryProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        Box::pin(ready(self.cell.step("add", |topic, now| topic.add(now, &self.producer, batch))))
    }

    fn withdraw(&self, batch: Numbered<Withdrawal>) -> Pending<BatchAnswer<WithdrawOutcome>> {
        Box::pin(ready(self.cell.step("withdraw", |topic, now| topic.withdraw(now, &self.producer, &batch))))
    }
}
