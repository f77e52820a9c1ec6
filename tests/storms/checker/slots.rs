//! No more jobs of a topic run at a time on all nodes than its `cluster_concurrency`, and no more of a group than its
//! `group_concurrency`.
//!
//! The id of a job tells which of them limits it. A run counts from the start of its handler to its end, or until its process was killed,
//! which is within the time for which its slot is taken. Two things do not count: a `final_retry`, because the files do not tell when it
//! ends; and a run whose process had another fault meanwhile, because it may have lost its lease.

use std::collections::BTreeMap;

use super::Report;
use super::facts::Facts;
use crate::process::work::gate_of;

pub(super) fn check(facts: &Facts<'_>, report: &mut Report) {
    let mut gates = BTreeMap::<_, Vec<_>>::new();
    for (id, life) in &facts.jobs {
        let Some(gate) = gate_of(id) else { continue };
        for (_, run) in life.began() {
            let end = run.end.map(|(at, _)| at).or_else(|| facts.reasons.killed(run.process));
            let Some((start, end)) = run.starts.first().copied().zip(end) else { continue };
            if facts.reasons.between(run.process, start, end.saturating_sub(1)).is_none() {
                gates.entry(gate).or_default().extend([(start, 1_i64, *id), (end, -1, *id)]);
            }
        }
    }
    let mut most = BTreeMap::new();
    for ((gate, limit), mut changes) in gates {
        // An end of the same microsecond comes first.
        changes.sort_unstable();
        let mut now = 0;
        for (at, change, id) in changes {
            now += change;
            let what = if gate == "slots" { "slots used at a time" } else { "jobs of a group at a time" };
            let most = most.entry(what).or_insert(0);
            *most = now.max(*most);
            if change > 0 && now > limit as i64 {
                report.find("slots", id, format!("{now} jobs of {gate} run at a time at {at} µs, and {limit} may"));
            }
        }
    }
    most.into_iter().for_each(|(what, most)| report.most(what, most as u64));
}
