//! What a caller asks of the store, how the caller gets the answer, and how much a provider holds at a time, over all its topics:
//! unanswered adds and commands, by count and by bytes, and queries.
//!
//! Callers wait for a place in the order in which they came, and a small request does not overtake a large one. The wait needs no
//! timer: what a caller waits for belongs to earlier callers, whose deadlines are earlier and free it. Cancel safe: a caller that goes
//! away leaves its place to the next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, oneshot};

use super::error::{Doing, Failed, FailureReason, Target};
use crate::config::NodeSettings;
use crate::job::{JobId, TopicName};
use crate::store::{
    AddOutcome, ChangeKind, ChangeOutcome, Command, CommandOutcome, JobChange, MAX_AUTHOR, MAX_REASON, NewJob,
    SetChange, SetOutcome, SetTopic, SetVerb, TopicSet,
};

/// How many bytes a member of a set takes, about.
pub(super) fn member_bytes(job: &NewJob) -> usize {
    128 + job.id.as_str().len() + job.record.as_bytes().len()
}

/// What a caller asks for.
pub(super) enum Request {
    Add(NewJob),
    Command(Command),
    /// Another due time.
    Change(JobChange),
    /// Another payload. It has batches of its own, because a store whose memory is full refuses these.
    Update(JobChange),
    /// A change of the topic as a whole: a batch of its own.
    Set(SetTopic),
    /// A change of a job set: a batch of its own.
    JobSet(SetChange),
}

/// What the store did for a request; always of the request's kind.
#[derive(Debug)]
pub(super) enum Outcome {
    Add(AddOutcome),
    Command(CommandOutcome),
    Change(ChangeOutcome),
    Set(Box<TopicSet>),
    JobSet(SetOutcome),
}

pub(super) type Answer = Result<Outcome, Failed>;

impl Request {
    /// The job that it is about.
    const fn id(&self) -> Option<&JobId> {
        match self {
            Self::Add(job) => Some(&job.id),
            Self::Command(command) => Some(&command.id),
            Self::Change(change) | Self::Update(change) => Some(&change.id),
            Self::Set(_) | Self::JobSet(_) => None,
        }
    }

    pub(super) const fn of_change(change: JobChange) -> Self {
        match change.what {
            ChangeKind::Update(_) | ChangeKind::Options(_) => Self::Update(change),
            _ => Self::Change(change),
        }
    }

    /// What its errors are about.
    pub(super) fn target(&self, topic: &TopicName) -> Target {
        let doing = match self {
            Self::Add(job) => Doing::Add(job.on_duplicate),
            Self::Command(command) => Doing::Command(command.verb),
            Self::Change(_) | Self::Update(_) => Doing::Change,
            Self::Set(_) | Self::JobSet(_) => Doing::Set,
        };
        Target { topic: topic.clone(), id: self.id().cloned(), doing }
    }

    /// The id that another request can have, too: one that was just generated has no other user.
    pub(super) fn chosen_id(&self) -> Option<&JobId> {
        self.id().filter(|_| !matches!(self, Self::Add(job) if job.generated))
    }

    /// Whether its batch has no other request.
    pub(super) const fn goes_alone(&self) -> bool {
        matches!(self, Self::Set(_) | Self::JobSet(_))
    }

    pub(super) const fn job(&self) -> Option<&NewJob> {
        match self {
            Self::Add(job) => Some(job),
            _ => None,
        }
    }

    pub(super) const fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            _ => None,
        }
    }

    pub(super) const fn change(&self) -> Option<&JobChange> {
        match self {
            Self::Change(change) | Self::Update(change) => Some(change),
            _ => None,
        }
    }

    /// Roughly the bytes that the request adds to a batch.
    pub(super) fn bytes(&self) -> usize {
        const OVERHEAD: usize = 64;
        let more = match self {
            Self::Add(NewJob { record, .. }) | Self::Update(JobChange { what: ChangeKind::Update(record), .. }) => {
                record.as_bytes().len()
            }
            Self::Set(_) => MAX_AUTHOR + MAX_REASON,
            Self::JobSet(SetChange { what: SetVerb::Add(_, jobs), .. }) => {
                jobs.iter().map(|(_, job)| member_bytes(job)).sum()
            }
            Self::JobSet(SetChange { what: SetVerb::Close(then), .. }) => member_bytes(then),
            Self::Command(_) | Self::Change(_) | Self::Update(_) | Self::JobSet(_) => 0,
        };
        OVERHEAD + self.id().map_or(0, |id| id.as_str().len()) + more
    }
}

