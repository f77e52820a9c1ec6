//! Faults: what goes wrong, and when.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::network_state::Outage;
use super::profile::{Fault, Profile};
use super::random::RandomSource;
use super::signals::RESUBSCRIBED;
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use dq::environment::StoreClock as _;

/// How long a node is unresponsive or mute while no other fault happens, in µs.
const LONG: u64 = 120 * SECOND;

impl Sim {
    /// Injects a fault now, and another one later.
    pub(super) fn next_fault(self: &Arc<Self>) {
        if self.is_calm() || self.is_over() {
            return;
        }
        let kinds = self.settings().faults();
        let number = self.occasions.fetch_add(1, Relaxed) + 1;
        let random = self.cluster.random("fault", number);
        let mut next = random.between(SECOND, 12 * SECOND);
        if !kinds.is_empty() {
            let fault = random.pick(kinds);
            // Both directions fail equally often.
            let fault = if fault == Fault::Unresponsive && random.chance(0.5) { Fault::Mute } else { fault };
            if self.happens(|| format!("f{number}"), || format!("{fault:?}")) {
                self.cluster.log(|| format!("FAULT {number}: {fault:?}"));
                self.fault();
                self.cause(fault, &random);
                // No other fault happens during one that takes so long to show.
                next += match fault {
                    Fault::UnresponsiveLong | Fault::MuteLong => LONG,
                    _ if self.settings().profile == Profile::Signals => 30 * SECOND,
                    _ => 0,
                };
            }
        }
        let sim = Arc::clone(self);
        self.cluster.at(self.cluster.now() + next, move || sim.next_fault());
    }

    pub(super) fn cause(self: &Arc<Self>, fault: Fault, random: &RandomSource) {
        let now = self.cluster.now();
        match fault {
            Fault::Out => {
                let outage =
                    random.pick(&[Outage::Silent, Outage::Loading, Outage::Reset, Outage::Frozen, Outage::Frozen]);
                let until = now + random.between(SECOND, 40 * SECOND);
                self.change_network_state(|network_state| {
                    (network_state.outage_until, network_state.outage) = (until, outage);
                });
                self.break_subscriptions(None);
                self.disturb_takeovers_until(until + RESUBSCRIBED);
                self.note_fault_of_all();
            }
            Fault::Slow => {
                let until = now + random.between(SECOND, 10 * SECOND);
                self.change_network_state(|network_state| network_state.slow_until = until);
            }
            Fault::Full => {
                let until = now + random.between(SECOND, 6 * SECOND);
                self.change_network_state(|network_state| network_state.full_until = until);
            }
            Fault::Unsubscribe => {
                let until = now + random.between(SECOND, 20 * SECOND);
                self.change_network_state(|network_state| network_state.unsubscribed_until = until);
                self.break_subscriptions(None);
                self.disturb_takeovers_until(until + RESUBSCRIBED);
                self.allow_lateness(until - now + RESUBSCRIBED);
            }
            Fault::RefuseConnections => {
                let until = now + random.between(SECOND, 40 * SECOND);
                self.change_network_state(|network_state| network_state.refusing = (now, until));
                self.break_subscriptions(None);
                self.disturb_takeovers_until(until + RESUBSCRIBED);
                self.note_fault_of_all();
            }
            Fault::DiskFull => {
                self.fill_disk(now + random.between(SECOND, 20 * SECOND));
                self.note_fault_of_all();
            }
            Fault::Jump => self.jump(random),
            Fault::Snap => self.keep_all(),
            Fault::Fall => {
                if self.fall_back() {
                    self.cluster.log(|| "the store falls back".into());
                }
            }
            Fault::Caller => {
                let new = self.start_caller();
                let mut callers = lock(&self.callers);
                let place = random.below(callers.len() as u64) as usize;
                callers[place].0.kill();
                callers[place] = new;
            }
            Fault::Kill
            | Fault::KillAtSend
            | Fault::Stop
            | Fault::Pause
            | Fault::PauseAtSend
            | Fault::Unresponsive
            | Fault::UnresponsiveLong
            | Fault::Mute
            | Fault::MuteLong
            | Fault::Subscribers
            | Fault::Starve
            | Fault::Panic
            | Fault::Wall => {
                self.inject_node_fault(fault, random);
            }
        }
    }

    fn inject_node_fault(self: &Arc<Self>, fault: Fault, random: &RandomSource) {
        let (cluster, now, alive) = (&self.cluster, self.cluster.now(), self.alive());
        if alive.is_empty() {
            return;
        }
        let node = &alive[random.below(alive.len() as u64) as usize];
        cluster.log(|| format!("  .. of {}", node.process.name));
        match fault {
            // Nodes are mostly idle, and only the death of one that has a lease shows something.
            Fault::Kill if self.settings().has_short_lease() => {
                self.change_network_state(|network_state| network_state.kills_next_settle = true);
            }
            Fault::Kill => self.kill(&node.process),
            Fault::Starve => node.process.starve(now + random.between(SECOND, 30 * SECOND)),
            Fault::Panic => node.process.panics_after.store(random.below(1_000), Relaxed),
            Fault::KillAtSend => node.dies_after.store(random.below(8), Relaxed),
            Fault::Stop if alive.len() > 1 => {
                self.stop_node(node);
                let sim = Arc::clone(self);
                cluster.at(now + random.between(SECOND, 8 * SECOND), move || sim.start_node());
            }
            Fault::Pause => {
                node.process.pause(now + random.between(SECOND, 45 * SECOND));
                self.note_fault(&node.process);
            }
            Fault::PauseAtSend => {
                node.pause.store(random.between(SECOND, 45 * SECOND), Relaxed);
                node.pauses_after.store(random.below(8), Relaxed);
            }
            Fault::Unresponsive => {
                node.process.make_unresponsive(now + random.pick(&[1, 3, 10, 40, 100]) * SECOND);
                self.note_fault(&node.process);
            }
            Fault::UnresponsiveLong => {
                node.process.make_unresponsive(now + LONG);
                self.note_fault(&node.process);
            }
            Fault::MuteLong => node.process.mute(now + LONG),
            Fault::Mute => node.process.mute(now + random.pick(&[1, 3, 10, 40, 100]) * SECOND),
            Fault::Subscribers => self.break_subscriptions(Some(&node.process)),
            Fault::Wall => {
                let by = random.between(0, 120 * SECOND) as i64 - 60 * SECOND as i64;
                node.process.clock.skew.store(by, Relaxed);
            }
            _ => {}
        }
    }

    /// Jobs may be late for so long from now on, in µs.
    fn allow_lateness(&self, long: u64) {
        let until = (self.clock.micros() + long) / 1000;
        self.for_checkers(|checker| checker.lateness_until = checker.lateness_until.max(until));
    }

    pub(super) fn jump(&self, random: &RandomSource) {
        let by = random.pick(&[500 * MS, 10 * SECOND, 20 * SECOND, 600 * SECOND]) as i64;
        let by = if random.chance(0.5) { by } else { -by };
        let most = 600 * SECOND as i64;
        let skew = (self.clock.skew.load(Relaxed) + by).clamp(-most, most);
        self.clock.skew.store(skew, Relaxed);
        self.for_checkers(|checker| checker.jumped = true);
        self.disturb_takeovers(None);
        self.cluster.log(|| format!("the store's clock is {skew} µs ahead"));
    }

    fn note_fault_of_all(&self) {
        let now = self.cluster.now();
        self.for_checkers(|checker| checker.unsettle(now));
    }
}
