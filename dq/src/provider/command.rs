//! Commands: delete, cancel, ack and requeue.

use std::marker::PhantomData;
use std::time::Duration;

use super::call::{Call, Started, Verb};
use super::error::{CallError, Refusal, Target};
use super::request::{Answer, Outcome, Request};
use super::root::Caller;
use super::sending::call_many;
use crate::job::{Fence, InvalidName, JobId, State};
use crate::store::{Command, CommandKind, CommandOutcome};

/// Deletes, cancels, acks or requeues a job. Made by [`Provider::delete`](super::Provider::delete),
/// [`cancel`](super::Provider::cancel), [`ack`](super::Provider::ack) and [`requeue`](super::Provider::requeue).
///
/// Resolves to what the store found and did: a [`CommandOutcome`], or an [`AckedOrRequeued`].
#[derive(Debug)]
pub struct JobCommand<A = CommandOutcome> {
    caller: Caller,
    command: Command,
    answer: PhantomData<fn() -> A>,
}

/// What an ack or requeue found and did. An id that the store does not know is no error, and neither is a job in a state to
/// which the command does nothing. So look at [`changed`](Self::changed), or call [`or_error_if_unchanged`](Self::or_error_if_unchanged).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an unknown id is no error: write `.or_error_if_unchanged()?`, or look at `changed`"]
#[non_exhaustive]
pub struct AckedOrRequeued {
    /// The state of the job; `None` if there is no such job.
    pub found: Option<State>,
    /// Whether anything changed: the job moved or ended, or the command is pending until its run ends. A fenced ack of a running
    /// job is pending whatever its fence is, and does nothing when that run has another fence.
    pub changed: bool,
    outcome: CommandOutcome,
    target: Target,
}

impl AckedOrRequeued {
    /// Makes an error of a command that changed nothing, because the store has no such job, or has it in another state or run.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`] or [`Refusal::State`].
    pub fn or_error_if_unchanged(self) -> Result<CommandOutcome, CallError> {
        let Self { found, changed, outcome, target } = self;
        let refusal = found.map_or(Refusal::NoSuchJob, Refusal::State);
        if changed { Ok(outcome) } else { Err(CallError::Refused { target, refusal }) }
    }
}

impl From<AckedOrRequeued> for CommandOutcome {
    fn from(answer: AckedOrRequeued) -> Self {
        answer.outcome
    }
}

/// What a command resolves to.
pub trait CommandAnswer: 'static {
    #[doc(hidden)]
    fn of(target: Target, outcome: CommandOutcome) -> Self;
}

impl CommandAnswer for CommandOutcome {
    fn of(_: Target, outcome: CommandOutcome) -> Self {
        outcome
    }
}

impl CommandAnswer for AckedOrRequeued {
    fn of(target: Target, outcome: CommandOutcome) -> Self {
        let (found, changed) = (outcome.found, outcome.changed);
        Self { found, changed, outcome, target }
    }
}

impl<A: CommandAnswer> Call<JobCommand<A>> {
    pub(super) fn command(caller: Caller, verb: CommandKind, id: Result<JobId, InvalidName>) -> Self {
        Self::of(id.map_err(CallError::from).map(|id| {
            let by = caller.by.clone();
            JobCommand { caller, command: Command { by, ..Command::new(verb, id) }, answer: PhantomData }
        }))
    }

    /// Limits the command to a job with this version, which [`get`](super::Provider::get) shows in its details and every change returns.
    /// Otherwise nothing is done, and [`Refusal::OtherVersion`] has the version that is there. A job that replaced another one begins at 0.
    pub fn if_version(self, version: u32) -> Self {
        self.with(|verb| verb.command.if_version = Some(version))
    }
}

impl Call<JobCommand<AckedOrRequeued>> {
    /// Limits the command to the run with this fence, which the run's handler reads from `job.fence()`: it does nothing to
    /// a later run. An ack with a fence does nothing to a job that waits.
    pub fn fence(self, fence: Fence) -> Self {
        self.with(|verb| verb.command.fence = Some(fence))
    }
}

impl<A: CommandAnswer> Verb for JobCommand<A> {
    type Output = A;

    fn start(self, within: Option<Duration>) -> Result<Started<A>, CallError> {
        Ok(Started::request(self.caller, Request::Command(self.command), within, commanded::<A>))
    }
}

/// Sends the same command for many jobs, whose ids differ, and returns a result for each.
pub(super) async fn command_many(
    caller: &Caller,
    verb: CommandKind,
    ids: Vec<JobId>,
    within: Option<Duration>,
) -> Vec<Result<CommandOutcome, CallError>> {
    let command = |id| Request::Command(Command { by: caller.by.clone(), ..Command::new(verb, id) });
    let answers = call_many(caller, ids.into_iter().map(command).collect(), within).await;
    answers.into_iter().map(|(target, answer)| commanded(target, answer)).collect()
}

/// The result for the caller of a command.
fn commanded<A: CommandAnswer>(target: Target, answer: Answer) -> Result<A, CallError> {
    let outcome = match answer {
        Ok(Outcome::Command(outcome)) => outcome,
        Ok(_) => unreachable!("the outcome of a command is of its kind"),
        Err(failed) => return Err(CallError::failed(target, failed)),
    };
    if let Some(version) = outcome.other_version {
        return Err(CallError::Refused { target, refusal: Refusal::OtherVersion(version) });
    }
    let found = outcome.found.map(tracing::field::display);
    let (topic, id, command) = (&target.topic, target.id.as_ref().map(tracing::field::display), target.command());
    tracing::debug!(%topic, job.id = id, command, found, changed = outcome.changed, "the store carried out a command");
    Ok(A::of(target, outcome))
}
