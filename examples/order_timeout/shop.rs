//! The shop: closes the orders that nobody paid.
//!
//! An order is written into the ledger first and its job is added then; a payment is written first and the job is deleted
//! then. Whatever a crash cuts in between, [`Shop::go_on`] does again: both are safe to repeat.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::books::Order;
use crate::ledger::{Ending, Ledger, Run, micros};
use crate::orders::{Event, Happening};

/// Anything that ends the program.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// Close this order if it was not paid.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "8s")]
pub(crate) struct CloseOrder {
    #[job(id)]
    order_id: u64,
    /// When the order was placed: another ledger may have another order under the same number.
    placed_ms: u64,
}

#[delay_listener(concurrency = 64, timeout = "5s", retry = "1s, 2s, 5s")]
struct OrderTimeout {
    ledger: Arc<Ledger>,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let run = Run { fence: job.fence().0, due: job.due(), started: SystemTime::now() };
        self.ledger.close_if_open(job.order_id, job.placed_ms, run)?;
        Ok(channel.ack())
    }

    async fn final_retry(&self, job: Job<CloseOrder>, cause: &Failure) {
        eprintln!("order {} could not be closed: {cause}", job.order_id);
    }
}

/// What happens in the shop becomes entries of the ledger and jobs.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) jobs: Provider,
    /// How long an order may stay open.
    pub(crate) timeout: Duration,
}

impl Shop {
    /// Something happened to an order.
    pub(crate) async fn handle(&self, event: Event) -> Result<(), Failed> {
        match event.event {
            Happening::Placed => self.place(event.order).await,
            Happening::Paid | Happening::Cancelled => self.end(event.order, event.event).await,
        }
    }

    async fn place(&self, order_id: u64) -> Result<(), Failed> {
        let placed_ms = micros(SystemTime::now()) / 1_000;
        let due_ms = placed_ms + self.timeout.as_millis() as u64;
        if self.ledger.place(order_id, placed_ms, due_ms)? {
            // A job that waits under this number belongs to another ledger: it goes.
            self.jobs.add(CloseOrder { order_id, placed_ms }).after(self.timeout).replace_existing().await?;
        }
        Ok(())
    }

    async fn end(&self, order_id: u64, event: Happening) -> Result<(), Failed> {
        if self.ledger.end(order_id, event)? == Ending::InTime {
            self.delete_job(order_id).await?;
        }
        Ok(())
    }

    async fn delete_job(&self, order_id: u64) -> Result<(), Failed> {
        // Found running, it is being handled at this very moment: the ledger tells the handler that the order was paid.
        let deleted = self.jobs.delete::<CloseOrder>(order_id).await?;
        self.ledger.job_deleted(order_id, deleted.found.map(|state| state.to_string()))?;
        Ok(())
    }

    /// After a restart: does again what the last run may not have finished.
    pub(crate) async fn go_on(&self) -> Result<(), Failed> {
        for (order_id, _) in self.ledger.orders(|order| order.ended.is_some() && !order.job_deleted) {
            self.delete_job(order_id).await?;
        }
        // Each has its own delay, so they are single adds; started together they share round trips to the store. A job that the
        // store still has may run and be done before its add arrives, which then adds it anew: that run finds the order closed.
        let mut adds = JoinSet::new();
        for (order_id, order) in self.ledger.orders(Order::is_open) {
            if !self.ledger.resume(order_id)? {
                continue;
            }
            let job = CloseOrder { order_id, placed_ms: order.placed_ms };
            adds.spawn(self.jobs.add(job).after(time_left(&order)).keep_existing());
        }
        while let Some(added) = adds.join_next().await {
            added??;
        }
        Ok(())
    }

    /// The events that are not on record yet; tells when there are others.
    pub(crate) fn left_of(&self, events: &[Event]) -> Vec<Event> {
        let known: BTreeMap<_, _> = self.ledger.orders(|_| true).into_iter().collect();
        let on_record = |event: &Event| known.get(&event.order).is_some_and(|order| order.knows(event.event));
        let left: Vec<_> = events.iter().filter(|event| !on_record(event)).copied().collect();
        if !known.is_empty() {
            let (orders, open) = (known.len(), known.values().filter(|order| order.is_open()).count());
            eprintln!(
                "going on: {orders} orders are in the ledger, {open} of them open; {} events are left",
                left.len()
            );
        }
        left
    }

    /// How long until every open order is due.
    pub(crate) fn longest_left(&self) -> Duration {
        self.ledger.orders(Order::is_open).iter().map(|(_, order)| time_left(order)).max().unwrap_or_default()
    }
}

fn time_left(order: &Order) -> Duration {
    Duration::from_millis(order.due_ms.saturating_sub(micros(SystemTime::now()) / 1_000))
}
