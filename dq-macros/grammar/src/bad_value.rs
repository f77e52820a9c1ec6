//! The one error of the texts and numbers that cannot be what they should.

/// A text or a number cannot be the value that is wanted. It displays as what is wrong, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    /// The error with this text.
    #[doc(hidden)]
    pub fn new(what_to_write: impl Into<String>) -> Self {
        Self(what_to_write.into())
    }
}
