//! What the current step does to jobs. Each transition says it here once; at the end of the step the events of the topic, the histories
//! of its jobs and its statistics read it (rule 31). What nobody reads is not recorded.

use std::collections::BTreeMap;
use std::mem;

use super::now::Now;
use super::places::fitting;
use crate::job::{Cause, JobId, NodeId};
use crate::store::step::{Change, Claim, Outcome};
use crate::store::{MAX_MINUTES, MAX_MOVES, MINUTE, MOVES_BYTES, MinuteCounts, Moves, Transition};

/// About what a move has besides the id: its kind, a time and the name of a node or producer, in bytes.
const BESIDE_THE_ID: usize = 48;

/// The record of the current step; empty between steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder {
    is_listened: bool,
    is_kept: bool,
    has_members: bool,
    moves: Vec<(JobId, Transition)>,
    /// What the step counts, if it is one of a link that counts.
    counts: Option<MinuteCounts>,
}

impl Recorder {
    /// Begins a step. Its moves are told to those who listen, kept in histories, and tell sets of their members.
    pub(super) fn begin(&mut self, is_listened: bool, is_kept: bool, has_members: bool) {
        *self = Self { is_listened, is_kept, has_members, ..Self::default() };
    }

    /// The step belongs to a link that counts, or not.
    pub(super) fn count(&mut self, counts: bool) {
        self.counts = counts.then(MinuteCounts::default);
    }

    /// Whether somebody wants the moves of the step.
    pub(super) const fn wants_moves(&self) -> bool {
        self.is_listened || self.is_kept || self.has_members
    }

    /// Records a move, which is made only if somebody wants it.
    pub(super) fn note(&mut self, id: &JobId, made: impl FnOnce() -> Transition) {
        if self.wants_moves() {
            self.moves.push((id.clone(), made()));
        }
    }

    /// Records jobs that a node has claimed. `is_due`: because they were due, so their lateness counts.
    pub(super) fn claimed(&mut self, now: Now, node: &NodeId, claims: &[Claim], is_due: bool) {
        for Claim { id, token, .. } in claims {
            self.note(id, || Transition::Claimed { due: token.due, node: node.to_string() });
            if let Some(counts) = self.counts.as_mut().filter(|_| is_due) {
                counts.claim(now.floor().as_millis().saturating_sub(token.due.as_millis()), 1);
            }
        }
    }

    /// Records a run that ended with this outcome, whatever becomes of its job. A run that was given back, and a job that nobody ran,
    /// do not count.
    pub(super) fn ran(&mut self, outcome: &Outcome) {
        let Some(counts) = &mut self.counts else { return };
        let cause = || outcome.metadata.as_ref().and_then(|metadata| metadata.cause);
        let change = outcome.change.alone();
        let failed = match change {
            Change::Rollback | Change::Drop => return,
            Change::Dead if cause() == Some(Cause::Expired) => return,
            Change::Retry(_) | Change::Dead => true,
            Change::Ack | Change::Rejoin(_) | Change::Park | Change::Tick(_) | Change::Then(..) => false,
        };
        counts.ran += 1;
        counts.done += u64::from(*change == Change::Ack);
        counts.failed += u64::from(failed);
    }

    /// Records a job that became DEAD.
    pub(super) fn died(&mut self, id: &JobId, cause: Option<Cause>, node: &NodeId) {
        self.note(id, || Transition::Dead { cause, node: node.to_string() });
        if let Some(counts) = &mut self.counts {
            counts.dead += 1;
        }
    }

    /// Ends the step: its moves, and what it counted.
    pub(super) fn take(&mut self) -> (Vec<(JobId, Transition)>, Option<MinuteCounts>) {
        (mem::take(&mut self.moves), self.counts.take().filter(|counts| *counts != MinuteCounts::default()))
    }

    /// What those who listen are told of these moves: as many as have room in a message.
    pub(super) fn told(&self, now: Now, mut moves: Vec<(JobId, Transition)>) -> Option<Moves> {
        if !self.is_listened || moves.is_empty() {
            return None;
        }
        let sizes = moves.iter().take(MAX_MOVES).map(|(id, _)| id.as_str().len() + BESIDE_THE_ID);
        let told = fitting(sizes, MOVES_BYTES);
        let more = (moves.len() - told) as u64;
        moves.truncate(told);
        Some(Moves { at: now.floor(), moves, more })
    }
}

/// What the topic counted in each minute of the last day, by the place of the minute in the ring.
#[derive(Debug, Clone, Default)]
pub(super) struct Statistics(BTreeMap<u64, MinuteCounts>);

impl Statistics {
    /// Adds what a step counted.
    pub(super) fn add(&mut self, now: Now, counts: &MinuteCounts) {
        let minute = minute_of(now);
        let kept = self.0.entry(minute % MAX_MINUTES).or_default();
        if kept.minute != minute {
            *kept = MinuteCounts { minute, ..MinuteCounts::default() };
        }
        kept.add(counts);
    }

    /// The minutes from `from` to `to` in which anything was counted, in order.
    pub(super) fn between(&self, from: u64, to: u64) -> Vec<MinuteCounts> {
        let mut minutes: Vec<_> =
            self.0.values().filter(|counts| (from..=to).contains(&counts.minute)).copied().collect();
        minutes.sort_by_key(|counts| counts.minute);
        minutes
    }

    /// The sum of the present minute and those before it that an overview has; `None`: nothing was counted for a day.
    pub(super) fn recent(&self, now: Now) -> Option<MinuteCounts> {
        let minute = minute_of(now);
        let day = (minute + 1).saturating_sub(MAX_MINUTES)..=minute;
        let is_kept = self.0.values().any(|counts| day.contains(&counts.minute));
        is_kept.then(|| MinuteCounts::recent(self.0.values(), now.floor()))
    }
}

/// The minute of the store's clock.
const fn minute_of(now: Now) -> u64 {
    now.floor().as_millis() / MINUTE
}
