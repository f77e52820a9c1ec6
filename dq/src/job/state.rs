//! The states of a job and every transition between them.
//!
//! ```text
//!  add ──▶ DELAYED ── transfer, when due ──▶ RUNNING ── ack ──▶ gone, or DONE for its `retain`
//!           ▲ ▲ ▲ ▲                            │ │ │ │
//!           │ │ │ └─ rejoin (same attempt) ────┘ │ │ │
//!           │ │ └─── retry (attempt + 1) ────────┘ │ │
//!           │ └───── rollback (unchanged) ─────────┤ │
//!           │ └───── reclaim (crashes + 1) ────────┘ │
//!           ├─ requeue ── UNACKED ◀── park ──────────┤
//!           └─ requeue ── DEAD    ◀── exhausted, expired or not decodable
//! ```
//!
//! The picture leaves out that
//!
//! * a swept UNACKED job is RUNNING under `on_park_timeout` and returns to UNACKED by keep, rollback or reclaim;
//! * an ack from outside ends a DELAYED or UNACKED job;
//! * a change of the due time leaves a DELAYED job DELAYED, and a change of the payload leaves a DELAYED, UNACKED or DEAD job
//!   where it is; a RUNNING or DONE job cannot be changed;
//! * the store prunes a DONE or DEAD job after its retention;
//! * a job that another program removed from its place counts as RUNNING until the audit makes it UNACKED or DEAD;
//! * an import puts a copy of a job, from an export, into any state but RUNNING ([`State::TIMED`]), and may replace a job
//!   that is not RUNNING;
//! * the doctor makes a job DEAD that does not decode, unless it runs or is DONE;
//! * a job without crashes left becomes DEAD after one more run, which calls only `on_exhausted`.
//!
//! *Ready* is not a state: it is DELAYED with a due time that has passed. A delete, cancel, ack or replacement of a
//! RUNNING job is not a transition: it leaves a pending command, which the step that ends the run obeys
//! ([`Event::EndedByCommand`], [`Event::Replaced`]).
//!
//! [`State::apply`] is pure and total. The conformance suite and the model tests compare every step with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Fence, NodeId};
use crate::time::Timestamp;

/// The state of a job. A job is in exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum State {
    /// The job waits until it is due, and then until a node takes it.
    Delayed,
    /// One node holds the job: its handler runs, or waits for a free place.
    Running,
    /// The handler parked the job: an ack or requeue from outside will end it.
    Unacked,
    /// No attempt is left, the job expired, or its payload does not decode. The store keeps it for the retention.
    Dead,
    /// The job was acked. The store keeps it for the `retain` of its payload.
    Done,
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A node took the job because it was due.
    Transferred,
    /// A node took the job because it had been UNACKED for too long.
    Swept,
    /// The handler acked the job.
    Acked {
        /// The store keeps it as DONE.
        retain: bool,
    },
    /// The handler rejoined the job.
    Rejoined,
    /// The handler failed and attempts are left.
    Retried,
    /// The node gave the job back.
    RolledBack {
        /// A sweep had claimed it, so it returns to UNACKED.
        parked: bool,
    },
    /// Another node took the job from a node whose lease had expired.
    Reclaimed {
        /// A sweep had claimed it, so it returns to UNACKED.
        parked: bool,
        /// No crash was left, and the node of the `on_exhausted` that followed crashed too.
        final_isolated: bool,
    },
    /// The handler parked the job, or `on_park_timeout` kept it.
    Parked,
    /// No attempt is left.
    Died,
    /// `on_park_timeout` dropped the job.
    Dropped,
    /// The job is a schedule: it had a tick, and waits for the next one.
    Ticked {
        /// It was the last tick.
        ended: bool,
    },
    /// The run ended under a pending command: an ack, delete or cancel from outside.
    EndedByCommand {
        /// The command was an ack, and the store keeps the job as DONE.
        retain: bool,
    },
    /// A new job of the same id took its place: at once, or when the run ended.
    Replaced,
    /// A command requeued the job.
    Requeued,
    /// A change gave the job another due time.
    Rescheduled,
    /// A change gave the job another payload.
    Updated,
    /// A command deleted or cancelled the job.
    Deleted,
    /// A command acked the job while no node ran it.
    AckedFromOutside {
        /// The store keeps it as DONE.
        retain: bool,
    },
    /// The retention ended.
    Pruned,
    /// It does not decode, and the doctor gave it up.
    GivenUp,
    /// Another program removed the job from its place, and the audit put it back.
    PlaceLost {
        /// It had been parked, so it returns to UNACKED.
        parked: bool,
    },
}

