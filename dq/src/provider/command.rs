//! The futures of commands: delete, cancel, ack and requeue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::call::{Call, call_many};
use super::deferred::Deferred;
use super::error::{CommandError, Reason};
use super::inbox::Inbox;
use super::limit;
use super::request::{Answer, Failed, Outcome, Request};
use super::root::Root;
use crate::job::{BadName, Fence, JobId, State, TopicName};
use crate::store::{Command, CommandKind, CommandOutcome};
use crate::time::{Delay, IntoDelay};

pub(crate) type CommandResult = Result<CommandOutcome, CommandError>;

/// A delete or cancel, sent when it is awaited. Made by [`Provider::delete`](super::Provider::delete) and
/// [`Provider::cancel`](super::Provider::cancel). Its cancel safety and panics are those of [`Add`](super::Add).
///
/// Resolves to what the store found and did, or to a [`CommandError`].
#[must_use = "a command does nothing until it is awaited"]
pub struct DeleteOrCancel(pub(super) Sending);

/// An ack or requeue, sent when it is awaited; [`fence`](Self::fence) limits it to one run of the job. Made by
/// [`Provider::ack`](super::Provider::ack) and [`Provider::requeue`](super::Provider::requeue). Its cancel safety and panics
/// are those of [`Add`](super::Add).
///
/// Resolves to what the store found and did, as an [`AckedOrRequeued`], or to a [`CommandError`].
#[must_use = "a command does nothing until it is awaited"]
pub struct AckOrRequeue(pub(super) Sending);

/// What an ack or requeue found and did. An id that the store does not know is no error, and neither is a job in a state to
/// which the command does nothing. So look at [`changed`](Self::changed), or call [`must_change`](Self::must_change).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an unknown id is no error: write `.must_change()?`, or look at `changed`"]
#[non_exhaustive]
pub struct AckedOrRequeued {
    /// The state of the job; `None` if there is no such job.
    pub found: Option<State>,
    /// Whether anything changed: the job moved or ended, or the command is pending until its run ends. A fenced ack of a running
    /// job is pending whatever its fence is, and does nothing when that run has another fence.
    pub changed: bool,
    outcome: CommandOutcome,
    topic: TopicName,
    id: JobId,
}

impl AckedOrRequeued {
    /// Makes an error of a command that changed nothing, because the store has no such job, or has it in another state or run.
    ///
    /// # Errors
    /// [`CommandError::Unchanged`].
    pub fn must_change(self) -> Result<CommandOutcome, CommandError> {
        let Self { found, changed, outcome, topic, id } = self;
        if changed { Ok(outcome) } else { Err(CommandError::Unchanged { topic, id, found }) }
    }
}

impl From<AckedOrRequeued> for CommandOutcome {
    fn from(answer: AckedOrRequeued) -> Self {
        answer.outcome
    }
}

/// A command of either type, until its answer.
pub(super) struct Sending(Deferred<Draft, CommandError, Call>, Option<CommandKind>);

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    command: Command,
    within: Option<Delay>,
}

impl Sending {
    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        verb: CommandKind,
        id: Result<JobId, BadName>,
        by: Option<Arc<str>>,
    ) -> Self {
        let draft = |id| Draft { root, inbox, command: Command { verb, id, fence: None, by }, within: None };
        Self(Deferred::new(id.map(draft).map_err(CommandError::from)), Some(verb))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Deferred::new(Err(error.into())), None)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CommandResult> {
        let start = |Draft { root, inbox, command, within }| {
            let within = limit::read(within).map_err(CommandError::BadWithin)?;
            Ok(Call::new(root, inbox, Request::Command(command), within))
        };
        let call = self.0.started(start)?;
        let answer = ready!(Pin::new(&mut *call).poll(cx));
        Poll::Ready(commanded(&call.inbox.key.topic, &call.id, self.1, answer))
    }

    fn within(mut self, time: Delay) -> Self {
        if let Some(draft) = self.0.draft() {
            draft.within = Some(time);
        }
        self
    }

    /// The topic and the id of a command that was sent.
    fn started(&self) -> (TopicName, JobId) {
        match &self.0 {
            Deferred::Started(call) => (call.inbox.key.topic.clone(), call.id.clone()),
            Deferred::Draft(_) => unreachable!("it has an outcome"),
        }
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct(name);
        match &self.0 {
            Deferred::Draft(Some(Ok(draft))) => {
                f.field("topic", &draft.inbox.key.topic).field("command", &draft.command)
            }
            Deferred::Draft(error) => f.field("error", &error.as_ref().and_then(|draft| draft.as_ref().err())),
            Deferred::Started(call) => f.field("topic", &call.inbox.key.topic).field("id", &call.id),
        };
        f.finish_non_exhaustive()
    }
}

