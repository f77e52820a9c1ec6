//! Changes of jobs that are there: reschedule, extend, run now and update.

use std::fmt;
use std::future::Future;
use std::iter::zip;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::call::Calls;
use super::change_error::{ChangeError, ChangeRefusal};
use super::deferred::Deferred;
use super::error::Reason;
use super::inbox::Inbox;
use super::limit;
use super::request::{Answer, Deadline, Failed, Outcome, Request};
use super::root::Root;
use super::when::When;
use crate::job::{BadName, Codec, JobId, Metadata, Record, State, TopicName};
use crate::schedule::check_reserved;
use crate::store::{ChangeKind, ChangeOutcome, ChangeVerdict, Due, JobChange};
use crate::time::{Delay, IntoDelay, LONGEST_DELAY, Timestamp};

pub(super) type ChangeResult = Result<Changed, ChangeError>;

/// A change of one job, sent when this is awaited. Made by [`reschedule`](super::Provider::reschedule),
/// [`extend_by`](super::Provider::extend_by), [`run_now`](super::Provider::run_now) and [`update`](super::Provider::update). Its
/// cancel safety and panics are those of [`Add`](super::Add).
///
/// Resolves to what the job is now, or to a [`ChangeError`]; then nothing was changed, unless the error is
/// [`ChangeError::Unknown`]. Concurrent changes share a request to the store.
#[must_use = "a change does nothing until it is awaited"]
pub struct ChangeJob(pub(super) Deferred<Box<Draft>, ChangeError, BoxFuture<'static, ChangeResult>>);

pub(super) struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    change: JobChange,
    within: Option<Delay>,
}

/// What a job is after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// Its id.
    pub id: JobId,
    /// Its state. A broadcast that waits is DELAYED.
    pub state: State,
    /// Its version: how often it was changed since it was added.
    pub version: u32,
    /// When it is due; `None` if it waits for no time, because it is UNACKED or DEAD.
    pub due: Option<Timestamp>,
}

/// What a caller wants to change, before it is checked.
pub(super) enum Wanted {
    Reschedule(When),
    ExtendBy(Delay),
    RunNow,
    Update(Result<Vec<u8>, serde_json::Error>),
}

impl ChangeJob {
    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        id: Result<JobId, BadName>,
        wanted: Wanted,
        by: Option<Arc<str>>,
    ) -> Self {
        let draft = || {
            let id = id?;
            check_reserved(&id)?;
            let what = checked(&root, &inbox, wanted)?;
            Ok(Box::new(Draft { root, inbox, change: JobChange { id, what, if_version: None, by }, within: None }))
        };
        Self(Deferred::new(draft()))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Deferred::new(Err(error.into())))
    }

    /// Changes the job only while it has this version, which [`get`](super::Provider::get) shows in its details and every change
    /// returns. Otherwise nothing is changed, and the error [`ChangeRefusal::OtherVersion`] has the version that is there.
    pub fn if_version(mut self, version: u32) -> Self {
        if let Some(draft) = self.0.draft() {
            draft.change.if_version = Some(version);
        }
        self
    }

    /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or a
    /// text such as `"500ms"`, at most an hour.
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        if let Some(draft) = self.0.draft() {
            draft.within = Some(time.into_delay());
        }
        self
    }
}

fn checked(root: &Root, inbox: &Inbox, wanted: Wanted) -> Result<ChangeKind, ChangeError> {
    Ok(match wanted {
        Wanted::Reschedule(When::After(delay)) => ChangeKind::Reschedule(Due::After(read("when", delay)?)),
        Wanted::Reschedule(When::At(at)) => {
            bounded("when", at.since(root.environment.wall()))?;
            ChangeKind::Reschedule(Due::At(at))
        }
        Wanted::ExtendBy(delay) => ChangeKind::ExtendBy(read("extend_by", delay)?),
        Wanted::RunNow => ChangeKind::RunNow,
        Wanted::Update(payload) => {
            let topic = || inbox.key.topic.clone();
            let payload = payload.map_err(|source| ChangeError::BadPayload { topic: topic(), source })?;
            let (size, limit) = (payload.len(), root.settings.payload_limit);
            if size > limit {
                return Err(ChangeError::PayloadTooLarge { topic: topic(), size, limit });
            }
            ChangeKind::Update(Record::new(&Metadata::default(), Codec::Json, &payload))
        }
    })
}

fn read(field: &'static str, delay: Delay) -> Result<std::time::Duration, ChangeError> {
    bounded(field, delay.duration().map_err(|source| ChangeError::BadDelay { field, source })?)
}

fn bounded(field: &'static str, delay: std::time::Duration) -> Result<std::time::Duration, ChangeError> {
    if delay > LONGEST_DELAY {
        return Err(ChangeError::DelayTooLong { field, delay, limit: LONGEST_DELAY });
    }
    Ok(delay)
}

