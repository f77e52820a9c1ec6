//! Many adds as one.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::add::new_job;
use super::added::{Added, told};
use super::call::call_many;
use super::error::AddError;
use super::inbox::{Adds, Inbox};
use super::options::{Options, option_methods};
use super::root::Root;
use crate::config::NodeSettings;
use crate::job::{BadName, JobDefaults, JobId};
use crate::store::NewJob;

/// How far the jobs of a batch that is too large are counted.
const MOST_COUNTED: usize = 1_000_000;

type ManyAdded = Vec<Result<Added, AddError>>;

/// Jobs that are added when this is awaited, all with the same options: a result for each, in order. Made by
/// [`Provider::add_many`](super::Provider::add_many).
///
/// A job that is bad in itself gets its own error and the others are added. It is no transaction: a batch that is larger than
/// 1 MiB goes as several requests. Cancel safety is as with [`Add`](super::Add).
#[must_use = "adding does nothing until it is awaited"]
pub struct AddMany(Step);

enum Step {
    Draft(Box<Draft>),
    Running(BoxFuture<'static, Result<ManyAdded, AddError>>),
}

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    drafts: Result<Vec<DraftJob>, AddError>,
    defaults: JobDefaults,
    options: Options,
}

/// A payload and its id, if it has one.
pub(super) type DraftJob = (Result<Vec<u8>, serde_json::Error>, Option<Result<JobId, BadName>>);

impl AddMany {
    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        jobs: impl IntoIterator<Item = DraftJob>,
        defaults: JobDefaults,
    ) -> Self {
        let limit = NodeSettings::MOST_BATCH;
        let mut jobs = jobs.into_iter();
        let drafts: Vec<_> = jobs.by_ref().take(limit).collect();
        let drafts = match jobs.take(MOST_COUNTED).count() {
            0 => Ok(drafts),
            more => Err(AddError::BatchTooLarge { size: limit + more, limit }),
        };
        Self(Step::Draft(Box::new(Draft { root, inbox, drafts, defaults, options: Options::default() })))
    }

    pub(super) fn bad(error: AddError) -> Self {
        Self(Step::Running(Box::pin(std::future::ready(Err(error)))))
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        if let Step::Draft(draft) = &mut self.0 {
            change(&mut draft.options);
        }
        self
    }

    option_methods!();
}

impl Draft {
    async fn run(self) -> Result<ManyAdded, AddError> {
        let Self { root, inbox, drafts, defaults, options } = self;
        let terms = options.check(&defaults, inbox.default_delay(), &root.environment)?;
        let topic = inbox.key.topic.clone();
        let mut known = BTreeSet::new();
        let mut sent = Vec::new();
        let results: Vec<Result<JobId, AddError>> = drafts?
            .into_iter()
            .map(|(payload, id)| {
                let payload = payload.map_err(|source| AddError::BadPayload { topic: topic.clone(), source })?;
                let job: NewJob = new_job(&root, &inbox, id, &payload, &terms)?;
                let id = job.id.clone();
                if !job.generated && !known.insert(id.clone()) {
                    return Err(AddError::RepeatedInBatch { id });
                }
                sent.push(job);
                Ok(id)
            })
            .collect();
        let mut outcomes = call_many::<Adds>(root, inbox, sent).await.into_iter();
        let told = results.into_iter().map(|result| {
            let outcome = |id| told(&topic, id, terms.on_duplicate, outcomes.next().expect("an outcome for each job"));
            result.and_then(outcome)
        });
        Ok(told.collect())
    }
}

impl Future for AddMany {
    /// A result for each job; or the error of all, then nothing was sent.
    type Output = Result<ManyAdded, AddError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.0 {
                Step::Running(running) => return running.as_mut().poll(cx),
                Step::Draft(_) => {
                    let nothing = Step::Running(Box::pin(std::future::pending()));
                    if let Step::Draft(draft) = std::mem::replace(&mut self.0, nothing) {
                        self.0 = Step::Running(Box::pin(draft.run()));
                    }
                }
            }
        }
    }
}

/// Never the payloads.
impl fmt::Debug for AddMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddMany").finish_non_exhaustive()
    }
}
