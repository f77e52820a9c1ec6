//! A call: options until it is awaited, then a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::error::{CallError, Failed, Target};
use super::inputs::read_within;
use super::request::{Answer, AnswerReceiver, Posted, Request};
use super::root::Caller;
use super::sending::{STOPPED, in_time};
use crate::time::{Delay, IntoDelay};

/// A call of a [`Provider`](super::Provider) or a [`TopicProvider`](super::TopicProvider): a future that does nothing until it is
/// awaited. Its verb says what it does and what it resolves to, such as [`Add`](super::Add) and [`Query`](super::Query); each verb adds
/// methods of its own.
///
/// An error in an argument, or in an argument of a method, is the error of the future, a [`CallError`]; then nothing is sent.
/// Concurrent adds, commands and changes share a request to the store.
///
/// # Cancel safety
/// Dropped before it is polled for the first time, it does nothing. Dropped later, it does not take back what was sent. A
/// [`Query`](super::Query) changes nothing, so it can be dropped at any time.
///
/// # Panics
/// When it is polled again after it resolved, and when `keep_existing` or `replace_existing` is called after it was polled.
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<V: Verb>(CallState<V>);

enum CallState<V: Verb> {
    /// What the methods change, or what was wrong with the arguments; `None` once the call has failed.
    Draft(Option<Result<Draft<V>, CallError>>),
    Started(Started<V::Output>),
}

pub(super) struct Draft<V> {
    pub(super) verb: V,
    pub(super) within: Option<Delay>,
}

/// A call on its way to the store.
pub struct Started<T>(Sent<T>);

enum Sent<T> {
    /// One request, and how its answer is read.
    Request { target: Target, progress: Progress, read: fn(Target, Answer) -> Result<T, CallError> },
    /// Anything else.
    Work(BoxFuture<'static, Result<T, CallError>>),
}

enum Progress {
    /// Too few places are free: posts the request once there is one.
    Waiting(BoxFuture<'static, Result<AnswerReceiver, Failed>>),
    Posted(AnswerReceiver),
}

impl<T> Started<T> {
    /// Posts a request, or waits for a place. Dropped before the request is sent, it takes the request back.
    pub(super) fn request(
        caller: Caller,
        request: Request,
        within: Option<Duration>,
        read: fn(Target, Answer) -> Result<T, CallError>,
    ) -> Self {
        let (target, bytes) = (request.target(caller.topic()), request.bytes());
        let deadline = caller.root.deadline(within);
        let post = move |caller: &Caller, place| {
            let (posted, answer) = Posted::new(request, deadline, place);
            caller.root.post(&caller.inbox, [posted]);
            answer
        };
        let progress = if let Some(place) = caller.root.places.try_one(bytes) {
            Progress::Posted(post(&caller, place))
        } else {
            Progress::Waiting(Box::pin(async move {
                let place = in_time(&caller.root, deadline, caller.root.places.one(bytes)).await;
                Ok(post(&caller, place.map_err(Failed::NotDone)?))
            }))
        };
        Self(Sent::Request { target, progress, read })
    }

    pub(super) fn work(work: impl Future<Output = Result<T, CallError>> + Send + 'static) -> Self {
        Self(Sent::Work(Box::pin(work)))
    }
}

impl Progress {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        loop {
            match self {
                Self::Posted(answer) => return Pin::new(answer).poll(cx).map(|answer| answer.unwrap_or(STOPPED)),
                Self::Waiting(posted) => *self = Self::Posted(ready!(posted.as_mut().poll(cx))?),
            }
        }
    }
}

impl<T> fmt::Debug for Started<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").finish_non_exhaustive()
    }
}

/// What a [`Call`] does.
pub trait Verb: Sized + Send + Unpin + 'static {
    /// What the call resolves to.
    type Output;

    /// Starts it, with the time that it sets for itself.
    #[doc(hidden)]
    fn start(self, within: Option<Duration>) -> Result<Started<Self::Output>, CallError>;
}

impl<V: Verb> Call<V> {
    pub(super) fn new(verb: V) -> Self {
        Self::of(Ok(verb))
    }

    pub(super) fn bad(error: impl Into<CallError>) -> Self {
        Self::of(Err(error.into()))
    }

    pub(super) fn of(verb: Result<V, CallError>) -> Self {
        Self(CallState::Draft(Some(verb.map(|verb| Draft { verb, within: None }))))
    }

    /// Sets how long this call may wait for the store, instead of the setting `call_deadline` (10 s by default): a `Duration` or
    /// a text such as `"500ms"`, at most an hour. For callers that cannot wait that long, such as an HTTP handler. When the
    /// time is over, the error says whether nothing was done for certain, or whether that is unknown.
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        if let CallState::Draft(Some(Ok(draft))) = &mut self.0 {
            draft.within = Some(time.into_delay());
        }
        self
    }

    /// Changes an option.
    pub(super) fn with(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let CallState::Draft(Some(Ok(draft))) = &mut self.0 {
            change(&mut draft.verb);
        }
        self
    }

    /// Makes another call of it, unless it was started.
    pub(super) fn map<W: Verb>(self, verb: impl FnOnce(V) -> W) -> Call<W> {
        match self.0 {
            CallState::Draft(Some(draft)) => {
                Call(CallState::Draft(Some(draft.map(|Draft { verb: old, within }| Draft { verb: verb(old), within }))))
            }
            CallState::Draft(None) => Call(CallState::Draft(None)),
            CallState::Started(_) => panic!("a call that was polled takes no more options"),
        }
    }

    /// What the methods have made of it, or the call if it was started.
    pub(super) fn into_draft(self) -> Result<Result<Draft<V>, CallError>, Self> {
        match self.0 {
            CallState::Draft(draft) => Ok(draft.expect("a call is not polled again after it failed")),
            CallState::Started(started) => Err(Self(CallState::Started(started))),
        }
    }
}

impl<V: Verb> Future for Call<V> {
    type Output = Result<V::Output, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let CallState::Draft(draft) = &mut self.0 {
            let Draft { verb, within } = draft.take().expect("a call is not polled again after it failed")?;
            self.0 = CallState::Started(verb.start(read_within(within)?)?);
        }
        match &mut self.0 {
            CallState::Started(Started(Sent::Request { target, progress, read })) => {
                let answer = ready!(progress.poll(cx));
                Poll::Ready(read(target.clone(), answer))
            }
            CallState::Started(Started(Sent::Work(work))) => work.as_mut().poll(cx),
            CallState::Draft(_) => unreachable!("the call was just started"),
        }
    }
}

/// Shows what the call is about, or its error, never a payload.
impl<V: Verb + fmt::Debug> fmt::Debug for Call<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Call");
        match &self.0 {
            CallState::Draft(Some(Ok(draft))) => f.field("verb", &draft.verb),
            CallState::Draft(Some(Err(error))) => f.field("error", error),
            CallState::Started(Started(Sent::Request { target, .. })) => f.field("target", target),
            CallState::Draft(None) | CallState::Started(Started(Sent::Work(_))) => &mut f,
        };
        f.finish_non_exhaustive()
    }
}
