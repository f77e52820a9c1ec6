//! Changes of jobs that are there: reschedule, extend, run now, update and set options; one, or many with one call.

use std::collections::HashSet;
use std::fmt;
use std::iter::zip;
use std::time::Duration;

use super::add::checked_payload;
use super::call::{Call, Draft, Started, Verb};
use super::error::{CallError, Invalid, Refusal, Target};
use super::inputs::{When, bounded, read, read_within};
use super::options::{Options, canonical};
use super::request::{Answer, Deadline, Outcome, Request};
use super::root::Caller;
use super::sending::Calls;
use crate::config::NodeSettings;
use crate::job::{Codec, InvalidName, JobId, Metadata, Record, State, TopicName};
use crate::schedule::check_reserved;
use crate::store::{ChangeKind, ChangeOutcome, ChangeVerdict, Due, JobChange, OptionChange};
use crate::time::{Delay, IntoDelay, Timestamp};

type ChangeResult = Result<Changed, CallError>;

/// Changes one job. Made by [`reschedule`](super::Provider::reschedule), [`extend_by`](super::Provider::extend_by),
/// [`run_now`](super::Provider::run_now), [`update`](super::Provider::update) and [`set_options`](super::Provider::set_options).
///
/// Resolves to what the job is now; if the store refuses, the [`Refusal`] says why.
#[derive(Debug)]
pub struct Change {
    caller: Caller,
    change: JobChange,
}

/// Sends changes together. Made by [`change_many`](super::Provider::change_many).
///
/// Resolves to a result for each change, in order; or to an error of all of them, and then nothing was sent. It is no transaction: a
/// change that is refused does not keep the others from being made. [`within`](Call::within) is for the changes that set no time of
/// their own.
pub struct ChangeMany(Vec<Call<Change>>);

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

/// Options for a job that is there: [`set_options`](super::Provider::set_options). An option that is not set stays as it is.
#[derive(Debug, Clone, Default)]
#[must_use = "options change nothing until `set_options` gets them"]
pub struct JobOptions {
    retry: Option<String>,
    headers: Option<Vec<(String, String)>>,
    retain: Option<Delay>,
}

impl JobOptions {
    /// No option is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The retry policy, such as `"none"` or `"1m, 5m, 10m"`. It applies from the next failure on; failed attempts still count.
    pub fn retry(self, policy: impl Into<String>) -> Self {
        Self { retry: Some(policy.into()), ..self }
    }

    /// All headers: those that the job has go.
    pub fn headers<N: Into<String>, V: Into<String>>(self, headers: impl IntoIterator<Item = (N, V)>) -> Self {
        let headers = headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { headers: Some(headers), ..self }
    }

    /// How long the job is kept as DONE after its ack; zero: not at all.
    pub fn retain(self, delay: impl IntoDelay) -> Self {
        Self { retain: Some(delay.into_delay()), ..self }
    }

    pub(super) fn check(self) -> Result<OptionChange, Invalid> {
        let retry = self.retry.as_deref().map(canonical).transpose()?;
        let retain = self.retain.map(|delay| read("retain", delay)).transpose()?;
        let headers = self.headers.map(|headers| {
            let mut unique = Options::default();
            headers.into_iter().for_each(|(name, value)| unique.header(name, value));
            unique.headers
        });
        let change = OptionChange { retry, headers, retain };
        Metadata { headers: change.headers.clone().unwrap_or_default(), ..Metadata::default() }.check_new()?;
        Ok(change)
    }
}

impl Call<Change> {
    pub(super) fn change(
        caller: Caller,
        id: Result<JobId, InvalidName>,
        what: impl FnOnce(&Caller) -> Result<ChangeKind, Invalid>,
    ) -> Self {
        let checked = || {
            let id = id?;
            check_reserved(&id)?;
            let (what, by) = (what(&caller)?, caller.by.clone());
            Ok(Change { caller, change: JobChange { by, ..JobChange::new(id, what) } })
        };
        Self::of(checked())
    }

    /// Changes the job only while it has this version, which [`get`](super::Provider::get) shows in its details and every change
    /// returns. Otherwise nothing is changed, and [`Refusal::OtherVersion`] has the version that is there.
    pub fn if_version(self, version: u32) -> Self {
        self.with(|verb| verb.change.if_version = Some(version))
    }
}

impl Call<ChangeMany> {
    pub(super) fn change_many(changes: impl IntoIterator<Item = Call<Change>>) -> Self {
        let (limit, what) = (NodeSettings::MAX_BATCH, "changes");
        let changes: Vec<_> = changes.into_iter().take(limit + 1).collect();
        match changes.len() {
            size if size > limit => Self::bad(Invalid::BatchTooLarge { what, size, limit }),
            _ => Self::new(ChangeMany(changes)),
        }
    }
}

/// Another due time.
pub(super) fn reschedule(caller: &Caller, when: When) -> Result<ChangeKind, Invalid> {
    Ok(ChangeKind::Reschedule(match when {
        When::After(delay) => Due::After(read("when", delay)?),
        When::At(at) => {
            bounded("when", at.since(caller.environment().wall()))?;
            Due::At(at)
        }
    }))
}

/// Another payload.
pub(super) fn update(caller: &Caller, payload: Result<Vec<u8>, serde_json::Error>) -> Result<ChangeKind, Invalid> {
    let payload = checked_payload(caller, payload)?;
    Ok(ChangeKind::Update(Record::new(&Metadata::default(), Codec::Json, &payload)))
}

