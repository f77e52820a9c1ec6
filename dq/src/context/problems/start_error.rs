//! The error of a start: all problems as one readable list.

use std::fmt;

use super::Problem;
use crate::listener::Provided;

/// Every reason why a node did not start. `Debug` prints what `Display` prints, so that a `main` that returns this error
/// prints readable text.
pub struct StartError {
    problems: Vec<Problem>,
    provided: Vec<Provided>,
}

impl StartError {
    /// Sorts the problems. `provided` lists the provided values; the report shows them if one is missing.
    pub(crate) fn new(mut problems: Vec<Problem>, provided: Vec<Provided>) -> Self {
        problems.sort_by_cached_key(|problem| (problem.group(), problem.place(), problem.to_string()));
        Self { problems, provided }
    }

    /// The problems, at least one: in groups by what they are about, and within a group in order of their places.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether all that is wrong is that no listener is named.
    #[cfg(feature = "testing")]
    pub(crate) fn is_only_no_listener(&self) -> bool {
        matches!(self.problems[..], [Problem::NoListener])
    }

    /// Lists the provided values, if one is missing.
    fn write_provided(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.problems.iter().any(|problem| matches!(problem, Problem::NotProvided { .. })) {
            return Ok(());
        }
        if self.provided.is_empty() {
            return f.write_str("\n  nothing is provided");
        }
        f.write_str("\n  provided are")?;
        for provided in &self.provided {
            write!(f, "\n       `{}`", provided.type_name)?;
            provided.at.iter().try_for_each(|at| write!(f, " ({}:{})", at.file(), at.line()))?;
        }
        Ok(())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.problems.len() == 1 { "" } else { "s" };
        write!(f, "cannot start, {} problem{plural}:", self.problems.len())?;
        for (i, problem) in self.problems.iter().enumerate() {
            write!(f, "\n{:>3}. {}", i + 1, problem.to_string().replace('\n', "\n       "))?;
        }
        self.write_provided(f)
    }
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StartError {}
