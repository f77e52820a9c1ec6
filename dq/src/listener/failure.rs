//! How a run failed.

use std::error::Error;
use std::fmt;

use crate::job::Cause;

/// How much of an error's text dq keeps, in bytes.
pub const LONGEST_ERROR: usize = 4 * 1024;

/// The error of a handler. `?` makes one from any error, including `anyhow::Error`, and `.into()` from a text.
pub struct JobError(Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for JobError {
    /// The error and its sources, as `outer: inner`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// Why a run failed, as [`DelayListener::final_retry`](crate::DelayListener::final_retry) receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of failure.
    pub cause: Cause,
    /// The text, cut to 4 KiB.
    pub message: String,
}

impl Failure {
    /// Makes a failure. It cuts the text to 4 KiB, at the end of a character.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        const CUT: &str = " … (cut)";
        let mut message = message.into();
        if message.len() > LONGEST_ERROR {
            let most = LONGEST_ERROR - CUT.len();
            message.truncate((0..=most).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0));
            message.push_str(CUT);
            message.shrink_to_fit();
        }
        Self { cause, message }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("no answer")]
        struct Outer(#[source] fmt::Error);
        let error = JobError::from(Outer(fmt::Error));
        assert!(error.to_string().starts_with("no answer: an error occurred"));
        assert_eq!(JobError::from("a text").to_string(), "a text");
    }

    #[test]
    fn a_long_error_is_cut_at_a_character() {
        let failure = Failure::new(Cause::Error, "é".repeat(10 << 20));
        assert!(failure.message.len() <= LONGEST_ERROR && failure.message.ends_with("(cut)"));
    }
}
