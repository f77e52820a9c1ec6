//! What became of an add.

use super::error::{AddError, Reason};
use super::inbox::Failed;
use crate::job::{JobId, State, TopicName};
use crate::store::{AddOutcome, OnDuplicate};

/// An add that worked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// The id, chosen or generated.
    pub id: JobId,
    /// What became of the job.
    pub how: Addition,
}

/// What became of a job that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Addition {
    /// It waits until it is due.
    New,
    /// The id is known and the old job was kept, as asked; the new one is gone.
    Kept(State),
    /// It took the place of the old one, which was in this state.
    Replaced(State),
    /// The old one is running: the new one takes its place when that run ends.
    ReplacementWaits,
    /// The old one is running under an ack that names a run: the new one takes its place if the ack is for this run, else
    /// it is dropped.
    ReplacementIfEnds,
}

/// The answer to the caller of an add.
pub(super) fn told(
    topic: &TopicName,
    id: JobId,
    on_duplicate: OnDuplicate,
    outcome: Result<AddOutcome, Failed>,
) -> Result<Added, AddError> {
    let _add = tracing::debug_span!("dq.add", %topic, job.id = %id).entered();
    let how = match outcome {
        Ok(AddOutcome::Added) => Addition::New,
        Ok(AddOutcome::Exists(state)) if on_duplicate == OnDuplicate::Keep => Addition::Kept(state),
        Ok(AddOutcome::Exists(state)) => return Err(AddError::AlreadyExists { topic: topic.clone(), id, state }),
        Ok(AddOutcome::Replaced(state)) => Addition::Replaced(state),
        Ok(AddOutcome::ReplacementWaits) => Addition::ReplacementWaits,
        Ok(AddOutcome::ReplacementIfEnds) => Addition::ReplacementIfEnds,
        Ok(AddOutcome::Repeated) => return Err(AddError::RepeatedInBatch { id }),
        Ok(AddOutcome::Refused(why)) => return Err(failed(topic, id, Failed::NotDone(Reason::Refused(why)))),
        Err(how) => return Err(failed(topic, id, how)),
    };
    tracing::debug!(?how, "added");
    Ok(Added { id, how })
}

fn failed(topic: &TopicName, id: JobId, failed: Failed) -> AddError {
    let topic = topic.clone();
    let error = match failed {
        Failed::NotDone(Reason::Stopped) => AddError::Stopped { topic, id },
        Failed::NotDone(reason) => AddError::NotAdded { topic, id, reason },
        Failed::Unknown(reason) => AddError::Unknown { topic, id, reason },
    };
    tracing::debug!(%error, "not added");
    error
}
