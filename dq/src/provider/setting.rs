//! The futures that change the state of a topic as a whole: pause, resume, drain, undrain, and the default delay (rule 29).
//!
//! Each call is a producer of its own with one call, number 1. So it is repeated until it is answered, and done once.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::call::in_time;
use super::deferred::Deferred;
use super::error::Reason;
use super::inbox::Inbox;
use super::request::{Deadline, Failed};
use super::retries::Retries;
use super::root::Root;
use super::topic_error::TopicError;
use crate::environment::{Environment, Runtime};
use crate::job::{BadName, TopicName};
use crate::store::{
    BatchAnswer, Drain, Due, LONGEST_AUTHOR, LONGEST_REASON, Pause, Producer, SetTopic, StoreError, TopicChange,
    TopicDelay, TopicSet, TopicState,
};
use crate::time::{Delay, IntoDelay, LONGEST_DELAY, Timestamp};

/// Roughly the bytes of a call, for the bound on unanswered requests.
const CALL_BYTES: usize = LONGEST_AUTHOR + LONGEST_REASON;

/// One of the settings of a topic, as a change answers it.
pub trait TopicSetting: Sized + Send + 'static {
    #[doc(hidden)]
    fn of(state: TopicState) -> Option<Self>;
}

impl TopicSetting for Pause {
    fn of(state: TopicState) -> Option<Self> {
        state.pause
    }
}

impl TopicSetting for Drain {
    fn of(state: TopicState) -> Option<Self> {
        state.drain
    }
}

impl TopicSetting for TopicDelay {
    fn of(state: TopicState) -> Option<Self> {
        state.delay
    }
}

/// What a change of a topic found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicChanged<T> {
    /// What was there before.
    pub before: Option<T>,
    /// What is there now.
    pub now: Option<T>,
}

/// Pauses a topic on all its nodes, once it is awaited. Made by [`Provider::pause`](super::Provider::pause), which says what a
/// pause does. Needs a [`reason`](Self::reason).
///
/// Resolves to the pause before and now, or to a [`TopicError`]. Cancel safe until it is polled for the first time; dropped later,
/// the topic may be paused or not. Calling again is safe: a second pause replaces reason and end of the first.
///
/// # Panics
/// When it is polled again after it resolved.
#[must_use = "nothing is paused until this is awaited"]
pub struct PauseTopic(Change<Pause>);

/// Drains a topic, once it is awaited. Made by [`Provider::drain`](super::Provider::drain), which says what that does. Needs a
/// [`reason`](Self::reason). Cancel safety and panics are those of [`PauseTopic`].
///
/// Resolves to the drain before and now, or to a [`TopicError`].
#[must_use = "nothing is drained until this is awaited"]
pub struct DrainTopic(Change<Drain>);

/// Ends a pause or a drain, or sets the default delay of a topic, once it is awaited. Made by
/// [`Provider::resume`](super::Provider::resume), [`undrain`](super::Provider::undrain),
/// [`set_default_delay`](super::Provider::set_default_delay) and [`clear_default_delay`](super::Provider::clear_default_delay).
/// Cancel safety and panics are those of [`PauseTopic`].
///
/// Resolves to the setting before and now, or to a [`TopicError`].
#[must_use = "nothing changes until this is awaited"]
pub struct ChangeTopic<T: TopicSetting>(Change<T>);

type Answer = Result<TopicSet, TopicError>;

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    change: TopicChange,
    by: Option<String>,
    lasting: Option<Delay>,
    delay: Option<Delay>,
    within: Option<Delay>,
}

