//! The paused groups (rules 4 and 29). No claim takes a job of one, whether the job has a seat or not: a claim that meets one blocks it, as in a
//! full group, and the end of the pause lets it come again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use smol_str::SmolStr;

use super::touched::TouchedIds;
use super::{Jobs, Log};
use crate::store::Pause;
use crate::time::Timestamp;

/// The paused groups.
#[derive(Debug, Clone, Default)]
pub(super) struct PausedGroups {
    by_name: BTreeMap<SmolStr, Pause>,
    by_end: BTreeSet<(Timestamp, SmolStr)>,
    touched: TouchedIds<SmolStr>,
}

impl PausedGroups {
    pub(super) fn has(&self, name: &SmolStr) -> bool {
        self.by_name.contains_key(name)
    }

    /// Their names after this one, in order.
    pub(super) fn names_after(&self, after: Option<SmolStr>) -> impl Iterator<Item = &SmolStr> {
        self.by_name.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)).map(|(name, _)| name)
    }

    pub(super) fn set_log(&mut self, log: Log) {
        self.touched.set_logged(log != Log::Off);
    }

    fn put(&mut self, name: &SmolStr, pause: Option<Pause>) {
        self.touched.add(name);
        let end = pause.as_ref().and_then(|pause| pause.until);
        let old = match pause {
            Some(pause) => self.by_name.insert(name.clone(), pause),
            None => self.by_name.remove(name),
        };
        if let Some(end) = old.and_then(|old| old.until) {
            self.by_end.remove(&(end, name.clone()));
        }
        self.by_end.extend(end.map(|end| (end, name.clone())));
    }
}

impl Jobs {
    /// The pause of the group, even one that has ended.
    pub(crate) fn pause_of_group(&self, name: &SmolStr) -> Option<&Pause> {
        self.groups.paused.by_name.get(name)
    }

    /// Gives the group this pause, or none.
    pub(crate) fn set_pause_of_group(&mut self, name: &SmolStr, pause: Option<Pause>) {
        let continues = pause.is_none();
        self.groups.paused.put(name, pause);
        if continues {
            self.open_group(name, self.groups.now());
        }
    }

    /// The groups continue whose pauses have ended by now, each at the end of its pause.
    pub(crate) fn end_pauses(&mut self, clock: Timestamp) {
        while let Some((end, name)) = self.groups.paused.by_end.first().filter(|(end, _)| *end <= clock).cloned() {
            self.groups.paused.put(&name, None);
            self.open_group(&name, end.as_millis().saturating_mul(1_000));
        }
    }

    /// When the next pause of a group ends, or the next rate of one opens for which a job waits.
    pub(crate) fn next_opening(&self) -> Option<Timestamp> {
        let end = self.groups.paused.by_end.first().map(|(end, _)| *end);
        end.into_iter().chain(self.groups.rates.next_opening()).min()
    }

    /// The pauses of the groups after this one, in order of their names.
    pub(crate) fn pauses_after(&self, after: Option<SmolStr>) -> impl Iterator<Item = (&SmolStr, &Pause)> {
        let names = self.groups.paused.names_after(after);
        names.filter_map(|name| Some((name, self.pause_of_group(name)?)))
    }

    /// The groups whose pauses the step has changed.
    pub(crate) fn take_touched_pauses(&mut self) -> Vec<SmolStr> {
        self.groups.paused.touched.take()
    }
}
