//! The task of a topic: it takes in events, lets its machine do what is due, performs what that wants, and waits for the next event.
//!
//! Its [`Wire`] sends the requests of the [`Flight`] in order over one link, and reads their answers in that order.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, watch};

use super::flight::{Flight, longest_pause};
use super::machine::{Event, Machine};
use super::run::{Ended, RunEvent, Tasks};
use super::{Parts, StopOrder};
use crate::context::panic_message;
use crate::context::subscription::Subscription;
use crate::context::timer::Timer;
use crate::environment::{Changes, Runtime};
use crate::store::{Answer, Interest, Link, LinkOptions, Pending, RequestKind, StoreError};

/// How many signals the topic takes in before it does anything else.
const SIGNALS_AT_ONCE: usize = 256;

/// So many jobs take longer to be admitted or started than a request takes to be written. The task of the connection writes, so it gets
/// its turn before them: otherwise the store would wait for all of them.
const MANY: usize = 32;

/// How many panics with nothing to blame and without progress end the task. The supervisor starts another one.
const MAX_UNEXPLAINED: u32 = 10;
/// How many panics end a task that stops.
const MAX_STOPPING: u32 = 10;
/// The pause after a panic grows with each that follows within this time.
const QUIET: Duration = Duration::from_secs(60);
/// The longest pause after a first panic, and after any that is explained: what explains it rests for longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const EXPLAINED_PAUSE: Duration = Duration::from_secs(1);

/// The task of a topic: its machine, and all that the machine is connected to.
pub(crate) struct Topic {
    machine: Machine,
    wire: Wire,
    parts: Arc<Parts>,
    order: watch::Receiver<StopOrder>,
    /// What the tasks of runs report.
    reports: mpsc::UnboundedReceiver<RunEvent>,
    /// Of these, what came before the last panic.
    left: VecDeque<RunEvent>,
    signals: Subscription,
    /// Changes when a job may start that could not because of another one.
    process_changes: Changes,
}

/// The subscription of a topic.
fn subscription(parts: &Parts) -> Subscription {
    let interest = Interest { node: Some(parts.id.clone()), broadcasts: false, moves: false };
    let (store, key, environment) = (parts.store.clone(), parts.key.clone(), parts.environment.clone());
    Subscription::new(store, key, interest, environment, parts.node.call_timeout, parts.outage.party())
}

/// The panics of a task.
#[derive(Debug, Default)]
struct Panics {
    last: Duration,
    /// How many there were, none a minute after the one before it.
    in_a_row: u32,
    /// How many in a row had nothing to blame, without progress in between.
    unexplained: u32,
    /// How many there were since the stop was ordered.
    stopping: u32,
}

impl Panics {
    /// Notes one. Returns whether the task gives up.
    fn are_too_many(&mut self, is_explained: bool, progressed: bool, is_stopping: bool, now: Duration) -> bool {
        self.in_a_row = if now >= self.last + QUIET { 0 } else { self.in_a_row.saturating_add(1) };
        self.last = now;
        self.unexplained = match (is_explained, progressed) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => self.unexplained + 1,
        };
        self.stopping += u32::from(is_stopping);
        self.unexplained > MAX_UNEXPLAINED || self.stopping > MAX_STOPPING
    }
}

impl Topic {
    pub(crate) fn new(parts: Arc<Parts>, order: watch::Receiver<StopOrder>) -> Self {
        let environment = parts.environment.clone();
        let process_changes = environment.process().changes();
        parts.stats.set_starved(false); // of the task before this one, if that panicked
        let (events, reports) = mpsc::unbounded_channel();
        let tasks = Tasks { listener: parts.listener.clone(), environment, lease: Arc::default(), events };
        let machine = Machine::new(parts.clone(), tasks, parts.environment.now());
        let (wire, signals) = (Wire::new(parts.clone()), subscription(&parts));
        Self { machine, wire, parts, order, reports, left: VecDeque::new(), signals, process_changes }
    }

    /// Runs until the node stops. After a panic the topic continues from what it holds.
    ///
    /// # Panics
    /// If it panics again and again, although nothing is to blame for it.
    pub(crate) async fn run(mut self) {
        let mut panics = Panics::default();
        while let Err(panic) = AssertUnwindSafe(self.go_on()).catch_unwind().await {
            let now = self.parts.environment.now();
            let is_explained = self.on_panic(&panic_message(&*panic), now);
            let (progressed, is_stopping) = (self.machine.has_progressed(), self.order.borrow().is_some());
            if panics.are_too_many(is_explained, progressed, is_stopping, now) {
                resume_unwind(panic);
            }
            let longest =
                if is_explained { EXPLAINED_PAUSE } else { longest_pause(self.parts.node.heartbeat_interval) };
            let pause = self.parts.environment.growing_pause(FIRST_PAUSE, longest, panics.in_a_row, 2);
            tokio::select! {
                biased;
                Ok(()) = self.order.changed() => {}
                () = self.parts.environment.sleep_until(now + pause) => {}
            }
        }
    }

