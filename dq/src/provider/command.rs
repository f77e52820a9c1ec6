//! Delete, cancel, ack and requeue from outside.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::call::{Call, call_many};
use super::error::{CommandError, Reason};
use super::inbox::{Commands, Failed, Inbox};
use super::root::Root;
use crate::job::{BadName, Fence, JobId, TopicName};
use crate::store::{Command, CommandKind, CommandOutcome};

/// A delete or cancel that is done when this is awaited. Cancel safety is as with [`Add`](super::Add).
#[must_use = "nothing is withdrawn until it is awaited"]
pub struct SendCommand(Step);

/// An ack or requeue that is done when this is awaited; it can be bound to one run of the job. Cancel safety is as with
/// [`Add`](super::Add).
#[must_use = "nothing is done until it is awaited"]
pub struct SendRunCommand(SendCommand);

enum Step {
    Bad(Option<CommandError>),
    Draft { root: Arc<Root>, inbox: Arc<Inbox>, command: Command },
    Called { call: Call<Commands>, topic: TopicName, id: JobId },
}

impl SendCommand {
    pub(super) fn bad(error: BadName) -> Self {
        Self(Step::Bad(Some(error.into())))
    }

    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>, verb: CommandKind, id: Result<JobId, BadName>) -> Self {
        match id {
            Ok(id) => Self(Step::Draft { root, inbox, command: Command { verb, id, fence: None } }),
            Err(error) => Self::bad(error),
        }
    }
}

impl SendRunCommand {
    pub(super) const fn new(command: SendCommand) -> Self {
        Self(command)
    }

    /// Only to the run with this fence, as its handler read it from `job.fence()`; nothing is done to a later run. An ack
    /// with a fence does nothing to a job that waits.
    pub fn fence(mut self, fence: Fence) -> Self {
        if let Step::Draft { command, .. } = &mut self.0.0 {
            command.fence = Some(fence);
        }
        self
    }
}

impl Future for SendCommand {
    type Output = Result<CommandOutcome, CommandError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Step::Draft { .. } = &self.0
            && let Step::Draft { root, inbox, command } = std::mem::replace(&mut self.0, Step::Bad(None))
        {
            let (topic, id) = (inbox.key.topic.clone(), command.id.clone());
            self.0 = Step::Called { call: Call::new(&root, inbox, command), topic, id };
        }
        match &mut self.0 {
            Step::Called { call, topic, id } => {
                let outcome = ready!(Pin::new(call).poll(cx));
                let told = told(topic, id, outcome);
                self.0 = Step::Bad(None);
                Poll::Ready(told)
            }
            Step::Bad(error) => Poll::Ready(Err(error.take().expect("it is not polled after it resolved"))),
            Step::Draft { .. } => unreachable!("a draft was started above"),
        }
    }
}

impl Future for SendRunCommand {
    type Output = Result<CommandOutcome, CommandError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// The same verb for many jobs, whose ids differ; an outcome for each.
pub(super) async fn send_commands(
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    verb: CommandKind,
    ids: Vec<JobId>,
) -> Vec<Result<CommandOutcome, CommandError>> {
    let topic = inbox.key.topic.clone();
    let items = ids.iter().map(|id| Command { verb, id: id.clone(), fence: None }).collect();
    let outcomes = call_many::<Commands>(root, inbox, items).await;
    ids.iter().zip(outcomes).map(|(id, outcome)| told(&topic, id, outcome)).collect()
}

fn told(
    topic: &TopicName,
    id: &JobId,
    outcome: Result<CommandOutcome, Failed>,
) -> Result<CommandOutcome, CommandError> {
    let (topic, id) = (topic.clone(), id.clone());
    outcome.map_err(|failed| match failed {
        Failed::NotDone(Reason::Stopped) => CommandError::Stopped { topic, id },
        Failed::NotDone(reason) => CommandError::NotDone { topic, id, reason },
        Failed::Unknown(reason) => CommandError::Unknown { topic, id, reason },
    })
}

impl fmt::Debug for SendCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Step::Bad(error) => f.debug_struct("Withdraw").field("error", error).finish(),
            Step::Draft { command, .. } => f.debug_tuple("Withdraw").field(command).finish(),
            Step::Called { topic, id, .. } => {
                f.debug_struct("Withdraw").field("topic", topic).field("id", id).finish_non_exhaustive()
            }
        }
    }
}

impl fmt::Debug for SendRunCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
