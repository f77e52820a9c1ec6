//! The shop: closes unpaid orders.
//!
//! The shop records an order in the ledger before it adds the job, and a payment before it deletes the job. If a crash comes
//! between the two, [`Shop::resume`] does the second step again; both are safe to repeat.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dq::job::State;
use dq::prelude::*;
use dq::provider::AddedHow;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::books::Order;
use crate::ledger::{Ending, Ledger, Run, micros};
use crate::orders::{Event, EventKind};

/// Any error that ends the program.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// Closes this order if it was not paid.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "8s")]
pub(crate) struct CloseOrder {
    #[job(id)]
    order_id: u64,
    /// When the order was placed: another ledger may have another order with the same number.
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

    async fn on_exhausted(&self, job: Job<CloseOrder>, cause: &Failure) {
        eprintln!("order {} could not be closed: {cause}", job.order_id);
    }
}

/// Turns the events of the shop into entries of the ledger and into jobs.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) jobs: Provider,
    /// How long an order may stay open.
    pub(crate) timeout: Duration,
}

impl Shop {
    /// Handles an event of an order.
    pub(crate) async fn handle(&self, event: Event) -> Result<(), Failed> {
        match event.event {
            EventKind::Placed => self.place(event.order).await,
            EventKind::Paid | EventKind::Cancelled => self.end(event.order, event.event).await,
        }
    }

    async fn place(&self, order_id: u64) -> Result<(), Failed> {
        let placed_ms = micros(SystemTime::now()) / 1_000;
        let due_ms = placed_ms + self.timeout.as_millis() as u64;
        if self.ledger.place(order_id, placed_ms, due_ms)? {
            // A job that already waits under this number belongs to another ledger, so it is replaced.
            self.jobs.add(CloseOrder { order_id, placed_ms }).after(self.timeout).replace_existing().await?;
        }
        Ok(())
    }

    async fn end(&self, order_id: u64, event: EventKind) -> Result<(), Failed> {
        if self.ledger.end(order_id, event)? == Ending::InTime {
            self.delete_job(order_id).await?;
        }
        Ok(())
    }

    async fn delete_job(&self, order_id: u64) -> Result<(), Failed> {
        // If the job is running at this moment, its handler reads in the ledger that the order was paid.
        let deleted = self.jobs.delete::<CloseOrder>(order_id).await?;
        self.ledger.job_deleted(order_id, deleted.found.map(|state| state.to_string()))?;
        Ok(())
    }

    /// After a restart, repeats what the last run of the program may not have finished.
    pub(crate) async fn resume(&self) -> Result<(), Failed> {
        for (order_id, _) in self.ledger.orders(|order| order.ended.is_some() && !order.job_deleted) {
            self.delete_job(order_id).await?;
        }
        // Each job has its own delay, so these are single adds; started together, they share round trips to the store. A job
        // that the store still has may end before its add arrives. The add then creates it again, and its run finds the order
        // closed.
        let mut adds = JoinSet::new();
        let is_resumed = !self.ledger.orders(|_| true).is_empty();
        for (order_id, order) in self.ledger.orders(Order::is_open) {
            if !self.ledger.resume(order_id)? {
                continue;
            }
            let job = CloseOrder { order_id, placed_ms: order.placed_ms };
            adds.spawn(self.jobs.add(job).after(time_left(&order)).keep_existing());
        }
        let (mut waiting, mut running, mut lost) = (0, 0, 0);
        while let Some(added) = adds.join_next().await {
            match added??.how {
                AddedHow::Kept(State::Running) => running += 1,
                AddedHow::Kept(_) => waiting += 1,
                _ => lost += 1,
            }
        }
        if is_resumed {
            eprintln!(
                "resuming: the store still has {} jobs of open orders ({waiting} wait, {running} are running); {lost} are added \
                 again",
                waiting + running
            );
        }
        Ok(())
    }

    /// Returns the events that are not in the ledger yet, and prints how many if the ledger has others.
    pub(crate) fn remaining(&self, events: &[Event]) -> Vec<Event> {
        let known: BTreeMap<_, _> = self.ledger.orders(|_| true).into_iter().collect();
        let is_recorded = |event: &Event| known.get(&event.order).is_some_and(|order| order.has_recorded(event.event));
        let remaining: Vec<_> = events.iter().filter(|event| !is_recorded(event)).copied().collect();
        if !known.is_empty() {
            let (orders, open) = (known.len(), known.values().filter(|order| order.is_open()).count());
            eprintln!(
                "resuming: the ledger has {orders} orders, {open} of them open; {} events are left",
                remaining.len()
            );
        }
        remaining
    }

    /// Returns how long it takes until every open order is due.
    pub(crate) fn longest_time_left(&self) -> Duration {
        self.ledger.orders(Order::is_open).iter().map(|(_, order)| time_left(order)).max().unwrap_or_default()
    }
}

fn time_left(order: &Order) -> Duration {
    Duration::from_millis(order.due_ms.saturating_sub(micros(SystemTime::now()) / 1_000))
}
