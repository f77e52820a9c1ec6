//! The histories of jobs (rule 31). Each step that moves jobs adds its moves at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::places::{TouchedIds, bytes_of_row};
use crate::job::JobId;
use crate::store::history::append;
use crate::store::{HistorySetting, JobMove, MOST_ENDED_HISTORIES};
use crate::time::Timestamp;

/// The history of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    pub(super) text: String,
    /// When it is forgotten; `None` while the topic has the job.
    pub(super) until: Option<Timestamp>,
}

/// The histories of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Histories {
    setting: HistorySetting,
    by_id: BTreeMap<JobId, History>,
    /// Those of jobs that are gone, by the time at which they are forgotten.
    ended: BTreeSet<(Timestamp, JobId)>,
    /// What they take in memory, about.
    pub(super) bytes: u64,
    /// Those that the step has changed.
    pub(super) touched: TouchedIds,
}

impl Histories {
    pub(super) const fn are_kept(&self) -> bool {
        self.setting.moves > 0
    }

    pub(super) const fn setting(&self) -> HistorySetting {
        self.setting
    }

    /// Sets what the topic keeps from now on.
    pub(super) fn set(&mut self, setting: HistorySetting) {
        self.setting = setting;
        if !self.are_kept() {
            (self.by_id, self.ended, self.bytes) = (BTreeMap::new(), BTreeSet::new(), 0);
        }
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&History> {
        self.by_id.get(id)
    }

    /// Those behind an id, in order.
    pub(super) fn behind(&self, after: Option<JobId>) -> impl Iterator<Item = (&JobId, &History)> {
        self.by_id.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    /// Adds the moves of a step. The history of a job that is gone now is kept for a time, or goes too.
    pub(super) fn keep(&mut self, now: Timestamp, made: &[(JobId, JobMove)], is_gone: impl Fn(&JobId) -> bool) {
        let HistorySetting { moves: most, after } = self.setting;
        let mut by_id: BTreeMap<&JobId, Vec<&JobMove>> = BTreeMap::new();
        for (id, made) in made.iter().filter(|(_, made)| !matches!(made, JobMove::Progressed { .. })) {
            by_id.entry(id).or_default().push(made);
        }
        for (id, made) in by_id {
            let is_gone = is_gone(id);
            if is_gone && after.is_zero() {
                self.put(id, None);
                continue;
            }
            let known = self.by_id.get_mut(id);
            let mut text = known.map(|history| mem::take(&mut history.text)).unwrap_or_default();
            self.bytes -= text.len() as u64;
            made.into_iter().for_each(|made| append(&mut text, now, made, most));
            self.put(id, Some(History { text, until: is_gone.then(|| now.after(after)) }));
        }
        while self.ended.len() > MOST_ENDED_HISTORIES {
            self.forget_first();
        }
    }

    /// Puts a history; `None`: it is gone.
    pub(super) fn put(&mut self, id: &JobId, history: Option<History>) {
        self.touched.add(id);
        let until = history.as_ref().and_then(|history| history.until);
        self.bytes += history.as_ref().map_or(0, |new| bytes_of_row(id, new.text.len()));
        let old = match history {
            Some(history) => self.by_id.insert(id.clone(), history),
            None => self.by_id.remove(id),
        };
        self.bytes -= old.as_ref().map_or(0, |old| bytes_of_row(id, old.text.len()));
        if let Some(until) = old.and_then(|old| old.until) {
            self.ended.remove(&(until, id.clone()));
        }
        if let Some(until) = until {
            self.ended.insert((until, id.clone()));
        }
    }

    /// Forgets those whose time is over, at most `limit`. Returns whether there are more.
    pub(super) fn forget(&mut self, now: Timestamp, limit: usize) -> bool {
        for _ in 0..limit {
            if !self.is_over(now) {
                return false;
            }
            self.forget_first();
        }
        self.is_over(now)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.ended.first().is_some_and(|(until, _)| *until <= now)
    }

    fn forget_first(&mut self) {
        if let Some((_, id)) = self.ended.first().cloned() {
            self.put(&id, None);
        }
    }
}