struct Change<T>(Deferred<Draft, TopicError, BoxFuture<'static, Answer>>, PhantomData<fn() -> T>);

impl<T: TopicSetting> Change<T> {
    fn new(root: Arc<Root>, inbox: Arc<Inbox>, change: TopicChange) -> Self {
        let draft = Draft { root, inbox, change, by: None, lasting: None, delay: None, within: None };
        Self(Deferred::new(Ok(draft)), PhantomData)
    }

    fn bad(error: BadName) -> Self {
        Self(Deferred::new(Err(error.into())), PhantomData)
    }

    fn with(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Some(draft) = self.0.draft() {
            change(draft);
        }
        self
    }

    fn reason(self, text: String) -> Self {
        self.with(|draft| match &mut draft.change {
            TopicChange::Pause { reason, .. } | TopicChange::Drain { reason } => *reason = text,
            TopicChange::Resume | TopicChange::Undrain | TopicChange::Delay(_) => {}
        })
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<TopicChanged<T>, TopicError>> {
        let answer = self.0.started(Draft::start)?.as_mut().poll(cx);
        answer.map_ok(|TopicSet { before, now }| TopicChanged { before: T::of(before), now: T::of(now) })
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct(name);
        if let Deferred::Draft(Some(Ok(draft))) = &self.0 {
            f.field("topic", &draft.inbox.key.topic).field("change", &draft.change);
        }
        f.finish_non_exhaustive()
    }
}

impl Draft {
    fn start(self) -> Result<BoxFuture<'static, Answer>, TopicError> {
        let Self { root, inbox, mut change, by, lasting, delay, within } = self;
        let read = |field, delay: Delay| {
            let delay = delay.duration().map_err(|source| TopicError::BadDuration { field, source })?;
            match delay > LONGEST_DELAY {
                true => Err(TopicError::TooLong { field, delay, limit: LONGEST_DELAY }),
                false => Ok(delay),
            }
        };
        match &mut change {
            TopicChange::Pause { reason, .. } | TopicChange::Drain { reason } if reason.trim().is_empty() => {
                return Err(TopicError::NoReason { topic: inbox.key.topic.clone() });
            }
            TopicChange::Pause { until, .. } => {
                *until = lasting.map(|time| read("lasting", time)).transpose()?.map(Due::After).or(*until);
            }
            TopicChange::Delay(set) => *set = delay.map(|delay| read("delay", delay)).transpose()?,
            TopicChange::Drain { .. } | TopicChange::Resume | TopicChange::Undrain => {}
        }
        let within = within.map(Delay::duration).transpose();
        let within = within.map_err(|source| TopicError::BadDuration { field: "within", source })?;
        let set = SetTopic { by: by.unwrap_or_else(this_process), change };
        if let Err(StoreError::OverLimit { what, size, limit }) = set.check() {
            return Err(TopicError::TooLarge { what, size, limit });
        }
        Ok(Box::pin(send(root, inbox, set, within)))
    }
}

/// Who changes a topic or a schedule, if the caller does not say: host, program and process.
pub(super) fn this_process() -> String {
    let host = ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_stem()).map(|name| name.to_string_lossy().into_owned());
    let process = std::process::id().to_string();
    let parts: Vec<_> = host.into_iter().chain(program).chain([process]).collect();
    let mut name = parts.join("/");
    while name.len() > LONGEST_AUTHOR {
        name.pop();
    }
    name
}

/// Sends the call until it is answered, on dq's own thread, because the caller may be on any executor.
async fn send(root: Arc<Root>, inbox: Arc<Inbox>, set: SetTopic, within: Option<Duration>) -> Answer {
    let deadline = root.deadline(within);
    let topic = inbox.key.topic.clone();
    let place = in_time(&root, deadline, root.places.one(CALL_BYTES)).await;
    let place = place.map_err(|reason| failed(&topic, Failed::NotDone(reason)))?;
    let (mut reply, answer) = oneshot::channel();
    let (store, retries, id) = (Arc::clone(&root.store), Retries::new(&root.settings), root.environment.producer_id());
    let environment = root.environment.clone();
    root.environment.spawn(Runtime::Own, async move {
        let _place = place;
        let producer = || store.producer(&inbox.key, &id);
        tokio::select! {
            biased;
            () = reply.closed() => {}
            answer = repeat(&environment, retries, deadline, producer, set) => drop(reply.send(answer)),
        }
    });
    // Without an answer dq's own thread has ended, or dq panicked.
    let answer = answer.await.unwrap_or(Err(Failed::Unknown(Reason::Stopped)));
    answer.map_err(|how| failed(&topic, how))
}

async fn repeat(
    environment: &Environment,
    mut retries: Retries,
    deadline: Deadline,
    producer: impl Fn() -> Arc<dyn Producer>,
    set: SetTopic,
) -> Result<TopicSet, Failed> {
    let (mut doubt, mut refusals) = (None, 0);
    loop {
        let error = match ask(environment, retries.call_timeout, deadline, &*producer(), set.clone()).await {
            Ok(set) => return Ok(set),
            Err(error) => Arc::new(error),
        };
        if !error.nothing_done() {
            doubt = Some(Arc::clone(&error));
        }
        refusals = if error.passes() { 0 } else { refusals + 1 };
        let again = environment.now() + retries.pause_after_failure(environment);
        if !error.is_outage() || refusals > 1 || again >= deadline.at {
            return Err(
                doubt.map_or(Failed::NotDone(Reason::Store(error)), |doubt| Failed::Unknown(Reason::Store(doubt)))
            );
        }
        environment.sleep_until(again).await;
    }
}

