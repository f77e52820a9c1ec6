//! Many changes with one call.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::change::{ChangeJob, ChangeResult, Sending, send};
use super::change_error::ChangeError;
use super::deferred::Deferred;
use crate::config::NodeSettings;
use crate::job::{JobId, TopicName};

/// Changes that are sent together when this is awaited: a result for each, in order. Made by
/// [`change_many`](super::Provider::change_many).
///
/// It is no transaction: a change that is refused does not keep the others from being made. Cancel safety and panics are as with
/// [`ChangeJob`].
#[must_use = "changes do nothing until they are awaited"]
pub struct ChangeMany(Deferred<Vec<ChangeJob>, ChangeError, BoxFuture<'static, Vec<ChangeResult>>>);

impl ChangeMany {
    pub(super) fn new(changes: impl IntoIterator<Item = ChangeJob>) -> Self {
        let limit = NodeSettings::MOST_BATCH;
        let changes: Vec<_> = changes.into_iter().take(limit + 1).collect();
        let is_large = changes.len() > limit;
        Self(Deferred::new(if is_large { Err(ChangeError::BatchTooLarge { limit }) } else { Ok(changes) }))
    }
}

/// Changes of different jobs, which can be sent together, and the results of those before them.
#[derive(Default)]
struct InOrder {
    changes: Vec<Result<Sending, ChangeError>>,
    jobs: HashSet<(TopicName, JobId)>,
    results: Vec<ChangeResult>,
}

impl InOrder {
    /// Sends these changes, in order. One of a job that was changed before waits for the answer to the earlier one.
    async fn send(changes: Vec<ChangeJob>) -> Vec<ChangeResult> {
        let mut all = Self { results: Vec::with_capacity(changes.len()), ..Self::default() };
        for change in changes {
            match change.0 {
                Deferred::Draft(draft) => {
                    let draft = draft.expect("a future is not polled again after it failed");
                    all.push(draft.and_then(|draft| draft.start())).await;
                }
                Deferred::Started(change) => {
                    all.finish().await;
                    all.results.push(change.await);
                }
            }
        }
        all.finish().await;
        all.results
    }

    async fn push(&mut self, change: Result<Sending, ChangeError>) {
        if let Ok(sending) = &change {
            let (topic, id) = sending.job();
            let job = (topic.clone(), id.clone());
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

impl Future for ChangeMany {
    /// A result for each change, in order; or an error of all of them, and then nothing was sent.
    type Output = Result<Vec<ChangeResult>, ChangeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let all = self.0.started(|changes| Ok(Box::pin(InOrder::send(changes)) as BoxFuture<'static, _>))?;
        all.as_mut().poll(cx).map(Ok)
    }
}

/// Shows no payload.
impl fmt::Debug for ChangeMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeMany").finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_a_future_for_any_executor<T: Future + Send + Unpin + 'static>() {}
    is_a_future_for_any_executor::<ChangeMany>();
};