/// Until when a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    /// On the node's clock.
    pub(super) at: Duration,
    /// How long the call may take.
    pub(super) allowed: Duration,
    /// What says so: `within` of the call, or `call_deadline`.
    pub(super) limit: &'static str,
}

impl Deadline {
    /// The name of the limit that a call sets for itself.
    pub(super) const OF_THE_CALL: &'static str = "within";

    /// How long before this time the caller asked.
    pub(super) fn asked_before(&self, now: Duration) -> Duration {
        (now + self.allowed).saturating_sub(self.at)
    }

    pub(super) const fn no_answer(&self) -> FailureReason {
        FailureReason::NoAnswer { waited: self.allowed, limit: self.limit }
    }

    pub(super) const fn never_sent(&self) -> FailureReason {
        FailureReason::NeverSent { waited: self.allowed, limit: self.limit }
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
pub(super) fn not_done(reason: FailureReason) -> AnswerReceiver {
    let (to, answer) = oneshot::channel();
    to.send(Err(Failed::NotDone(reason))).expect("its receiver is here");
    answer
}

impl Posted {
    pub(super) fn new(request: Request, deadline: Deadline, place: RequestPlace) -> (Self, AnswerReceiver) {
        let (to, answer) = oneshot::channel();
        let RequestPlace { request: place, bytes } = place;
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
            self.answer(Err(Failed::NotDone(FailureReason::Panicked)));
        }
    }
}

/// How many queries of a provider may be unanswered.
pub(super) const MAX_QUERIES: usize = 256;

/// Bytes that requests hold until they are dropped.
pub(super) enum Bytes {
    /// Those of one request.
    Own { _permit: OwnedSemaphorePermit },
    /// Those of all requests of one call.
    Shared { _permit: Arc<OwnedSemaphorePermit> },
}

/// Places for requests of one call.
pub(super) struct RequestPlace {
    /// Until the answer; `None` for what a call has beyond all places.
    pub(super) request: Option<OwnedSemaphorePermit>,
    pub(super) bytes: Bytes,
}

/// The places of a provider.
pub(super) struct Places {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    most_requests: u32,
    most_bytes: u32,
    pub(super) queries: Arc<Semaphore>,
}

fn most(limit: usize) -> u32 {
    u32::try_from(limit.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX)
}

impl Places {
    pub(super) fn new(settings: &NodeSettings) -> Self {
        let (most_requests, most_bytes) = (most(settings.max_in_flight), most(settings.max_in_flight_bytes));
        Self {
            requests: Arc::new(Semaphore::new(most_requests as usize)),
            bytes: Arc::new(Semaphore::new(most_bytes as usize)),
            most_requests,
            most_bytes,
            queries: Arc::new(Semaphore::new(MAX_QUERIES)),
        }
    }

    /// What a call of this size takes: all there is, if it is larger.
    fn share(&self, bytes: usize) -> u32 {
        most(bytes).min(self.most_bytes)
    }

    /// A place for a request of this size, if nobody has to wait.
    pub(super) fn try_one(&self, bytes: usize) -> Option<RequestPlace> {
        let request = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        let permit = Arc::clone(&self.bytes).try_acquire_many_owned(self.share(bytes)).ok()?;
        Some(RequestPlace { request: Some(request), bytes: Bytes::Own { _permit: permit } })
    }

    /// Waits for a place for a request of this size. An error means that the provider was closed.
    pub(super) async fn one(&self, bytes: usize) -> Result<RequestPlace, AcquireError> {
        let (request, permit) = self.acquire(1, bytes).await?;
        Ok(RequestPlace { request: Some(request), bytes: Bytes::Own { _permit: permit } })
    }

    /// Waits for places for so many requests, which have so many bytes together. Returns a source of one place for each.
    pub(super) async fn many(
        &self,
        count: usize,
        bytes: usize,
    ) -> Result<impl FnMut() -> RequestPlace + use<>, AcquireError> {
        let (mut requests, permit) = self.acquire(most(count).min(self.most_requests), bytes).await?;
        let permit = Arc::new(permit);
        Ok(move || RequestPlace { request: requests.split(1), bytes: Bytes::Shared { _permit: Arc::clone(&permit) } })
    }

    async fn acquire(
        &self,
        count: u32,
        bytes: usize,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), AcquireError> {
        let requests = Arc::clone(&self.requests).acquire_many_owned(count).await?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(self.share(bytes)).await?;
        Ok((requests, bytes))
    }

    /// Gives out no more places for adds and commands. Queries go on.
    pub(super) fn close(&self) {
        self.requests.close();
        self.bytes.close();
    }
}
