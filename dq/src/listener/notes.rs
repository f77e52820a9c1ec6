//! What a run notes in the store while it goes on: its checkpoints and its progress.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::control::RunControl;
use crate::job::{JobId, KeptState, StateError, Token};

/// Takes the notes of all runs of a topic to its task.
pub trait Notes: fmt::Debug + Send + Sync {
    /// Saves a state, if this run still has the job.
    fn checkpoint(&self, id: &JobId, token: Token, state: KeptState) -> oneshot::Receiver<Result<(), CheckpointError>>;

    /// The handler of this run has said how far it has come.
    fn progress(&self, id: &JobId, token: Token, run: &Arc<RunControl>);
}

/// Why a checkpoint was not saved, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The state cannot be kept.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store counts the job for this run no more: the lease was lost, or the job was acked on claim. Nothing was saved.
    #[error(
        "this run does not hold its job: its node lost the lease, or the topic acks on claim. Stop working on the job: another run \
         begins from the last checkpoint"
    )]
    Lost,
    /// A command from outside ends the job with this run. Nothing was saved.
    #[error(
        "the job was deleted, cancelled or acked from outside, so no run will read the checkpoint: return from the handler"
    )]
    Ended,
    /// The store has not confirmed it. The state may have been saved.
    #[error(
        "the store has not confirmed the checkpoint, which may be saved or not: continue and make the next one, or return an error to run the job again"
    )]
    Unconfirmed,
    /// The channel is that of the rest of a batch.
    #[error("the channel of `Batch::rest` has no job of its own: call `Batch::checkpoint` with the job")]
    NoJob,
}
