//! A moment: one event, and what the machine does at it. The owners get its time and borrow the held jobs, and put in what they want:
//! requests for the store, and effects for each other.

use std::collections::VecDeque;
use std::time::Duration;

use super::flight::{Flight, Subject};
use super::held::Held;
use super::run::{PayloadFunction, RunEnd};
use super::slab::HeldId;
use crate::job::{JobId, Token};
use crate::store::{Request, RequestKind};

/// What an owner wants another owner to do. The machine hands each on as soon as the owner has returned.
#[derive(Debug)]
pub(super) enum Effect {
    /// A run is given up: what follows for each of these jobs.
    Decide(RunEnd),
    /// The ack on claim of this job was taken: its handler starts, and the job is no longer held.
    RunAcked(HeldId),
    /// The store has noted that no attempt of this job is left.
    OnExhausted(HeldId),
    /// A function makes the payload of this tick.
    Make(JobId, Token, PayloadFunction),
    /// Something may be due: transfer at once.
    Wake,
    /// A scan has to ask for the state of the topic.
    Scan,
    /// The store has lost what it knew of the topic.
    Forgotten,
    /// This node claims nothing: others should.
    GiveUpRole,
    /// The store counts this row for the node, which does not hold the job.
    Unheld(JobId, Token),
    /// The store counts no row for this held job.
    Missing(HeldId),
}

/// The time, the jobs, and what the owners want.
pub(super) struct Moment {
    pub(super) now: Duration,
    pub(super) held: Held,
    pub(super) flight: Flight,
    pub(super) effects: VecDeque<Effect>,
}

impl Moment {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// As [`Flight::send`].
    pub(super) fn send(&mut self, request: impl Into<Request>) {
        self.flight.send(request.into(), None, self.now);
    }

    /// Sends a request about held jobs, which it does not name by their numbers.
    pub(super) fn send_about(&mut self, subject: Subject, request: impl Into<Request>) {
        self.flight.send(request.into(), Some(subject), self.now);
    }

    /// Whether a request of this kind can be sent now: connected, none of its kind in flight, not paused.
    pub(super) fn can_send(&self, kind: RequestKind) -> bool {
        self.can_send_beside(kind, 1)
    }

    /// As [`Flight::can_send_beside`].
    pub(super) fn can_send_beside(&self, kind: RequestKind, most: usize) -> bool {
        self.flight.can_send_beside(kind, most, self.now)
    }

    /// When the pause of this kind ends, if there is one.
    pub(super) fn pause_end(&self, kind: RequestKind) -> Option<Duration> {
        self.flight.pause_end(kind, self.now)
    }
}
