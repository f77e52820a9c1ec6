//! One topic on this node: the only owner of what the node holds of it, and the only one that talks to the store about it.
//!
//! A topic is one task. It waits for answers of the store, for handlers that end, for signals and for the next point in
//! time at which something is due, and then lets every subsystem do what there is to do. A subsystem is a method
//! `fn subsystem(&mut self, now) -> Option<Duration>` in a file of its own: it sends requests, starts handlers, and says
//! when it wants to be asked again if nothing happens before. So nothing is ever cut in the middle, and there is no lock.
//!
//! Invariant: a job in [`Held`] is everything not yet confirmed gone, unanswered outcomes included. Whatever fails, the
//! topic goes on from what it holds: a failed link is replaced and reconciled (`crash/reconcile.rs`), a lost lease cancels
//! handlers (`crash/lease.rs`), and outcomes are sent until the store has judged each.

mod deadlines;
mod held;
mod runs;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

pub(super) use deadlines::earliest;
pub(super) use held::{Held, HeldJob, Mode, Stage};
pub(super) use runs::{Run, RunId, Runs, longest_count};

use super::crash::lease::Lease;
use super::crash::reclaim::Reclaims;
use super::crash::reconcile::Reconciliation;
use super::execute::RunEnd;
use super::health::Gauge;
use super::link::{Answer, Kind, Line};
use super::shutdown::{StopOrder, Stopping};
use super::smart_sleep::SmartSleep;
use super::subscription::Subscription;
use super::transfer::Prefetch;
use crate::config::{NodeSettings, TopicSettings};
use crate::environment::Environment;
use crate::job::{JobId, TopicKey};
use crate::listener::erased::ErasedListener;
use crate::store::{Signal, StoreError};

/// What a topic is made of, kept over a restart of its task.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) key: TopicKey,
    pub(super) listener: Arc<dyn ErasedListener>,
    pub(super) topic: TopicSettings,
    pub(super) node: NodeSettings,
    pub(super) environment: Environment,
    pub(super) gauge: Arc<Gauge>,
    /// What most jobs have.
    pub(super) no_headers: Arc<[(String, String)]>,
}

/// See the module.
pub(super) struct Topic {
    pub(super) parts: Parts,
    pub(super) line: Line,
    pub(super) held: Held,
    pub(super) runs: Runs,
    pub(super) lease: Lease,
    pub(super) sleep: SmartSleep,
    pub(super) prefetch: Prefetch,
    pub(super) reconciliation: Reconciliation,
    pub(super) reclaims: Reclaims,
    pub(super) stopping: Stopping,
    /// Outcomes that the store could not settle, and when each is sent again.
    pub(super) unsettled: VecDeque<(Duration, JobId)>,
    /// The runtime of the handlers has shut down: nothing can be started any more.
    pub(super) handlers_gone: bool,
    /// What the store refuses until somebody changes something.
    stopped_by: Option<Kind>,
    /// When to look for aged jobs next.
    pub(super) age_at: Duration,
    /// Handlers to hand over to the user's runtime.
    pub(super) starting: Vec<BoxFuture<'static, ()>>,
    pub(super) ends: mpsc::UnboundedSender<RunEnd>,
    ended: mpsc::UnboundedReceiver<RunEnd>,
    signals: Subscription,
}

/// How many signals are taken in at once.
const SIGNALS_AT_ONCE: usize = 256;

impl Topic {
    pub(super) fn new(parts: Parts, line: Line, signals: Subscription, stop: watch::Receiver<StopOrder>) -> Self {
        let now = parts.environment.now();
        let (ends, ended) = mpsc::unbounded_channel();
        Self {
            held: Held::new(parts.environment.random()),
            runs: Runs::default(),
            lease: Lease::new(parts.node.lease),
            sleep: SmartSleep::new(now),
            prefetch: Prefetch::new(now),
            reconciliation: Reconciliation::needed(),
            reclaims: Reclaims::default(),
            stopping: Stopping::new(stop),
            unsettled: VecDeque::new(),
            handlers_gone: false,
            stopped_by: None,
            age_at: now + parts.environment.random_below(super::age::PERIOD),
            starting: Vec::new(),
            parts,
            line,
            ends,
            ended,
            signals,
        }
    }

    /// Runs until the node stops.
    pub(super) async fn run(mut self) {
        let mut timer = super::timer::Timer::new(self.parts.environment.clone());
        loop {
            let now = self.parts.environment.now();
            self.take_in(now);
            let wait = self.pump(now);
            if self.stopping.is_over() {
                break;
            }
            tokio::select! {
                biased;
                answer = self.line.next_answer() => self.on_answer(answer),
                Some(end) = self.ended.recv() => {
                    let now = self.parts.environment.now();
                    self.on_run_end(end, now);
                }
                () = self.stopping.ordered() => {}
                signal = self.signals.next() => self.on_signal(signal),
                () = timer.until(wait) => {}
            }
        }
    }

