//! The user's listeners, wrapped: the checker sees what they do, and their node may die at each of their steps.

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::super::checker::{Checker, End, HandlerKind};
use super::super::sim::Sim;
use super::super::sync::lock;
use super::super::version::version;
use super::panics::caught;
use super::program::Host;
use super::spawned::spawned;
use super::trace::{Named, Usual};
use dq::environment::StoreClock as _;
use dq::job::{JobId, Record, TopicName};
use dq::listener::{Decision, Delivered, Failure, RetryDelay, UnackedDecision};
use dq::testing::seam::ErasedBroadcast;
use dq::testing::seam::{ErasedListener, HandlerCall, Returned};

/// A wrapped delay listener.
pub(super) struct Watched {
    pub(super) inner: Arc<dyn ErasedListener>,
    pub(super) host: Host,
    pub(super) checker: Arc<Mutex<Checker>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ErasedListener for Watched {
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivered) -> BoxFuture<'static, Returned> {
        let Host { sim, program, process, node } = &self.host;
        let (kind, handler) = match call {
            HandlerCall::OnDue => (HandlerKind::OnDue, ""),
            HandlerCall::OnExhausted(_) => (HandlerKind::Final, "on_exhausted of "),
            HandlerCall::OnParkTimeout => (HandlerKind::Swept, "on_park_timeout of "),
        };
        let (fence, attempt) = (delivery.fence, delivery.attempt);
        let now = (sim.clock.micros(), sim.cluster.now());
        let number = lock(&self.checker).started(node, &delivery.id, fence, kind, now);
        let job = (delivery.topic.clone(), delivery.id.clone());
        let run = program.trace.as_ref().map_or(0, |trace| trace.next_run(&job));
        let name = format!("{handler}{}/{}", job.0, job.1);
        let failed = if attempt > 0 { format!(", {attempt} failed before") } else { String::new() };
        let who = format!("{} runs {name}", process.name);
        let usual = (run == 1 && kind == HandlerKind::OnDue && attempt == 0).then(|| Usual::Runs(who.clone()));
        program.note(sim, Some(job.clone()), usual, || format!("{who}: run {run}, fence {fence}{failed}"));
        Box::pin(Run {
            handler: Arc::clone(&self.inner).call(call, record, delivery),
            host: self.host.clone(),
            checker: Arc::clone(&self.checker),
            job,
            name,
            number,
            kind,
            was_polled: false,
            returned: None,
            end: None,
        })
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        self.inner.retry_delay(failed, failure)
    }

    fn may_have_retry_delay(&self) -> bool {
        self.inner.may_have_retry_delay()
    }
}

/// A run of a handler.
struct Run {
    handler: BoxFuture<'static, Returned>,
    host: Host,
    checker: Arc<Mutex<Checker>>,
    job: Named,
    name: String,
    /// The checker's number of the run.
    number: u64,
    kind: HandlerKind,
    was_polled: bool,
    /// What the handler returned, while its node is paused and has not received it yet.
    returned: Option<Returned>,
    end: Option<End>,
}

