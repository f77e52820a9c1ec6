//! The histories of jobs (rule 32). Each step that moves jobs adds its moves at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::job::JobId;
use crate::store::{HistorySetting, MOST_ENDED_HISTORIES};
use crate::time::Timestamp;

/// The history of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// Whether a journal wants to know of changes, and which there are; none between steps.
    is_logged: bool,
    is_set: bool,
    touched: BTreeSet<JobId>,
}

impl Histories {
    pub(super) const fn are_kept(&self) -> bool {
        self.setting.moves > 0
    }

    pub(super) const fn setting(&self) -> HistorySetting {
        self.setting
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&History> {
        self.by_id.get(id)
    }

    /// Those behind an id, in order.
    pub(super) fn behind(&self, after: Option<JobId>) -> impl Iterator<Item = (&JobId, &History)> {
        self.by_id.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    pub(super) const fn set_logged(&mut self, is_logged: bool) {
        self.is_logged = is_logged;
    }

    /// The setting, if the step has changed it.
    pub(super) fn take_setting(&mut self) -> Option<HistorySetting> {
        std::mem::take(&mut self.is_set).then_some(self.setting)
    }

    /// The ids whose histories the step has changed.
    pub(super) fn take_touched(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.touched)
    }

    /// Puts what a journal says.
    pub(super) fn restore_setting(&mut self, setting: HistorySetting) {
        self.setting = setting;
        if !self.are_kept() {
            (self.by_id, self.ended) = (BTreeMap::new(), BTreeSet::new());
        }
    }

    /// Puts a history as a journal says; `None`: it is gone.
    pub(super) fn restore(&mut self, id: JobId, history: Option<History>) {
        let until = history.as_ref().and_then(|history| history.until);
        let old = match history {
            Some(history) => self.by_id.insert(id.clone(), history),
            None => self.by_id.remove(&id),
        };
        if let Some(until) = old.and_then(|old| old.until) {
            self.ended.remove(&(until, id.clone()));
        }
        if let Some(until) = until {
            self.ended.insert((until, id));
        }
    }

    fn touch(&mut self, id: &JobId) {
        if self.is_logged {
            self.touched.insert(id.clone());
        }
    }

    /// The text of a history, which is put back.
    pub(super) fn take_text(&mut self, id: &JobId) -> String {
        self.by_id.get_mut(id).map(|history| std::mem::take(&mut history.text)).unwrap_or_default()
    }

    /// Puts a history; `None`: it is gone.
    pub(super) fn put(&mut self, id: &JobId, history: Option<History>) {
        self.touch(id);
        self.restore(id.clone(), history);
    }

    /// Sets what the topic keeps from now on.
    pub(super) fn set(&mut self, setting: HistorySetting) {
        self.is_set = self.is_logged && setting != self.setting;
        self.restore_setting(setting);
    }

    /// Forgets those that are over the bound.
    pub(super) fn forget_excess(&mut self) {
        while self.ended.len() > MOST_ENDED_HISTORIES {
            self.forget_first();
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
