//! An experiment with crashes only: ten minutes in which jobs, or something outside, kill nodes all the time.
//!
//! Four nodes listen to three topics with the default settings: 64 handlers at once of each topic, leases of 15 s, a cap of
//! three crashes. Innocent jobs and killers are in all topics, and a killer takes its whole process down. Handlers take half a
//! second. A killer is a job that kills its node within that half second, each time it runs; every second killer does so in
//! `final_retry` too. A killed node is replaced within a second. After the ten minutes callers add nothing more, nothing
//! outside kills, and everything must end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::future::join_all;

use super::checker::{AddResult, Checker};
use super::cluster::ClusterState;
use super::node::CAPS;
use super::nodes::ScriptedNodes;
use super::profile::Profile;
use super::rules::RuleAway;
use super::run::{LONGEST_END, run_until};
use super::settings::{INNOCENT, Killing, RunSettings};
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use super::version::KILLER;
use dq::environment::Runtime;
use dq::provider::{CallError, Provider};

/// How long callers add jobs and kills are counted, in µs.
const BUSY: u64 = 600 * SECOND;

/// Callers add while fewer jobs are open: enough for what killed nodes held until others reclaim it, and for every permit.
const OPEN: usize = 2048;

/// How many jobs callers add at once. One in [`INNOCENT`] + 1 of them is a killer.
const CROWD: u64 = 64;

/// The outcomes of the jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KillReport {
    /// Nodes that were killed within the ten minutes.
    pub kills: u64,
    /// Nodes that were killed until everything had ended.
    pub kills_in_all: u64,
    /// Jobs that kill no node.
    pub innocent: u64,
    /// DEAD jobs among these.
    pub innocent_dead: u64,
    /// Jobs that kill their node.
    pub killers: u64,
    /// DEAD jobs among these.
    pub killers_dead: u64,
    /// The most crashes that one killer caused, charged or not,
    pub most_caused: u32,
    /// and that one caused before its `final_retry` began.
    pub most_caused_before_final: u32,
    /// Jobs that are DEAD by crashes after exactly as many charged crashes as the cap.
    pub charged_the_cap: u64,
    /// Jobs that are DEAD by crashes and whose last charged run was isolated, with nothing else of any topic in its process.
    pub isolated_and_alone: u64,
    /// Jobs that are DEAD by crashes and whose `final_retry` ran isolated.
    pub final_isolated: u64,
    /// Handlers that were started.
    pub handled: u64,
    /// Steps of the store, each of which was checked.
    pub steps: u64,
    /// Simulated time until everything had ended, in µs.
    pub time: u64,
    /// The violation that the checker found, apart from deaths that this report counts.
    pub found: Option<String>,
    /// Every event, if the log was asked for.
    pub log: Vec<String>,
}

/// Runs the experiment with a seed; `without` takes a rule of the protocol away.
///
/// # Panics
/// If the operating system cannot provide a runtime.
pub fn simulate_kills(seed: u64, killing: Killing, without: Option<&'static str>, log: bool) -> KillReport {
    let _away = RuleAway::take(without);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers is given");
    runtime.block_on(play(seed, killing, log))
}

