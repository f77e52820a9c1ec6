//! Scripted handlers: they ack, fail, panic, hang, block their thread, rejoin, park, call the provider, or kill their node.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::checker::{Checker, End, HandlerKind};
use super::follow_ups::{FollowUp, has_follow_up};
use super::process::{Process, block};
use super::profile::Profile;
use super::random::RandomSource;
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use super::version::{FAILING, KILLER, SLOW, leaves_result, version};
use dq::environment::{Environment, StoreClock as _};
use dq::job::{Cause, JobId, KeptState, NodeId, Record, Token, TopicKey};
use dq::listener::{Decision, Delivered, Failure, RetryDelay, UnackedDecision};
use dq::provider::Provider;
use dq::store::step::{Change, RejoinDue};
use dq::testing::seam::{ErasedListener, HandlerCall, Returned, returned};
use dq::time::Timestamp;

/// The listener of a node for one topic.
pub(super) struct Scripted {
    pub(super) sim: Arc<Sim>,
    pub(super) process: Arc<Process>,
    pub(super) node: NodeId,
    pub(super) key: TopicKey,
    pub(super) checker: Arc<Mutex<Checker>>,
    pub(super) environment: Environment,
    pub(super) provider: Provider,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

/// What a handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behavior {
    End(End),
    Panic,
    /// Hangs; its future is dropped at its timeout.
    Hang,
    /// Blocks its thread, then returns an ack.
    Block,
    Kill,
    CallProvider,
}

impl Scripted {
    async fn sleep(&self, micros: u64) {
        self.environment.sleep_until(self.environment.now() + Duration::from_micros(micros)).await;
    }

    /// What to do, and after how long.
    fn plan(&self, kind: HandlerKind, version: u64, (random, nth): (&RandomSource, u64)) -> (Behavior, u64) {
        let settings = self.sim.settings();
        let crowd = settings.profile.has_crowds();
        let quick = if crowd && random.chance(0.9) {
            random.between(MS, 8 * MS)
        } else if random.chance(0.3) {
            random.between(MS, 3 * SECOND)
        } else {
            random.between(MS, 100 * MS)
        };
        let after = if version & SLOW != 0 { random.between(18 * SECOND, 36 * SECOND) } else { quick };
        let chaos = settings.chaos && !self.sim.is_calm();
        if version & KILLER != 0
            && kind != HandlerKind::Swept
            && settings.killers
            && !self.sim.is_calm()
            && random.chance(0.7)
        {
            let what = || format!("{version} kills {} in its run {nth}", self.process.name);
            if self.sim.happens(|| format!("k{version}.{nth}"), what) {
                return (Behavior::Kill, after);
            }
        }
        if kind == HandlerKind::Final {
            let panics = chaos && random.chance(0.2);
            return (if panics { Behavior::Panic } else { Behavior::End(End::FinalOver) }, after);
        }
        if chaos && random.chance(0.06) {
            return (if random.chance(0.7) { Behavior::Block } else { Behavior::Hang }, after);
        }
        if version & FAILING != 0 && !self.sim.is_calm() {
            return (if random.chance(0.2) { Behavior::Panic } else { Behavior::End(End::Failed) }, after);
        }
        if crowd || !chaos && settings.chaos || random.chance(0.5) {
            return (Behavior::End(End::Acked), after);
        }
        let acts = [
            Behavior::End(End::Failed),
            Behavior::End(End::Failed),
            Behavior::End(End::Rejoined),
            Behavior::End(End::Parked),
            Behavior::End(End::Acked),
            Behavior::CallProvider,
        ];
        (random.pick(&acts), after)
    }

