//! Adds that extend a job that waits: `add_or_extend`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::add::Add;
use super::add_many::AddMany;
use super::added::Added;
use super::added_many::AddedMany;
use super::error::AddError;
use super::options::{Options, extension_methods, shared_option_methods};
use super::when::When;
use crate::job::ToJobId;

/// A job that is added, or that extends the one with its id, when this is awaited. Made by
/// [`Provider::add_or_extend`](super::Provider::add_or_extend). Cancel safety and panics are as with [`Add`].
///
/// Resolves to an [`Added`], or to an [`AddError`]; [`AddError::NotExtended`] if the job with its id is UNACKED or DEAD.
#[must_use = "adding does nothing until it is awaited"]
pub struct AddOrExtend(pub(super) Add);

/// Jobs of which each is added, or extends the one with its id, when this is awaited, all with the same options: a result for each,
/// in order. Made by [`Provider::add_or_extend_many`](super::Provider::add_or_extend_many). Otherwise it is as [`AddMany`].
#[must_use = "adding does nothing until it is awaited"]
pub struct AddOrExtendMany(pub(super) AddMany);

impl AddOrExtend {
    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        Self(self.0.with(change))
    }

    /// Sets the id, instead of the payload's own.
    pub fn id(self, id: impl ToJobId) -> Self {
        Self(self.0.id(id))
    }

    extension_methods!();
    shared_option_methods!();
}

impl AddOrExtendMany {
    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        Self(self.0.with(change))
    }

    extension_methods!();
    shared_option_methods!();
}

impl Future for AddOrExtend {
    type Output = Result<Added, AddError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Future for AddOrExtendMany {
    /// A result for each job, in order; or an error of all of them, and then nothing was sent.
    type Output = Result<AddedMany, AddError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Shows the topic and the id, never the payload.
impl fmt::Debug for AddOrExtend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AddOrExtend").field(&self.0).finish()
    }
}

/// Shows no payload.
impl fmt::Debug for AddOrExtendMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddOrExtendMany").finish_non_exhaustive()
    }
}
