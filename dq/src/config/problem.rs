//! What can be wrong with settings, with everything a message needs in fields.

use std::fmt;

use super::source::{Source, SourceLocation};
use super::suggest::did_you_mean;

/// A setting of the node or of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// The topic; `None`: a setting of the node.
    pub topic: Option<String>,
    /// The key.
    pub key: &'static str,
}

impl Setting {
    pub(crate) fn new(topic: Option<&str>, key: &'static str) -> Self {
        Self { topic: topic.map(str::to_owned), key }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`{}", self.key, of_topic(self.topic.as_ref()))
    }
}

fn of_topic(topic: Option<&String>) -> String {
    topic.map_or_else(String::new, |topic| format!(" of topic `{topic}`"))
}

fn either(meanings: &[Setting]) -> String {
    meanings.iter().map(Setting::to_string).collect::<Vec<_>>().join(" or ")
}

/// Something wrong with a setting. Whoever wrote it must mend it; nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingProblem {
    /// The config file cannot be read. Check the path of `.config_file(..)` and the rights of the file.
    #[error("the config file `{path}` cannot be read: {reason}")]
    FileUnreadable {
        /// The path as it was given.
        path: String,
        /// What the operating system says.
        reason: String,
    },
    /// The config file is not TOML.
    #[error("{at}: {reason}")]
    FileSyntax {
        /// The line.
        at: SourceLocation,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such setting.
    #[error("{at}: there is no setting `{key}`{}{}", of_topic(.topic.as_ref()), did_you_mean(.suggestion.as_ref()))]
    UnknownKey {
        /// What was written.
        key: String,
        /// The topic, where it stands under one.
        topic: Option<String>,
        /// Where.
        at: Source,
        /// The nearest setting there is.
        suggestion: Option<String>,
    },
    /// There is no such environment variable.
    #[error("the environment variable `{name}` names no setting{}", did_you_mean(.suggestion.as_ref()))]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The nearest name that dq reads.
        suggestion: Option<String>,
    },
    /// An environment variable that names more than one setting, because topics are written in capitals with `_` for
    /// every other character. Use the config file to tell them apart.
    #[error("the environment variable `{name}` may mean {}: set it in the config file", either(.meanings))]
    AmbiguousVariable {
        /// Its name.
        name: String,
        /// What it may mean.
        meanings: Vec<Setting>,
    },
    /// The value cannot be read.
    #[error("{setting} ({at}): {why}")]
    BadValue {
        /// The setting.
        setting: Setting,
        /// Who wrote it.
        at: Source,
        /// What was written, and what to write.
        why: String,
    },
    /// The value breaks a rule.
    #[error("{setting} is {value} ({at}), allowed is {limit}: write {write}")]
    OutOfRange {
        /// The setting.
        setting: Setting,
        /// Its value.
        value: String,
        /// Who wrote it.
        at: Source,
        /// The rule.
        limit: String,
        /// A value that would do, as it is written in a config file.
        write: String,
    },
    /// Settings of a topic that has no listener.
    #[error("{at}: settings of topic `{topic}`, which has no listener{}", did_you_mean(.suggestion.as_ref()))]
    UnknownTopic {
        /// The topic.
        topic: String,
        /// Where it is named.
        at: Source,
        /// The nearest topic there is.
        suggestion: Option<String>,
    },
}

impl SettingProblem {
    /// The line it stands in, where there is one.
    pub(crate) fn place(&self) -> Option<SourceLocation> {
        match self {
            Self::FileSyntax { at, .. } => Some(at.clone()),
            Self::UnknownKey { at, .. }
            | Self::BadValue { at, .. }
            | Self::OutOfRange { at, .. }
            | Self::UnknownTopic { at, .. } => at.place().cloned(),
            Self::FileUnreadable { .. } | Self::UnknownVariable { .. } | Self::AmbiguousVariable { .. } => None,
        }
    }
}