    /// The handler of a run. It begins with its first poll.
    async fn perform(self: Arc<Self>, kind: HandlerKind, version: u64, delivery: Delivered, alive: Alive) -> Returned {
        while self.process.is_starved() {
            let starved = self.process.starved_until.load(Relaxed) - self.sim.cluster.now();
            self.sleep(starved).await;
        }
        let run = alive.run;
        lock(&self.checker).begins(run, kind, self.sim.clock.micros());
        let (random, nth) = self.sim.random_of_run(version);
        let (act, after) = self.plan(kind, version, (&random, nth));
        self.sim.cluster.log(|| format!("{} runs {kind:?} of {version} (run {run}): {act:?}", self.process.name));
        // On a slow link a handler would wait for the answer until its run times out.
        let may_keep = self.sim.settings().profile != Profile::Large;
        if kind == HandlerKind::OnDue && may_keep && random.chance(0.2) {
            self.checkpoint(&delivery, &random, (version, nth)).await;
        }
        match act {
            Behavior::Hang => self.sleep(1_000_000 * SECOND).await,
            Behavior::Block => {
                block(true);
                lock(&self.checker).blocks(run);
                let beyond = if random.chance(0.1) { 1_000_000 } else { random.between(1, 40) };
                self.sleep(self.sim.settings().timeout + beyond * SECOND).await;
                block(false);
            }
            Behavior::Kill => {
                self.sleep(after).await;
                lock(&self.checker).causes_crash(version);
                self.sim.kill(&self.process);
                std::future::pending::<()>().await;
            }
            Behavior::CallProvider => {
                self.sleep(after).await;
                // No act of a caller has such a number.
                let number = (1 << 40) + random.below(1 << 40);
                self.sim.act_as(self.provider.clone(), number, &random).await;
            }
            Behavior::End(_) | Behavior::Panic => self.sleep(after).await,
        }
        self.conclude(kind, act, alive, (&random, version))
    }

    /// Saves a state, and mostly waits for the answer. Whether it was saved is for the checker.
    async fn checkpoint(&self, delivery: &Delivered, random: &RandomSource, (version, nth): (u64, u64)) {
        let Some(notes) = &delivery.notes else { return };
        let token = Token { fence: delivery.fence, due: delivery.due };
        for n in 0..random.between(1, 4) {
            let state = KeptState::from_bytes(format!("[{version},{nth},{n}]").as_bytes());
            let answer = notes.checkpoint(&delivery.id, token, state);
            if random.chance(0.8) {
                let answered = answer.await;
                self.sim.cluster.log(|| format!("{} has a checkpoint of {version}: {answered:?}", self.process.name));
            }
        }
    }

    fn conclude(
        &self,
        kind: HandlerKind,
        act: Behavior,
        mut alive: Alive,
        (random, version): (&RandomSource, u64),
    ) -> Returned {
        let end = match act {
            Behavior::End(end) => end,
            Behavior::Panic => End::Failed,
            Behavior::Hang | Behavior::Block | Behavior::Kill | Behavior::CallProvider => End::Acked,
        };
        alive.end = if kind == HandlerKind::Final { End::FinalOver } else { end };
        let returned = self.returned(kind, end, &alive, (random, version));
        if let Some(change) = decided(&returned, alive.has_delay) {
            lock(&self.checker).decided(&self.node, alive.run, change, self.sim.cluster.now());
        }
        drop(alive);
        if act == Behavior::Panic {
            std::panic::resume_unwind(Box::new("it panics"));
        }
        returned
    }

