//! The futures of commands: delete, cancel, ack and requeue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::call::{Call, call_many};
use super::deferred::Deferred;
use super::error::{CommandError, Reason};
use super::inbox::Inbox;
use super::request::{Answer, Failed, Outcome, Request};
use super::root::Root;
use crate::job::{BadName, Fence, JobId, TopicName};
use crate::store::{Command, CommandKind, CommandOutcome};

type CommandResult = Result<CommandOutcome, CommandError>;

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
/// Resolves to what the store found and did, or to a [`CommandError`].
#[must_use = "a command does nothing until it is awaited"]
pub struct AckOrRequeue(pub(super) Sending);

/// A command of either type, until its answer.
pub(super) struct Sending(Deferred<Draft, CommandError, Call>);

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    command: Command,
}

impl Sending {
    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>, verb: CommandKind, id: Result<JobId, BadName>) -> Self {
        let draft = |id| Draft { root, inbox, command: Command { verb, id, fence: None } };
        Self(Deferred::new(id.map(draft).map_err(CommandError::from)))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Deferred::new(Err(error.into())))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CommandResult> {
        let start = |Draft { root, inbox, command }| Ok(Call::new(root, inbox, Request::Command(command)));
        let call = self.0.started(start)?;
        let answer = ready!(Pin::new(&mut *call).poll(cx));
        Poll::Ready(commanded(&call.inbox.key.topic, &call.id, answer))
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

impl AckOrRequeue {
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
    type Output = Result<CommandOutcome, CommandError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CommandResult> {
        self.0.poll(cx)
    }
}

/// Sends the same command for many jobs, whose ids differ, and returns a result for each.
pub(super) async fn command_many(
    root: &Root,
    inbox: &Arc<Inbox>,
    verb: CommandKind,
    ids: Vec<JobId>,
) -> Vec<CommandResult> {
    let command = |id: &JobId| Request::Command(Command { verb, id: id.clone(), fence: None });
    let answers = call_many(root, inbox, ids.iter().map(command).collect()).await;
    ids.iter().zip(answers).map(|(id, answer)| commanded(&inbox.key.topic, id, answer)).collect()
}

/// The result for the caller of a command.
fn commanded(topic: &TopicName, id: &JobId, answer: Answer) -> CommandResult {
    let (topic, id) = (topic.clone(), id.clone());
    match answer {
        Ok(Outcome::Command(outcome)) => Ok(outcome),
        Ok(Outcome::Add(_)) => unreachable!("the outcome of a command is of its kind"),
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
