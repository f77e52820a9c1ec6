//! The moves of the current step, for those who listen to the events of the topic and for the histories of its jobs.

use super::now::Now;
use super::topic::Topic;
use crate::job::JobId;
use crate::store::{JobMove, MOST_MOVES, MOVES_BYTES, Moves};

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
}

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
        let MoveLog { is_listened, is_kept, mut made, told, more, .. } = std::mem::take(&mut self.moves);
        if is_kept {
            self.keep_moves(now, &made);
        }
        made.truncate(told);
        (is_listened && !made.is_empty()).then(|| Moves { at: now.floor(), moves: made, more })
    }
}
