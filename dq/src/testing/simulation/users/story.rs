//! What happened in a run, told for a person: who did what, and what became of each job.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use super::super::world::{MS, SECOND, lock};
use crate::job::{JobId, TopicName};

/// Accounts of at most this many lines are told whole.
const WHOLE: usize = 80;

/// A job, by its names.
pub(in super::super) type Named = (TopicName, JobId);

#[derive(Debug, Clone)]
struct Line {
    at: u64,
    job: Option<Named>,
    text: String,
}

/// What happened, in order.
#[derive(Debug, Default)]
pub(super) struct Story {
    lines: Mutex<Vec<Line>>,
    runs: Mutex<BTreeMap<Named, u64>>,
}

impl Story {
    pub(super) fn tell(&self, at: u64, job: Option<Named>, text: String) {
        lock(&self.lines).push(Line { at, job, text });
    }

    /// A handler is called: which run of its job it is.
    pub(super) fn next_run(&self, job: &Named) -> u64 {
        let mut runs = lock(&self.runs);
        let run = runs.entry(job.clone()).or_default();
        *run += 1;
        *run
    }

    /// The account. Of a long one: the faults, and the jobs that ran more than once.
    pub(super) fn account(&self) -> String {
        let (lines, runs) = (lock(&self.lines), lock(&self.runs));
        let again = |job: &Named| runs.get(job).is_some_and(|runs| *runs > 1);
        let whole = lines.len() <= WHOLE;
        let told = |line: &&Line| whole || line.job.as_ref().is_none_or(again);
        let mut account = String::new();
        for Line { at, text, .. } in lines.iter().filter(told) {
            let (seconds, millis) = (at / SECOND, at % SECOND / MS);
            // Writing to a string cannot fail.
            let _ = writeln!(account, "{seconds:>6}.{millis:03} s  {text}");
        }
        let left_out = lines.len() - lines.iter().filter(told).count();
        if left_out > 0 {
            let _ = writeln!(account, "  ({left_out} more lines are of jobs that ran once)");
        }
        account
    }
}
