//! An experiment with one schedule: ten minutes with a tick each second, while about five nodes listen and one of them is killed each
//! second.
//!
//! A node is killed at a tick or up to five milliseconds behind it, and it is the one that holds the schedule, if one does. So many die
//! between the claim and the outcome of a tick, and a gap follows until another node has taken the schedule back. The checker
//! compares each tick with what it has calculated itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::cluster::ClusterState;
use super::nodes::ScriptedNodes;
use super::profile::Profile;
use super::rules::RuleAway;
use super::run::{LONGEST_END, run_until};
use super::settings::RunSettings;
use super::sim::Sim;
use super::units::{MS, SECOND};
use dq::environment::Runtime;
use dq::schedule::OnMissed;

/// How long the schedule ticks and nodes are killed, in µs.
const BUSY: u64 = 600 * SECOND;

/// A killed node is back after one to six seconds, so about five of these live.
const NODES: u64 = 9;

/// What came of the ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeriodicReport {
    /// Nodes that were killed,
    pub kills: u64,
    /// and how many of them held the schedule.
    pub holders_killed: u64,
    /// Ticks that passed.
    pub ticks: u64,
    /// Jobs that they added.
    pub added: u64,
    /// Runs of the schedule: several ticks were one where some were missed.
    pub runs: u64,
    /// The violation that the checker found.
    pub found: Option<String>,
}

/// Runs the experiment with a seed; `without` takes a rule of the protocol away.
///
/// # Panics
/// If the operating system cannot provide a runtime.
pub fn simulate_periodic(seed: u64, on_missed: OnMissed, without: Option<&'static str>) -> PeriodicReport {
    let _away = RuleAway::take(without);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers is given");
    runtime.block_on(play(seed, on_missed))
}

async fn play(seed: u64, on_missed: OnMissed) -> PeriodicReport {
    let cluster = ClusterState::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), false);
    let settings = RunSettings {
        nodes: NODES,
        topics: 1,
        busy: BUSY,
        failing: 0.0,
        chaos: false,
        killers: false,
        ..RunSettings::of(&cluster, Some(Profile::Crowd))
    };
    let sim = Sim::new(&cluster, settings, Arc::new(ScriptedNodes));
    let (process, provider) = sim.start_caller();
    for _ in 0..NODES {
        sim.start_node();
    }
    let topic = sim.keys[0].topic.clone();
    process.environment().spawn(Runtime::Own, async move {
        let Ok(topic) = provider.topic(topic.as_str()) else { return };
        drop(topic.add_schedule_json("each-second", "8").every("1s").on_missed(on_missed).await);
    });
    let holders = Arc::new(AtomicU64::new(0));
    let (killer, of) = (Arc::clone(&sim), Arc::clone(&holders));
    cluster.at(2 * SECOND, move || killer.kill_at_a_tick(of));
    run_until(&sim, BUSY).await;
    let (kills, mut ticked, mut runs) = (sim.faults.load(Relaxed), (0, 0), 0);
    sim.for_checkers(|checker| (ticked, runs) = (checker.ticked(), checker.ticks));
    sim.calm_down();
    let end = cluster.now() + LONGEST_END;
    while !sim.is_over() && cluster.now() < end && sim.unfinished().is_some() {
        sim.open_topics();
        run_until(&sim, cluster.now() + 6 * SECOND).await;
    }
    if let Some(left) = sim.unfinished() {
        sim.bad(format!("STUCK: {left}"));
    }
    let (ticks, added) = ticked;
    let holders_killed = holders.load(Relaxed);
    let report = PeriodicReport { kills, holders_killed, ticks, added, runs, found: sim.found() };
    sim.end();
    report
}

impl Sim {
    /// Kills a node now, and another one at the next tick.
    fn kill_at_a_tick(self: &Arc<Self>, holders: Arc<AtomicU64>) {
        if self.is_calm() || self.is_over() {
            return;
        }
        let (alive, number) = (self.alive(), self.occasions.fetch_add(1, Relaxed));
        let random = self.cluster.random("kill", number);
        let mut holder = None;
        self.for_checkers(|checker| holder = checker.holder_of_schedule());
        let victim = alive.iter().find(|node| Some(&node.id) == holder.as_ref());
        holders.fetch_add(u64::from(victim.is_some()), Relaxed);
        if let Some(victim) = victim.or_else(|| alive.get(random.below(alive.len().max(1) as u64) as usize)) {
            self.kill(&victim.process);
        }
        let (sim, next) = (Arc::clone(self), self.cluster.now() / SECOND + 1);
        self.cluster.at(next * SECOND + random.below(5 * MS), move || sim.kill_at_a_tick(holders));
    }
}
