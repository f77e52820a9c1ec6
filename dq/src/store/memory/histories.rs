//! The histories of jobs (rule 32). Each step that moves jobs adds its moves at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::now::Now;
use super::topic::Topic;
use crate::job::JobId;
use crate::store::history::{append, read};
use crate::store::{HistorySetting, JobMove, MOST_ENDED_HISTORIES, StoreError};
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

    fn take_text(&mut self, id: &JobId) -> String {
        self.by_id.get_mut(id).map(|history| std::mem::take(&mut history.text)).unwrap_or_default()
    }

    fn put(&mut self, id: &JobId, history: Option<History>) {
        self.touch(id);
        self.restore(id.clone(), history);
    }

    /// Forgets the first of those that have ended.
    fn forget_first(&mut self) {
        if let Some((_, id)) = self.ended.first().cloned() {
            self.put(&id, None);
        }
    }
}

impl Topic {
    /// Sets what the topic keeps from now on.
    pub(super) fn keep_history(&mut self, setting: HistorySetting) -> Result<(), StoreError> {
        let setting = setting.check()?;
        self.histories.is_set = self.histories.is_logged && setting != self.histories.setting;
        self.histories.restore_setting(setting);
        Ok(())
    }

    /// The moves of a job, oldest first.
    pub(super) fn history(&self, id: &JobId) -> Option<Vec<(Timestamp, JobMove)>> {
        self.histories.get(id).map(|history| read(&history.text))
    }

    /// Adds the moves of a step. The history of a job that is gone now is kept for a time, or goes too.
    pub(super) fn keep_moves(&mut self, now: Now, made: &[(JobId, JobMove)]) {
        let HistorySetting { moves: most, after } = self.histories.setting;
        let mut by_id: BTreeMap<&JobId, Vec<&JobMove>> = BTreeMap::new();
        for (id, made) in made {
            by_id.entry(id).or_default().push(made);
        }
        for (id, made) in by_id {
            let has_ended = self.state(id).is_none();
            if has_ended && after.is_zero() {
                self.histories.put(id, None);
                continue;
            }
            let mut text = self.histories.take_text(id);
            made.into_iter().for_each(|made| append(&mut text, now.floor(), made, most));
            let until = has_ended.then(|| now.floor().after(after));
            self.histories.put(id, Some(History { text, until }));
        }
        while self.histories.ended.len() > MOST_ENDED_HISTORIES {
            self.histories.forget_first();
        }
    }

    /// Forgets histories of jobs that are gone, once their time is over, at most `limit`. Returns whether there are more.
    pub(super) fn forget_histories(&mut self, now: Now, limit: usize) -> bool {
        let is_over = |histories: &Histories| histories.ended.first().is_some_and(|(until, _)| *until <= now.floor());
        for _ in 0..limit {
            if !is_over(&self.histories) {
                return false;
            }
            self.histories.forget_first();
        }
        is_over(&self.histories)
    }
}
