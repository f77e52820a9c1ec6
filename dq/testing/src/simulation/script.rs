//! Handlers that do what handlers do: ack, fail, panic, hang, block their thread, rejoin, park, call the provider, and take
//! their node with them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::dice::Dice;
use super::judge::{End, Kind, version};
use super::kills::INNOCENT;
use super::process::{Process, block};
use super::sim::Sim;
use super::terms::Profile;
use super::world::{MS, SECOND};
use dq::environment::{Environment, StoreClock as _};
use dq::job::{Cause, NodeId, Record};
use dq::listener::{Decision, Delivery, Failure, RetryDelay, UnackedDecision};
use dq::provider::Provider;
use dq::store::step::{Again, Change};
use dq::testing::seam::{Call, ErasedListener, Returned};
use dq::time::Timestamp;

/// A job whose handler takes its node with it.
pub(super) const KILLER: u64 = 1;
/// A job that runs longer than a lease.
pub(super) const SLOW: u64 = 2;
/// A job that fails every time.
pub(super) const FAILING: u64 = 4;

/// The listener of a node.
pub(super) struct Scripted {
    pub(super) sim: Arc<Sim>,
    pub(super) process: Arc<Process>,
    pub(super) node: NodeId,
    pub(super) environment: Environment,
    pub(super) provider: OnceLock<Provider>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

/// What a handler is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    End(End),
    Panic,
    /// Hangs: its future is dropped at its timeout.
    Hang,
    /// Blocks its thread, and then hands in an ack.
    Block,
    Kill,
    CallProvider,
}

impl Scripted {
    async fn sleep(&self, micros: u64) {
        self.environment.sleep_until(self.environment.now() + Duration::from_micros(micros)).await;
    }

    /// What to do, and after how long.
    fn plan(&self, kind: Kind, version: u64, (dice, nth): (&Dice, u64)) -> (Act, u64) {
        let terms = self.sim.terms();
        if terms.kills.is_some() {
            // It kills in `on_due`, every second one in `final_retry` too.
            let kills =
                version & KILLER != 0 && (kind == Kind::OnDue || (version / (8 * (INNOCENT + 1))).is_multiple_of(2));
            let end = if kind == Kind::Final { End::FinalOver } else { End::Acked };
            return if kills { (Act::Kill, dice.below(SECOND / 2)) } else { (Act::End(end), SECOND / 2) };
        }
        let crowd = terms.profile == Profile::Crowd;
        let quick = if crowd && dice.chance(0.9) {
            dice.between(MS, 8 * MS)
        } else if dice.chance(0.3) {
            dice.between(MS, 3 * SECOND)
        } else {
            dice.between(MS, 100 * MS)
        };
        let after = if version & SLOW != 0 { dice.between(18 * SECOND, 36 * SECOND) } else { quick };
        let chaos = terms.chaos && !self.sim.is_calm();
        if version & KILLER != 0 && kind != Kind::Aged && terms.killers && !self.sim.is_calm() && dice.chance(0.7) {
            let what = || format!("{version} kills {} in its run {nth}", self.process.name);
            if self.sim.happens(|| format!("k{version}.{nth}"), what) {
                return (Act::Kill, after);
            }
        }
        if kind == Kind::Final {
            let panics = chaos && dice.chance(0.2);
            return (if panics { Act::Panic } else { Act::End(End::FinalOver) }, after);
        }
        if chaos && dice.chance(0.06) {
            return (if dice.chance(0.7) { Act::Block } else { Act::Hang }, after);
        }
        if version & FAILING != 0 && !self.sim.is_calm() {
            return (if dice.chance(0.2) { Act::Panic } else { Act::End(End::Failed) }, after);
        }
        if crowd || !chaos && terms.chaos || dice.chance(0.5) {
            return (Act::End(End::Acked), after);
        }
        let acts = [
            Act::End(End::Failed),
            Act::End(End::Failed),
            Act::End(End::Rejoined),
            Act::End(End::Parked),
            Act::End(End::Acked),
            Act::CallProvider,
        ];
        (dice.pick(&acts), after)
    }

