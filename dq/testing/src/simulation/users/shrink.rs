//! Shrinks a run that found something: fewer faults, fewer nodes, smaller choices and fewer jobs, while it finds the same.
//! dq's own simulation uses the same search.
//!
//! The smaller run can really happen, except for jobs that are left out: the work learns that they were added. A check that
//! counts jobs would report that, and not the finding. So jobs are left out only if the check passes without them in a run
//! without faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use super::super::shrink::names;
use super::super::smaller::Smaller;
use super::choose::Chosen;
use super::only::{How, Only};
use super::panics::Print;
use super::play::{Played, play};
use super::progress::Progress;
use super::simulation::Simulation;

/// The most runs of one search. Runs that ask whether jobs may be left out come on top, at most four for each.
const MAX_TRIES: u64 = 1_000;

/// How many further seeds, without faults, are tried for the left-out jobs.
const OTHERS: u64 = 3;

/// The smallest run that showed the finding.
#[derive(Debug)]
pub(super) struct Small {
    pub(super) only: Only,
    /// How many runs the search took.
    pub(super) tried: u64,
    /// What is left of the run, for people.
    pub(super) left: String,
    /// The time limit, if the search reached it.
    pub(super) ended_after: Option<Duration>,
}

impl fmt::Display for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shrunk in {} runs to {}", self.tried, self.left)?;
        match self.ended_after {
            Some(longest) => write!(f, ", and not further because {} had passed", humantime::format_duration(longest)),
            None => Ok(()),
        }
    }
}

/// A finding without its numbers: two findings that differ only in numbers are the same. Only the first line counts, and a
/// source location keeps its numbers.
fn shape(found: &str) -> String {
    let word = |word: &str| {
        if word.contains(".rs:") {
            return word.to_owned();
        }
        let parts = word.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
        let is_number = word.contains(|c: char| c.is_ascii_digit());
        parts.chain(is_number.then_some("#")).collect::<String>()
    };
    found.lines().next().unwrap_or_default().split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

pub(super) fn is_same(one: &str, other: &str) -> bool {
    shape(one) == shape(other)
}

/// Shrinks the run of a seed that found something; returns `None` if nothing could be left out.
pub(super) fn shrink<S: Clone + Send + Sync + 'static>(
    of: &Simulation<S>,
    seed: u64,
    whole: Played,
    progress: &mut Progress,
) -> Option<Small> {
    let what = whole.found.clone()?;
    let until = Instant::now() + of.shrinks_for;
    let (before, mut runs) = (Parts::of(&whole), 0);
    let mut passes_without = PassesWithout { of, seed, until, known: BTreeMap::new() };
    let shows = |only: &Only| {
        if Instant::now() >= until {
            return None;
        }
        runs += 1;
        progress.report(|| format!("seed {seed} found something, shrinking it: {runs} runs so far"));
        let how = How { traced: false, only, print: Print::No, until: Some(until) };
        let played = play(of, seed, how);
        let same = played.found.as_ref().is_some_and(|found| is_same(found, &what));
        (same && passes_without.left_out_jobs(only, &played)).then_some(played)
    };
    let mut smaller = Smaller::than(Only::default(), whole, MAX_TRIES, shows);
    smaller.until_least(sizes, |smaller| {
        smaller.fewer(|run| names(&run.injected), |only, faults| only.faults = Some(faults));
        smaller.lower(1, smaller.report.nodes, |only, nodes| only.nodes = Some(nodes));
        for (name, (least, number)) in smaller.report.chosen.clone() {
            let set = |only: &mut Only, number| {
                only.chosen.insert(name.clone(), number);
            };
            smaller.lower(least, number, set);
        }
        smaller.fewer(|run| run.added.clone(), |only, jobs| only.jobs = Some(jobs));
    });
    let Smaller { best, report, mut run, .. } = smaller;
    // With fewer chosen jobs, perhaps none need be left out.
    let with_all_jobs = Only { jobs: None, ..best.clone() };
    let same = best.jobs.is_some() && run(&with_all_jobs).is_some_and(|run| sizes(&run) == sizes(&report));
    let only = without_what_is_all(if same { with_all_jobs } else { best }, &report, &before);
    let left = described(&only, &report, &before);
    let ended_after = (Instant::now() >= until).then_some(of.shrinks_for);
    (only != Only::default()).then_some(Small { only, tried: runs, left, ended_after })
}

