//! The search for a smaller run that still shows the same finding.
//!
//! It leaves out halves first and single parts last (delta debugging: Zeller, Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", IEEE TSE 2002). It draws nothing at random, stops after a bounded number of runs, and ends with
//! the smallest run that showed the finding. The caller defines what a run is, and when two runs show the same finding.

use std::collections::BTreeSet;

/// Up to this difference, `lower` tries each number.
const FEW: u64 = 8;

/// A search. `O` is the options of a run, `R` its report; `F` runs the options and returns `None` if the run does not show
/// the same finding.
#[derive(Debug)]
pub(super) struct Smaller<O, R, F> {
    pub(super) run: F,
    /// The options of the smallest run so far,
    pub(super) best: O,
    /// and its report.
    pub(super) report: R,
    pub(super) tried: u64,
    most: u64,
}

impl<O: Clone, R, F: FnMut(&O) -> Option<R>> Smaller<O, R, F> {
    /// A search from this run on, with at most `most` further runs.
    pub(super) const fn than(best: O, report: R, most: u64, run: F) -> Self {
        Self { run, best, report, tried: 0, most }
    }

    /// Repeats a pass until the size of the best run stays the same.
    pub(super) fn until_least<S: PartialEq>(&mut self, size: impl Fn(&R) -> S, pass: impl Fn(&mut Self)) {
        loop {
            let before = size(&self.report);
            pass(self);
            if size(&self.report) == before || self.tried >= self.most {
                return;
            }
        }
    }

    /// Returns whether the best run with this change shows the same. If so, the changed run is the best one now.
    pub(super) fn shows(&mut self, change: impl FnOnce(&mut O)) -> bool {
        if self.tried >= self.most {
            return false;
        }
        self.tried += 1;
        let mut changed = self.best.clone();
        change(&mut changed);
        let Some(report) = (self.run)(&changed) else { return false };
        (self.best, self.report) = (changed, report);
        true
    }

    /// Lowers a number, which is `now` in the best run, towards `low`: tries `low` first, then numbers closer to `now`.
    pub(super) fn lower(&mut self, low: u64, now: u64, set: impl Fn(&mut O, u64)) {
        let difference = now.saturating_sub(low);
        let tries: Vec<u64> = if difference <= FEW {
            (low..now).collect()
        } else {
            (0..u64::BITS).map(|half| difference >> half).take_while(|less| *less > 0).map(|less| now - less).collect()
        };
        for number in tries {
            if self.shows(|options| set(options, number)) {
                return;
            }
        }
    }

    /// Leaves parts out, all first, then halves and smaller shares, while the run shows the same.
    pub(super) fn fewer<T: Clone + Ord>(
        &mut self,
        parts_of: impl Fn(&R) -> BTreeSet<T>,
        set: impl Fn(&mut O, BTreeSet<T>),
    ) {
        let mut parts: Vec<T> = parts_of(&self.report).into_iter().collect();
        let mut size = parts.len();
        while size > 0 {
            let mut at = 0;
            while at < parts.len() {
                let end = (at + size).min(parts.len());
                let rest: Vec<T> = parts[..at].iter().chain(&parts[end..]).cloned().collect();
                if self.shows(|options| set(options, rest.iter().cloned().collect())) {
                    // Parts that no longer happen need not be left out.
                    let left = parts_of(&self.report);
                    parts = rest.into_iter().filter(|part| left.contains(part)).collect();
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        self.shows(|options| set(options, parts.into_iter().collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = BTreeSet<u64>;

    /// Searches the parts 0..16 for the fewest that show it.
    fn least(shows: impl Fn(&Parts) -> bool, most: u64) -> (Parts, u64) {
        let all: Parts = (0..16).collect();
        let mut smaller = Smaller::than(all.clone(), all, most, |parts: &Parts| shows(parts).then_some(parts.clone()));
        smaller.until_least(BTreeSet::len, |smaller| smaller.fewer(Clone::clone, |options, parts| *options = parts));
        (smaller.best, smaller.tried)
    }

    #[test]
    fn only_the_necessary_parts_are_left() {
        let (parts, tried) = least(|parts| parts.contains(&3) && parts.contains(&11), 1_000);
        assert_eq!(parts, [3, 11].into());
        assert!(tried < 60, "{tried}");
        assert_eq!(least(|_| true, 1_000).0, [].into());
        assert_eq!(least(|parts| parts.len() == 16, 1_000).0.len(), 16);
    }

    #[test]
    fn the_search_stops_after_the_most_runs_with_the_smallest() {
        let (parts, tried) = least(|parts| parts.contains(&3) && parts.contains(&11), 5);
        assert_eq!(tried, 5);
        assert!(parts.len() < 16 && parts.contains(&3) && parts.contains(&11), "{parts:?}");
    }

    #[test]
    fn a_number_is_lowered_to_the_least_that_shows_the_same() {
        for (least, start) in [(1, 4), (3, 4), (40, 1_000), (1, 1_000), (999, 1_000)] {
            let mut smaller = Smaller::than(start, start, 1_000, |number| (*number >= least).then_some(*number));
            smaller.until_least(|now| *now, |smaller| smaller.lower(1, smaller.report, |now, number| *now = number));
            assert_eq!(smaller.best, least);
        }
    }
}
