//! Where a setting, a listener or a value comes from. Every startup message names it.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

use crate::time::Timestamp;

/// A line of a file, for example `src/orders.rs:12`. Locations sort by file, then by line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file.
    pub file: Cow<'static, str>,
    /// The line; 0 if it is unknown.
    pub line: u32,
}

impl SourceLocation {
    /// Reads a text such as `src/orders.rs:12`, which the attributes write.
    pub(crate) fn declared(text: &'static str) -> Self {
        let (file, line) = text.rsplit_once(':').unwrap_or((text, ""));
        line.parse().map_or(Self { file: text.into(), line: 0 }, |line| Self { file: file.into(), line })
    }
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(at: &'static Location<'static>) -> Self {
        Self { file: at.file().into(), line: at.line() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => self.file.fmt(f),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Where a setting came from. The variants go from the weakest source to the strongest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// The default of dq.
    Default,
    /// Nobody set it, and its default does not fit to these settings: dq took the nearest value that does.
    Follows(&'static [&'static str]),
    /// `#[job(..)]` of the payload; the location is that of its listener.
    Payload(SourceLocation),
    /// The attribute of the listener.
    Listener(SourceLocation),
    /// A call of the builder.
    Builder(SourceLocation),
    /// A line of the config file.
    File(SourceLocation),
    /// An environment variable.
    Variable(String),
    /// Somebody set it in the store, for all nodes and programs.
    Store {
        /// Who.
        by: String,
        /// When, by the store's clock.
        since: Timestamp,
    },
}

impl Source {
    /// The location, if the source has one.
    pub(crate) const fn location(&self) -> Option<&SourceLocation> {
        match self {
            Self::Default | Self::Follows(_) | Self::Variable(_) | Self::Store { .. } => None,
            Self::Payload(at) | Self::Listener(at) | Self::Builder(at) | Self::File(at) => Some(at),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Follows(keys) => write!(f, "follows `{}`", keys.join("` and `")),
            Self::Payload(at) => write!(f, "payload of the listener at {at}"),
            Self::Listener(at) => write!(f, "listener at {at}"),
            Self::Builder(at) => write!(f, "builder at {at}"),
            Self::File(at) => at.fmt(f),
            Self::Variable(name) => f.write_str(name),
            Self::Store { by, since } => write!(f, "set by {by} at {since}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_sort_by_the_number_of_the_line() {
        let (seventh, eleventh) = (SourceLocation::declared("src/x.rs:7"), SourceLocation::declared("src/x.rs:11"));
        assert!(seventh < eleventh);
        assert_eq!(eleventh.to_string(), "src/x.rs:11");
        assert_eq!(SourceLocation::declared("somewhere").to_string(), "somewhere");
    }
}
