//! Runs a seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::cluster::ClusterState;
use super::nodes::ScriptedNodes;
use super::profile::Profile;
use super::rules::RuleAway;
use super::settings::RunSettings;
use super::sim::{InjectedFault, Sim};
use super::sync::lock;
use super::units::SECOND;

/// How long everything may take to end after the last fault, in µs: a parked job returns to its handler every five minutes,
/// and the handler may park it again.
pub(super) const MAX_END: u64 = 7_200 * SECOND;

/// How often tasks may be polled at one moment.
const MAX_POLLS: u64 = 100_000;

/// The options of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// Take this rule of the protocol away: one of the table in `docs/internals/guarantees.md`.
    pub without: Option<&'static str>,
    /// Only the faults of this profile; otherwise the seed picks one.
    pub profile: Option<Profile>,
    /// Keep a log of every event.
    pub log: bool,
    /// The number of nodes; otherwise the seed picks one. Nodes that replace others come on top.
    pub nodes: Option<u64>,
    /// The number of ids that callers choose from; otherwise the seed picks one.
    pub ids: Option<u64>,
    /// How long callers act and faults happen, in µs of simulated time; otherwise the seed picks.
    pub busy: Option<u64>,
    /// Only faults with these names happen, as in [`Report::injected`]; otherwise all that the seed picks.
    pub faults: Option<BTreeSet<String>>,
    /// Only these acts of callers happen, as in [`Report::acts`]; otherwise all.
    pub acts: Option<BTreeSet<u64>>,
}

/// The result of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The profile of its faults.
    pub profile: Profile,
    /// Jobs that callers tried to add.
    pub jobs: u64,
    /// Jobs that were added and have ended: acked, deleted, replaced or DEAD.
    pub lives: u64,
    /// Handlers that were started.
    pub handled: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Each fault, in order.
    pub injected: Vec<InjectedFault>,
    /// The numbers of the acts of callers, in order.
    pub acts: Vec<u64>,
    /// How many nodes it began with.
    pub nodes: u64,
    /// How many ids callers chose from.
    pub ids: u64,
    /// How long callers acted and faults happened, in µs.
    pub busy: u64,
    /// Steps of the store.
    pub steps: u64,
    /// Nodes that died and whose jobs went back, while nothing kept the others from learning of their leases.
    pub takeovers: u64,
    /// The longest of these takeovers, in µs.
    pub longest_takeover: u64,
    /// Simulated time in µs.
    pub time: u64,
    /// The violation that the checker found.
    pub found: Option<String>,
    /// Every event, if the log was asked for.
    pub log: Vec<String>,
}

/// Runs a seed of dq's own simulation, and checks every rule after every step.
///
/// ```
/// use dq_testing::simulation::{Options, simulate};
///
/// let report = simulate(1, &Options::default());
/// assert_eq!(report.found, None);
/// ```
///
/// # Panics
/// If the operating system cannot provide a runtime.
pub fn simulate(seed: u64, options: &Options) -> Report {
    let _away = RuleAway::take(options.without);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers is given");
    runtime.block_on(play(seed, options))
}

async fn play(seed: u64, options: &Options) -> Report {
    let cluster = ClusterState::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), options.log);
    let mut settings = RunSettings::of(&cluster, options.profile);
    settings.nodes = options.nodes.unwrap_or(settings.nodes);
    settings.ids = options.ids.unwrap_or(settings.ids);
    settings.busy = options.busy.unwrap_or(settings.busy);
    settings.only_faults.clone_from(&options.faults);
    settings.only_acts.clone_from(&options.acts);
    cluster.log(|| format!("seed {seed}: {settings:?}"));
    let sim = Sim::new(&cluster, settings, Arc::new(ScriptedNodes));
    sim.prepare_rules();
    for _ in 0..2 {
        let caller = sim.start_caller();
        lock(&sim.callers).push(caller);
    }
    for _ in 0..sim.settings().nodes {
        sim.start_node();
    }
    let (actor, fault) = (Arc::clone(&sim), Arc::clone(&sim));
    cluster.at(SECOND, move || actor.act());
    cluster.at(2 * SECOND, move || fault.next_fault());
    run_until(&sim, sim.settings().busy).await;
    sim.check_cost();
    calm_down(&sim);
    let end = cluster.now() + MAX_END;
    while !sim.is_over() && cluster.now() < end {
        sim.open_topics();
        run_until(&sim, cluster.now() + 6 * SECOND).await;
        if sim.unfinished().is_none() {
            break;
        }
    }
    if let Some(left) = sim.unfinished() {
        let rule = sim.rule_of_stuck();
        sim.bad(format!("{rule}STUCK: {left}"));
    }
    sim.end();
    let (mut lives, mut steps, mut takeovers, mut longest_takeover) = (0, 0, 0, 0);
    sim.for_checkers(|checker| {
        (lives, steps) = (lives + checker.lives(), steps + checker.steps);
        takeovers += checker.takeovers.measured;
        longest_takeover = checker.takeovers.longest.max(longest_takeover);
    });
    Report {
        seed,
        profile: sim.settings().profile,
        jobs: sim.versions.load(Relaxed),
        lives,
        handled: sim.handled(),
        faults: sim.faults.load(Relaxed),
        injected: std::mem::take(&mut lock(&sim.injected)),
        acts: std::mem::take(&mut lock(&sim.acted)),
        nodes: sim.settings().nodes,
        ids: sim.settings().ids,
        busy: sim.settings().busy,
        steps,
        takeovers,
        longest_takeover,
        time: cluster.now(),
        found: sim.found(),
        log: cluster.take_log(),
    }
}

/// Runs events until `end`, or until the checker finds something.
pub(super) async fn run_until(sim: &Arc<Sim>, end: u64) {
    loop {
        let start = sim.cluster.polls.load(Relaxed);
        loop {
            if sim.cluster.polls.load(Relaxed) > start + MAX_POLLS {
                return sim.bad("tasks are polled without end at one moment".into());
            }
            let before = sim.cluster.polls.load(Relaxed);
            tokio::task::yield_now().await;
            if sim.cluster.polls.load(Relaxed) == before {
                break;
            }
        }
        if sim.is_over() || !sim.cluster.step(end) {
            return;
        }
    }
}

/// Ends the faults. One node more starts, because handlers that never return may hold every permit of the others.
fn calm_down(sim: &Arc<Sim>) {
    sim.cluster.log(|| "CALM".into());
    sim.calm_down();
    sim.disturb_takeovers(None);
    for node in sim.alive() {
        node.process.heal();
        node.dies_after.store(u64::MAX, Relaxed);
        node.pauses_after.store(u64::MAX, Relaxed);
    }
    sim.start_node();
}
