//! The state of a future that does nothing until it is polled.

/// A draft until the first poll, then what the draft started.
pub(super) enum Deferred<D, E, S> {
    /// What the builder methods change, or what was wrong with the arguments; `None` once the future has failed.
    Draft(Option<Result<D, E>>),
    Started(S),
}

impl<D, E, S> Deferred<D, E, S> {
    pub(super) const fn new(draft: Result<D, E>) -> Self {
        Self::Draft(Some(draft))
    }

    /// The draft, for the builder methods.
    pub(super) const fn draft(&mut self) -> Option<&mut D> {
        match self {
            Self::Draft(Some(Ok(draft))) => Some(draft),
            Self::Draft(_) | Self::Started(_) => None,
        }
    }

    /// Starts the draft at the first poll, and returns what it started.
    ///
    /// # Panics
    /// When the future has failed before.
    pub(super) fn started(&mut self, start: impl FnOnce(D) -> Result<S, E>) -> Result<&mut S, E> {
        if let Self::Draft(draft) = self {
            let draft = draft.take().expect("a future is not polled again after it failed");
            *self = Self::Started(start(draft?)?);
        }
        match self {
            Self::Started(started) => Ok(started),
            Self::Draft(_) => unreachable!("the draft was just started"),
        }
    }
}
