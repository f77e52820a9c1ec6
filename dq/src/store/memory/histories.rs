//! The histories of jobs (rule 31). Each step that moves jobs adds its moves at its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kept::{Item, Kept};
use super::places::bytes_of_row;
use crate::job::JobId;
use crate::store::history::append;
use crate::store::{HistorySetting, MAX_ENDED_HISTORIES, Transition};
use crate::time::Timestamp;

/// The history of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    pub(super) text: String,
    /// When it is forgotten; `None` while the topic has the job.
    pub(super) until: Option<Timestamp>,
}

impl Item<JobId> for History {
    fn end(&self) -> Option<Timestamp> {
        self.until
    }

    fn bytes(&self, id: &JobId) -> u64 {
        bytes_of_row(id, self.text.len())
    }
}

/// The histories of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Histories {
    setting: HistorySetting,
    /// The histories by job. Those of jobs that are gone have an end.
    pub(super) kept: Kept<JobId, History>,
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
            self.kept.clear();
        }
    }

    /// Adds the moves of a step. The history of a job that is gone now is kept for a time, or goes too.
    pub(super) fn keep(&mut self, now: Timestamp, made: &[(JobId, Transition)], is_gone: impl Fn(&JobId) -> bool) {
        let HistorySetting { moves: most, after } = self.setting;
        let mut by_id: BTreeMap<&JobId, Vec<&Transition>> = BTreeMap::new();
        for (id, made) in made.iter().filter(|(_, made)| !matches!(made, Transition::Progressed { .. })) {
            by_id.entry(id).or_default().push(made);
        }
        for (id, made) in by_id {
            let is_gone = is_gone(id);
            if is_gone && after.is_zero() {
                self.kept.put(id, None);
                continue;
            }
            let mut text = self.kept.put(id, None).unwrap_or_default().text;
            made.into_iter().for_each(|made| append(&mut text, now, made, most));
            self.kept.put(id, Some(History { text, until: is_gone.then(|| now.after(after)) }));
        }
        while self.kept.ending() > MAX_ENDED_HISTORIES {
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
        self.kept.first_end().is_some_and(|(until, _)| *until <= now)
    }

    fn forget_first(&mut self) {
        if let Some((_, id)) = self.kept.first_end().cloned() {
            self.kept.put(&id, None);
        }
    }
}
