//! One add: a builder until it is awaited, then a future.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::added::{AddAnswer, Added, AddedOrKept, added};
use super::call::Call;
use super::deferred::Deferred;
use super::error::AddError;
use super::inbox::Inbox;
use super::options::{CheckedOptions, Options, option_methods};
use super::request::Request;
use super::root::Root;
use crate::job::{BadName, Codec, JobDefaults, JobId, Record, ToJobId};
use crate::schedule::check_reserved;
use crate::store::{NewJob, OnDuplicate};

/// A job that is added when this is awaited. Made by [`Provider::add`](super::Provider::add) and
/// [`TopicProvider::add_json`](super::TopicProvider::add_json).
///
/// The payload is serialized when the `Add` is made. An error in the payload or in an argument of a method is the error of
/// the future; then nothing is sent.
///
/// # Cancel safety
/// Dropped before its request is sent, it adds nothing. Dropped later, it does not take the job back.
///
/// # Panics
/// When it is polled again after it resolved.
#[must_use = "adding does nothing until it is awaited"]
pub struct Add<A = Added>(Deferred<Draft, AddError, (Call, OnDuplicate)>, PhantomData<fn() -> A>);

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    id: Option<Result<JobId, BadName>>,
    payload: Vec<u8>,
    defaults: JobDefaults,
    options: Options,
}

impl Add {
    pub(super) const fn bad(error: AddError) -> Self {
        Self(Deferred::new(Err(error)), PhantomData)
    }

    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        id: Option<Result<JobId, BadName>>,
        payload: Result<Vec<u8>, serde_json::Error>,
        defaults: JobDefaults,
    ) -> Self {
        let draft = match payload {
            Ok(payload) => Ok(Draft { root, inbox, id, payload, defaults, options: Options::default() }),
            Err(source) => Err(AddError::BadPayload { topic: inbox.key.topic.clone(), source }),
        };
        Self(Deferred::new(draft), PhantomData)
    }
}

impl<A> Add<A> {
    /// If a job with this id exists, keeps it and succeeds. This makes an add safe to repeat.
    ///
    /// The answer is then an [`AddedOrKept`], because a job that is kept may be DEAD: it never runs, and the add has changed
    /// nothing. [`unless_dead`](AddedOrKept::unless_dead) makes an error of that.
    pub fn keep_existing(self) -> Add<AddedOrKept> {
        let Self(deferred, _) = self.with(|options| options.on_duplicate = OnDuplicate::Keep);
        Add(deferred, PhantomData)
    }

    /// If a job with this id exists, replaces it with the new one; a running job is replaced when its run ends.
    pub fn replace_existing(self) -> Add {
        let Self(deferred, _) = self.with(|options| options.on_duplicate = OnDuplicate::Replace);
        Add(deferred, PhantomData)
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        if let Some(draft) = self.0.draft() {
            change(&mut draft.options);
        }
        self
    }

    /// Sets the id, instead of the payload's own or a generated one.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `.id(7)`")]
    pub fn id(mut self, id: impl ToJobId) -> Self {
        if let Some(draft) = self.0.draft() {
            draft.id = Some(id.to_job_id());
        }
        self
    }

    option_methods!();
}

impl Draft {
    fn send(self) -> Result<(Call, OnDuplicate), AddError> {
        let Self { root, inbox, id, payload, defaults, mut options } = self;
        options.carry_trace();
        let options = options.check(&defaults, &root.environment)?;
        let job = new_job(&root, &inbox, id, &payload, &options)?;
        Ok((Call::new(root, inbox, Request::Add(job), options.within), options.on_duplicate))
    }
}

/// The job as the store gets it.
pub(super) fn new_job(
    root: &Root,
    inbox: &Inbox,
    id: Option<Result<JobId, BadName>>,
    payload: &[u8],
    options: &CheckedOptions,
) -> Result<NewJob, AddError> {
    let limit = root.settings.payload_limit;
    if payload.len() > limit {
        return Err(AddError::PayloadTooLarge { topic: inbox.key.topic.clone(), size: payload.len(), limit });
    }
    let generated = id.is_none();
    if generated && matches!(options.on_duplicate, OnDuplicate::Extend { .. }) {
        return Err(AddError::NoId { topic: inbox.key.topic.clone() });
    }
    let id = id.unwrap_or_else(|| Ok(root.environment.job_id()))?;
    check_reserved(&id)?;
    Ok(NewJob {
        id,
        generated,
        due: options.due,
        expires_after: options.expires_after,
        record: Record::new(&options.metadata, Codec::Json, payload),
        on_duplicate: options.on_duplicate,
        deliver: options.deliver,
    })
}

impl<A: AddAnswer> Future for Add<A> {
    type Output = Result<A, AddError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (call, on_duplicate) = self.0.started(Draft::send)?;
        let answer = ready!(Pin::new(&mut *call).poll(cx));
        let topic = &call.inbox.key.topic;
        Poll::Ready(added(topic, call.id.clone(), *on_duplicate, answer).map(|added| A::of(topic, added)))
    }
}

/// Shows the topic and the id, never the payload.
impl<A> fmt::Debug for Add<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Add");
        match &self.0 {
            Deferred::Draft(Some(Ok(draft))) => f.field("topic", &draft.inbox.key.topic).field("id", &draft.id),
            Deferred::Draft(error) => f.field("error", &error.as_ref().and_then(|draft| draft.as_ref().err())),
            Deferred::Started((call, _)) => f.field("topic", &call.inbox.key.topic).field("id", &call.id),
        };
        f.finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_a_future_for_any_executor<T: Future + Send + Unpin + 'static>() {}
    is_a_future_for_any_executor::<Add>();
    is_a_future_for_any_executor::<Add<AddedOrKept>>();
};
