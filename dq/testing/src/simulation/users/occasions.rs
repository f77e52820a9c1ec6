//! When faults happen: at claims and adds, so that they hit something.
//!
//! Each claimed job and each added job is an occasion for a fault. An occasion has a name, made of the job and a number,
//! and its own random source. So leaving out one fault, or other jobs, leaves the other faults as they were.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::super::checker::Did;
use super::super::profile::Fault;
use super::super::sim::Sim;
use super::super::sync::lock;
use super::faults::PlannedFault;
use super::only::name_of;
use super::program::Program;
use dq::job::{JobId, TopicKey};

impl Program {
    /// The names of the occasions that these jobs are now: after `:` the number of the claim, after `+` the number of the
    /// add.
    fn occasions<'a>(&self, key: &TopicKey, what: char, jobs: impl Iterator<Item = &'a JobId>) -> Vec<(String, u64)> {
        let mut occasions = lock(&self.occasions);
        let count = |id| {
            let name = format!("{}{what}", name_of(&key.topic, id));
            let number = occasions.entry(name.clone()).or_default();
            *number += 1;
            (name, *number)
        };
        jobs.map(count).collect()
    }
}

impl Program {
    /// A step is an occasion for a fault: a claim for a fault of the node that claims, an add for a fault of the process that
    /// adds.
    pub(super) fn take_occasion(self: &Arc<Self>, sim: &Sim, key: &TopicKey, did: &Did) {
        if self.left.load(Relaxed) == 0 {
            return;
        }
        let (node, occasions) = match did {
            Did::Claim { node, claims, aged: false, .. } => {
                (Some(node.clone()), self.occasions(key, ':', claims.iter().map(|claim| &claim.id)))
            }
            Did::Add { jobs } => (None, self.occasions(key, '+', jobs.iter().map(|(job, _)| &job.id))),
            _ => return,
        };
        let likely = if node.is_some() { self.eagerness } else { 0.3 * self.eagerness };
        for (name, number) in occasions {
            let random = sim.cluster.random(&name, number);
            if !random.chance(likely) {
                continue;
            }
            let planned = random.pick(&self.planned_faults);
            let hits = node.is_some()
                || matches!(planned, PlannedFault::Connection | PlannedFault::Engine(Fault::Out | Fault::Slow));
            if !hits || !sim.happens(|| format!("{name}{number}"), || format!("{planned:?}")) {
                continue;
            }
            self.left.fetch_sub(1, Relaxed);
            let Some(sim) = self.sim() else { return };
            let program = Arc::clone(self);
            return sim
                .clone()
                .cluster
                .at(sim.cluster.now(), move || sim.inject(&program, planned, node.as_ref(), random));
        }
    }
}
