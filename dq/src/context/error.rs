//! The union of dq's errors, for programs that want one type.

use std::fmt;
use std::io;

use super::problems::StartError;
use crate::job::InvalidName;
use crate::provider::CallError;
use crate::store::StoreError;

/// Any error of dq. `Debug` prints what `Display` prints, so that a `main` that returns this error prints readable text.
#[non_exhaustive]
pub enum Error {
    /// A node did not start: every problem of its configuration, its listeners and its store.
    Start(StartError),
    /// The store failed.
    Store(StoreError),
    /// A call of a provider was not done, or the outcome is unknown.
    Call(CallError),
    /// A name is not valid.
    Name(InvalidName),
    /// An error of the program itself, so that `?` works in a `main` that returns this type.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps an error of the program itself.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Start(error) => error,
            Self::Store(error) => error,
            Self::Call(error) => error,
            Self::Name(error) => error,
            Self::Other(error) => &**error,
        }
    }
}

impl fmt::Display for Error {
    /// The error and its sources, as `outer: inner`; a source that ends the text already is not repeated.
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

/// Has no source, because the text contains them all.
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
from!(Start(StartError), Store(StoreError), Call(CallError), Name(InvalidName),);

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
        let topic = crate::job::TopicName::new("t").unwrap();
        let query = CallError::not_queried(topic, source);
        let text = "topic `t` cannot be queried: the store is unavailable during get: no answer";
        assert_eq!(Error::from(query).to_string(), text);
    }
}
