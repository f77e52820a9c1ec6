//! The union of dq's errors, for those who want one type.

use std::fmt;
use std::io;

use super::factory::problems::StartError;
use crate::job::BadName;
use crate::provider::{AddError, CommandError, QueryError, SweepError};
use crate::store::StoreError;

/// Any error of dq. `Debug` shows what `Display` shows, so that a `main` which returns it prints text for people.
#[non_exhaustive]
pub enum Error {
    /// A node was not started: everything that is wrong with it.
    Start(StartError),
    /// The store failed.
    Store(StoreError),
    /// A job was not added, or it is not known whether it was.
    Add(AddError),
    /// A delete, cancel, ack or requeue was not done, or it is not known whether it was.
    SendCommand(CommandError),
    /// A look at jobs failed.
    Look(QueryError),
    /// Sweeping a place stopped half-way.
    Sweep(SweepError),
    /// A name that cannot be one.
    Name(BadName),
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
            Self::Add(error) => error,
            Self::SendCommand(error) => error,
            Self::Look(error) => error,
            Self::Sweep(error) => error,
            Self::Name(error) => error,
            Self::Other(error) => &**error,
        }
    }
}

impl fmt::Display for Error {
    /// The error and its sources, as `outer: inner`; a source that the text already ends in is not said again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.inner();
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let inner = error.to_string();
            if !text.ends_with(&inner) {
                text = format!("{text}: {inner}");
            }
            source = error.source();
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without a source: the text has all of them already.
impl std::error::Error for Error {}

macro_rules! from {
    ($($variant:ident($error:ty)),+ $(,)?) => { $(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )+ };
}
from!(
    Start(StartError),
    Store(StoreError),
    Add(AddError),
    SendCommand(CommandError),
    Look(QueryError),
    Sweep(SweepError),
    Name(BadName),
);

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
        let source = StoreError::Unavailable { operation: "get", reason: "no answer".into() };
        let look = QueryError::Store { topic: crate::job::TopicName::new("t").unwrap(), source };
        let text = "topic `t` cannot be looked at: the store is unavailable during get: no answer";
        assert_eq!(Error::from(look).to_string(), text);
    }
}
