//! The union of dq's errors, for those who want one type.

use std::fmt;
use std::io;

use crate::context::StartError;
use crate::store::StoreError;

/// Any error of dq. `Debug` shows what `Display` shows, so that a `main` which returns it prints text for people.
#[non_exhaustive]
pub enum Error {
    /// A node was not started: everything that is wrong with it.
    Start(StartError),
    /// The store failed.
    Store(StoreError),
    /// An error of the program's own, so that `?` works in a `main` that returns this type.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error of the program's own.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Start(error) => error,
            Self::Store(error) => error,
            Self::Other(error) => &**error,
        }
    }
}

impl fmt::Display for Error {
    /// The error and its sources, as `outer: inner`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.inner();
        fmt::Display::fmt(error, f)?;
        let mut source = error.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without a source: the text has all of them already.
impl std::error::Error for Error {}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_text_with_its_sources() {
        let source = Box::from("the disk is full");
        let error = Error::from(StoreError::Other { operation: "add", source });
        assert_eq!(format!("{error:?}"), "the store failed during add: the disk is full");
        assert_eq!(format!("{:?}", Error::from(io::Error::other("mine"))), "mine");
    }
}
