//! Connects a user's program to the engine.

use std::sync::Arc;

use super::super::checker::{Checker, Did};
use super::super::process::Process;
use super::super::random::RandomSource;
use super::super::sim::{Sim, Workload};
use super::program::Program;
use dq::job::{ProducerId, TopicKey};
use dq::store::{NewJob, Numbered};
use dq::testing::seam::View;

impl Workload for Program {
    fn start_node(self: Arc<Self>, sim: &Arc<Sim>) {
        self.start(sim);
    }

    fn connection_fault(&self, sim: &Sim, process: &Process, _: u64, random: &RandomSource) -> Option<u64> {
        self.take_connection_fault(sim, process, random)
    }

    fn is_program(&self) -> bool {
        true
    }

    fn stamp(&self, producer: &ProducerId, batch: &mut Numbered<NewJob>) {
        self.versions.stamp(producer, batch);
    }

    fn leave_out(&self, process: &Process, key: &TopicKey, batch: &mut Numbered<NewJob>) -> Vec<usize> {
        self.without_left_out(process, key, batch)
    }

    fn narrate(&self, sim: &Sim, key: &TopicKey, did: &Did, checker: &Checker, after: &View) {
        self.describe(sim, key, did, checker, after);
    }

    fn stepped(self: Arc<Self>, sim: &Sim, key: &TopicKey, did: &Did) {
        self.take_occasion(sim, key, did);
    }

    fn killed(&self, sim: &Sim, process: &Process) {
        self.note_spawned(sim, process);
    }

    fn keeps_account(&self) -> bool {
        self.trace.is_some()
    }

    fn account(&self, time: u64, event: String) {
        if let Some(trace) = &self.trace {
            trace.push(time, None, None, event);
        }
    }

    fn has_failed(&self) -> bool {
        Self::has_failed(self)
    }
}