async fn ask(
    environment: &Environment,
    call_timeout: Duration,
    deadline: Deadline,
    producer: &dyn Producer,
    set: SetTopic,
) -> Result<TopicSet, StoreError> {
    let operation = "set";
    let began = environment.now();
    let over = deadline.at.min(began.saturating_add(call_timeout));
    let other = |what: &str| StoreError::Other { operation, source: what.into() };
    tokio::select! {
        biased;
        answer = producer.set(1, set) => match answer? {
            BatchAnswer::Done(mut sets) => sets.pop().ok_or_else(|| other("the store answered nothing")),
            BatchAnswer::Late => Err(other("the store has forgotten the call")),
        },
        () = environment.sleep_until(over) => {
            let waited = humantime::format_duration(over.saturating_sub(began));
            let reason = format!("no answer within {waited}");
            match producer.take_back() {
                true => Err(StoreError::NotSent { operation, reason }),
                false => Err(StoreError::Unavailable { operation, reason }),
            }
        }
    }
}

fn failed(topic: &TopicName, failed: Failed) -> TopicError {
    let topic = topic.clone();
    match failed {
        Failed::NotDone(Reason::Stopped) => TopicError::Stopped { topic },
        Failed::NotDone(reason) => TopicError::NotDone { topic, reason },
        Failed::Unknown(reason) => TopicError::Unknown { topic, reason },
    }
}

macro_rules! common_methods {
    () => {
        pub(super) fn by_caller(self, name: Option<&Arc<str>>) -> Self {
            Self(self.0.with(|draft| draft.by = name.map(ToString::to_string)))
        }

        /// Says who makes the change, in at most 256 bytes: `health()`, the log and later answers show it. Defaults to the name of
        /// [`acting_as`](crate::Provider::acting_as), and without one to the host, the program and the number of its process.
        pub fn by(self, name: impl Into<String>) -> Self {
            Self(self.0.with(|draft| draft.by = Some(name.into())))
        }

        /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or
        /// a text such as `"500ms"`, at most an hour.
        pub fn within(self, time: impl IntoDelay) -> Self {
            Self(self.0.with(|draft| draft.within = Some(time.into_delay())))
        }
    };
}

impl PauseTopic {
    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>) -> Self {
        Self(Change::new(root, inbox, TopicChange::Pause { reason: String::new(), until: None }))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Change::bad(error))
    }

    /// Says why, in at most 1 KiB. Required.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self(self.0.reason(reason.into()))
    }

    /// Ends the pause at this time of the store's clock. Without it, and without [`lasting`](Self::lasting), it ends with a
    /// [`resume`](super::Provider::resume). A time that is past means no pause at all.
    pub fn until(self, time: impl Into<Timestamp>) -> Self {
        let end = Due::At(time.into());
        Self(self.0.with(|draft| {
            if let TopicChange::Pause { until, .. } = &mut draft.change {
                *until = Some(end);
            }
            draft.lasting = None;
        }))
    }

    /// Ends the pause after this long, counted by the store: a `Duration`, or a text such as `"2h"`; at most ten years.
    pub fn lasting(self, time: impl IntoDelay) -> Self {
        Self(self.0.with(|draft| draft.lasting = Some(time.into_delay())))
    }

    common_methods!();
}

impl DrainTopic {
    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>) -> Self {
        Self(Change::new(root, inbox, TopicChange::Drain { reason: String::new() }))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Change::bad(error))
    }

    /// Says why, in at most 1 KiB. Required.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self(self.0.reason(reason.into()))
    }

    common_methods!();
}

impl<T: TopicSetting> ChangeTopic<T> {
    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>, change: TopicChange) -> Self {
        Self(Change::new(root, inbox, change))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Change::bad(error))
    }

    pub(super) fn delay(self, delay: Delay) -> Self {
        Self(self.0.with(|draft| draft.delay = Some(delay)))
    }

    common_methods!();
}

macro_rules! futures {
    ($($future:ident $(<$of:ident>)? -> $setting:ident;)+) => { $(
        impl $(<$of: TopicSetting>)? Future for $future $(<$of>)? {
            type Output = Result<TopicChanged<$setting>, TopicError>;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                self.0.poll(cx)
            }
        }

        impl $(<$of: TopicSetting>)? fmt::Debug for $future $(<$of>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.debug(stringify!($future), f)
            }
        }
    )+ };
}

futures! {
    PauseTopic -> Pause;
    DrainTopic -> Drain;
    ChangeTopic<T> -> T;
}
