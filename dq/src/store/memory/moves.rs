//! The moves of the current step, for those who listen to the events of the topic and for the histories of its jobs.

use crate::job::JobId;
use crate::store::{JobMove, MOST_MOVES, MOVES_BYTES};

/// About what a move has besides the id: its kind, a time and the name of a node or producer, in bytes.
const BESIDE_THE_ID: usize = 48;

/// The moves of the current step; empty between steps, and where nobody wants them.
#[derive(Debug, Clone, Default)]
pub(super) struct MoveLog {
    is_listened: bool,
    is_kept: bool,
    made: Vec<(JobId, JobMove)>,
    /// How many of them, from the first on, have room in the message; and how many have none.
    told: usize,
    more: u64,
    bytes: usize,
}

impl MoveLog {
    /// Begins a step. Its moves are told to those who listen, kept in histories, or both.
    pub(super) fn begin(&mut self, is_listened: bool, is_kept: bool) {
        *self = Self { is_listened, is_kept, ..Self::default() };
    }

    /// Whether somebody wants the moves of the step.
    pub(super) const fn is_wanted(&self) -> bool {
        self.is_listened || self.is_kept
    }

    /// Notes a move, which is made only if somebody wants it.
    pub(super) fn note(&mut self, id: &JobId, made: impl FnOnce() -> JobMove) {
        if !self.is_wanted() {
            return;
        }
        self.bytes += id.as_str().len() + BESIDE_THE_ID;
        let fits = self.is_listened && self.told < MOST_MOVES && self.bytes <= MOVES_BYTES;
        if fits {
            self.told += 1;
        } else if self.is_listened {
            self.more += 1;
        }
        if fits || self.is_kept {
            self.made.push((id.clone(), made()));
        }
    }

    /// Ends the step: all its moves, how many of them have room in the message, and how many have none.
    pub(super) fn take(&mut self) -> (Vec<(JobId, JobMove)>, usize, u64) {
        let Self { made, told, more, .. } = std::mem::take(self);
        (made, told, more)
    }
}
