//! What follows each step of the store: the checker compares everything, and the store's signals go out.

use std::sync::Arc;

use super::checker::{Checker, Did};
use super::profile::Profile;
use super::settings::LISTENERS;
use super::sim::Sim;
use super::sync::lock;
use dq::environment::StoreClock as _;
use dq::job::TopicKey;

/// The most steps of a run, a hundred times as many as most runs have.
const MAX_STEPS: u64 = 60_000;

impl Sim {
    /// The checker compares what a step did in a topic with what is allowed.
    #[expect(clippy::needless_pass_by_value, reason = "a step that was checked is over")]
    pub(super) fn check(self: &Arc<Self>, key: &TopicKey, did: Did) {
        let micros = self.clock.micros();
        let elsewhere = match &did {
            Did::Reclaim { from, charged: true, .. } => self.is_used_elsewhere(key, from),
            _ => false,
        };
        let checker = self.checker_of(key);
        let mut checker = lock(&checker);
        checker.ran_elsewhere = elsewhere;
        if let Did::Reclaim { from, seen, watched, charged } = &did {
            if *charged {
                self.check_reclaim(&mut checker, from);
            }
            checker.check_watch(from, *seen, *watched, micros);
        }
        let view = self.store().view(key);
        self.workload.narrate(self, key, &did, &checker, &view);
        self.note_members(key, &did, &checker, &view);
        checker.check_step(&did, view, micros);
        self.check_broadcasts(key, &mut checker, micros);
        self.keep_step(key, &checker);
        self.check_permits(&mut checker, micros);
        if self.is_endless(&checker) {
            checker.bad(format!("ENDLESS: {MAX_STEPS} steps, and the nodes send more requests"));
        }
        drop(checker);
        Arc::clone(&self.workload).stepped(self, key, &did);
    }

    /// Returns whether nodes send requests without end. Users' programs may have many jobs.
    fn is_endless(&self, checker: &Checker) -> bool {
        checker.steps > MAX_STEPS && !self.workload.is_program()
    }

    pub(super) fn after_step(self: &Arc<Self>) {
        self.hand_out_signals();
        self.check_nodes();
        self.check_takeovers();
    }

    /// Without faults, every listener of a connected node receives what is published, within two seconds.
    pub(super) fn check_broadcasts(&self, key: &TopicKey, checker: &mut Checker, micros: u64) {
        let published = checker.take_published();
        if self.workload.is_program() || !self.settings().are_calm() || self.settings().profile != Profile::Broadcasts {
            return;
        }
        let (now, subscribers) = (self.cluster.now(), self.subscribers());
        let mut receiving = self.alive();
        receiving.retain(|node| {
            subscribers.iter().any(|subscriber| {
                subscriber.broadcasts
                    && subscriber.topic == *key
                    && !subscriber.outer.is_closed()
                    && Arc::ptr_eq(&subscriber.process, &node.process)
            })
        });
        if receiving.is_empty() {
            checker.broadcasts_since = None;
        } else {
            checker.broadcasts_since.get_or_insert(micros / 1000);
        }
        for version in published {
            for (node, listener) in receiving.iter().flat_map(|node| LISTENERS.map(|listener| (node, listener))) {
                checker.must_receive(&node.id, listener, version, now);
            }
        }
        checker.check_awaited(|id| receiving.iter().any(|node| node.id == *id), now);
    }
}
