//! When faults happen: on the occasion of a job, so that they hit something.
//!
//! Each job that is claimed is an occasion, and each that is added. It has a name, the job's with a number, and dice of its own:
//! so a fault can be left out and the others stay as they were, also when other jobs are left out.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::super::checker::Did;
use super::super::cluster::lock;
use super::super::sim::Sim;
use super::super::terms::Fault;
use super::faults::Blow;
use super::only::name_of;
use super::program::Program;
use dq::job::{JobId, TopicKey};

impl Program {
    /// The names of the occasions that these jobs are now: the number of their claim after `:`, of their add after `+`.
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

impl Sim {
    /// A step is an occasion for a fault: a claim for one of the node that claims, an add for one of who adds.
    pub(in crate::simulation) fn tempt(&self, key: &TopicKey, did: &Did) {
        let Some(program) = self.program.get() else { return };
        if program.left.load(Relaxed) == 0 {
            return;
        }
        let (node, occasions) = match did {
            Did::Claim { node, claims, aged: false } => {
                (Some(node.clone()), program.occasions(key, ':', claims.iter().map(|claim| &claim.id)))
            }
            Did::Add { jobs } => (None, program.occasions(key, '+', jobs.iter().map(|(job, _)| &job.id))),
            _ => return,
        };
        let likely = if node.is_some() { program.eagerness } else { 0.3 * program.eagerness };
        for (name, number) in occasions {
            let random = self.cluster.random(&name, number);
            if !random.chance(likely) {
                continue;
            }
            let blow = random.pick(&program.blows);
            let hits = node.is_some() || matches!(blow, Blow::Wire | Blow::Engine(Fault::Out | Fault::Slow));
            if !hits || !self.happens(|| format!("{name}{number}"), || format!("{blow:?}")) {
                continue;
            }
            program.left.fetch_sub(1, Relaxed);
            let Some(sim) = program.sim() else { return };
            let program = Arc::clone(program);
            return self.cluster.at(self.cluster.now(), move || sim.inject(&program, blow, node.as_ref(), random));
        }
    }
}
