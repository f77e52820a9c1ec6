//! The task of a topic: it takes in events, lets its machine do what is due, performs what that wants, and waits for the next event.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::machine::{Event, Machine};
use super::parts::Parts;
use super::run::{LeaseEnd, RunEvent, Tasks};
use super::shutdown::{Orders, StopOrder};
use super::wire::Wire;
use crate::context::subscription::Subscription;
use crate::context::timer::Timer;
use crate::environment::{Changes, Environment, Runtime};
use crate::job::NodeId;
use crate::store::{Interest, Store};

/// How many signals the topic takes in before it does anything else.
const SIGNALS_AT_ONCE: usize = 256;

/// The task of a topic: its machine, and all that the machine is connected to.
pub(crate) struct Topic {
    machine: Machine,
    wire: Wire,
    environment: Environment,
    call_timeout: Duration,
    orders: Orders,
    /// What the tasks of runs report.
    reports: mpsc::UnboundedReceiver<RunEvent>,
    signals: Subscription,
    /// Changes when a job may start that could not because of another one.
    process_changes: Changes,
}

impl Topic {
    pub(crate) fn new(
        parts: Arc<Parts>,
        store: Arc<dyn Store>,
        node: NodeId,
        stop: watch::Receiver<StopOrder>,
    ) -> Self {
        let (key, environment, call_timeout) = (parts.key.clone(), parts.environment.clone(), parts.node.call_timeout);
        let interest = Interest { node: Some(node.clone()), broadcasts: false, moves: false };
        let party = parts.outage.party();
        let signals = Subscription::new(store.clone(), key.clone(), interest, environment.clone(), call_timeout, party);
        let wire = Wire::new(store, key, node.clone(), parts.topic.statistics, call_timeout);
        let process_changes = environment.process().changes();
        parts.stats.set_starved(false); // of the task before this one, if that panicked
        let (events, reports) = mpsc::unbounded_channel();
        let (listener, lease) = (parts.listener.clone(), Arc::<LeaseEnd>::default());
        let tasks = Tasks { listener, environment: environment.clone(), lease, events };
        let machine = Machine::new(parts, node, tasks, environment.now());
        let orders = Orders::new(stop);
        Self { machine, wire, environment, call_timeout, orders, reports, signals, process_changes }
    }

    /// Runs until the node stops.
    pub(crate) async fn run(mut self) {
        let mut timer = Timer::new(self.environment.clone());
        loop {
            let now = self.environment.now();
            self.take_in(now);
            let wait = self.work(now);
            if self.machine.is_over() {
                break;
            }
            tokio::select! {
                biased;
                (is_renewal, answer) = self.wire.next_answer() => {
                    let dropped = self.wire.dropped();
                    let asked = self.machine.flight().answered(is_renewal);
                    self.on(Event::Answered(asked, answer, dropped));
                }
                Some(event) = self.reports.recv() => self.on(Event::Run(event)),
                () = self.orders.changed() => {}
                signal = self.signals.next() => {
                    // The subscription has told of an error; the fallback scan goes on without signals.
                    if let Ok(signal) = signal {
                        self.on(Event::Signal(signal));
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
    fn work(&mut self, now: Duration) -> Option<Duration> {
        if let Some(end) = self.wire.give_up_at(self.machine.flight(), now).filter(|end| now >= *end) {
            self.machine.on(Event::Unanswered(end.saturating_sub(now) + self.call_timeout), now);
        }
        self.machine.order(self.orders.grace_until());
        let again = self.machine.due(now);
        self.wire.follow(self.machine.flight());
        let tasks = self.machine.tasks();
        if !tasks.is_empty() {
            self.environment.spawn_all(Runtime::Handler, tasks);
        }
        again.into_iter().chain(self.wire.give_up_at(self.machine.flight(), now)).min()
    }

    /// Takes in an event, and what follows from it.
    fn on(&mut self, event: Event) {
        let now = self.environment.now();
        let mut next = Some(event);
        while let Some(event) = next {
            next = self.machine.on(event, now);
            self.wire.follow(self.machine.flight());
        }
    }
}
