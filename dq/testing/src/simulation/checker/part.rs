//! Checks only the jobs that a step names, for topics with too many jobs to compare all of them after each step.
//!
//! Every 256 steps the checker compares everything, so it also finds a step that changes a job it does not name.

use std::collections::BTreeSet;

use super::record::{Checker, Did};
use dq::job::{JobId, TopicKey};
use dq::store::memory::MemoryStore;
use dq::testing::seam::{JobView, View};

/// After how many steps everything is compared.
const ALL_AFTER: u64 = 256;

impl Checker {
    /// Checks the jobs that a step names, as [`check_step`](Self::check_step) checks all.
    pub(in crate::simulation) fn check_part(&mut self, did: &Did, store: &MemoryStore, key: &TopicKey, micros: u64) {
        self.steps += 1;
        let mut before = std::mem::take(&mut self.before);
        let named = self.named(did);
        let after = store.view_of(key, &named);
        self.note(did, &before, micros);
        for id in &named {
            self.check_job(did, id, (before.jobs.get(id), after.jobs.get(id)), None, micros);
        }
        self.check_effects(did, &before, &after);
        for id in &named {
            before.jobs.remove(id);
        }
        before.jobs.extend(after.jobs);
        before.leases = after.leases;
        if self.steps.is_multiple_of(ALL_AFTER) {
            self.compare(did, &before, &store.view(key));
        }
        self.before = before;
    }

    fn compare(&mut self, did: &Did, known: &View, all: &View) {
        if !all.consistent {
            self.bad("[2] slots and places differ".into());
        }
        self.check_leases(did, all);
        let ids: BTreeSet<&JobId> = known.jobs.keys().chain(all.jobs.keys()).collect();
        for id in ids {
            let (was, is) = (known.jobs.get(id).map(place), all.jobs.get(id).map(place));
            if was != is {
                self.bad(format!("[2] a step has changed {id}, which it does not name: {was:?} is {is:?}"));
            }
        }
    }

    /// The jobs that a step may change.
    fn named(&self, did: &Did) -> BTreeSet<JobId> {
        match did {
            Did::Nothing | Did::Release { .. } | Did::Publish { .. } | Did::Set { .. } | Did::RefuseAdd => {
                BTreeSet::new()
            }
            Did::Keep { id, .. } => BTreeSet::from([id.clone()]),
            Did::Note { runs, .. } => runs.iter().map(|(id, ..)| id.clone()).collect(),
            Did::Claim { claims, .. } => claims.iter().map(|claim| claim.id.clone()).collect(),
            Did::Settle { outcomes, .. } => outcomes.iter().map(|(outcome, _)| outcome.id.clone()).collect(),
            Did::Add { jobs } => jobs.iter().map(|(job, _)| job.id.clone()).collect(),
            Did::Command { items } => items.iter().map(|(item, _)| item.id.clone()).collect(),
            Did::Change { items } => items.iter().map(|(item, _)| item.id.clone()).collect(),
            Did::Reclaim { from, .. } => {
                self.expected.rows.keys().filter(|(node, _)| node == from).map(|(_, id)| id.clone()).collect()
            }
        }
    }
}

fn place(job: &JobView) -> impl PartialEq + std::fmt::Debug + use<'_> {
    (job.state, job.crashes, job.row.as_ref(), job.record.as_bytes())
}