impl Draft {
    /// Ready to be sent.
    pub(super) fn start(mut self) -> Result<Sending, ChangeError> {
        let within = limit::read(self.within.take()).map_err(ChangeError::BadWithin)?;
        let Self { root, inbox, change, .. } = self;
        let deadline = root.deadline(within);
        Ok(Sending { root, inbox, change, deadline })
    }
}

/// A change on its way to the store.
pub(super) struct Sending {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    change: JobChange,
    deadline: Deadline,
}

impl Sending {
    pub(super) fn job(&self) -> (&TopicName, &JobId) {
        (&self.inbox.key.topic, &self.change.id)
    }

    fn request(&self) -> Request {
        match self.change.what {
            ChangeKind::Update(_) => Request::Update(self.change.clone()),
            _ => Request::Change(self.change.clone()),
        }
    }

    /// Whether both can be posted together.
    fn goes_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inbox, &other.inbox) && self.deadline == other.deadline
    }
}

/// Sends changes of different jobs, in order, and those again in another batch for which the store had too much to rewrite in one.
pub(super) async fn send(changes: Vec<Sending>) -> Vec<ChangeResult> {
    let mut results: Vec<Option<ChangeResult>> = changes.iter().map(|_| None).collect();
    loop {
        let mut calls = Calls::default();
        let left: Vec<_> =
            zip(&changes, &results).filter(|(_, result)| result.is_none()).map(|(change, _)| change).collect();
        if left.is_empty() {
            return results.into_iter().flatten().collect();
        }
        for together in left.chunk_by(|a, b| a.goes_with(b)) {
            let requests = together.iter().map(|change| change.request()).collect();
            calls.post(&together[0].root, &together[0].inbox, requests, together[0].deadline).await;
        }
        let mut answers = calls.answers().await.into_iter();
        for (change, result) in zip(&changes, &mut results).filter(|(_, result)| result.is_none()) {
            let (topic, id) = change.job();
            let answer = answers.next().expect("there is an answer to each request");
            *result = changed(topic, id, answer);
        }
    }
}

/// The result for the caller of a change; `None` if the change has to go out in another batch.
pub(super) fn changed(topic: &TopicName, id: &JobId, answer: Answer) -> Option<ChangeResult> {
    let (topic, id) = (topic.clone(), id.clone());
    let ChangeOutcome { found, verdict, version, due } = match answer {
        Ok(Outcome::Change(outcome)) => outcome,
        Ok(Outcome::Add(_) | Outcome::Command(_)) => unreachable!("the outcome of a change is of its kind"),
        Err(Failed::NotDone(Reason::Stopped)) => return Some(Err(ChangeError::Stopped { topic, id })),
        Err(Failed::NotDone(reason)) => return Some(Err(ChangeError::NotDone { topic, id, reason })),
        Err(Failed::Unknown(reason)) => return Some(Err(ChangeError::Unknown { topic, id, reason })),
    };
    let refusal = match (verdict, found) {
        (ChangeVerdict::Later, _) => return None,
        (ChangeVerdict::Changed, Some(state)) => {
            tracing::debug!(%topic, job.id = %id, %state, version, due = due.map(tracing::field::display), "the store changed a job");
            return Some(Ok(Changed { id, state, version, due }));
        }
        (ChangeVerdict::OtherVersion, _) => ChangeRefusal::OtherVersion(version),
        (ChangeVerdict::LastVersion, _) => ChangeRefusal::LastVersion,
        (_, Some(state)) => ChangeRefusal::State(state),
        (_, None) => ChangeRefusal::NoSuchJob,
    };
    Some(Err(ChangeError::Refused { topic, id, refusal }))
}

impl Future for ChangeJob {
    type Output = ChangeResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ChangeResult> {
        let start = |draft: Box<Draft>| {
            let sent = send(vec![draft.start()?]);
            let only = sent.map(|mut results| results.pop().expect("there is a result of each change"));
            Ok(only.boxed())
        };
        self.0.started(start)?.as_mut().poll(cx)
    }
}

/// Shows the topic and the id, never a payload.
impl fmt::Debug for ChangeJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ChangeJob");
        match &self.0 {
            Deferred::Draft(Some(Ok(draft))) => {
                f.field("topic", &draft.inbox.key.topic).field("id", &draft.change.id);
            }
            Deferred::Draft(error) => {
                f.field("error", &error.as_ref().and_then(|draft| draft.as_ref().err()));
            }
            Deferred::Started(_) => {}
        }
        f.finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_a_future_for_any_executor<T: Future + Send + Unpin + 'static>() {}
    is_a_future_for_any_executor::<ChangeJob>();
};
