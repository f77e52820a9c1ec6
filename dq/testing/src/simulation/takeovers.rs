//! Every takeover is measured: when a node dies, its jobs go back within the time that a start logs; if something may have kept the
//! others from learning of its lease, within the fallback more (rule 20).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::checker::{Checker, Leased};
use super::process::Process;
use super::rules::{is_any_away, without};
use super::signals::RESUBSCRIBED;
use super::sim::Sim;
use super::units::SECOND;
use dq::environment::StoreClock as _;
use dq::job::NodeId;
use dq::testing::seam::takeover;
use dq::time::Timestamp;

impl Sim {
    /// Checks after a step that the jobs of nodes that died go back in time, in every topic.
    pub(super) fn check_takeovers(&self) {
        if is_any_away() && !without("told") || self.is_file() || self.workload.is_program() {
            return;
        }
        let now = self.cluster.now();
        let micros = self.clock.micros();
        let clock = Timestamp::floor_micros(micros);
        self.for_topics(|key, checker| {
            for (node, leased) in checker.takeovers.note(&checker.before.leases, now) {
                let took = now - since(checker, &node, &leased).unwrap_or(now);
                if took > 0 && self.is_undisturbed(checker, &node, &leased) {
                    checker.takeovers.measured += 1;
                    checker.takeovers.longest = checker.takeovers.longest.max(took);
                }
            }
            let settings = &self.settings().node;
            let (prompt, fallback) = (takeover(settings).as_micros() as u64, settings.poll_interval.as_micros() as u64);
            checker.takeovers.note_clock(micros.saturating_sub(now), now);
            // The store's clock had jumped back before: no renewal makes a lease this long.
            let is_beyond = |leased: &&mut Leased| leased.end.since(clock) > settings.lease;
            checker.takeovers.leases.values_mut().filter(is_beyond).for_each(|leased| leased.renewed = now);
            let waits =
                |(node, leased): (&NodeId, &Leased)| Some((node.clone(), *leased, now - since(checker, node, leased)?));
            let is_late = |(node, leased, took): &(NodeId, Leased, u64)| {
                *took > prompt && self.is_undisturbed(checker, node, leased)
                    || *took > prompt + fallback && self.has_well(checker, node, prompt + fallback)
            };
            if let Some((node, _, took)) = checker.takeovers.leases.iter().filter_map(waits).find(is_late) {
                let millis = took / 1_000;
                checker.bad(format!("[20] the jobs of {node} in {} still wait {millis} ms after its death", key.topic));
            }
        });
    }

    /// Whether a node has been well since before this lease of another one began, and nothing has kept any node from learning of it.
    fn is_undisturbed(&self, checker: &Checker, node: &NodeId, leased: &Leased) -> bool {
        let lease = self.settings().node.lease.as_micros() as u64;
        // Who was told of an earlier lease looks at this one, too.
        let from = leased.since.saturating_sub(lease + SECOND);
        let takeovers = &checker.takeovers;
        let others = checker.node_records.iter().filter(|(other, _)| *other != node);
        let mut disturbances = others.map(|(other, record)| {
            let known = takeovers.disturbed.get(other).copied().unwrap_or_default();
            known.max(record.died_at).max(if record.disturbed_at > record.born_at { record.disturbed_at } else { 0 })
        });
        takeovers.all_disturbed < from
            && disturbances.all(|at| at < from)
            && self.processes_of_others(node).all(|process| awake(&process) < from)
            && self.has_well(checker, node, self.cluster.now() - leased.since + SECOND)
    }

    fn has_well(&self, checker: &Checker, node: &NodeId, long: u64) -> bool {
        self.alive().iter().any(|other| other.id != *node && self.is_well(checker, other, long))
    }

    fn processes_of_others(&self, node: &NodeId) -> impl Iterator<Item = Arc<Process>> {
        let nodes = super::sync::lock(&self.nodes);
        let others: Vec<_> =
            nodes.iter().filter(|other| other.id != *node).map(|other| other.process.clone()).collect();
        others.into_iter()
    }

    /// From now until then something may keep any process from learning of a lease.
    pub(super) fn disturb_takeovers_until(&self, until: u64) {
        self.for_checkers(|checker| checker.takeovers.disturb(None, until));
    }

    /// Something may have kept a process, or all, from learning of a lease.
    pub(super) fn disturb_takeovers(&self, process: Option<&Arc<Process>>) {
        let now = self.cluster.now();
        let node = process.and_then(|process| self.node_of(process));
        if process.is_none() || node.is_some() {
            self.for_checkers(|checker| checker.takeovers.disturb(node.as_ref().map(|node| &node.id), now));
        }
    }
}

/// When a process was last paused, unresponsive or mute, and could not have subscribed again.
fn awake(process: &Process) -> u64 {
    let [paused, unresponsive, mute] = [&process.paused_until, &process.unresponsive_until, &process.mute_until];
    let last = paused.load(Relaxed).max(unresponsive.load(Relaxed)).max(mute.load(Relaxed));
    if last > 0 { last + RESUBSCRIBED } else { 0 }
}

/// Since when a node that died can no longer renew its lease.
fn since(checker: &Checker, node: &NodeId, leased: &Leased) -> Option<u64> {
    let record = checker.node_records.get(node).filter(|record| record.dead)?;
    Some(record.died_at.max(leased.renewed))
}
