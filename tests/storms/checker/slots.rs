//! No more jobs of a topic run at a time on all nodes than its `cluster_concurrency`, and no more of a group than its
//! `group_concurrency`.
//!
//! The id of a job tells which of them limits it. A run counts from the start of its handler to its end, until the storm was about to kill its
//! process, or until the last lease of its node that the node learned of in time, whatever comes first. For all of that its slot is taken: the store frees
//! it later. What a handler does beyond that (it blocks, or its process is starved or stands still) is counted by itself, because a limit holds for
//! leases. Two things do not count: an `on_exhausted`, because the files do not tell when it ends; and a run during a fault of the store, which may
//! lose a lease.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::facts::Facts;
use crate::process::work::{gate_of, topic_of};

/// A run that has a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held<'a> {
    id: &'a str,
    fence: u64,
    process: &'a str,
    /// µs.
    end: u64,
    /// The outcome that the store accepted, if the files tell.
    accepted: Option<&'a str>,
}

pub(super) fn check(facts: &Facts<'_>, report: &mut Report) {
    let mut gates = BTreeMap::<_, Vec<_>>::new();
    for (id, life) in &facts.jobs {
        let Some(gate) = gate_of(id) else { continue };
        for (fence, run) in life.began() {
            let end = run.end.map(|(at, _)| at).or_else(|| facts.reasons.killed(run.process));
            let Some((start, end)) = run.starts.first().copied().zip(end) else { continue };
            let lapse = facts.lease_end(run.process, topic_of(gate.0), start).unwrap_or(u64::MAX);
            if lapse < end {
                report.count("runs with a slot beyond their lease");
            }
            let end = end.min(lapse);
            if start < end && !facts.reasons.disturb_store(start, end - 1) {
                let run = Held { id, fence, process: run.process, end, accepted: run.accepted().map(|(_, kind)| kind) };
                gates.entry(gate).or_default().extend([(start, true, run), (end, false, run)]);
            }
        }
    }
    let mut most = BTreeMap::new();
    for ((gate, limit), mut changes) in gates {
        // An end of the same microsecond comes first.
        changes.sort_unstable();
        let mut held = BTreeSet::new();
        for (at, begins, run) in changes {
            let changed = if begins { held.insert(run) } else { held.remove(&run) };
            assert!(changed, "a run begins once, before it ends");
            let what = if gate == "slots" { "slots used at a time" } else { "jobs of a group at a time" };
            let most = most.entry(what).or_insert(0);
            *most = held.len().max(*most);
            if begins && held.len() > limit {
                let what = format!("{} jobs of {gate} run at a time at {at} µs, and {limit} may: {held:?}", held.len());
                report.find("slots", run.id, what);
            }
        }
    }
    most.into_iter().for_each(|(what, most)| report.most(what, most as u64));
}
