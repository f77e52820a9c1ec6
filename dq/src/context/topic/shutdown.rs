//! Shutdown: how a topic stops, as a list of phases.
//!
//! A topic goes through the phases one after the other. While its lease is valid no node takes its jobs, and a topic that
//! stops cleanly leaves none. Other nodes can reclaim at once what could not go back in time, and charge no crash for it.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

use super::Topic;
use super::pipeline::RequestKind;
use crate::store::step::{Release, Wake};

/// How long the last outcomes may take, and then the release.
const FLUSH: Duration = Duration::from_secs(5);

/// How long cancelled handlers have to return. A handler that blocks its thread takes longer.
const DROP: Duration = Duration::from_millis(100);

/// What the supervisor orders its tasks to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::context) enum StopOrder {
    /// Go on.
    Continue,
    /// Stop. Handlers may go on until this time of the node's clock.
    Stop {
        /// The end of the grace.
        grace_until: Duration,
    },
}

/// The phases of a stop, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Claiming ends; the node gives up its roles.
    Claiming,
    /// Jobs that have not started go back at once.
    Waiting,
    /// Handlers go on, until the grace ends.
    Handlers,
    /// Unfinished handlers are cancelled, and their jobs go back.
    Cancel,
    /// Outcomes are sent until the store has judged each of them.
    Outcomes,
    /// The lease ends.
    Lease,
    /// The topic no longer needs the store.
    Store,
}

const PHASES: [Phase; 7] =
    [Phase::Claiming, Phase::Waiting, Phase::Handlers, Phase::Cancel, Phase::Outcomes, Phase::Lease, Phase::Store];

/// How far the stop of a topic has come.
#[derive(Debug)]
pub(super) struct Stopping {
    order: watch::Receiver<StopOrder>,
    closed: bool,
    /// How many phases are over.
    done: usize,
    cancelled_at: Option<Duration>,
    release_until: Option<Duration>,
    released: bool,
}

impl Stopping {
    pub(super) const fn new(order: watch::Receiver<StopOrder>) -> Self {
        Self { order, closed: false, done: 0, cancelled_at: None, release_until: None, released: false }
    }

    /// Waits for the next order. Cancel safe.
    pub(super) async fn ordered(&mut self) {
        if self.closed {
            return pending().await;
        }
        self.closed = self.order.changed().await.is_err();
    }

    /// The end of the grace, once a stop was ordered. Without a supervisor the grace is over.
    pub(super) fn grace_until(&self) -> Option<Duration> {
        match *self.order.borrow() {
            StopOrder::Stop { grace_until } => Some(grace_until),
            StopOrder::Continue if self.closed => Some(Duration::ZERO),
            StopOrder::Continue => None,
        }
    }

    /// Whether a stop was ordered: nothing is claimed or started any more.
    pub(super) fn is_ordered(&self) -> bool {
        self.grace_until().is_some()
    }

    /// Whether the grace is over.
    pub(super) fn is_cancelling(&self) -> bool {
        self.phase().is_none_or(|phase| phase >= Phase::Cancel)
    }

    fn phase(&self) -> Option<Phase> {
        PHASES.get(self.done).copied()
    }

    /// Whether every phase is over.
    pub(super) fn is_over(&self) -> bool {
        self.phase().is_none()
    }

    /// The release was answered.
    pub(super) const fn released(&mut self) {
        self.released = true;
    }
}

impl Topic {
    /// Goes through the phases of the stop, once one is ordered.
    pub(super) fn stop(&mut self, now: Duration) -> Option<Duration> {
        let grace_until = self.stopping.grace_until()?;
        while let Some(phase) = self.stopping.phase() {
            if let Err(ask_again) = self.leave_phase(phase, grace_until, now) {
                return Some(ask_again);
            }
            tracing::debug!(topic = %self.parts.key.topic, ?phase, "stopping");
            self.stopping.done += 1;
        }
        None
    }

    /// `Ok` if the phase is over; otherwise when to ask again at the latest.
    fn leave_phase(&mut self, phase: Phase, grace_until: Duration, now: Duration) -> Result<(), Duration> {
        let rollback = self.parts.node.crash_rollback;
        match phase {
            Phase::Claiming => {
                // Even if it knows of no role: the answer that gives it one may be in flight.
                self.sleep.called_wake(now);
                self.pipeline.send(Wake);
                Ok(())
            }
            Phase::Waiting => {
                self.take_back();
                if rollback {
                    self.roll_back_waiting();
                }
                Ok(())
            }
            Phase::Handlers => {
                if rollback && self.held.waiting() > 0 {
                    self.roll_back_waiting(); // jobs that wait again because their `isolate` was not answered
                }
                let unfinished = self.held.needing_permits() - self.held.waiting() + self.runs.running();
                if unfinished == 0 || now >= grace_until { Ok(()) } else { Err(grace_until) }
            }
            Phase::Cancel => {
                self.cancel_unfinished(rollback);
                self.stopping.cancelled_at = Some(now);
                Ok(())
            }
            Phase::Outcomes => {
                let cancelled_at = self.stopping.cancelled_at.unwrap_or(now);
                // A reconcile finds the rows that an unanswered claim left in the store, and they go back too.
                let agreed = self.reconciliation.is_settled() || !rollback;
                let flushed = agreed
                    && self.held.settling() == 0
                    && !self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep, RequestKind::Settle]);
                let end = cancelled_at + if flushed { DROP } else { FLUSH };
                if now >= end || (flushed && self.runs.active() == 0) { Ok(()) } else { Err(end) }
            }
            Phase::Lease => self.release(now),
            Phase::Store => Ok(()),
        }
    }

    /// Sends the release until it is answered, or its time is over.
    fn release(&mut self, now: Duration) -> Result<(), Duration> {
        let end = *self.stopping.release_until.get_or_insert_with(|| {
            let left = self.held.len();
            if left > 0 {
                tracing::debug!(topic = %self.parts.key.topic, jobs = left, "stopped while still holding jobs; other nodes reclaim them");
            }
            now + FLUSH.min(self.parts.node.call_timeout)
        });
        if self.stopping.released || now >= end {
            return Ok(());
        }
        if self.pipeline.can_send(RequestKind::Release, now) {
            self.pipeline.send(Release { last_seen: self.pipeline.last_seen });
        }
        Err(self.pipeline.pause_end(RequestKind::Release, now).map_or(end, |pause| pause.min(end)))
    }

    /// Whether nothing is claimed or started any more: the node stops, or its handlers have no runtime.
    pub(super) fn takes_no_more(&self) -> bool {
        self.handlers_gone || self.stopping.is_ordered()
    }
}
