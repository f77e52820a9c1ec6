//! Where the notes of a channel go.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;

use super::control::RunControl;
use super::job::Delivery;
use super::next::FollowUpError;
use super::notes::{CheckpointError, Notes};
use crate::job::{JobId, KeptState, Progress, Token};

/// Where the notes of a channel go.
#[derive(Debug)]
pub(super) enum Noted {
    /// The channel is of no single job.
    Nowhere,
    /// A test made it.
    Untold,
    Run {
        notes: Arc<dyn Notes>,
        id: JobId,
        token: Token,
        control: Arc<RunControl>,
        is_acked: bool,
    },
}

impl Noted {
    pub(super) fn of(delivery: &Delivery) -> Self {
        match &delivery.notes {
            Some(notes) => Self::Run {
                notes: Arc::clone(notes),
                id: delivery.id.clone(),
                token: delivery.token(),
                control: Arc::clone(&delivery.run),
                is_acked: delivery.is_acked,
            },
            None => Self::Untold,
        }
    }

    /// Why the end of the run has no follow-ups.
    pub(super) const fn refusal(&self) -> Option<FollowUpError> {
        match self {
            Self::Nowhere => Some(FollowUpError::NoJob),
            Self::Run { is_acked: true, .. } => Some(FollowUpError::Acked),
            Self::Untold | Self::Run { .. } => None,
        }
    }

    /// Leaves the progress for the topic, which is told only if it does not know that there is one.
    pub(super) fn progress(&self, progress: Progress) {
        if let Self::Run { notes, id, token, control, .. } = self
            && control.set_progress(progress)
        {
            notes.progress(id, *token, control);
        }
    }

    /// Sends the state now; the future waits for the answer.
    pub(super) fn checkpoint<S: Serialize + ?Sized>(
        &self,
        state: &S,
    ) -> impl Future<Output = Result<(), CheckpointError>> + Send + 'static + use<S> {
        let sent = match (KeptState::of(state), self) {
            (Err(bad), _) => Err(CheckpointError::State(bad)),
            (Ok(_), Self::Nowhere) => Err(CheckpointError::NoJob),
            (Ok(_), Self::Untold) => Ok(None),
            (Ok(state), Self::Run { notes, id, token, .. }) => Ok(Some(notes.checkpoint(id, *token, state))),
        };
        async move {
            match sent? {
                // The topic has ended if it drops the other end.
                Some(answer) => answer.await.unwrap_or(Err(CheckpointError::Unconfirmed)),
                None => Ok(()),
            }
        }
    }
}
