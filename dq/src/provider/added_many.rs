//! The results of many adds.

use std::ops::Deref;
use std::slice;
use std::vec;

use super::added::{Added, AddedOrKept};
use super::error::AddError;

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
/// jobs.add_many(customers()).keep_existing().await?.unless_dead().all()?; // safe to repeat
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
pub struct AddedMany<A = Added>(Vec<Result<A, AddError>>);

impl<A> AddedMany<A> {
    pub(super) const fn new(results: Vec<Result<A, AddError>>) -> Self {
        Self(results)
    }

    /// The results as a plain `Vec`.
    #[must_use = "each job has a result of its own"]
    pub fn into_vec(self) -> Vec<Result<A, AddError>> {
        self.0
    }
}

impl AddedMany {
    /// What was added, if all jobs were.
    ///
    /// # Errors
    /// [`AddError::SomeFailed`] with the first error and how many failed. The other jobs were added all the same.
    pub fn all(self) -> Result<Vec<Added>, AddError> {
        let jobs = self.0.len();
        let failed = self.0.iter().filter(|result| result.is_err()).count();
        let added: Result<Vec<_>, _> = self.0.into_iter().collect();
        added.map_err(|first| AddError::SomeFailed { failed, jobs, first: Box::new(first) })
    }
}

impl AddedMany<AddedOrKept> {
    /// Makes an error of each job that was kept and is DEAD, as [`AddedOrKept::unless_dead`] does for one.
    pub fn unless_dead(self) -> AddedMany {
        AddedMany(self.0.into_iter().map(|result| result.and_then(AddedOrKept::unless_dead)).collect())
    }
}

impl<A> Deref for AddedMany<A> {
    type Target = [Result<A, AddError>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<A> IntoIterator for AddedMany<A> {
    type Item = Result<A, AddError>;
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, A> IntoIterator for &'a AddedMany<A> {
    type Item = &'a Result<A, AddError>;
    type IntoIter = slice::Iter<'a, Result<A, AddError>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
