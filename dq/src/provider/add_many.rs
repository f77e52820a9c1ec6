//! Many adds with one call.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;

use super::add::new_job;
use super::added::{AddAnswer, Added, AddedOrKept, added};
use super::added_many::AddedMany;
use super::call::Calls;
use super::deferred::Deferred;
use super::error::AddError;
use super::inbox::Inbox;
use super::options::{Options, option_methods};
use super::request::Request;
use super::root::Root;
use super::when::When;
use crate::config::NodeSettings;
use crate::job::{BadName, JobDefaults, JobId, TopicName};
use crate::store::OnDuplicate;

/// How many jobs beyond the limit are counted for the error.
const MOST_COUNTED: usize = 1_000_000;

/// How many jobs of a large call go to the store first, if it has nothing to do: it works on them while the others are made.
const FIRST_PART: usize = 250;

/// The topic, and a result for each job.
type Results = (TopicName, Vec<Result<Added, AddError>>);

/// Jobs that are added when this is awaited, all with the same options. Resolves to an [`AddedMany`]: a result for each, in order. Made by
/// [`Provider::add_many`](super::Provider::add_many), or by [`Provider::add_many_after`](super::Provider::add_many_after) and
/// [`Provider::add_many_at`](super::Provider::add_many_at) with a due time for each.
///
/// A job with an error of its own does not keep the others from being added. The call is no transaction: jobs of more than
/// 1 MiB together, or 500 and more jobs, go to the store as several requests. Cancel safety and panics are as with [`Add`](super::Add).
#[must_use = "adding does nothing until it is awaited"]
pub struct AddMany<A = Added>(
    Deferred<Box<Draft>, AddError, BoxFuture<'static, Result<Results, AddError>>>,
    PhantomData<fn() -> A>,
);

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    jobs: Vec<DraftJob>,
    defaults: JobDefaults,
    options: Options,
}

/// A job of the call.
pub(super) struct DraftJob {
    pub(super) payload: Result<Vec<u8>, serde_json::Error>,
    /// If it has one.
    pub(super) id: Option<Result<JobId, BadName>>,
    /// When it is due, if it is not as the options of the call say.
    pub(super) when: Option<When>,
}

impl AddMany {
    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        jobs: impl IntoIterator<Item = DraftJob>,
        defaults: JobDefaults,
    ) -> Self {
        let limit = NodeSettings::MOST_BATCH;
        let mut jobs = jobs.into_iter();
        let drafts = jobs.by_ref().take(limit).collect();
        let draft = match jobs.take(MOST_COUNTED).count() {
            0 => Ok(Box::new(Draft { root, inbox, jobs: drafts, defaults, options: Options::default() })),
            more => Err(AddError::BatchTooLarge { size: limit + more, limit }),
        };
        Self(Deferred::new(draft), PhantomData)
    }

    pub(super) const fn bad(error: AddError) -> Self {
        Self(Deferred::new(Err(error)), PhantomData)
    }
}

impl<A> AddMany<A> {
    pub(super) fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        if let Some(draft) = self.0.draft() {
            change(&mut draft.options);
        }
        self
    }

    option_methods!();

    /// Where a job with the id of one of these exists, keeps it and succeeds. This makes the call safe to repeat.
    ///
    /// The results are then [`AddedOrKept`]s, because a job that is kept may be DEAD: it never runs.
    /// [`unless_dead`](AddedMany::unless_dead) makes an error of each such job.
    pub fn keep_existing(self) -> AddMany<AddedOrKept> {
        let Self(deferred, _) = self.with(|options| options.on_duplicate = OnDuplicate::Keep);
        AddMany(deferred, PhantomData)
    }

    /// Where a job with the id of one of these exists, replaces it with the new one; a running job is replaced when its run ends.
    pub fn replace_existing(self) -> AddMany {
        let Self(deferred, _) = self.with(|options| options.on_duplicate = OnDuplicate::Replace);
        AddMany(deferred, PhantomData)
    }
}

impl Draft {
    async fn send(self) -> Result<Results, AddError> {
        let Self { root, inbox, jobs, defaults, mut options } = self;
        options.carry_trace();
        let options = options.check(&defaults, &root.environment)?;
        let topic = inbox.key.topic.clone();
        let (mut known, mut calls) = (BTreeSet::new(), Calls::default());
        let mut ids: Vec<Result<JobId, AddError>> = Vec::with_capacity(jobs.len());
        let mut part = if jobs.len() >= 2 * FIRST_PART && inbox.sends_at_once() { FIRST_PART } else { jobs.len() };
        let deadline = root.deadline(options.within);
        let mut jobs = jobs.into_iter();
        while jobs.len() > 0 {
            let mut requests = Vec::with_capacity(part);
            ids.extend(jobs.by_ref().take(part).map(|DraftJob { payload, id, when }| {
                let payload = payload.map_err(|source| AddError::BadPayload { topic: topic.clone(), source })?;
                let job = match when.map(|when| options.due(when, &root.environment)).transpose()? {
                    Some(options) => new_job(&root, &inbox, id, &payload, &options),
                    None => new_job(&root, &inbox, id, &payload, &options),
                }?;
                let id = job.id.clone();
                if !job.generated && !known.insert(id.clone()) {
                    return Err(AddError::RepeatedInBatch { id });
                }
                requests.push(Request::Add(job));
                Ok(id)
            }));
            calls.post(&root, &inbox, requests, deadline).await;
            part = jobs.len();
            if part > 0 {
                tokio::task::yield_now().await; // so that the first part leaves while this task makes the rest
            }
        }
        let mut answers = calls.answers().await.into_iter();
        let mut result = |id| {
            let answer = answers.next().expect("there is an answer to each request");
            added(&topic, id, options.on_duplicate, answer)
        };
        let results = ids.into_iter().map(|id| id.and_then(&mut result)).collect();
        Ok((topic, results))
    }
}

impl<A: AddAnswer> Future for AddMany<A> {
    /// A result for each job, in order; or an error of all of them, and then nothing was sent.
    type Output = Result<AddedMany<A>, AddError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let sending = self.0.started(|draft| Ok(Box::pin(draft.send())))?;
        let (topic, results) = ready!(sending.as_mut().poll(cx))?;
        let answers = results.into_iter().map(|result| result.map(|added| A::of(&topic, added)));
        Poll::Ready(Ok(AddedMany::new(answers.collect())))
    }
}

/// Shows no payload.
impl<A> fmt::Debug for AddMany<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddMany").finish_non_exhaustive()
    }
}
