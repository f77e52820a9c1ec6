//! Scripted broadcast listeners: they succeed, fail, panic or hang.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::process::Process;
use super::profile::Profile;
use super::sim::Sim;
use super::units::{MS, SECOND};
use super::version::version;
use dq::environment::Environment;
use dq::job::{Cause, JobId, NodeId, Record, TopicName};
use dq::listener::Failure;
use dq::testing::seam::BroadcastPlan;
use dq::testing::seam::ErasedBroadcast;

/// The listeners of each node.
const LISTENERS: [&str; 2] = ["left", "right"];

/// A broadcast listener of a node.
#[derive(Debug)]
struct Receiving {
    sim: Arc<Sim>,
    process: Arc<Process>,
    node: NodeId,
    environment: Environment,
    name: &'static str,
}

impl Receiving {
    /// Does what its random source decides, after some time.
    async fn handle(self: Arc<Self>, version: u64) -> Result<(), Failure> {
        let random = self.sim.cluster.random(&format!("{} {}", self.process.name, self.name), version);
        let chaos = self.sim.settings().chaos && !self.sim.is_calm();
        let micros = match random.below(20) {
            0 if chaos => SECOND * SECOND,
            1..4 if chaos => random.between(MS, 3 * SECOND),
            _ => random.between(100, 20 * MS),
        };
        self.environment.sleep_until(self.environment.now() + Duration::from_micros(micros)).await;
        match random.below(10) {
            0 => Err(Failure::new(Cause::Error, "it fails")),
            1 => std::panic::resume_unwind(Box::new("it panics")),
            _ => Ok(()),
        }
    }
}

impl ErasedBroadcast for Receiving {
    fn deliver(
        self: Arc<Self>,
        _channel: TopicName,
        id: JobId,
        record: Record,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let version = version(&record);
        self.sim.cluster.log(|| format!("{} {} receives {id} ({version})", self.process.name, self.name));
        self.sim.checker().receives(&self.node, self.name, (&id, version));
        Box::pin(self.handle(version))
    }
}

impl Sim {
    /// The broadcast listeners of a node; none unless the profile has broadcasts.
    pub(super) fn broadcast_listeners(
        self: &Arc<Self>,
        process: &Arc<Process>,
        node: &NodeId,
        environment: &Environment,
    ) -> Vec<BroadcastPlan> {
        if self.settings().profile != Profile::Broadcasts {
            return Vec::new();
        }
        let plan = |name| {
            let (sim, process) = (Arc::clone(self), Arc::clone(process));
            let listener = Receiving { sim, process, node: node.clone(), environment: environment.clone(), name };
            BroadcastPlan { channels: vec![self.key.clone()], listener: Arc::new(listener), name }
        };
        LISTENERS.into_iter().map(plan).collect()
    }
}