/// The parts of a run, to compare.
struct Parts {
    faults: BTreeSet<String>,
    nodes: u64,
    jobs: BTreeSet<String>,
    chosen: Chosen,
}

impl Parts {
    fn of(run: &Played) -> Self {
        Self { faults: names(&run.injected), nodes: run.nodes, jobs: run.added.clone(), chosen: run.chosen.clone() }
    }
}

fn sizes(run: &Played) -> (usize, u64, Vec<u64>, usize) {
    let chosen = run.chosen.values().map(|(_, number)| *number).collect();
    (run.injected.len(), run.nodes, chosen, run.added.len())
}

/// Drops parts that change nothing. If any part is named, so are the faults, because another run has other faults.
fn without_what_is_all(mut only: Only, run: &Played, before: &Parts) -> Only {
    only.nodes = only.nodes.filter(|nodes| *nodes != before.nodes);
    only.jobs = only.jobs.filter(|jobs| !jobs.is_superset(&before.jobs));
    only.chosen.retain(|name, _| run.chosen.contains_key(name) && run.chosen.get(name) != before.chosen.get(name));
    let faults = only.faults.take().filter(|faults| *faults != before.faults || only != Only::default());
    Only { faults, ..only }
}

/// Describes what is left, for people.
fn described(only: &Only, run: &Played, before: &Parts) -> String {
    let some = |number: usize, what: &str| if number == 1 { what.to_owned() } else { format!("{what}s") };
    let of = |now: usize, before: usize, what: &str| {
        let of_how_many = if now == before { String::new() } else { format!(" of {before}") };
        format!("{now}{of_how_many} {}", some(if now == before { now } else { before }, what))
    };
    let mut left = vec![of(run.injected.len(), before.faults.len(), "fault")];
    left.push(of(run.nodes as usize, before.nodes as usize, "node"));
    if only.jobs.is_some() {
        left.push(of(run.added.len(), before.jobs.len(), "job"));
    }
    left.extend(run.chosen.iter().map(|(name, (_, number))| format!("{name} = {number}")));
    left.join(", ")
}

/// Finds out whether the check passes without some jobs, in runs without faults.
struct PassesWithout<'a, S> {
    of: &'a Simulation<S>,
    seed: u64,
    until: Instant,
    known: BTreeMap<BTreeSet<String>, bool>,
}

impl<S: Clone + Send + Sync + 'static> PassesWithout<'_, S> {
    fn left_out_jobs(&mut self, only: &Only, run: &Played) -> bool {
        let Some(jobs) = &only.jobs else { return true };
        if let Some(known) = self.known.get(jobs) {
            return *known;
        }
        let chosen = run.chosen.iter().map(|(name, (_, number))| (name.clone(), *number)).collect();
        let calm = Only { faults: Some(BTreeSet::new()), chosen, ..only.clone() };
        let how = How { traced: false, only: &calm, print: Print::No, until: Some(self.until) };
        // A check may also fail because of the order of events, but not with each seed.
        let passes = |other: u64| play(self.of, self.seed.wrapping_add(other), how).found.is_none();
        let passes_without = (0..=OTHERS).any(passes) && Instant::now() < self.until;
        self.known.insert(jobs.clone(), passes_without);
        passes_without
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_differ_only_in_numbers_are_the_same() {
        assert!(is_same("order 3 was charged 2 times", "order 12 was charged 0 times"));
        assert!(is_same("written: [17, 18]\nthen", "written: [1, 2]\nelse"));
        assert!(!is_same("order 3 was charged", "order 3 was not charged"));
    }

    #[test]
    fn panics_at_two_locations_differ() {
        assert!(!is_same("the check panicked at a.rs:7:9: no", "the check panicked at a.rs:8:9: no"));
    }
}
