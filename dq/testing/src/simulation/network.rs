//! The network between a process and the store: requests and answers travel in order over a wire, and the wire fails.
//!
//! A request may be lost, its answer may be lost, or the store executes it much later, after the client has given up and
//! gone on. Requests on one wire are executed in order, even if the client has dropped its end.

use std::future::ready;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::network_state::Outage;
use super::process::Process;
use super::random::RandomSource;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use dq::store::{Pending, StoreError};

/// The error of a request that could not be sent. Without `connect` it says that the request may have been executed.
fn not_sent(operation: &'static str) -> StoreError {
    let reason = "connection refused".into();
    match without("connect") {
        true => StoreError::Unavailable { operation, reason },
        false => StoreError::NotSent { operation, reason },
    }
}

#[derive(Debug, Default)]
struct Wire {
    /// When the newest request arrives at the store, in µs.
    up: u64,
    /// When the newest answer arrives at the client, in µs.
    down: u64,
    /// Since when bytes arrive without a break until then, in µs.
    arriving: u64,
    /// When the connection was made.
    connected: Option<u64>,
    stalled_until: u64,
    loses_requests: bool,
    loses_answers: bool,
}

/// The client's end of a wire.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) sim: Arc<Sim>,
    pub(super) process: Arc<Process>,
    wire: Arc<Mutex<Wire>>,
}

/// Executes a request.
type Execute<T> = Box<dyn FnOnce(&Arc<Sim>) -> Result<T, StoreError> + Send>;

/// Runs when the client reads the answer.
type Received<T> = Box<dyn FnOnce(&Sim, &T) + Send>;

/// A request on its way.
struct InTransit<T> {
    kind: &'static str,
    /// The size of its answer, in bytes.
    size: fn(&T) -> usize,
    connection: Connection,
    execute: Execute<T>,
    /// Runs when the answer arrives, for the checker.
    received: Received<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
    /// The number of the request in its process, and its random source.
    number: u64,
    random: RandomSource,
}

impl Connection {
    pub(super) fn new(sim: &Arc<Sim>, process: &Arc<Process>) -> Self {
        Self { sim: Arc::clone(sim), process: Arc::clone(process), wire: Arc::default() }
    }

    fn latency(&self, random: &RandomSource) -> u64 {
        let cluster = &self.sim.cluster;
        random.between(100, 900) * if cluster.now() < self.sim.network_state().slow_until { 200 } else { 1 }
    }

    /// Makes the connection unless it exists. Returns false if the store refuses it, so that nothing can be sent.
    pub(super) fn connects(&self) -> bool {
        let (now, (since, until)) = (self.sim.cluster.now(), self.sim.network_state().refusing);
        let mut wire = lock(&self.wire);
        if wire.connected.is_none() && (now < since || until <= now) {
            wire.connected = Some(now);
        }
        wire.connected.is_some()
    }

    /// The answer to a request that could not be sent.
    pub(super) fn refused<T: Send + 'static>(&self, operation: &'static str) -> Pending<T> {
        self.sim.note_fault(&self.process);
        self.sim.note(|| format!("the {operation} of {} IS NOT SENT: the connection is refused", self.process.name));
        Box::pin(ready(Err(not_sent(operation))))
    }

    /// Returns whether the store broke the connection when it began to refuse others.
    fn is_broken(&self) -> bool {
        let (now, (since, until)) = (self.sim.cluster.now(), self.sim.network_state().refusing);
        now < until && lock(&self.wire).connected.is_some_and(|connected| connected < since)
    }

    /// For how long no byte of an answer has arrived.
    pub(super) fn silent_for(&self) -> Duration {
        let (now, wire) = (self.sim.cluster.now(), lock(&self.wire));
        let last = if wire.arriving <= now { now.min(wire.down) } else { wire.connected.unwrap_or(now) };
        Duration::from_micros(now - last)
    }

    /// Sends a request and returns a future of its answer.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        kind: &'static str,
        size: fn(&T) -> usize,
        execute: impl FnOnce(&Arc<Sim>) -> Result<T, StoreError> + Send + 'static,
        received: impl FnOnce(&Sim, &T) + Send + 'static,
    ) -> Pending<T> {
        let (answer, answered) = oneshot::channel();
        let number = self.process.requests.fetch_add(1, Relaxed) + 1;
        let random = self.sim.cluster.random(&self.process.name, number);
        let (execute, received) = (Box::new(execute), Box::new(received));
        self.send(InTransit { kind, size, connection: self.clone(), execute, received, answer, number, random });
        Box::pin(answered.then(|answer| async {
            match answer {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await, // the answer was lost
            }
        }))
    }

    fn send<T: Send + 'static>(&self, request: InTransit<T>) {
        let (sim, cluster) = (&self.sim, &self.sim.cluster);
        sim.process_acts(&self.process, request.kind);
        if self.process.is_dead() {
            return;
        }
        let mut wire = lock(&self.wire);
        if let Some(how) = sim.workload.connection_fault(sim, &self.process, request.number, &request.random) {
            match how {
                0 => wire.loses_requests = true,
                1 | 2 => wire.loses_answers = true,
                _ => wire.stalled_until = cluster.now() + request.random.between(SECOND / 2, 45 * SECOND),
            }
            cluster.log(|| format!("{} wire fails: {:?}", self.process.name, *wire));
        }
        if self.process.is_mute() {
            // Either the wire fails for good with the first request that it loses, or it delivers all of them once it works
            // again.
            if request.random.chance(0.7) {
                wire.loses_requests = true;
            } else {
                wire.stalled_until = wire.stalled_until.max(self.process.mute_until.load(Relaxed));
            }
        }
        if wire.loses_requests || wire.loses_answers || wire.stalled_until > cluster.now() {
            sim.note_fault(&self.process);
        }
        if wire.loses_requests {
            return sim.note(|| format!("the {} of {} IS LOST", request.kind, self.process.name));
        }
        if wire.stalled_until > cluster.now() {
            let millis = (wire.stalled_until - cluster.now()) / MS;
            sim.note(|| format!("the {} of {} IS DELAYED for {millis} ms", request.kind, self.process.name));
        }
        wire.up = (wire.up + 1).max(wire.stalled_until).max(cluster.now() + self.latency(&request.random));
        let up = wire.up;
        drop(wire);
        cluster.at(up, move || request.arrive());
    }
}

