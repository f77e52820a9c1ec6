//! Signals on their way from the store to the processes that subscribed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::network_state::Subscriber;
use super::process::Process;
use super::random::RandomSource;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use super::units::SECOND;
use dq::store::Signal;

/// How long it takes at most until a node has subscribed again after a fault, in µs: its longest pause, and a second.
pub(super) const RESUBSCRIBED: u64 = 9 * SECOND;

impl Sim {
    pub(super) fn listen(&self, subscriber: Subscriber) {
        let mut subscribers = lock(&self.subscribers);
        subscribers.retain(|subscriber| !subscriber.outer.is_closed() && !subscriber.process.is_dead());
        subscribers.push(Arc::new(subscriber));
    }

    pub(super) fn subscribers(&self) -> Vec<Arc<Subscriber>> {
        lock(&self.subscribers).clone()
    }

    /// Breaks the subscriptions of a process, as a lost connection does; of every other process if none is named.
    pub(super) fn break_subscriptions(&self, process: Option<&Arc<Process>>) {
        self.disturb_takeovers(process);
        lock(&self.subscribers)
            .retain(|subscriber| process.is_some_and(|process| !Arc::ptr_eq(process, &subscriber.process)));
    }

    /// Delivers the signals of the last step; some are lost.
    pub(super) fn hand_out_signals(self: &Arc<Self>) {
        for subscriber in self.subscribers() {
            while let Some(signal) = lock(&subscriber.inner).try_next() {
                let number = subscriber.process.signals.fetch_add(1, Relaxed) + 1;
                let random = self.cluster.random(&subscriber.process.name, !number);
                let lost = self.loses_signal(&signal, &subscriber.process, number, &random)
                    || subscriber.process.is_unresponsive()
                    || subscriber.process.is_dead();
                if lost {
                    continue;
                }
                let at = self.cluster.now() + random.between(100, 900);
                let at = at.max(subscriber.last.load(Relaxed) + 1);
                subscriber.last.store(at, Relaxed);
                let outer = subscriber.outer.clone();
                self.cluster.at(at, move || outer.send(signal));
            }
        }
    }

    pub(super) fn loses_signal(&self, signal: &Signal, process: &Process, number: u64, random: &RandomSource) -> bool {
        let lossy = !self.is_calm() && self.settings().failing > 0.0 && random.chance(0.05);
        let lost = lossy
            && self.happens(
                || format!("{}~{number}", process.name),
                || format!("{} does not receive {signal:?}", process.name),
            );
        if lost && matches!(signal, Signal::Lease(..)) {
            self.disturb_takeovers(None);
        }
        lost || without("23") && matches!(signal, Signal::Due(_))
            || without("told") && matches!(signal, Signal::Lease(..))
            || without("paused") && matches!(signal, Signal::Paused)
    }
}
