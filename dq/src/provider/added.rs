//! The results of adds.

use std::ops::Deref;
use std::{slice, vec};

use super::error::{CallError, Doing, Failed, FailureReason, Invalid, Refusal, Target};
use super::request::{Answer, Outcome};
use crate::job::{JobId, State, TopicName};
use crate::store::{AddOutcome, OnDuplicate, TooHeavy, TopicFull};
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
    pub how: AddedHow,
}

/// The result of an add with `keep_existing` that worked: the job was added, or an old one kept.
///
/// The old job may be DEAD, and then it never runs. So look at [`how`](Self::how), or call [`or_error_if_dead`](Self::or_error_if_dead).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a job that was kept may be DEAD, and then it never runs: write `.or_error_if_dead()?`, or look at `how`"]
#[non_exhaustive]
pub struct AddedOrKept {
    /// The job's id, chosen or generated.
    pub id: JobId,
    /// What the store did with the job.
    pub how: AddedHow,
    topic: TopicName,
}

impl AddedOrKept {
    /// Makes an error of a job that was kept and is DEAD, because nothing will run: `requeue` runs it again, and an add with
    /// `replace_existing` takes its place.
    ///
    /// # Errors
    /// [`Refusal::Exists`] with the state DEAD.
    pub fn or_error_if_dead(self) -> Result<Added, CallError> {
        let Self { id, how, topic } = self;
        match how {
            AddedHow::Kept(State::Dead) => {
                let target = Target { topic, id: Some(id), doing: Doing::Add(OnDuplicate::Keep) };
                Err(CallError::Refused { target, refusal: Refusal::Exists(State::Dead) })
            }
            how => Ok(Added { id, how }),
        }
    }
}

impl From<AddedOrKept> for Added {
    fn from(AddedOrKept { id, how, .. }: AddedOrKept) -> Self {
        Self { id, how }
    }
}

/// What becomes of a job whose id is known, when the jobs of such an add are due, and what it resolves to.
pub trait AddMode: 'static {
    #[doc(hidden)]
    const KNOWN: OnDuplicate;
    #[doc(hidden)]
    type Timing;
    #[doc(hidden)]
    type Answer;

    #[doc(hidden)]
    fn answer(topic: TopicName, added: Added) -> Self::Answer;
}

/// Jobs that are due after a delay or at a time.
#[derive(Debug)]
pub struct Once(());

/// The mode of [`add_or_extend`](super::Provider::add_or_extend): a job with the id is extended.
#[derive(Debug)]
pub struct Extending(());

impl AddMode for Added {
    const KNOWN: OnDuplicate = OnDuplicate::Reject;
    type Timing = Once;
    type Answer = Self;

    fn answer(_: TopicName, added: Added) -> Self {
        added
    }
}

impl AddMode for AddedOrKept {
    const KNOWN: OnDuplicate = OnDuplicate::Keep;
    type Timing = Once;
    type Answer = Self;

    fn answer(topic: TopicName, Added { id, how }: Added) -> Self {
        Self { id, how, topic }
    }
}

impl AddMode for Extending {
    const KNOWN: OnDuplicate = OnDuplicate::Extend { at_most: None };
    type Timing = Self;
    type Answer = Added;

    fn answer(_: TopicName, added: Added) -> Added {
        added
    }
}

/// What the store did with a job that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddedHow {
    /// The job waits until it is due.
    New,
    /// The store is away: the [buffer](crate::context::ContextFactory::buffer) of the provider has the job on its disk, and sends it when the store is back. It is due then, or
    /// at the time that it would have been due. If the store refuses it then, because a job with its id exists or its topic is full, nobody hears
    /// of it but the log and [`Provider::buffer`](super::Provider::buffer).
    Buffered,
    /// A job with this id exists in this state, and the store kept it, as asked; it dropped the new job. DONE: it has ended, and its id stays
    /// taken for its [`unique_for`](super::Call::unique_for).
    Kept(State),
    /// The job with this id was deleted, and its id stays taken for its [`unique_for`](super::Call::unique_for): nothing was added.
    KeptDeleted,
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

/// The results of an [`AddMany`](super::AddMany), one for each job, in order. It is a slice of results: iterate, index and count it
/// as one.
///
/// One job can fail while the others are added, so an `Ok` of the call says nothing about a single job. Call [`all`](Self::all), or
/// look at each result.
///
/// ```no_run
/// # use dq::prelude::*;
/// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
/// # #[job(topic = "remind")]
/// # struct Remind { #[job(id)] customer: u64 }
/// # async fn add(jobs: dq::Provider) -> Result<(), dq::Error> {
/// # let customers = || (1..=100).map(|customer| Remind { customer });
/// jobs.add_many(customers()).await?.all()?; // an error if one of them was not added
/// jobs.add_many(customers()).keep_existing().await?.or_error_if_dead().all()?; // safe to repeat
/// for added in jobs.add_many(customers()).replace_existing().await? {
///     if let Err(error) = added {
///         eprintln!("{error}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "each job has a result of its own: write `.all()?`, or look at each of them"]
pub struct AddedMany<A = Added>(Vec<Result<A, CallError>>);