impl Future for Run {
    type Output = Returned;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Returned> {
        let this = &mut *self;
        if !mem::replace(&mut this.was_polled, true) {
            let micros = this.host.sim.clock.micros();
            lock(&this.checker).begins(this.number, this.kind, micros);
        }
        let Host { sim, program, process, .. } = &this.host;
        let is_hit = |returned| {
            program.inject_at_step(&this.host, this.number, returned, &this.name);
            process.is_dead() || process.is_paused()
        };
        if this.returned.is_none() {
            if is_hit(false) {
                process.suspend(cx);
                return Poll::Pending;
            }
            let handler = &mut this.handler;
            let tasks_before = spawned(&sim.cluster);
            let polled = caught(program.print, || handler.as_mut().poll(cx));
            if spawned(&sim.cluster) > tasks_before {
                lock(&program.spawners).insert(process.name.clone());
            }
            let polled = polled.unwrap_or_else(|panic| {
                this.end = Some(End::Failed);
                program.note(sim, Some(this.job.clone()), None, || {
                    format!("{} {}: panics{panic}", process.name, this.name)
                });
                resume_unwind(panic.payload)
            });
            let Poll::Ready(returned) = polled else { return Poll::Pending };
            let (end, text) = described(&returned);
            let usual = (end == End::Acked).then_some(Usual::Returns);
            program.note(sim, Some(this.job.clone()), usual, || format!("{} {}: {text}", process.name, this.name));
            this.end = Some(end);
            this.returned = Some(returned);
            if is_hit(true) {
                process.suspend(cx);
                return Poll::Pending;
            }
        }
        this.returned.take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// How a handler ended, for the checker and for people.
fn described(returned: &Returned) -> (End, String) {
    match returned {
        Returned::Keeping(decision, _) => {
            let (end, text) = described(&Returned::Decided(decision.clone()));
            (end, text + ", and keeps a state")
        }
        Returned::Decided(Decision::Ack) => (End::Acked, "returns ack".into()),
        Returned::Followed(..) => (End::Acked, "returns ack with follow-ups".into()),
        Returned::Decided(Decision::Rejoin) => (End::Rejoined, "returns rejoin".into()),
        Returned::Decided(Decision::RejoinAfter(delay)) => {
            (End::Rejoined, format!("returns rejoin after {}", humantime::format_duration(*delay)))
        }
        Returned::Decided(Decision::RejoinAt(_)) => (End::Rejoined, "returns rejoin at a time".into()),
        Returned::Decided(Decision::Park) => (End::Parked, "returns park".into()),
        Returned::Decided(Decision::Dead(reason)) => (End::Failed, format!("gives the job up: {reason}")),
        Returned::Decided(Decision::BadDelay(text)) => (End::Failed, format!("returns a bad delay: {text}")),
        Returned::Decided(other) => unreachable!("the simulation does not know the decision {other:?}"),
        Returned::Failed(failure) => (End::Failed, format!("fails: {failure}")),
        Returned::FinalRetried(_) => (End::FinalOver, "returns".into()),
        Returned::Unacked(UnackedDecision::Drop) => (End::Acked, "returns drop".into()),
        Returned::Unacked(UnackedDecision::Keep) => (End::Parked, "returns keep".into()),
        Returned::Unacked(UnackedDecision::Retry) => (End::Rejoined, "returns retry".into()),
        Returned::Unacked(other) => unreachable!("the simulation does not know the decision {other:?}"),
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let Host { sim, program, process, node } = &self.host;
        lock(&self.checker).ended(node, self.number, self.end.unwrap_or(End::Dropped));
        if self.end.is_none() && !sim.is_over() {
            let how = if process.is_dead() { "ends with its node" } else { "is cancelled" };
            program.note(sim, Some(self.job.clone()), None, || format!("{} {}: {how}", process.name, self.name));
        }
    }
}

/// A wrapped broadcast listener.
pub(super) struct Received {
    pub(super) inner: Arc<dyn ErasedBroadcast>,
    pub(super) name: &'static str,
    pub(super) host: Host,
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ErasedBroadcast for Received {
    fn deliver(
        self: Arc<Self>,
        channel: TopicName,
        id: JobId,
        record: Record,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let Host { sim, program, process, .. } = &self.host;
        let broadcast = (channel.clone(), id.clone());
        let key = (process.name.clone(), self.name, broadcast.clone(), version(&record));
        if !lock(&program.received).insert(key) && !has_fallen_back(sim) {
            program.fail(format!("{} received the broadcast {channel}/{id} twice", process.name));
        }
        program.note(sim, Some(broadcast), None, || format!("{} {} receives {channel}/{id}", process.name, self.name));
        Arc::clone(&self.inner).deliver(channel, id, record)
    }
}

/// Returns whether the store has fallen back.
fn has_fallen_back(sim: &Sim) -> bool {
    let mut fell = false;
    sim.for_checkers(|checker| fell |= checker.fell);
    fell
}
