//! Shrinks a run that shows a finding while it still shows the same: less time, fewer faults, acts, nodes and ids.
//!
//! Every part of a run has its own random source, so a run without one fault, or without one act of a caller, is otherwise
//! the same until the missing part makes a difference. `smaller.rs` does the search.

use std::collections::BTreeSet;

use super::run::{Options, Report, simulate};
use super::sim::InjectedFault;
use super::smaller::Smaller;

/// The most runs of one search.
const MAX_TRIES: u64 = 1_000;

/// The smallest run that was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Shrunk {
    /// The options that run it with the seed: the same run again, down to each byte of its log.
    pub options: Options,
    /// Its report, with the log.
    pub report: Report,
    /// The number of runs that the search took.
    pub tried: u64,
}

/// The kind of a finding: the rule in brackets, or the first word.
pub fn kind(found: &str) -> &str {
    let end = if found.starts_with('[') { found.find(']').map(|at| at + 1) } else { found.find([':', ' ']) };
    &found[..end.unwrap_or(found.len())]
}

/// Shrinks the run of a seed. Returns `None` if the run shows no finding. Takes at most a thousand times as long as the
/// run.
///
/// # Panics
/// As [`simulate`].
pub fn shrink(seed: u64, options: &Options) -> Option<Shrunk> {
    shrink_by(options, |options| Some(simulate(seed, options)))
}

/// Shrinks what `run` runs. A run is too small if `run` returns `None`, or a report without a finding.
pub fn shrink_by(options: &Options, mut run: impl FnMut(&Options) -> Option<Report>) -> Option<Shrunk> {
    let quiet = Options { log: false, ..options.clone() };
    let report = run(&quiet)?;
    let found = kind(report.found.as_ref()?).to_owned();
    let same = |report: &Report| report.found.as_ref().is_some_and(|what| kind(what) == found);
    let shows = |options: &Options| run(options).filter(same);
    let mut smaller = Smaller::than(quiet, report, MAX_TRIES, shows);
    smaller.until_least(
        |report| (report.injected.len(), report.acts.len(), report.nodes, report.ids, report.busy),
        |smaller| {
            less_time(smaller);
            smaller.fewer(|report| names(&report.injected), |options, faults| options.faults = Some(faults));
            smaller.fewer(acts, |options, acts| options.acts = Some(acts));
            smaller.lower(1, smaller.report.nodes, |options, nodes| options.nodes = Some(nodes));
            smaller.lower(1, smaller.report.ids, |options, ids| options.ids = Some(ids));
        },
    );
    let Smaller { best, tried, .. } = smaller;
    let report = run(&Options { log: true, ..best.clone() })?;
    Some(Shrunk { options: best, report, tried: tried + 2 })
}

/// What comes after the finding has no part in it. If a finding shows only at the end, part of the time may do.
fn less_time(smaller: &mut Smaller<Options, Report, impl FnMut(&Options) -> Option<Report>>) {
    let (busy, time) = (smaller.report.busy, smaller.report.time);
    for less in [time, busy / 4, busy / 2, busy * 3 / 4, busy * 7 / 8] {
        if less < busy && smaller.shows(|options| options.busy = Some(less)) {
            return;
        }
    }
}

pub(super) fn names(injected: &[InjectedFault]) -> BTreeSet<String> {
    injected.iter().map(|injected| injected.name.clone()).collect()
}

fn acts(report: &Report) -> BTreeSet<u64> {
    report.acts.iter().copied().collect()
}
