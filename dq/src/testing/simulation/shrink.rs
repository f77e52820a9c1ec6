//! Makes a run that shows something smaller while it still shows the same: less time, fewer faults, acts, nodes and ids.
//!
//! Every part of a run has dice of its own, so a run without one fault, or without one act of a caller, is else the same
//! for as long as that made no difference. Parts are left out in halves first and one by one in the end (delta debugging:
//! Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002). Nothing in it is random, and it
//! ends after a bounded number of runs, with the smallest that was seen.

use std::collections::BTreeSet;

use super::run::{Options, Report, simulate};

/// The most runs of one shrinking.
const MOST_TRIES: u64 = 1_000;

/// A run as small as it could be made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Shrunk {
    /// What to run, with the seed: the same run again, byte for byte of its log.
    pub options: Options,
    /// What was seen, with its log.
    pub report: Report,
    /// How many runs it took.
    pub tried: u64,
}

/// What kind of finding it is: the invariant in brackets, or its first word.
pub fn kind(found: &str) -> &str {
    let end = if found.starts_with('[') { found.find(']').map(|at| at + 1) } else { found.find([':', ' ']) };
    &found[..end.unwrap_or(found.len())]
}

/// Shrinks the run of a seed; `None` if nothing is found in it. Takes at most a thousand times as long as the run.
///
/// # Panics
/// As [`simulate`].
pub fn shrink(seed: u64, options: &Options) -> Option<Shrunk> {
    shrink_by(options, |options| Some(simulate(seed, options)))
}

/// Shrinks what `run` runs; `None` of it, or a report in which nothing is found, is a run that is too small.
pub fn shrink_by(options: &Options, mut run: impl FnMut(&Options) -> Option<Report>) -> Option<Shrunk> {
    let quiet = Options { log: false, ..options.clone() };
    let report = run(&quiet)?;
    let found = kind(report.found.as_ref()?).to_owned();
    let mut shrinking = Shrinking { run, found, best: quiet, report, tried: 1 };
    loop {
        let before = shrinking.size();
        shrinking.pass();
        if shrinking.size() == before || shrinking.tried >= MOST_TRIES {
            break;
        }
    }
    let Shrinking { mut run, best, tried, .. } = shrinking;
    let report = run(&Options { log: true, ..best.clone() })?;
    Some(Shrunk { options: best, report, tried: tried + 1 })
}

struct Shrinking<R> {
    run: R,
    found: String,
    best: Options,
    report: Report,
    tried: u64,
}

impl<R: FnMut(&Options) -> Option<Report>> Shrinking<R> {
    /// Whether this run shows the same; then it is the best one so far.
    fn shows(&mut self, options: Options) -> bool {
        if self.tried >= MOST_TRIES {
            return false;
        }
        self.tried += 1;
        let Some(report) = (self.run)(&options) else { return false };
        let same = report.found.as_ref().is_some_and(|found| kind(found) == self.found);
        if same {
            (self.best, self.report) = (options, report);
        }
        same
    }

    fn size(&self) -> (usize, usize, u64, u64, u64) {
        let report = &self.report;
        (report.struck.len(), report.acts.len(), report.nodes, report.ids, report.busy)
    }

    fn pass(&mut self) {
        self.less_time();
        let faults = self.report.struck.iter().map(|struck| struck.name.clone()).collect();
        self.fewer(faults, |options, faults| options.faults = Some(faults), names);
        let acts = self.report.acts.iter().copied().collect();
        self.fewer(acts, |options, acts| options.acts = Some(acts), |report| report.acts.iter().copied().collect());
        for nodes in 1..self.report.nodes {
            if self.shows(Options { nodes: Some(nodes), ..self.best.clone() }) {
                break;
            }
        }
        for ids in 1..self.report.ids {
            if self.shows(Options { ids: Some(ids), ..self.best.clone() }) {
                break;
            }
        }
    }

    /// What comes after the finding has no part in it; and a part of the time may do where it is found at the end only.
    fn less_time(&mut self) {
        let (busy, time) = (self.report.busy, self.report.time);
        for less in [time, busy / 4, busy / 2, busy * 3 / 4, busy * 7 / 8] {
            if less < busy && self.shows(Options { busy: Some(less), ..self.best.clone() }) {
                return;
            }
        }
    }

    /// Leaves parts out, halves first: all of them, then smaller ones, as long as that shows the same.
    fn fewer<T: Clone + Ord>(
        &mut self,
        parts: BTreeSet<T>,
        set: impl Fn(&mut Options, BTreeSet<T>),
        left: impl Fn(&Report) -> BTreeSet<T>,
    ) {
        let mut parts: Vec<T> = parts.into_iter().collect();
        let mut size = parts.len();
        while size > 0 {
            let mut at = 0;
            while at < parts.len() {
                let end = (at + size).min(parts.len());
                let rest = parts[..at].iter().chain(&parts[end..]).cloned().collect();
                let mut options = self.best.clone();
                set(&mut options, rest);
                if self.shows(options) {
                    // What did not happen any more need not be left out.
                    let left = left(&self.report);
                    parts =
                        parts[..at].iter().chain(&parts[end..]).filter(|part| left.contains(part)).cloned().collect();
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        let mut options = self.best.clone();
        set(&mut options, parts.into_iter().collect());
        self.shows(options);
    }
}

fn names(report: &Report) -> BTreeSet<String> {
    report.struck.iter().map(|struck| struck.name.clone()).collect()
}
