//! Judges a storm by the files of its processes and by nothing else.
//!
//! | rule | what must hold |
//! |---|---|
//! | lost | a confirmed add was run to an accepted end, deleted, acked from outside, or is in the store, once; DEAD jobs have a cause |
//! | made up | no job is there that nobody added, or whose add certainly was not done. The ack of a job of a chain adds the next one |
//! | outcome | no outcome is accepted of a run that had lost its job; no run follows an accepted ack; a refusal needs a reason. A failover may lose what was accepted within a second before it |
//! | early | no handler begins before its job is due, by the machine's clock |
//! | command | no handler begins after a confirmed delete or ack of a job that did not run |
//! | duplicate | a job begins again only after an outcome that says so, or for a reason among the events |
//! | process | no process ends of itself |
//! | set | the last job of a set begins after every member has ended, and its counts are those of the members. That it comes, and once, the rules above say: closing the set adds it |
//! | slots | no more jobs of a topic run at a time than its `cluster_concurrency`, and of a group than its `group_concurrency`, each until the lease of its node has lapsed |
//! | attempt | the attempt that a handler is told is the number of failed runs |

mod commands;
mod early;
mod facts;
mod lost;
mod outcomes;
mod reasons;
mod repeats;
mod sets;
mod slots;

use std::collections::BTreeMap;
use std::fmt;

use crate::ledger::Log;
use facts::Facts;

/// A rule that does not hold, for one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// The job.
    pub id: String,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.id, self.what)
    }
}

/// What the checker found and counted.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The rules that do not hold.
    pub findings: Vec<Finding>,
    /// How often what happened, by name.
    pub counts: BTreeMap<String, u64>,
}

impl Report {
    fn find(&mut self, rule: &'static str, id: &str, what: String) {
        self.findings.push(Finding { rule, id: id.to_owned(), what });
    }

    fn most(&mut self, what: &str, number: u64) {
        if number > 0 {
            self.counts.insert(what.to_owned(), number);
        }
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }
}

/// Judges a storm.
pub fn verify(logs: &[Log]) -> Report {
    let facts = Facts::of(logs);
    let mut report = Report::default();
    for (id, life) in &facts.jobs {
        outcomes::check(id, life, &facts.reasons, &mut report);
        early::check(id, life, &facts.reasons, &mut report);
        commands::check(id, life, &facts.listings, &mut report);
        repeats::check(id, life, &facts.reasons, &mut report);
    }
    for listing in &facts.listings {
        lost::check(listing, &facts, &mut report);
    }
    slots::check(&facts, &mut report);
    sets::check(&facts, &mut report);
    lost::count(&facts, &mut report);
    facts.reasons.count(&mut report);
    report
}

#[cfg(test)]
mod tests;
