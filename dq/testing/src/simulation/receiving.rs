//! Scripted broadcast listeners: they succeed, fail, panic or hang.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::checker::Checker;
use super::process::Process;
use super::profile::Profile;
use super::settings::LISTENERS;
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use super::version::version;
use dq::environment::Environment;
use dq::job::{Cause, JobId, NodeId, Record, TopicKey, TopicName};
use dq::listener::Failure;
use dq::testing::seam::BroadcastPlan;
use dq::testing::seam::ErasedBroadcast;

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

/// Tells the checker that a listener runs, and, when this is dropped, that it does not any more.
struct Listens {
    checker: Arc<Mutex<Checker>>,
    node: NodeId,
    broadcast: (&'static str, u64),
}

impl Listens {
    fn begin(checker: Arc<Mutex<Checker>>, node: NodeId, broadcast: (&'static str, u64), time: u64) -> Self {
        lock(&checker).node_records.entry(node.clone()).or_default().listening.insert(broadcast, time);
        Self { checker, node, broadcast }
    }
}

impl Drop for Listens {
    fn drop(&mut self) {
        let mut checker = lock(&self.checker);
        if let Some(record) = checker.node_records.get_mut(&self.node).filter(|record| !record.dead) {
            record.listening.remove(&self.broadcast);
        }
    }
}

impl ErasedBroadcast for Receiving {
    fn deliver(
        self: Arc<Self>,
        channel: TopicName,
        id: JobId,
        record: Record,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let version = version(&record);
        self.sim.cluster.log(|| format!("{} {} receives {id} ({version})", self.process.name, self.name));
        let key = TopicKey { app: self.sim.keys[0].app.clone(), topic: channel };
        let checker = self.sim.checker_of(&key);
        lock(&checker).receives(&self.node, self.name, (&id, version));
        let listens = Listens::begin(checker, self.node.clone(), (self.name, version), self.sim.cluster.now());
        Box::pin(async move {
            let _listens = listens;
            self.handle(version).await
        })
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
            BroadcastPlan { channels: self.keys.clone(), listener: Arc::new(listener), name }
        };
        LISTENERS.into_iter().map(plan).collect()
    }
}
