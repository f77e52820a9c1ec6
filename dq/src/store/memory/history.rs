//! What a step does with its moves at its end: it tells those who listen, and adds them to the histories of its jobs (rules 31, 32).

use std::collections::BTreeMap;

use super::histories::History;
use super::now::Now;
use super::topic::Topic;
use crate::job::JobId;
use crate::store::history::{append, read};
use crate::store::{HistorySetting, JobHistory, JobMove, Moves, StoreError};

impl Topic {
    /// A step begins.
    pub(super) fn begin_moves(&mut self, is_listened: bool) {
        self.moves.begin(is_listened, self.histories.are_kept());
    }

    /// The step ends: its moves become part of the histories. Returns what to tell those who listen.
    pub(super) fn end_moves(&mut self, now: Now) -> Option<Moves> {
        if !self.moves.is_wanted() {
            return None;
        }
        let (mut made, told, more) = self.moves.take();
        // A step that ends the keeping of histories has no moves.
        if self.histories.are_kept() {
            self.keep_moves(now, &made);
        }
        made.truncate(told);
        (!made.is_empty()).then(|| Moves { at: now.floor(), moves: made, more })
    }

    /// Sets what the topic keeps from now on.
    pub(super) fn keep_history(&mut self, setting: HistorySetting) -> Result<(), StoreError> {
        self.histories.set(setting.check()?);
        Ok(())
    }

    /// The moves of a job, oldest first.
    pub(super) fn history(&self, id: &JobId) -> Option<JobHistory> {
        self.histories.get(id).map(|history| read(&history.text))
    }

    /// Adds the moves of a step. The history of a job that is gone now is kept for a time, or goes too.
    pub(super) fn keep_moves(&mut self, now: Now, made: &[(JobId, JobMove)]) {
        let HistorySetting { moves: most, after } = self.histories.setting();
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
        self.histories.forget_excess();
    }

    /// Forgets histories of jobs that are gone, once their time is over, at most `limit`. Returns whether there are more.
    pub(super) fn forget_histories(&mut self, now: Now, limit: usize) -> bool {
        self.histories.forget(now.floor(), limit)
    }
}
