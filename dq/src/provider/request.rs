//! What a caller asks of the store, and how the caller gets the answer.

use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::error::{Doing, Failed, Reason, Target};
use super::places::{Bytes, Place};
use crate::job::{JobId, TopicName};
use crate::store::{AddOutcome, ChangeKind, ChangeOutcome, Command, CommandOutcome, JobChange, NewJob};

/// What a caller asks for.
pub(super) enum Request {
    Add(NewJob),
    Command(Command),
    /// Another due time.
    Change(JobChange),
    /// Another payload. It has batches of its own, because a store whose memory is full refuses these.
    Update(JobChange),
}

/// What the store did for a request; always of the request's kind.
#[derive(Debug)]
pub(super) enum Outcome {
    Add(AddOutcome),
    Command(CommandOutcome),
    Change(ChangeOutcome),
}

pub(super) type Answer = Result<Outcome, Failed>;

impl Request {
    pub(super) const fn id(&self) -> &JobId {
        match self {
            Self::Add(job) => &job.id,
            Self::Command(command) => &command.id,
            Self::Change(change) | Self::Update(change) => &change.id,
        }
    }

    pub(super) const fn of_change(change: JobChange) -> Self {
        match change.what {
            ChangeKind::Update(_) => Self::Update(change),
            _ => Self::Change(change),
        }
    }

    /// What its errors are about.
    pub(super) fn target(&self, topic: &TopicName) -> Target {
        let doing = match self {
            Self::Add(job) => Doing::Add(job.on_duplicate),
            Self::Command(command) => Doing::Command(command.verb),
            Self::Change(_) | Self::Update(_) => Doing::Change,
        };
        Target { topic: topic.clone(), id: Some(self.id().clone()), doing }
    }

    /// Whether another request can have the same id: an id that was just generated has no other user.
    pub(super) const fn can_repeat_id(&self) -> bool {
        !matches!(self, Self::Add(job) if job.generated)
    }

    pub(super) const fn job(&self) -> Option<&NewJob> {
        match self {
            Self::Add(job) => Some(job),
            Self::Command(_) | Self::Change(_) | Self::Update(_) => None,
        }
    }

    pub(super) const fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            Self::Add(_) | Self::Change(_) | Self::Update(_) => None,
        }
    }

    pub(super) const fn change(&self) -> Option<&JobChange> {
        match self {
            Self::Change(change) | Self::Update(change) => Some(change),
            Self::Add(_) | Self::Command(_) => None,
        }
    }

    /// Roughly the bytes that the request adds to a batch.
    pub(super) fn bytes(&self) -> usize {
        const OVERHEAD: usize = 64;
        let record = match self {
            Self::Add(NewJob { record, .. }) | Self::Update(JobChange { what: ChangeKind::Update(record), .. }) => {
                record.as_bytes().len()
            }
            Self::Command(_) | Self::Change(_) | Self::Update(_) => 0,
        };
        OVERHEAD + self.id().as_str().len() + record
    }
}

/// Until when a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    /// On the node's clock.
    pub(super) at: Duration,
    /// How long the call may take.
    pub(super) allowed: Duration,
    /// What says so: `within` of the call, or `call_total`.
    pub(super) limit: &'static str,
}

impl Deadline {
    /// The name of the limit that a call sets for itself.
    pub(super) const OF_THE_CALL: &'static str = "within";

    /// How long before this time the caller asked.
    pub(super) fn asked_before(&self, now: Duration) -> Duration {
        (now + self.allowed).saturating_sub(self.at)
    }

    pub(super) const fn no_answer(&self) -> Reason {
        Reason::NoAnswer { waited: self.allowed, limit: self.limit }
    }

    pub(super) const fn never_sent(&self) -> Reason {
        Reason::NeverSent { waited: self.allowed, limit: self.limit }
    }
}

/// How the coalescer answers a caller.
struct Reply {
    to: oneshot::Sender<Answer>,
    /// Dropping it frees the place.
    _place: Option<OwnedSemaphorePermit>,
}

/// A request on its way from the caller to the answer.
pub(super) struct Posted {
    pub(super) request: Request,
    /// When the caller stops waiting.
    pub(super) deadline: Deadline,
    /// It is the first of those that its caller posted together.
    pub(super) leads: bool,
    /// `None` once the caller has its answer.
    reply: Option<Reply>,
    /// Freed with the request.
    _bytes: Bytes,
}

/// Where the caller receives the answer. The sender is dropped when the provider stops before it sends the request.
pub(super) type AnswerReceiver = oneshot::Receiver<Answer>;

/// The receiver of a request that is not posted, for this reason.
pub(super) fn not_done(reason: Reason) -> AnswerReceiver {
    let (to, answer) = oneshot::channel();
    to.send(Err(Failed::NotDone(reason))).expect("its receiver is here");
    answer
}

impl Posted {
    pub(super) fn new(request: Request, deadline: Deadline, place: Place) -> (Self, AnswerReceiver) {
        let (to, answer) = oneshot::channel();
        let Place { request: place, bytes } = place;
        (Self { request, deadline, leads: true, reply: Some(Reply { to, _place: place }), _bytes: bytes }, answer)
    }

    pub(super) fn bytes(&self) -> usize {
        self.request.bytes()
    }

    pub(super) const fn is_answered(&self) -> bool {
        self.reply.is_none()
    }

    /// Whether the caller dropped its future.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.to.is_closed())
    }

    /// Answers the caller, unless it has an answer.
    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some(reply) = self.reply.take() {
            // The caller may have dropped its future.
            let _ = reply.to.send(answer);
        }
    }
}

/// A request that is dropped in a panic, before a batch has it, was not sent.
impl Drop for Posted {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.answer(Err(Failed::NotDone(Reason::Panicked)));
        }
    }
}
