//! The moves of the current step, for those who listen to the events of the topic.

use super::now::Now;
use crate::job::JobId;
use crate::store::{JobMove, MOST_MOVES, MOVES_BYTES, Moves};

/// About what a move has besides the id: its kind, a time and the name of a node or producer, in bytes.
const BESIDE_THE_ID: usize = 48;

/// The moves of the current step; empty between steps, and while nobody listens.
#[derive(Debug, Clone, Default)]
pub(super) struct MoveLog {
    moves: Option<Moves>,
    bytes: usize,
}

impl MoveLog {
    /// Begins a step.
    pub(super) fn begin(&mut self, now: Now, is_listened: bool) {
        self.bytes = 0;
        self.moves = is_listened.then(|| Moves { at: now.floor(), ..Moves::default() });
    }

    pub(super) const fn is_listened(&self) -> bool {
        self.moves.is_some()
    }

    /// Notes a move, which is made only if somebody listens.
    pub(super) fn note(&mut self, id: &JobId, made: impl FnOnce() -> JobMove) {
        let Some(moves) = &mut self.moves else { return };
        self.bytes += id.as_str().len() + BESIDE_THE_ID;
        match moves.moves.len() < MOST_MOVES && self.bytes <= MOVES_BYTES {
            true => moves.moves.push((id.clone(), made())),
            false => moves.more += 1,
        }
    }

    /// Ends the step. Returns its moves, if there are any.
    pub(super) fn take(&mut self) -> Option<Moves> {
        self.moves.take().filter(|moves| !moves.moves.is_empty())
    }
}