/// A change on its way to the store.
struct Sending {
    caller: Caller,
    change: JobChange,
    deadline: Deadline,
}

impl Sending {
    fn new(Change { caller, change }: Change, within: Option<Duration>) -> Self {
        let deadline = caller.root.deadline(within);
        Self { caller, change, deadline }
    }

    /// Whether both can be posted together.
    fn goes_with(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.caller.inbox, &other.caller.inbox) && self.deadline == other.deadline
    }
}

/// Sends changes of different jobs, in order, and those again in another batch for which the store had too much to rewrite in one.
async fn send(changes: Vec<Sending>) -> Vec<ChangeResult> {
    let mut results: Vec<Option<ChangeResult>> = changes.iter().map(|_| None).collect();
    loop {
        let mut calls = Calls::default();
        let left: Vec<_> =
            zip(&changes, &results).filter(|(_, result)| result.is_none()).map(|(change, _)| change).collect();
        if left.is_empty() {
            return results.into_iter().flatten().collect();
        }
        for together in left.chunk_by(|a, b| a.goes_with(b)) {
            let requests = together.iter().map(|sending| Request::of_change(sending.change.clone())).collect();
            calls.post(&together[0].caller, requests, together[0].deadline).await;
        }
        let mut answers = calls.answers().await.into_iter();
        for result in results.iter_mut().filter(|result| result.is_none()) {
            let (target, answer) = answers.next().expect("there is an answer to each request");
            *result = changed(target, answer);
        }
    }
}

/// Changes of different jobs, which can be sent together, and the results of those before them.
#[derive(Default)]
struct InOrder {
    changes: Vec<Result<Sending, CallError>>,
    jobs: HashSet<(TopicName, JobId)>,
    results: Vec<ChangeResult>,
}

impl InOrder {
    /// Sends these changes, in order. One of a job that was changed before waits for the answer to the earlier one.
    async fn send(changes: Vec<Call<Change>>, usual: Option<Duration>) -> Vec<ChangeResult> {
        let mut all = Self { results: Vec::with_capacity(changes.len()), ..Self::default() };
        for change in changes {
            match change.into_draft() {
                Ok(draft) => {
                    let sending =
                        draft.and_then(|Draft { verb, within }| Ok(Sending::new(verb, read_within(within)?.or(usual))));
                    all.push(sending).await;
                }
                Err(started) => {
                    all.finish().await;
                    all.results.push(started.await);
                }
            }
        }
        all.finish().await;
        all.results
    }

    async fn push(&mut self, change: Result<Sending, CallError>) {
        if let Ok(sending) = &change {
            let job = (sending.caller.topic().clone(), sending.change.id.clone());
            if self.jobs.contains(&job) {
                self.finish().await;
            }
            self.jobs.insert(job);
        }
        self.changes.push(change);
    }

    /// Sends what was not sent.
    async fn finish(&mut self) {
        self.jobs.clear();
        let (mut sendings, mut checked) = (Vec::new(), Vec::with_capacity(self.changes.len()));
        checked.extend(self.changes.drain(..).map(|change| change.map(|sending| sendings.push(sending))));
        let mut sent = send(sendings).await.into_iter();
        let mut result = |()| sent.next().expect("there is a result of each change");
        self.results.extend(checked.into_iter().map(|change| change.and_then(&mut result)));
    }
}

/// The result for the caller of a change; `None` if the change has to go out in another batch.
pub(super) fn changed(target: Target, answer: Answer) -> Option<ChangeResult> {
    let ChangeOutcome { found, verdict, version, due } = match answer {
        Ok(Outcome::Change(outcome)) => outcome,
        Ok(_) => unreachable!("the outcome of a change is of its kind"),
        Err(failed) => return Some(Err(CallError::failed(target, failed))),
    };
    let refusal = match (verdict, found) {
        (ChangeVerdict::Later, _) => return None,
        (ChangeVerdict::Changed, Some(state)) => {
            let (topic, id) = (target.topic, target.id.expect("a change is about a job"));
            tracing::debug!(%topic, job.id = %id, %state, version, due = due.map(tracing::field::display), "the store changed a job");
            return Some(Ok(Changed { id, state, version, due }));
        }
        (ChangeVerdict::OtherVersion, _) => Refusal::OtherVersion(version),
        (ChangeVerdict::LastVersion, _) => Refusal::LastVersion,
        (_, Some(state)) => Refusal::State(state),
        (_, None) => Refusal::NoSuchJob,
    };
    Some(Err(CallError::Refused { target, refusal }))
}

impl Verb for Change {
    type Output = Changed;

    fn start(self, within: Option<Duration>) -> Result<Started<Changed>, CallError> {
        let sent = send(vec![Sending::new(self, within)]);
        Ok(Started::work(async { sent.await.pop().expect("there is a result of each change") }))
    }
}

impl Verb for ChangeMany {
    type Output = Vec<ChangeResult>;

    fn start(self, within: Option<Duration>) -> Result<Started<Self::Output>, CallError> {
        Ok(Started::work(async move { Ok(InOrder::send(self.0, within).await) }))
    }
}

/// Shows no payload.
impl fmt::Debug for ChangeMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeMany").field("changes", &self.0.len()).finish()
    }
}
