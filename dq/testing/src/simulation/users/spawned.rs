//! Tasks that handlers spawn with `tokio::spawn`. They belong to the runtime of the run, which cannot end them with their
//! node.
//!
//! A runtime for each node could, but a paused clock belongs to one runtime, and nothing reports when its next timer is
//! due. So several runtimes cannot share one virtual time. A node that dies leaves its tasks behind, and the account says
//! so.

use std::sync::atomic::Ordering::Relaxed;

use tokio::runtime::Handle;

use super::super::cluster::ClusterState;
use super::super::process::Process;
use super::super::sim::Sim;
use super::super::sync::lock;
use super::program::Program;

/// How many tasks user code has spawned.
pub(super) fn spawned(cluster: &ClusterState) -> u64 {
    let all = Handle::current().metrics().num_alive_tasks() as u64;
    all.saturating_sub(cluster.tasks.load(Relaxed))
}

impl Program {
    /// Notes in the account which tasks outlive a process that is about to be killed.
    pub(super) fn note_spawned(&self, sim: &Sim, process: &Process) {
        let tasks = spawned(&sim.cluster);
        if tasks > 0 && lock(&self.spawners).contains(&process.name) {
            let name = &process.name;
            sim.note(|| {
                format!("tasks that handlers of {name} have spawned GO ON, unlike in reality: {tasks} at most")
            });
        }
    }
}