/// The event cannot happen to a job in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {state} job cannot be {event:?}")]
pub struct IllegalTransition {
    /// The state of the job.
    pub state: State,
    /// The event.
    pub event: Event,
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 5] = [Self::Delayed, Self::Running, Self::Unacked, Self::Dead, Self::Done];

    /// The state of a job that was just added.
    #[doc(hidden)]
    pub const ADDED: Self = Self::Delayed;

    /// The states that have a time: all but RUNNING. An import puts a job into one of them, where its id is unknown or it replaces one
    /// that is not RUNNING.
    #[doc(hidden)]
    pub const TIMED: [Self; 4] = [Self::Delayed, Self::Unacked, Self::Dead, Self::Done];

    /// The state after `event`, or `None` if the job is gone.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event cannot happen to a job in this state.
    #[doc(hidden)]
    pub const fn apply(self, event: Event) -> Result<Option<Self>, IllegalTransition> {
        use Event as E;
        use State as S;
        Ok(match (self, event) {
            (S::Delayed, E::Transferred) | (S::Unacked, E::Swept) => Some(S::Running),
            (
                S::Running,
                E::Rejoined
                | E::Retried
                | E::Ticked { ended: false }
                | E::RolledBack { parked: false }
                | E::Reclaimed { parked: false, final_isolated: false },
            ) => Some(S::Delayed),
            (
                S::Running,
                E::Parked
                | E::RolledBack { parked: true }
                | E::Reclaimed { parked: true, final_isolated: false }
                | E::PlaceLost { parked: true },
            ) => Some(S::Unacked),
            (S::Running, E::Died | E::Reclaimed { final_isolated: true, .. } | E::PlaceLost { parked: false }) => {
                Some(S::Dead)
            }
            (S::Running, E::Acked { retain: true } | E::EndedByCommand { retain: true })
            | (S::Delayed | S::Unacked, E::AckedFromOutside { retain: true }) => Some(S::Done),
            (
                S::Running,
                E::Acked { retain: false }
                | E::EndedByCommand { retain: false }
                | E::Dropped
                | E::Ticked { ended: true },
            )
            | (S::Delayed | S::Unacked, E::AckedFromOutside { retain: false })
            | (S::Delayed | S::Unacked | S::Dead | S::Done, E::Deleted)
            | (S::Dead | S::Done, E::Pruned) => None,
            (_, E::Replaced) | (S::Unacked | S::Dead, E::Requeued) | (S::Delayed, E::Rescheduled) => Some(S::Delayed),
            (S::Delayed | S::Unacked | S::Dead, E::Updated) => Some(self),
            (S::Delayed | S::Unacked | S::Dead, E::GivenUp) => Some(S::Dead),
            (state, event) => return Err(IllegalTransition { state, event }),
        })
    }

    /// The state as a word: `delayed`, `running`, `unacked`, `dead` or `done`.
    pub const fn as_str(self) -> &'static str {
        ["delayed", "running", "unacked", "dead", "done"][self as usize]
    }

    /// Its letter in scripts and in moves.
    pub(crate) const fn letter(self) -> &'static str {
        ["d", "r", "u", "x", "f"][self as usize]
    }

    /// The state of this letter.
    pub(crate) fn of_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.letter().starts_with(letter))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The state of a job, and since or until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// The job is DELAYED.
    Delayed {
        /// When the job is due.
        due: Timestamp,
    },
    /// The job is RUNNING.
    Running {
        /// The node that holds the job and the fence of its run. A query by id leaves it `None`.
        holder: Option<(NodeId, Fence)>,
    },
    /// The job is UNACKED.
    Unacked {
        /// When its handler parked it.
        since: Timestamp,
    },
    /// The job is DEAD.
    Dead {
        /// When it became DEAD.
        since: Timestamp,
    },
    /// The job is DONE.
    Done {
        /// When the store removes it.
        until: Timestamp,
    },
}

impl JobState {
    /// The state of a job since or until this time. Who holds a RUNNING job is not known.
    #[doc(hidden)]
    pub const fn of(state: State, at: Timestamp) -> Self {
        match state {
            State::Delayed => Self::Delayed { due: at },
            State::Running => Self::Running { holder: None },
            State::Unacked => Self::Unacked { since: at },
            State::Dead => Self::Dead { since: at },
            State::Done => Self::Done { until: at },
        }
    }

    /// The state.
    pub const fn state(&self) -> State {
        match self {
            Self::Delayed { .. } => State::Delayed,
            Self::Running { .. } => State::Running,
            Self::Unacked { .. } => State::Unacked,
            Self::Dead { .. } => State::Dead,
            Self::Done { .. } => State::Done,
        }
    }

    /// When the job is due, or since or until when it is there; `None` while it is RUNNING.
    pub const fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Delayed { due: at }
            | Self::Unacked { since: at }
            | Self::Dead { since: at }
            | Self::Done { until: at } => Some(*at),
            Self::Running { .. } => None,
        }
    }

    /// The node that holds the job, if it is RUNNING and the query found that node.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Running { holder } => holder.as_ref().map(|(node, _)| node),
            _ => None,
        }
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
            Event::Ticked { ended: true },
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
    fn a_dead_job_leaves_only_by_a_command_or_its_retention() {
        assert_eq!(State::Dead.apply(Event::Requeued), Ok(Some(State::Delayed)));
        assert_eq!(State::Dead.apply(Event::Deleted), Ok(None));
        assert_eq!(State::Dead.apply(Event::Pruned), Ok(None));
        assert!(State::Dead.apply(Event::Transferred).is_err());
        assert!(State::Dead.apply(Event::AckedFromOutside { retain: false }).is_err());
    }

    #[test]
    fn only_a_job_that_waits_gets_another_due_time_and_a_running_or_done_one_no_other_payload() {
        for state in State::ALL {
            let waits = state == State::Delayed;
            assert_eq!(state.apply(Event::Rescheduled).ok(), waits.then_some(Some(state)));
            let takes_payload = !matches!(state, State::Running | State::Done);
            assert_eq!(state.apply(Event::Updated).ok(), takes_payload.then_some(Some(state)));
        }
    }

    #[test]
    fn a_swept_job_returns_to_unacked_when_its_node_gives_it_back() {
        assert_eq!(State::Unacked.apply(Event::Swept), Ok(Some(State::Running)));
        assert_eq!(State::Running.apply(Event::RolledBack { parked: true }), Ok(Some(State::Unacked)));
    }
}
