//! The task of a topic: it takes in events, lets its machine do what is due, performs what that wants, and waits for the next event.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::machine::{Event, Machine};
use super::run::{RunEvent, Tasks};
use super::wire::Wire;
use super::{Parts, StopOrder};
use crate::context::subscription::Subscription;
use crate::context::timer::Timer;
use crate::environment::{Changes, Runtime};
use crate::store::Interest;

/// How many signals the topic takes in before it does anything else.
const SIGNALS_AT_ONCE: usize = 256;

/// So many jobs take longer to be admitted or started than a request takes to be written. The task of the connection writes, so it gets
/// its turn before them: otherwise the store would wait for all of them.
const MANY: usize = 32;

/// The task of a topic: its machine, and all that the machine is connected to.
pub(crate) struct Topic {
    machine: Machine,
    wire: Wire,
    parts: Arc<Parts>,
    order: watch::Receiver<StopOrder>,
    /// What the tasks of runs report.
    reports: mpsc::UnboundedReceiver<RunEvent>,
    signals: Subscription,
    /// Changes when a job may start that could not because of another one.
    process_changes: Changes,
}

impl Topic {
    pub(crate) fn new(parts: Arc<Parts>, order: watch::Receiver<StopOrder>) -> Self {
        let (store, key, environment) = (parts.store.clone(), parts.key.clone(), parts.environment.clone());
        let interest = Interest { node: Some(parts.id.clone()), broadcasts: false, moves: false };
        let (call_timeout, party) = (parts.node.call_timeout, parts.outage.party());
        let signals = Subscription::new(store, key, interest, environment.clone(), call_timeout, party);
        let process_changes = environment.process().changes();
        parts.stats.set_starved(false); // of the task before this one, if that panicked
        let (events, reports) = mpsc::unbounded_channel();
        let tasks = Tasks { listener: parts.listener.clone(), environment, lease: Arc::default(), events };
        let machine = Machine::new(parts.clone(), tasks, parts.environment.now());
        let wire = Wire::new(parts.clone());
        Self { machine, wire, parts, order, reports, signals, process_changes }
    }

    /// Runs until the node stops.
    pub(crate) async fn run(mut self) {
        let mut timer = Timer::new(self.parts.environment.clone());
        loop {
            let now = self.parts.environment.now();
            self.machine.order(*self.order.borrow_and_update());
            self.take_in(now);
            let wait = self.work(now).await;
            if self.machine.is_over() {
                break;
            }
            tokio::select! {
                biased;
                (is_renewal, answer) = self.wire.next_answer() => {
                    let dropped = self.wire.dropped();
                    let asked = self.machine.flight().answered(is_renewal);
                    self.on(Event::Answered(asked, answer, dropped)).await;
                }
                Some(event) = self.reports.recv() => self.on(Event::Run(event)).await,
                Ok(()) = self.order.changed() => {}
                signal = self.signals.next() => {
                    // The subscription has told of an error; the fallback scan goes on without signals.
                    if let Ok(signal) = signal {
                        self.on(Event::Signal(signal)).await;
                    }
                }
                () = self.process_changes.changed() => {} // another topic or context made room
                () = self.machine.freed() => {}
                () = timer.until(wait) => {}
            }
        }
    }

    /// Takes in the events that are there already, before the time decides anything: a handler that has returned has not
    /// timed out, and its outcome counts even if the lease has expired. Signals too, because a busy topic may never wait.
    fn take_in(&mut self, now: Duration) {
        for _ in 0..self.reports.len() {
            let Ok(event) = self.reports.try_recv() else { break };
            self.machine.on(Event::Run(event), now);
        }
        for _ in 0..SIGNALS_AT_ONCE {
            let Some(signal) = self.signals.try_next() else { break };
            self.machine.on(Event::Signal(signal), now);
        }
    }

    /// Lets the machine do what is due. Returns when it wants to be asked again.
    async fn work(&mut self, now: Duration) -> Option<Duration> {
        if let Some(end) = self.wire.give_up_at(self.machine.flight(), now).filter(|end| now >= *end) {
            self.machine.on(Event::Unanswered(end.saturating_sub(now) + self.parts.node.call_timeout), now);
            self.wire.follow(self.machine.flight()); // drops the link, even if another may be made at once
        }
        let again = self.machine.due(now);
        let sends = self.wire.follow(self.machine.flight());
        let tasks = self.machine.tasks();
        if !tasks.is_empty() {
            if sends && tasks.len() >= MANY {
                tokio::task::yield_now().await;
            }
            self.parts.environment.spawn_all(Runtime::Handler, tasks);
        }
        again.into_iter().chain(self.wire.give_up_at(self.machine.flight(), now)).min()
    }

    /// Takes in an event. What that lets send goes out before the jobs that it has brought are admitted, so that the store and the node
    /// work at the same time.
    async fn on(&mut self, event: Event) {
        let now = self.parts.environment.now();
        self.machine.order(*self.order.borrow());
        self.machine.on(event, now);
        if self.wire.follow(self.machine.flight()) && self.machine.claimed() >= MANY {
            tokio::task::yield_now().await;
        }
        self.machine.admit();
    }
}