impl<A> AddedMany<A> {
    pub(super) const fn new(results: Vec<Result<A, CallError>>) -> Self {
        Self(results)
    }

    /// The results as a plain `Vec`.
    #[must_use = "each job has a result of its own"]
    pub fn into_vec(self) -> Vec<Result<A, CallError>> {
        self.0
    }
}

impl AddedMany {
    /// What was added, if all jobs were.
    ///
    /// # Errors
    /// [`CallError::SomeFailed`] with the first error and how many failed. The other jobs were added all the same.
    pub fn all(self) -> Result<Vec<Added>, CallError> {
        let jobs = self.0.len();
        let failed = self.0.iter().filter(|result| result.is_err()).count();
        let added: Result<Vec<_>, _> = self.0.into_iter().collect();
        added.map_err(|first| CallError::SomeFailed { failed, jobs, first: Box::new(first) })
    }
}

impl AddedMany<AddedOrKept> {
    /// Makes an error of each job that was kept and is DEAD, as [`AddedOrKept::or_error_if_dead`] does for one.
    pub fn or_error_if_dead(self) -> AddedMany {
        AddedMany(self.0.into_iter().map(|result| result.and_then(AddedOrKept::or_error_if_dead)).collect())
    }
}

impl<A> Deref for AddedMany<A> {
    type Target = [Result<A, CallError>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<A> IntoIterator for AddedMany<A> {
    type Item = Result<A, CallError>;
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, A> IntoIterator for &'a AddedMany<A> {
    type Item = &'a Result<A, CallError>;
    type IntoIter = slice::Iter<'a, Result<A, CallError>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The result for the caller of an add.
pub(super) fn added(target: Target, answer: Answer) -> Result<Added, CallError> {
    let id = target.id.clone().expect("an add is about a job");
    let _add = tracing::debug_span!("dq.add", topic = %target.topic, job.id = %id).entered();
    let outcome = match answer {
        Ok(Outcome::Add(outcome)) => outcome,
        Ok(_) => unreachable!("the outcome of an add is of its kind"),
        Err(failed) => return Err(CallError::failed(target, failed)),
    };
    let how = match (outcome, target.doing) {
        (AddOutcome::Added, _) => Ok(AddedHow::New),
        (AddOutcome::Buffered, _) => Ok(AddedHow::Buffered),
        (AddOutcome::Exists(state), Doing::Add(OnDuplicate::Keep)) => Ok(AddedHow::Kept(state)),
        (AddOutcome::Exists(state), Doing::Add(OnDuplicate::Extend { .. })) => Err(Refusal::NotExtended(state)),
        (AddOutcome::Exists(state), _) => Err(Refusal::Exists(state)),
        (AddOutcome::Deleted, Doing::Add(OnDuplicate::Keep)) => Ok(AddedHow::KeptDeleted),
        (AddOutcome::Deleted, _) => Err(Refusal::Deleted),
        (AddOutcome::Replaced(state), _) => Ok(AddedHow::Replaced(state)),
        (AddOutcome::ReplacementWaits, _) => Ok(AddedHow::ReplacementWaits),
        (AddOutcome::ReplacementIfEnds, _) => Ok(AddedHow::ReplacementIfEnds),
        (AddOutcome::Extended { due, version }, _) => Ok(AddedHow::Extended { due, version }),
        (AddOutcome::TopicFull(TopicFull { waiting, limit }), _) => Err(Refusal::TopicFull { waiting, limit }),
        (AddOutcome::GroupFull { group, full: TopicFull { waiting, limit } }, _) => {
            Err(Refusal::GroupFull { group, waiting, limit })
        }
        (AddOutcome::TooHeavy(TooHeavy { weight, rate, group }), _) => Err(Refusal::TooHeavy { weight, rate, group }),
        (AddOutcome::Repeated, _) => return Err(Invalid::RepeatedInBatch { id }.into()),
        (AddOutcome::Later, _) => return Err(not_done(target, LATER.to_owned())),
        (AddOutcome::Refused(why), _) => return Err(not_done(target, why)),
    };
    match how {
        Ok(how) => {
            tracing::debug!(?how, "added");
            Ok(Added { id, how })
        }
        Err(refusal) => Err(CallError::Refused { target, refusal }),
    }
}

fn not_done(target: Target, why: String) -> CallError {
    CallError::failed(target, Failed::NotDone(FailureReason::Refused(why)))
}