    async fn perform(self: Arc<Self>, kind: Kind, version: u64, run: u64) -> Returned {
        let (dice, nth) = self.sim.dice_of_run(version);
        let (act, after) = self.plan(kind, version, (&dice, nth));
        self.sim.world.say(|| format!("{} runs {kind:?} of {version} (run {run}): {act:?}", self.process.name));
        let alive = Alive { sim: Arc::clone(&self.sim), node: self.node.clone(), run, end: End::Dropped };
        match act {
            Act::Hang => self.sleep(1_000_000 * SECOND).await,
            Act::Block => {
                block(true);
                self.sim.court().blocks(run);
                let beyond = if dice.chance(0.1) { 1_000_000 } else { dice.between(1, 40) };
                self.sleep(self.sim.terms().timeout + beyond * SECOND).await;
                block(false);
            }
            Act::Kill => {
                self.sleep(after).await;
                self.sim.kill(&self.process);
                std::future::pending::<()>().await;
            }
            Act::CallProvider => {
                self.sleep(after).await;
                if let Some(provider) = self.provider.get() {
                    // No act of a caller has such a number.
                    let number = (1 << 40) + dice.below(1 << 40);
                    self.sim.act_as(provider.clone(), number, &dice).await;
                }
            }
            Act::End(_) | Act::Panic => self.sleep(after).await,
        }
        self.conclude(kind, act, alive, &dice)
    }

    fn conclude(&self, kind: Kind, act: Act, mut alive: Alive, dice: &Dice) -> Returned {
        let end = match act {
            Act::End(end) => end,
            Act::Panic => End::Failed,
            Act::Hang | Act::Block | Act::Kill | Act::CallProvider => End::Acked,
        };
        alive.end = if kind == Kind::Final { End::FinalOver } else { end };
        let returned = self.returned(kind, end, alive.run, dice);
        if let Some(change) = decided(&returned) {
            self.sim.court().decided(&self.node, alive.run, change, self.sim.world.now());
        }
        drop(alive);
        if act == Act::Panic {
            std::panic::resume_unwind(Box::new("it panics"));
        }
        returned
    }

    fn returned(&self, kind: Kind, end: End, run: u64, dice: &Dice) -> Returned {
        match (kind, end) {
            (Kind::Final, _) => Returned::FinalRetried,
            (_, End::Failed) => Returned::Failed(Failure::new(Cause::Error, "it fails")),
            (Kind::Aged, _) => {
                let kept = self.sim.terms().chaos && !self.sim.is_calm() && dice.chance(0.7);
                let decision = if kept {
                    dice.pick(&[UnackedDecision::Keep, UnackedDecision::Retry])
                } else {
                    UnackedDecision::Drop
                };
                Returned::Unacked(decision)
            }
            (Kind::OnDue, End::Rejoined) => {
                let micros = dice.below(4 * SECOND);
                Returned::Decided(if dice.chance(0.3) {
                    Decision::Rejoin
                } else if dice.chance(0.5) {
                    Decision::RejoinAfter(Duration::from_micros(micros))
                } else {
                    // Of four times one is past, and none is a whole millisecond.
                    let at = self.sim.clock.micros() + micros - SECOND;
                    self.sim.court().wants_at(run, at);
                    Decision::RejoinAt(SystemTime::UNIX_EPOCH + Duration::from_micros(at))
                })
            }
            (Kind::OnDue, End::Parked) => Returned::Decided(Decision::Park),
            (Kind::OnDue, _) => Returned::Decided(Decision::Ack),
        }
    }
}

/// What a decision makes of the job; a failure is for the node to decide.
fn decided(returned: &Returned) -> Option<Change> {
    Some(match returned {
        Returned::Decided(Decision::Ack) => Change::Ack,
        Returned::Decided(Decision::Rejoin) => Change::Rejoin(Again::AsAdded),
        Returned::Decided(Decision::RejoinAfter(delay)) => Change::Rejoin(Again::After(*delay)),
        Returned::Decided(Decision::RejoinAt(time)) => Change::Rejoin(Again::At(Timestamp::from(*time))),
        Returned::Decided(Decision::Park) | Returned::Unacked(UnackedDecision::Keep) => Change::Park,
        Returned::Unacked(UnackedDecision::Drop) => Change::Drop,
        _ => return None,
    })
}

/// Tells the judge of the end of a handler in any case.
struct Alive {
    sim: Arc<Sim>,
    node: NodeId,
    run: u64,
    end: End,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.sim.court().ended(&self.node, self.run, self.end);
    }
}

impl ErasedListener for Scripted {
    fn call(self: Arc<Self>, call: Call, record: Record, delivery: Delivery) -> BoxFuture<'static, Returned> {
        let kind = match call {
            Call::OnDue => Kind::OnDue,
            Call::FinalRetry(_) => Kind::Final,
            Call::ProcessUnacked => Kind::Aged,
        };
        let version = version(&record);
        let now = (self.sim.clock.micros(), self.sim.world.now());
        let run = self.sim.court().started(&self.node, &delivery.id, delivery.fence, kind, now);
        self.sim.overheard(&delivery.id, delivery.fence);
        Box::pin(self.perform(kind, version, run))
    }

    fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
        RetryDelay::BySettings
    }
}
