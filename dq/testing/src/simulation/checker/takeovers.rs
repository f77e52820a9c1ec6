//! Takeovers: since when each node has its lease, and what may have kept the others from learning of it.

use std::collections::BTreeMap;

use dq::job::NodeId;
use dq::time::Timestamp;

/// A lease of the topic, with times in µs of simulated time.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulation) struct Leased {
    pub(in crate::simulation) end: Timestamp,
    pub(in crate::simulation) since: u64,
    /// When its end changed last.
    pub(in crate::simulation) renewed: u64,
}

/// What the measure of takeovers knows of one topic.
#[derive(Debug, Clone, Default)]
pub(in crate::simulation) struct Takeovers {
    pub(in crate::simulation) leases: BTreeMap<NodeId, Leased>,
    /// When a node last stopped, or its subscription broke,
    pub(in crate::simulation) disturbed: BTreeMap<NodeId, u64>,
    /// and until when this was or will be true of any node, or a signal of a lease was lost.
    pub(in crate::simulation) all_disturbed: u64,
    /// How many takeovers were measured while nothing was disturbed,
    pub(in crate::simulation) measured: u64,
    /// and the longest of them, in µs.
    pub(in crate::simulation) longest: u64,
    /// How far the store's clock is ahead of the simulated time, in µs.
    ahead: u64,
}

impl Takeovers {
    /// Takes in the leases after a step. Returns those that are gone.
    pub(in crate::simulation) fn note(
        &mut self,
        leases: &BTreeMap<NodeId, Timestamp>,
        now: u64,
    ) -> Vec<(NodeId, Leased)> {
        let known = &mut self.leases;
        for (node, end) in leases {
            let leased = known.entry(node.clone()).or_insert(Leased { end: *end, since: now, renewed: now });
            if leased.end != *end {
                (leased.end, leased.renewed) = (*end, now);
            }
        }
        if known.len() == leases.len() {
            return Vec::new();
        }
        let gone: Vec<_> = known.keys().filter(|node| !leases.contains_key(*node)).cloned().collect();
        gone.into_iter().filter_map(|node| known.remove_entry(&node)).collect()
    }

    /// Every lease lasts longer, or lasts again, once the store's clock has jumped back.
    pub(in crate::simulation) fn note_clock(&mut self, ahead: u64, now: u64) {
        if ahead < std::mem::replace(&mut self.ahead, ahead) {
            self.leases.values_mut().for_each(|leased| leased.renewed = now);
        }
    }

    /// Until then something may keep a node from learning of a lease; every node if none is named.
    pub(in crate::simulation) fn disturb(&mut self, node: Option<&NodeId>, until: u64) {
        match node {
            Some(node) => _ = self.disturbed.insert(node.clone(), until),
            None => self.all_disturbed = self.all_disturbed.max(until),
        }
    }
}
