//! Where a job can be, and every way from one place to another: the only picture and the only table.
//!
//! ```text
//!         add ──▶ DELAYED ── due, taken by a node ──▶ RUNNING ── ack ──▶ gone (or kept as DONE for `retain`)
//!                  ▲ ▲ ▲ ▲                              │ │ │ │
//!                  │ │ │ └─ rejoin (same attempt) ──────┘ │ │ │ │
//!                  │ │ └─── retry (attempt + 1, backoff) ─┘ │ │ │
//!                  │ └───── rollback at shutdown (same attempt, due unchanged)
//!                  │ └───── reclaim from a dead node (crash count + 1, due unchanged)
//!                  ├─ requeue ── UNACKED ◀── park ──────────────────────── ┤
//!                  └─ requeue ── DEAD    ◀── retries or crashes exhausted ──┘
//! ```
//!
//! Not drawn: an aged UNACKED job is RUNNING under `process_unacked` and returns to UNACKED by keep, rollback or reclaim;
//! an ack from outside ends a DELAYED or UNACKED job; a DONE job is forgotten after its retention, and so is a DEAD one;
//! crashes exhausted lead to DEAD by way of one more run that calls `final_retry` only.
//!
//! *Ready* is not a place: it is DELAYED with a due time that has passed. A delete, cancel, ack or replacement of a
//! RUNNING job is no move: it leaves a mark, which the step that ends the run obeys ([`Event::EndedByCommand`],
//! [`Event::Replaced`]).
//!
//! [`State::apply`] is pure and total. It is the oracle of the conformance suite and of the model tests.

use std::fmt;

/// The place of a job. A job is in exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits until it is due, and then until a node takes it.
    Delayed,
    /// Belongs to one node: claimed, waiting for a permit, or being handled.
    Running,
    /// Parked by its handler: the outcome will be told from outside.
    Unacked,
    /// Given up: retries or crashes exhausted, expired, or not decodable. Kept for its retention.
    Dead,
    /// Acked and kept for the `retain` of its payload.
    Done,
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A node took it because it was due.
    Transferred,
    /// A node took it because it had been UNACKED for its age.
    Swept,
    /// Its handler said it is done.
    Acked {
        /// It is kept as DONE.
        retain: bool,
    },
    /// Its handler put it back, as it was added.
    Rejoined,
    /// Its handler failed and attempts are left.
    Retried,
    /// Its node gave it back.
    RolledBack {
        /// It had been claimed by age, so it goes back to UNACKED.
        parked: bool,
    },
    /// It was taken from a node whose lease had run out.
    Reclaimed {
        /// It had been claimed by age, so it goes back to UNACKED.
        parked: bool,
        /// Its crashes were exhausted and the `final_retry` that followed took its node too.
        final_isolated: bool,
    },
    /// Its handler parked it, or `process_unacked` kept it.
    Parked,
    /// It was given up.
    Died,
    /// `process_unacked` dropped it.
    Dropped,
    /// Its run ended under a mark: acked, deleted or cancelled from outside while it ran.
    EndedByCommand {
        /// The mark was an ack, and it is kept as DONE.
        retain: bool,
    },
    /// A new job of the same id took its place: at once, or when the run ended under a mark.
    Replaced,
    /// It was sent back by hand.
    Requeued,
    /// It was deleted or cancelled.
    Deleted,
    /// It was acked from outside while nobody ran it.
    AckedFromOutside {
        /// It is kept as DONE.
        retain: bool,
    },
    /// Its retention ended.
    Pruned,
}

/// An event that cannot happen to a job in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {state} job cannot be {event:?}")]
pub struct IllegalTransition {
    /// Where the job is.
    pub state: State,
    /// What was to happen.
    pub event: Event,
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 5] = [Self::Delayed, Self::Running, Self::Unacked, Self::Dead, Self::Done];

    /// Where an added job is first.
    pub const ADDED: Self = Self::Delayed;

    /// The state after `event`; `None` when the job is gone.
    ///
    /// # Errors
    /// [`IllegalTransition`] when the event cannot happen to a job in this state.
    pub const fn apply(self, event: Event) -> Result<Option<Self>, IllegalTransition> {
        use Event as E;
        use State as S;
        Ok(match (self, event) {
            (S::Delayed, E::Transferred) | (S::Unacked, E::Swept) => Some(S::Running),
            (
                S::Running,
                E::Rejoined
                | E::Retried
                | E::RolledBack { parked: false }
                | E::Reclaimed { parked: false, final_isolated: false },
            ) => Some(S::Delayed),
            (
                S::Running,
                E::Parked | E::RolledBack { parked: true } | E::Reclaimed { parked: true, final_isolated: false },
            ) => Some(S::Unacked),
            (S::Running, E::Died | E::Reclaimed { final_isolated: true, .. }) => Some(S::Dead),
            (S::Running, E::Acked { retain: true } | E::EndedByCommand { retain: true })
            | (S::Delayed | S::Unacked, E::AckedFromOutside { retain: true }) => Some(S::Done),
            (S::Running, E::Acked { retain: false } | E::EndedByCommand { retain: false } | E::Dropped)
            | (S::Delayed | S::Unacked, E::AckedFromOutside { retain: false })
            | (S::Delayed | S::Unacked | S::Dead | S::Done, E::Deleted)
            | (S::Dead | S::Done, E::Pruned) => None,
            (_, E::Replaced) | (S::Unacked | S::Dead, E::Requeued) => Some(S::Delayed),
            (state, event) => return Err(IllegalTransition { state, event }),
        })
    }

    /// The word for it: `delayed`, `running`, `unacked`, `dead` or `done`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Running => "running",
            Self::Unacked => "unacked",
            Self::Dead => "dead",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_job_can_be_settled() {
        let outcomes = [
            Event::Acked { retain: false },
            Event::Rejoined,
            Event::Retried,
            Event::RolledBack { parked: false },
            Event::Parked,
            Event::Died,
            Event::Dropped,
            Event::EndedByCommand { retain: false },
            Event::Reclaimed { parked: false, final_isolated: false },
        ];
        for state in State::ALL {
            for event in outcomes {
                assert_eq!(state.apply(event).is_ok(), state == State::Running, "{state} {event:?}");
            }
        }
    }

    #[test]
    fn a_dead_job_leaves_only_by_hand_or_by_age() {
        assert_eq!(State::Dead.apply(Event::Requeued), Ok(Some(State::Delayed)));
        assert_eq!(State::Dead.apply(Event::Deleted), Ok(None));
        assert_eq!(State::Dead.apply(Event::Pruned), Ok(None));
        assert!(State::Dead.apply(Event::Transferred).is_err());
        assert!(State::Dead.apply(Event::AckedFromOutside { retain: false }).is_err());
    }

    #[test]
    fn an_aged_job_goes_back_to_unacked_when_its_node_gives_it_back() {
        assert_eq!(State::Unacked.apply(Event::Swept), Ok(Some(State::Running)));
        assert_eq!(State::Running.apply(Event::RolledBack { parked: true }), Ok(Some(State::Unacked)));
    }
}