    /// What is left of the topic is whole again.
    fn on_panic(&mut self, panic: &str, now: Duration) -> bool {
        // A run that the panic has dropped has not begun: its runtime has not shut down.
        for _ in 0..self.reports.len() {
            let Ok(event) = self.reports.try_recv() else { break };
            self.left.push_back(match event {
                RunEvent::Ended(run, Ended::Dropped) => RunEvent::Ended(run, Ended::TakenBack),
                event => event,
            });
        }
        let reading = self.wire.take_reading();
        let is_explained = self.machine.on_panic(panic, reading, now);
        self.wire.follow(self.machine.flight()); // drops the link
        self.signals = subscription(&self.parts);
        is_explained
    }

    async fn go_on(&mut self) {
        self.machine.resume();
        let mut timer = Timer::new(self.parts.environment.clone());
        loop {
            let now = self.parts.environment.now();
            self.machine.order(*self.order.borrow_and_update());
            self.take_in(now);
            let wait = self.work(now).await;
            if self.machine.is_over() {
                break;
            }
            self.machine.begin("waiting");
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
                () = self.parts.permits.freed() => {}
                () = timer.until(wait) => {}
            }
        }
    }

    /// Takes in the events that are there already, before the time decides anything: a handler that has returned has not
    /// timed out, and its outcome counts even if the lease has expired. Signals too, because a busy topic may never wait.
    fn take_in(&mut self, now: Duration) {
        while let Some(event) = self.left.pop_front() {
            self.machine.on(Event::Run(event), now);
        }
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

/// The link of a topic, and the answers that it awaits.
pub(super) struct Wire {
    parts: Arc<Parts>,
    link: Option<Arc<dyn Link>>,
    answers: VecDeque<Pending<Answer>>,
    renewal: Option<Pending<Answer>>,
    /// Reading an answer has panicked: whether it was the answer to `renew`.
    panicked: Option<bool>,
}

impl Wire {
    pub(super) const fn new(parts: Arc<Parts>) -> Self {
        Self { parts, link: None, answers: VecDeque::new(), renewal: None, panicked: None }
    }

    /// How many jobs the store has dropped that no answer reports.
    pub(super) fn dropped(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.dropped())
    }

    /// Follows the flight: drops a lost link, makes a new one, and sends what waits. Returns whether it sent anything.
    pub(super) fn follow(&mut self, flight: &mut Flight) -> bool {
        if !flight.is_connected() {
            self.link = None;
            self.answers.clear();
            self.renewal = None;
            return false;
        }
        let Self { parts, link, answers, renewal, .. } = self;
        let options = LinkOptions {
            counts: parts.topic.statistics,
            concurrency: parts.topic.cluster_concurrency,
            rate: parts.topic.rate,
            ageing: parts.topic.priority_ageing,
            group_concurrency: parts.topic.group_concurrency,
            group_burst: parts.topic.group_burst,
            group_rate: parts.topic.group_rate,
            group_on_blocked: parts.topic.group_on_blocked,
        };
        let link = link.get_or_insert_with(|| parts.store.link_with(&parts.key, &parts.id, options));
        let mut sends = false;
        while let Some(request) = flight.next_outgoing() {
            sends = true;
            let is_renewal = request.kind() == RequestKind::Renew;
            let answer = link.ask(request);
            if is_renewal {
                *renewal = Some(answer);
            } else {
                answers.push_back(answer);
            }
        }
        sends
    }

    /// Whether the task was reading the answer to `renew` when it panicked, or another one. `None`: it was reading no answer.
    pub(super) const fn take_reading(&mut self) -> Option<bool> {
        self.panicked.take()
    }

    /// Returns the next answer, and whether it answers `renew`. Waits forever while nothing is in flight. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> (bool, Result<Answer, StoreError>) {
        let (is_renewal, read) = tokio::select! {
            biased;
            answer = answer_of(self.answers.front_mut()) => (false, answer),
            answer = answer_of(self.renewal.as_mut()) => (true, answer),
        };
        let answer = read.unwrap_or_else(|panic| {
            self.panicked = Some(is_renewal);
            resume_unwind(panic)
        });
        if is_renewal {
            self.renewal = None;
        } else {
            self.answers.pop_front();
        }
        (is_renewal, answer)
    }

    /// When the oldest request is given up: when neither its answer nor any byte over its connection has come for the
    /// call timeout.
    pub(super) fn give_up_at(&self, flight: &Flight, now: Duration) -> Option<Duration> {
        let call_timeout = self.parts.node.call_timeout;
        let give_up_at = |(kind, sent)| {
            let at = sent + call_timeout;
            if now < at {
                return at;
            }
            let silent_for = self.link.as_ref().and_then(|link| link.silent_for(kind));
            at.max(now + silent_for.map_or(Duration::ZERO, |silence| call_timeout.saturating_sub(silence)))
        };
        flight.oldest().map(give_up_at).min()
    }
}

/// The answer to a request, or the panic of reading it; never, if there is none. Cancel safe.
async fn answer_of(request: Option<&mut Pending<Answer>>) -> Result<Result<Answer, StoreError>, Box<dyn Any + Send>> {
    let Some(answer) = request else { return std::future::pending().await };
    AssertUnwindSafe(answer).catch_unwind().await
}
