//! The events that explain why a run lost its job.

use std::collections::BTreeMap;

use super::Report;
use crate::server::FAILED_OVER;

/// How long after an event its effects may show, in µs: a node gives up an answer that does not come after its call timeout,
/// and its lease ends later still.
const AFTERMATH: u64 = 4_000_000;

/// How long a replica takes at most to have what the master has, in µs.
const REPLICATED_WITHIN: u64 = 1_000_000;

/// The end of a process: no handler of it goes on, so nothing of it needs an aftermath.
pub(super) const KILLED: &str = "killed";

/// A clean stop.
const STOPPED: &str = "stopped";
/// What a process notices by itself.
const STOOD_STILL: &str = "stood still";
/// A process must not end of itself.
const ENDED: &str = "ended of itself";

/// Events, by what they happened to.
#[derive(Debug, Default)]
pub(super) struct Reasons<'a>(BTreeMap<&'a str, Vec<Event<'a>>>);

#[derive(Debug, Clone, Copy)]
struct Event<'a> {
    from: u64,
    to: u64,
    what: &'a str,
}

impl<'a> Reasons<'a> {
    pub(super) fn add(&mut self, target: &'a str, what: &'a str, from: u64, to: u64) {
        self.0.entry(target).or_default().push(Event { from, to, what });
    }

    pub(super) fn sort(&mut self) {
        self.0.values_mut().for_each(|events| events.sort_by_key(|event| event.from));
    }

    /// Returns what happened to a process, to its place, to the store or to everything in this time. A clean stop is no reason.
    pub(super) fn between(&self, process: &str, from: u64, to: u64) -> Option<&'a str> {
        let place = process.split('.').next().unwrap_or_default();
        let targets = [process, place, "store", "all"];
        let overlaps = |event: &&Event<'_>| {
            let aftermath = if event.what == KILLED { 0 } else { AFTERMATH };
            let excuses = event.what != STOPPED && !event.what.starts_with(ENDED);
            excuses && event.from <= to && from <= event.to + aftermath
        };
        let events = || targets.iter().filter_map(|target| self.0.get(target)).flatten().filter(overlaps);
        // A process that the storm stopped also notices that it stood still.
        let event = events().find(|event| event.what != STOOD_STILL).or_else(|| events().next());
        event.map(|event| event.what)
    }

    /// Whether something happened to the store in this time.
    pub(super) fn disturb_store(&self, from: u64, to: u64) -> bool {
        self.0.get("store").into_iter().flatten().any(|event| event.from <= to && from <= event.to + AFTERMATH)
    }

    /// When the storm was about to kill this process, which is not after its death.
    pub(super) fn killed(&self, process: &str) -> Option<u64> {
        self.0.get(process)?.iter().find(|event| event.what == KILLED).map(|event| event.from)
    }

    /// Whether the store may have lost what it did at this time without a confirmation: a replica that lacked it became the master.
    pub(super) fn may_be_lost(&self, at: u64) -> bool {
        let mut events = self.0.get("store").into_iter().flatten();
        events.any(|event| event.what == FAILED_OVER && event.from <= at + REPLICATED_WITHIN && at <= event.to)
    }

    /// Counts the events by target and kind.
    pub(super) fn count(&self, report: &mut Report) {
        for (target, events) in &self.0 {
            let group = target.split(['-', '.']).next().unwrap_or_default();
            events.iter().for_each(|event| report.count(format!("{group} {}", event.what)));
            let ended = events.iter().filter(|event| event.what.starts_with(ENDED));
            ended.for_each(|event| report.find("process", target, event.what.to_owned()));
        }
    }
}