impl<T: Send + 'static> InTransit<T> {
    fn arrive(self) {
        let Connection { sim, process, wire } = self.connection.clone();
        let network_state = sim.network_state();
        // On a file, the process and the store end together.
        if sim.is_over() || process.is_dead() && sim.is_file() {
            return;
        }
        if process.is_mute() {
            // The request was sent before the process became mute, so the silence begins now.
            process.mute_since.store(sim.cluster.now(), Relaxed);
        }
        if self.connection.is_broken() {
            sim.note_fault(&process);
            let error = StoreError::Unavailable { operation: self.kind, reason: "connection reset".into() };
            return self.answer(Err(error));
        }
        if sim.cluster.now() < network_state.outage_until {
            sim.note_fault(&process);
            match network_state.outage {
                Outage::Silent => {}
                Outage::Loading => {
                    let error = StoreError::Refused { operation: self.kind, reason: "it is loading".into() };
                    self.answer(Err(error));
                }
                Outage::Reset => {
                    let error = StoreError::Unavailable { operation: self.kind, reason: "connection reset".into() };
                    self.answer(Err(error));
                }
                Outage::Frozen => {
                    let mut wire = lock(&wire);
                    wire.up = (wire.up + 1).max(network_state.outage_until + 1);
                    let up = wire.up;
                    drop(wire);
                    sim.cluster.at(up, move || self.arrive());
                }
            }
            return;
        }
        if matches!(self.kind, "add" | "transfer") && sim.cluster.now() < network_state.full_until {
            let error = StoreError::Full { operation: self.kind, reason: "OOM".into() };
            return self.answer(Err(error));
        }
        let Self { kind, size, connection, execute, received, answer, number, random } = self;
        let done = execute(&sim);
        sim.after_step();
        let execute = Box::new(|_: &Arc<Sim>| unreachable!("it was executed"));
        Self { kind, size, connection, execute, received, answer, number, random }.confirm(&sim, done);
    }

    /// Answers, over a `file:` store once the step is confirmed.
    fn confirm(self, sim: &Arc<Sim>, done: Result<T, StoreError>) {
        let (confirm, stepped) = sim.take_stepped();
        // A claim may be lost, and these promise nothing.
        let promises = !matches!(self.kind, "transfer" | "renew" | "reconcile" | "wake" | "scan" | "audit");
        let stepped = stepped.filter(|_| promises && done.is_ok());
        let seen = move |request: Self, sim: &Sim, done| {
            if let Some(stepped) = stepped {
                sim.step_is_seen(stepped);
            }
            request.answer(done);
        };
        match confirm {
            None => seen(self, sim, done),
            Some(confirm) => {
                let of = Arc::clone(sim);
                sim.hold(confirm, move |confirmed| match confirmed {
                    Ok(()) => seen(self, &of, done),
                    Err(error) => self.answer(Err(error)),
                });
            }
        }
    }

    /// How long the bytes of an answer take, in µs.
    fn transmission(&self, answer: &Result<T, StoreError>) -> u64 {
        match (answer, self.connection.sim.network_state().bandwidth) {
            (Err(_), _) | (_, 0) => 0,
            (Ok(answer), bandwidth) => (self.size)(answer) as u64 * SECOND / bandwidth,
        }
    }

    fn answer(self, answer: Result<T, StoreError>) {
        let Connection { sim, process, wire } = &self.connection;
        if process.is_dead() {
            return;
        }
        let latency = self.connection.latency(&self.random);
        let mut wire = lock(wire);
        if process.is_unresponsive() || wire.loses_answers {
            sim.note_fault(process);
            sim.note(|| format!("the answer to the {} of {} IS LOST", self.kind, process.name));
            return;
        }
        let transmission = self.transmission(&answer);
        let begins = (wire.down + 1).max(sim.cluster.now() + latency);
        wire.arriving = if begins == wire.down + 1 { wire.arriving } else { begins };
        wire.down = begins + transmission;
        let down = wire.down;
        drop(wire);
        if latency + transmission > 100 * MS {
            sim.note_fault(process);
        }
        let (sim, process) = (Arc::clone(sim), Arc::clone(process));
        sim.clone().cluster.at(down, move || {
            if process.is_dead() || self.answer.is_closed() {
                return;
            }
            if let Ok(answer) = &answer {
                (self.received)(&sim, answer);
            }
            // The receiver was open a moment ago.
            let _ = self.answer.send(answer);
        });
    }
}
