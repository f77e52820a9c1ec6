//! No more jobs of a topic run at a time on all nodes than its `cluster_concurrency`.
//!
//! The files show which runs ended with a rejoin, and only one topic has such jobs. A run counts from the start of its handler to its end,
//! which is within the time for which its slot is taken. A run whose process had a fault meanwhile does not count: it may have lost its lease.

use super::Report;
use super::facts::Facts;
use crate::ledger::End;
use crate::process::work::SLOTS;

pub(super) fn check(facts: &Facts<'_>, report: &mut Report) {
    let mut changes = Vec::new();
    for (id, life) in &facts.jobs {
        for (_, run) in life.began() {
            let Some((start, (end, End::Rejoin(_)))) = run.first_start().zip(run.end) else { continue };
            if facts.reasons.between(run.process, start, end).is_none() {
                changes.push((start, 1_i64, *id));
                changes.push((end, -1, *id));
            }
        }
    }
    // An end of the same microsecond comes first.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (at, change, id) in changes {
        now += change;
        most = most.max(now);
        if change > 0 && now > SLOTS as i64 {
            report.find("slots", id, format!("{now} jobs run at a time at {at} µs, and {SLOTS} may"));
        }
    }
    report.most("slots used at a time", most as u64);
}