impl DeleteOrCancel {
    /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or a
    /// text such as `"500ms"`, at most an hour.
    pub fn within(self, time: impl IntoDelay) -> Self {
        Self(self.0.within(time.into_delay()))
    }
}

impl AckOrRequeue {
    /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or a
    /// text such as `"500ms"`, at most an hour.
    pub fn within(self, time: impl IntoDelay) -> Self {
        Self(self.0.within(time.into_delay()))
    }

    /// Limits the command to the run with this fence, which the run's handler reads from `job.fence()`: it does nothing to
    /// a later run. An ack with a fence does nothing to a job that waits.
    pub fn fence(mut self, fence: Fence) -> Self {
        if let Some(draft) = self.0.0.draft() {
            draft.command.fence = Some(fence);
        }
        self
    }
}

impl Future for DeleteOrCancel {
    type Output = Result<CommandOutcome, CommandError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CommandResult> {
        self.0.poll(cx)
    }
}

impl Future for AckOrRequeue {
    type Output = Result<AckedOrRequeued, CommandError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(self.0.poll(cx))?;
        let (topic, id) = self.0.started();
        let (found, changed) = (outcome.found, outcome.changed);
        Poll::Ready(Ok(AckedOrRequeued { found, changed, outcome, topic, id }))
    }
}

/// Sends the same command for many jobs, whose ids differ, and returns a result for each.
pub(super) async fn command_many(
    root: &Root,
    inbox: &Arc<Inbox>,
    verb: CommandKind,
    ids: Vec<JobId>,
    by: Option<&Arc<str>>,
    within: Option<Duration>,
) -> Vec<CommandResult> {
    let command = |id: &JobId| Request::Command(Command { verb, id: id.clone(), fence: None, by: by.cloned() });
    let answers = call_many(root, inbox, ids.iter().map(command).collect(), within).await;
    ids.iter().zip(answers).map(|(id, answer)| commanded(&inbox.key.topic, id, Some(verb), answer)).collect()
}

/// The result for the caller of a command.
fn commanded(topic: &TopicName, id: &JobId, verb: Option<CommandKind>, answer: Answer) -> CommandResult {
    let (topic, id) = (topic.clone(), id.clone());
    match answer {
        Ok(Outcome::Command(outcome)) => {
            let command = verb.map(CommandKind::word);
            let found = outcome.found.map(tracing::field::display);
            tracing::debug!(%topic, job.id = %id, command, found, changed = outcome.changed, "the store carried out a command");
            Ok(outcome)
        }
        Ok(Outcome::Add(_) | Outcome::Change(_)) => unreachable!("the outcome of a command is of its kind"),
        Err(Failed::NotDone(Reason::Stopped)) => Err(CommandError::Stopped { topic, id }),
        Err(Failed::NotDone(reason)) => Err(CommandError::NotDone { topic, id, reason }),
        Err(Failed::Unknown(reason)) => Err(CommandError::Unknown { topic, id, reason }),
    }
}

impl fmt::Debug for DeleteOrCancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("DeleteOrCancel", f)
    }
}

impl fmt::Debug for AckOrRequeue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("AckOrRequeue", f)
    }
}
