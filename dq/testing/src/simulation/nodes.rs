//! The nodes of dq's own simulation: real ones, each in a process of its own, with scripted handlers.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::altered::ENDLESS_LEASE;
use super::checker::AGEING;
use super::node::{CAPS, SimNode, UNACKED_AGE};
use super::process::Process;
use super::profile::Profile;
use super::random::RandomSource;
use super::rules::without;
use super::script::Scripted;
use super::sim::{Sim, Workload};
use super::store::FaultyStore;
use super::sync::lock;
use dq::config::{EffectiveSettings, TopicSettings};
use dq::environment::{Environment, Runtime};
use dq::job::{NodeId, TopicKey};
use dq::listener::AckMode;
use dq::provider::Provider;
use dq::testing::seam::{self};
use dq::testing::seam::{DefinitionsWake, Plan, TopicPlan};

/// dq's own simulation: every node runs the scripted handlers.
#[derive(Debug)]
pub(super) struct ScriptedNodes;

impl Workload for ScriptedNodes {
    fn start_node(self: Arc<Self>, sim: &Arc<Sim>) {
        sim.start_scripted_node();
    }

    fn connection_fault(&self, sim: &Sim, process: &Process, number: u64, random: &RandomSource) -> Option<u64> {
        let fails = random.chance(sim.network_state().failing).then(|| random.below(5));
        let name = || format!("{}:{number}", process.name);
        fails.filter(|_| sim.happens(name, || format!("the connection of {} fails", process.name)))
    }
}

impl Sim {
    fn start_scripted_node(self: &Arc<Self>) {
        let number = self.names.fetch_add(1, Relaxed) + 1;
        let process = Process::new(format!("n{number}"), &self.cluster);
        let environment = process.environment();
        let id = environment.node_id();
        let environment = self.panicking(environment, &process, &id);
        let node = SimNode::new(&process, id.clone());
        self.cluster.log(|| format!("{} starts as {id}", process.name));
        self.for_checkers(|checker| {
            let record = checker.node_records.entry(id.clone()).or_default();
            (record.born_at, record.disturbed_at) = (self.cluster.now(), self.cluster.now());
        });
        lock(&self.nodes).push(Arc::clone(&node));
        let store = Arc::new(FaultyStore { sim: Arc::clone(self), process: Arc::clone(&process) });
        let mut settings = self.settings().node.clone();
        if without("21") {
            settings.lease = ENDLESS_LEASE;
        }
        let app = self.keys[0].app.clone();
        let provider = Provider::root(app.clone(), store.clone(), environment.clone(), settings.clone());
        let topic = |key: &TopicKey| TopicPlan {
            key: key.clone(),
            listener: Arc::new(Scripted {
                sim: Arc::clone(self),
                process: Arc::clone(&process),
                node: id.clone(),
                key: key.clone(),
                checker: self.checker_of(key),
                environment: environment.clone(),
                provider: provider.clone(),
            }),
            name: "scripted",
            declared_at: "the simulation",
            settings: self.topic_settings(),
            listing: EffectiveSettings::default(),
            schedules: Vec::new(),
            definitions: DefinitionsWake::default(),
        };
        let topics = self.keys.iter().map(topic).collect();
        let broadcasts = self.broadcast_listeners(&process, &id, &environment);
        let plan = Plan {
            app,
            node: id,
            store,
            environment: environment.clone(),
            settings,
            listing: EffectiveSettings::default(),
            topics,
            broadcasts,
            refused: BTreeMap::new(),
        };
        environment.spawn(Runtime::Own, async move {
            *lock(&node.running) = Some(seam::start(&plan));
        });
    }

    /// The environment of a node whose topics panic where a fault says.
    fn panicking(self: &Arc<Self>, environment: Environment, process: &Arc<Process>, id: &NodeId) -> Environment {
        let (sim, process, id) = (Arc::downgrade(self), Arc::clone(process), id.clone());
        seam::watched(environment, move |step, job| {
            if !process.panics_now() {
                return;
            }
            if let Some(sim) = sim.upgrade() {
                sim.cluster.log(|| format!("{} panics at `{step}`, at {job:?}", process.name));
                sim.note_fault(&process);
                sim.for_checkers(|checker| checker.node_panics(&id));
            }
            resume_unwind(Box::new("a planted panic")); // without the hook, which prints
        })
    }

    fn topic_settings(&self) -> TopicSettings {
        let run = self.settings();
        let mut settings = TopicSettings::default();
        settings.concurrency = run.concurrency;
        settings.lookahead = Duration::from_micros(run.lookahead);
        settings.priority_ageing = AGEING;
        settings.group_concurrency = Some(run.groups).filter(|most| *most > 0);
        settings.group_burst = if run.groups > 1 { run.group_burst } else { 0 };
        settings.timeout = Some(Duration::from_micros(run.timeout));
        // `CAPS` allows one attempt more than there are retries.
        settings.retry = "200ms, 1s, 4s".parse().expect("it is a good policy");
        settings.max_crashes = if without("19") { u32::MAX } else { CAPS.crashes };
        settings.dead_retention = CAPS.dead_retention;
        settings.park_timeout = UNACKED_AGE;
        settings.ack = if run.profile == Profile::Claim { AckMode::OnClaim } else { AckMode::OnReturn };
        settings
    }
}