    /// Takes in what is there already before anything is decided by the time: a handler that has returned has not timed
    /// out, and its outcome counts though the lease be gone by now. Signals too: a busy topic may never come to wait.
    fn take_in(&mut self, now: Duration) {
        for _ in 0..self.ended.len() {
            let Ok(end) = self.ended.try_recv() else { break };
            self.on_run_end(end, now);
        }
        for _ in 0..SIGNALS_AT_ONCE {
            let Some(signal) = self.signals.try_next() else { break };
            self.on_signal(signal);
        }
    }

    /// Lets every subsystem do what there is to do; when the first of them wants to be asked again. Whoever looks after what
    /// another starts comes after it: timeouts after starts, and the patience with the store after all requests.
    fn pump(&mut self, now: Duration) -> Option<Duration> {
        let stages = [
            self.reconnect(now),
            self.stop(now),
            self.reconcile(now),
            self.start_handlers(now),
            self.expire_lease(now),
            self.expire_timeouts(now),
            self.exhaust(now),
            self.settle(now),
            self.hold(now),
            self.transfer(now),
            self.age(now),
            self.look_at_leases(now),
            self.reclaim(now),
            self.line.give_up_at(),
        ];
        self.hand_over();
        self.gauge_now();
        earliest(stages)
    }

    fn on_answer(&mut self, answered: super::link::Answered) {
        let now = self.parts.environment.now();
        let (sent, named) = (answered.sent, answered.named);
        match answered.answer {
            Err(error) => self.on_error(answered.kind, &error, now),
            Ok(answer) => {
                self.line.answered(answered.kind);
                self.parts.gauge.dropped(self.line.dropped());
                if !self.handlers_gone && self.stopped_by.is_none_or(|kind| kind == answered.kind) {
                    self.stopped_by = None;
                    self.parts.gauge.contact();
                }
                match answer {
                    Answer::Transferred(turned) => self.on_transferred(turned, sent, now),
                    Answer::Settled(asked, settled) => self.on_settled(asked, settled, sent, named, now),
                    Answer::Standing(standing) => self.on_standing(standing, sent, named),
                    Answer::Begun(id, token, noted) => self.on_begun(&id, token, noted, sent, named, now),
                    Answer::Exhausted(id, token, noted) => self.on_exhausted(&id, token, noted, sent, named, now),
                    Answer::Reconciled(turned) => self.on_reconciled(turned),
                    Answer::Reclaimed(node, reclaimed) => self.on_reclaimed(&node, reclaimed),
                    Answer::Released => self.stopping.released(),
                    Answer::Aged(turned) => self.on_aged(turned, sent, now),
                    Answer::Scanned(scanned) => self.on_scanned(&scanned, now),
                    Answer::Woken => {}
                }
            }
        }
    }

    /// Nothing is claimed or started any more: the node stops, or could not run it.
    pub(super) fn takes_no_more(&self) -> bool {
        self.handlers_gone || self.stopping.is_ordered()
    }

    /// An error decides nothing. What the store may still execute is for the tokens and turns to judge; what it certainly
    /// did not do is sent again after a pause, a long one if somebody must change something first.
    fn on_error(&mut self, kind: Kind, error: &StoreError, now: Duration) {
        // A link that was not let in is of no use either.
        if !error.nothing_done() || matches!(error, StoreError::Denied { .. }) {
            return self.fail_link(error, now);
        }
        if !error.is_outage() {
            tracing::error!(topic = %self.parts.key, ?kind, error = %error, "the topic cannot go on");
            self.stopped_by = Some(kind);
        }
        if self.parts.gauge.trouble(error) && error.is_outage() {
            tracing::warn!(topic = %self.parts.key, ?kind, error = %error, "the store refuses, trying again");
        }
        self.line.pause(kind, now, !error.is_outage());
        self.unask(Some(kind));
    }

    fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Due | Signal::Resubscribed => self.sleep.wake(),
            Signal::Mark(verb, id) => self.on_mark(verb, &id),
            Signal::CastDue | Signal::Cast(_) => {}
        }
    }

    fn gauge_now(&self) {
        let gauge = &self.parts.gauge;
        gauge.now(self.held.len(), self.runs.active(), self.held.waiting(), self.held.settling());
    }
}