async fn play(seed: u64, killing: Killing, log: bool) -> KillReport {
    let cluster = ClusterState::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), log);
    let settings = RunSettings {
        nodes: 4,
        topics: 3,
        busy: BUSY,
        concurrency: 64,
        timeout: 30 * SECOND,
        kills: Some(killing),
        ..RunSettings::of(&cluster, Some(Profile::Killers))
    };
    let sim = Sim::new(&cluster, settings, Arc::new(ScriptedNodes));
    sim.prepare_rules();
    sim.for_checkers(|checker| checker.only_counts_crash_deaths = true);
    let caller = sim.start_caller();
    lock(&sim.callers).push(caller);
    for _ in 0..sim.settings().nodes {
        sim.start_node();
    }
    sim.feed();
    let outside = Arc::clone(&sim);
    cluster.at(SECOND, move || outside.kill_from_outside());
    run_until(&sim, BUSY).await;
    let kills = sim.faults.load(Relaxed);
    sim.calm_down();
    let end = cluster.now() + LONGEST_END;
    while !sim.is_over() && cluster.now() < end && sim.unfinished().is_some() {
        run_until(&sim, cluster.now() + 6 * SECOND).await;
    }
    if let Some(left) = sim.unfinished() {
        sim.bad(format!("STUCK: {left}"));
    }
    let report = KillReport { kills, kills_in_all: sim.faults.load(Relaxed), time: cluster.now(), ..count(&sim) };
    sim.end();
    KillReport { log: cluster.take_log(), ..report }
}

fn count(sim: &Sim) -> KillReport {
    let mut report = KillReport { handled: sim.handled(), found: sim.found(), ..KillReport::default() };
    sim.for_checkers(|checker| count_topic(checker, &mut report));
    report
}

fn count_topic(checker: &Checker, report: &mut KillReport) {
    report.steps += checker.steps;
    for version in checker.added() {
        let crashes = checker.crash_records.get(&version).copied().unwrap_or_default();
        let dead = u64::from(crashes.dead.is_some());
        if version & KILLER == 0 {
            report.innocent += 1;
            report.innocent_dead += dead;
        } else {
            report.killers += 1;
            report.killers_dead += dead;
            report.most_caused = report.most_caused.max(crashes.caused);
            report.most_caused_before_final = report.most_caused_before_final.max(crashes.caused_before_final);
        }
        if let Some(final_isolated) = crashes.dead {
            report.charged_the_cap += u64::from(crashes.charged == CAPS.crashes);
            report.isolated_and_alone += u64::from(crashes.last.convicts());
            report.final_isolated += u64::from(final_isolated);
        }
    }
}

impl Sim {
    /// Adds a batch of jobs whenever few are open.
    fn feed(self: &Arc<Self>) {
        if self.is_calm() || self.is_over() {
            return;
        }
        let mut open = 0;
        self.for_checkers(|checker| open += checker.open());
        if open < OPEN {
            let (process, provider) = lock(&self.callers)[0].clone();
            let sim = Arc::clone(self);
            let crowd = async move { drop(join_all((0..CROWD).map(|_| sim.feed_one(&provider))).await) };
            process.environment().spawn(Runtime::Own, crowd);
        }
        let sim = Arc::clone(self);
        self.cluster.at(self.cluster.now() + 250 * MS, move || sim.feed());
    }

    async fn feed_one(&self, provider: &Provider) {
        let number = self.versions.fetch_add(1, Relaxed) + 1;
        let kills = self.settings().kills == Some(Killing::ByJobs) && number.is_multiple_of(INNOCENT + 1);
        let version = (number * 8) | if kills { KILLER } else { 0 };
        let key = &self.keys[number as usize % self.keys.len()];
        let Ok(topic) = provider.topic(key.topic.as_str()) else { return };
        let result = match topic.add_json(version.to_string()).await {
            Ok(_) => AddResult::Added,
            Err(CallError::NotDone { .. }) => AddResult::NotAdded,
            Err(_) => AddResult::Unknown,
        };
        lock(&self.checker_of(key)).add_answered(version, result);
    }

    /// Kills a node now, and another one later.
    fn kill_from_outside(self: &Arc<Self>) {
        if self.is_calm() || self.is_over() || self.settings().kills != Some(Killing::FromOutside) {
            return;
        }
        let alive = self.alive();
        if !alive.is_empty() {
            self.kill(&alive[self.cluster.below(alive.len() as u64) as usize].process);
        }
        let sim = Arc::clone(self);
        self.cluster
            .at(self.cluster.now() + self.cluster.between(200 * MS, 1_600 * MS), move || sim.kill_from_outside());
    }
}