    fn returned(
        &self,
        kind: HandlerKind,
        end: End,
        alive: &Alive,
        (random, version): (&RandomSource, u64),
    ) -> Returned {
        if (kind, end) == (HandlerKind::OnDue, End::Acked)
            && !leaves_result(version)
            && let Some(ack) = self.sim.ack_of_member(&alive.id, random)
        {
            return ack;
        }
        match (kind, end) {
            (HandlerKind::Final, _) => Returned::FinalRetried(None),
            (_, End::Failed) => Returned::Failed(Failure::new(Cause::Error, "it fails")),
            (HandlerKind::Swept, _) => {
                let kept = self.sim.settings().chaos && !self.sim.is_calm() && random.chance(0.7);
                let decision = if kept {
                    random.pick(&[UnackedDecision::Keep, UnackedDecision::Retry])
                } else {
                    UnackedDecision::Drop
                };
                Returned::Unacked(decision)
            }
            (HandlerKind::OnDue, End::Rejoined) => {
                let micros = random.below(4 * SECOND);
                let decision = if random.chance(0.3) {
                    Decision::Rejoin
                } else if random.chance(0.1) {
                    Decision::BackOff(Duration::from_micros(micros))
                } else if random.chance(0.5) || !alive.has_delay {
                    Decision::RejoinAfter(Duration::from_micros(micros.max(1)))
                } else {
                    // A quarter of the times are past, and none is a whole millisecond.
                    let at = self.sim.clock.micros() + micros - SECOND;
                    Decision::RejoinAt(SystemTime::UNIX_EPOCH + Duration::from_micros(at))
                };
                if random.chance(0.3) {
                    return Returned::Keeping(decision, KeptState::from_bytes(format!("[{micros}]").as_bytes()));
                }
                Returned::Decided(decision)
            }
            (HandlerKind::OnDue, End::Parked) => Returned::Decided(Decision::Park),
            (HandlerKind::OnDue, _) if leaves_result(version) => {
                Returned::Keeping(Decision::Ack, KeptState::from_bytes(version.to_string().as_bytes()))
            }
            (HandlerKind::OnDue, _) if self.sim.settings().follow_ups && has_follow_up(alive.run) => {
                let next = FollowUp { version, run: alive.run };
                let decided = dq::testing::channel().ack().then(|to| _ = to.add(next));
                returned(decided.expect("it is one small job"))
            }
            (HandlerKind::OnDue, _) => Returned::Decided(Decision::Ack),
        }
    }
}

/// The outcome of a decision. The node decides the outcome of a failure.
fn decided(returned: &Returned, has_delay: bool) -> Option<Change> {
    Some(match returned {
        Returned::Keeping(decision, _) => return decided(&Returned::Decided(decision.clone()), has_delay),
        Returned::Decided(Decision::Ack) | Returned::Followed(..) => Change::Ack,
        Returned::Decided(Decision::Rejoin) if !has_delay => Change::Rejoin(RejoinDue::After(Duration::from_secs(1))),
        Returned::Decided(Decision::Rejoin) => Change::Rejoin(RejoinDue::AsAdded),
        Returned::Decided(Decision::RejoinAfter(delay)) => Change::Rejoin(RejoinDue::After(*delay)),
        Returned::Decided(Decision::BackOff(delay)) => {
            Change::Rejoin(RejoinDue::BackOff((*delay).max(Duration::from_secs(1))))
        }
        Returned::Decided(Decision::RejoinAt(time)) => Change::Rejoin(RejoinDue::At(Timestamp::from(*time))),
        Returned::Decided(Decision::Park) | Returned::Unacked(UnackedDecision::Keep) => Change::Park,
        Returned::Unacked(UnackedDecision::Drop) => Change::Drop,
        _ => return None,
    })
}

/// Reports the end of a handler to the checker, however it ends.
struct Alive {
    checker: Arc<Mutex<Checker>>,
    node: NodeId,
    run: u64,
    /// The job was added with a delay: without one, a rejoin waits for a second.
    has_delay: bool,
    id: JobId,
    end: End,
}

impl Drop for Alive {
    fn drop(&mut self) {
        lock(&self.checker).ended(&self.node, self.run, self.end);
    }
}

impl ErasedListener for Scripted {
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivered) -> BoxFuture<'static, Returned> {
        let kind = match call {
            HandlerCall::OnDue => HandlerKind::OnDue,
            HandlerCall::OnExhausted(_) => HandlerKind::Final,
            HandlerCall::OnParkTimeout => HandlerKind::Swept,
        };
        let version = version(&record);
        let now = (self.sim.clock.micros(), self.sim.cluster.now());
        self.sim.check_beside(&self.key, &self.node, &delivery.id);
        let run = lock(&self.checker).started(&self.node, &delivery.id, delivery.fence, kind, now);
        if kind == HandlerKind::OnDue {
            lock(&self.checker).starts_with(&self.node, &delivery.id, run, delivery.state.as_ref());
        }
        self.sim.known_runs(&self.key, &delivery.id, delivery.fence);
        let has_delay = !record.fixed().delay.is_zero();
        let (checker, id) = (Arc::clone(&self.checker), delivery.id.clone());
        let alive = Alive { checker, node: self.node.clone(), run, has_delay, id, end: End::Dropped };
        Box::pin(self.perform(kind, version, delivery, alive))
    }

    fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
        RetryDelay::BySettings
    }
}
