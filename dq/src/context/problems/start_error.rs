//! The error of a start: all problems as one list for people.

use std::fmt;

use super::Problem;
use crate::listener::Provided;

/// A node was not started: everything that is wrong, at once. `Debug` shows what `Display` shows, so that a `main` which
/// returns it prints text for people.
pub struct StartError {
    problems: Vec<Problem>,
    provided: Vec<Provided>,
}

impl StartError {
    /// The problems in the order in which they are told; `provided` is what there is instead of what is missing.
    pub(crate) fn new(mut problems: Vec<Problem>, provided: Vec<Provided>) -> Self {
        problems.sort_by_cached_key(|problem| (problem.group(), problem.place(), problem.to_string()));
        Self { problems, provided }
    }

    /// The problems, at least one: grouped by what they are about, within a group by place.
    #[doc(hidden)]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What was provided, where something is missing.
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
