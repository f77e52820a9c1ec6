//! The nodes of a user's program: built by the factory that programs use, on the network of the run.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt;

use super::super::node::SimNode;
use super::super::process::Process;
use super::super::sim::Sim;
use super::super::store::FaultyStore;
use super::super::sync::lock;
use super::program::{Host, Program};
use super::watched::{Received, Watched};
use dq::listener::AckMode;
use dq::store::Store;
use dq::testing::seam;
use dq::testing::seam::Plan;

impl Program {
    /// Starts a node of the program.
    pub(super) fn start(self: &Arc<Self>, sim: &Arc<Sim>) {
        let number = sim.names.fetch_add(1, Relaxed) + 1;
        let process = Process::new(format!("n{number}"), &sim.cluster);
        let store: Arc<dyn Store> = Arc::new(FaultyStore { sim: Arc::clone(sim), process: Arc::clone(&process) });
        let factory = self.factory().variables([("", ""); 0]).environment(process.environment()).store(store);
        let mut plan = match seam::prepare(factory).now_or_never() {
            Some(Ok((plan, _))) => plan,
            Some(Err(problems)) => return self.fail(format!("a node cannot start: {problems}")),
            None => return self.fail("a node cannot start: its start waits for an event outside of the run".into()),
        };
        self.grace_millis.store(plan.settings.shutdown_grace.as_millis() as u64, Relaxed);
        let node = SimNode::new(&process, plan.node.clone());
        sim.note(|| format!("{} starts", process.name));
        sim.for_checkers(|checker| {
            checker.node_records.entry(node.id.clone()).or_default().disturbed_at = sim.cluster.now();
        });
        lock(&sim.nodes).push(Arc::clone(&node));
        let host = Host { sim: Arc::clone(sim), program: Arc::clone(self), process, node: node.id.clone() };
        watch(&mut plan, &host);
        *lock(&node.running) = Some(seam::start(&plan));
    }
}

/// Puts the checker between a node and its listeners.
fn watch(plan: &mut Plan, host: &Host) {
    for topic in &mut plan.topics {
        let checker = host.sim.checker_of(&topic.key);
        let timeout = topic.settings.timeout.map_or(u64::MAX / 4, |timeout| timeout.as_micros() as u64);
        let mut known = lock(&checker);
        (known.timeout_micros, known.acks_on_claim) = (timeout, topic.settings.ack == AckMode::OnClaim);
        drop(known);
        topic.listener = Arc::new(Watched { inner: Arc::clone(&topic.listener), host: host.clone(), checker });
    }
    for broadcast in &mut plan.broadcasts {
        let (inner, name) = (Arc::clone(&broadcast.listener), broadcast.name);
        broadcast.listener = Arc::new(Received { inner, name, host: host.clone() });
    }
}
