//! The result of an add.

use super::error::{AddError, Reason};
use super::request::{Answer, Failed, Outcome};
use crate::job::{JobId, State, TopicName};
use crate::store::{AddOutcome, OnDuplicate, StoreError};
use crate::time::Timestamp;

/// The store had to rewrite too many bytes for the requests before it.
const LATER: &str = "the records before it in its batch have too many bytes; add it again";

/// The result of an add that worked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// The job's id, chosen or generated.
    pub id: JobId,
    /// What the store did with the job.
    pub how: Addition,
}

/// The result of an add with [`keep_existing`](super::Add::keep_existing) that worked: the job was added, or an old one kept.
///
/// The old job may be DEAD, and then it never runs. So look at [`how`](Self::how), or call [`unless_dead`](Self::unless_dead).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a job that was kept may be DEAD, and then it never runs: write `.unless_dead()?`, or look at `how`"]
#[non_exhaustive]
pub struct AddedOrKept {
    /// The job's id, chosen or generated.
    pub id: JobId,
    /// What the store did with the job.
    pub how: Addition,
    topic: TopicName,
}

impl AddedOrKept {
    /// Makes an error of a job that was kept and is DEAD, because nothing will run: `requeue` runs it again, and an add with
    /// `replace_existing` takes its place.
    ///
    /// # Errors
    /// [`AddError::AlreadyExists`] with the state DEAD.
    pub fn unless_dead(self) -> Result<Added, AddError> {
        let Self { id, how, topic } = self;
        match how {
            Addition::Kept(State::Dead) => Err(AddError::AlreadyExists { topic, id, state: State::Dead }),
            how => Ok(Added { id, how }),
        }
    }
}

impl From<AddedOrKept> for Added {
    fn from(AddedOrKept { id, how, .. }: AddedOrKept) -> Self {
        Self { id, how }
    }
}

/// What an add resolves to.
pub trait AddAnswer: private::Sealed {
    /// Makes it of what was added.
    #[doc(hidden)]
    fn of(topic: &TopicName, added: Added) -> Self;
}

impl AddAnswer for Added {
    fn of(_: &TopicName, added: Added) -> Self {
        added
    }
}

impl AddAnswer for AddedOrKept {
    fn of(topic: &TopicName, Added { id, how }: Added) -> Self {
        Self { id, how, topic: topic.clone() }
    }
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Added {}
    impl Sealed for super::AddedOrKept {}
}

/// What the store did with a job that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Addition {
    /// The job waits until it is due.
    New,
    /// A job with this id exists in this state, and the store kept it, as asked; it dropped the new job.
    Kept(State),
    /// The job replaced the old one, which was in this state.
    Replaced(State),
    /// The job that waited, or the one that waits for the end of a run, has the new payload and is due at another time. Only after
    /// [`add_or_extend`](super::Provider::add_or_extend).
    Extended {
        /// When it is due.
        due: Timestamp,
        /// Its version.
        version: u32,
    },
    /// The old job is running: the new one replaces it when that run ends.
    ReplacementWaits,
    /// The old job is running, and an ack that names a run is pending: if the ack names this run, the new job replaces the
    /// old one when the run ends; otherwise the store drops the new job.
    ReplacementIfEnds,
}

/// The result for the caller of an add.
pub(super) fn added(
    topic: &TopicName,
    id: JobId,
    on_duplicate: OnDuplicate,
    answer: Answer,
) -> Result<Added, AddError> {
    let _add = tracing::debug_span!("dq.add", %topic, job.id = %id).entered();
    let outcome = match answer {
        Ok(Outcome::Add(outcome)) => outcome,
        Ok(Outcome::Command(_) | Outcome::Change(_)) => unreachable!("the outcome of an add is of its kind"),
        Err(how) => return Err(failed(topic, id, how)),
    };
    let how = match outcome {
        AddOutcome::Added => Addition::New,
        AddOutcome::Exists(state) if on_duplicate == OnDuplicate::Keep => Addition::Kept(state),
        AddOutcome::Exists(state) if matches!(on_duplicate, OnDuplicate::Extend { .. }) => {
            return Err(AddError::NotExtended { topic: topic.clone(), id, state });
        }
        AddOutcome::Exists(state) => return Err(AddError::AlreadyExists { topic: topic.clone(), id, state }),
        AddOutcome::Replaced(state) => Addition::Replaced(state),
        AddOutcome::ReplacementWaits => Addition::ReplacementWaits,
        AddOutcome::ReplacementIfEnds => Addition::ReplacementIfEnds,
        AddOutcome::Extended { due, version } => Addition::Extended { due, version },
        AddOutcome::Repeated => return Err(AddError::RepeatedInBatch { id }),
        AddOutcome::Later => return Err(failed(topic, id, Failed::NotDone(Reason::Refused(LATER.to_owned())))),
        AddOutcome::Refused(why) => return Err(failed(topic, id, Failed::NotDone(Reason::Refused(why)))),
    };
    tracing::debug!(?how, "added");
    Ok(Added { id, how })
}

fn failed(topic: &TopicName, id: JobId, failed: Failed) -> AddError {
    let topic = topic.clone();
    let error = match failed {
        Failed::NotDone(Reason::Stopped) => AddError::Stopped { topic, id },
        Failed::NotDone(Reason::Store(error)) => match &*error {
            StoreError::Draining { reason, by } => {
                AddError::Draining { topic, id, reason: reason.clone(), by: by.clone() }
            }
            _ => AddError::NotAdded { topic, id, reason: Reason::Store(error) },
        },
        Failed::NotDone(reason) => AddError::NotAdded { topic, id, reason },
        Failed::Unknown(reason) => AddError::Unknown { topic, id, reason },
    };
    tracing::debug!(%error, "not added");
    error
}
