//! What the environment and the config file name and this node does not use: mostly for other programs, sometimes misspelled.

use std::fmt;

use super::source::SourceLocation;

/// How many names one line of the log has.
const MAX_LISTED: usize = 50;

/// A variable, or a topic of the config file, that this node does not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unused {
    name: String,
    at: Option<SourceLocation>,
    suggestion: Option<String>,
}

impl Unused {
    pub(super) fn new(name: &str, at: Option<SourceLocation>, suggestion: Option<String>) -> Self {
        Self { name: name.to_owned(), at, suggestion }
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        match (&self.at, &self.suggestion) {
            (None, None) => Ok(()),
            (Some(at), None) => write!(f, " ({at})"),
            (None, Some(near)) => write!(f, " (did you mean `{near}`?)"),
            (Some(at), Some(near)) => write!(f, " ({at}; did you mean `{near}`?)"),
        }
    }
}

/// Everything that a node does not use.
#[derive(Debug, Default)]
pub(crate) struct AllUnused {
    /// Variables that begin with `DQ_` and name no setting.
    pub(super) variables: Vec<Unused>,
    /// Settings of topics that have no listener in this program.
    pub(super) topics: Vec<Unused>,
}

impl AllUnused {
    /// Logs at most two lines. Values stay out of them: a variable of another program may be a secret.
    pub(crate) fn log(&self) {
        if !self.variables.is_empty() {
            let variables = listed(&self.variables);
            tracing::warn!(
                variables,
                "these environment variables begin with `DQ_` but name no setting of dq: they are ignored"
            );
        }
        if !self.topics.is_empty() {
            let topics = listed(&self.topics);
            tracing::info!(topics, "topics without a listener in this program have settings, which are ignored here");
        }
    }
}

fn listed(all: &[Unused]) -> String {
    let names: Vec<_> = all.iter().take(MAX_LISTED).map(Unused::to_string).collect();
    let more = all.len().saturating_sub(MAX_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_bounded() {
        let many: Vec<_> = (0..MAX_LISTED + 7).map(|i| Unused::new(&format!("DQ_{i}"), None, None)).collect();
        assert!(listed(&many).ends_with("`DQ_49` and 7 more"), "{}", listed(&many));
        assert_eq!(listed(&many[..2]), "`DQ_0`, `DQ_1`");
    }
}
