//! Waits for the result of a job, as a call of a provider: [`results`](super::results) does it.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::call::{Call, Started, Verb};
use super::error::{CallError, Doing, Failed, Target};
use super::no_result::NoResult;
use super::root::Caller;
use crate::job::{BadName, JobId};

/// Waits for the result of a job. Made by [`Provider::result`](super::Provider::result).
pub struct ResultOf<R> {
    caller: Caller,
    id: JobId,
    result: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned + Send + 'static> Call<ResultOf<R>> {
    pub(super) fn result(caller: Caller, id: Result<JobId, BadName>) -> Self {
        id.map_or_else(Self::bad, |id| Self::new(ResultOf { caller, id, result: PhantomData }))
    }
}

impl<R: DeserializeOwned + Send + 'static> Verb for ResultOf<R> {
    type Output = R;

    fn start(self, within: Option<Duration>) -> Result<Started<R>, CallError> {
        let Self { caller, id, .. } = self;
        let target = Target { id: Some(id.clone()), ..caller.target(Doing::Query) };
        Ok(Started::work(async move {
            let (now, deadline) = (caller.environment().now(), caller.root.deadline(within));
            let why = match caller.inbox.results.wait(|| caller.source(), id, now, deadline.at).await {
                Ok(Ok(result)) => match result.decode() {
                    Ok(result) => return Ok(result),
                    Err(error) => NoResult::Decode(error),
                },
                Ok(Err(why)) => why,
                Err(reason) => return Err(CallError::failed(target, Failed::NotDone(reason))),
            };
            Err(CallError::NoResult { target, why: Box::new(why) })
        }))
    }
}

/// Shows the job.
impl<R> fmt::Debug for ResultOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultOf").field("topic", &self.caller).field("id", &self.id).finish()
    }
}
