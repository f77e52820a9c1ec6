//! The problems with settings, and the known name nearest to a wrong one. Fields hold everything that the message needs.

use std::fmt;

use super::source::{Source, SourceLocation};

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

fn instead(place: Option<&'static str>, suggestion: Option<&String>) -> String {
    place.map_or_else(|| did_you_mean(suggestion), |place| format!(": {place}"))
}

fn either(meanings: &[Setting]) -> String {
    meanings.iter().map(Setting::to_string).collect::<Vec<_>>().join(" or ")
}

/// A problem with a setting. Fix the setting: the node did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingProblem {
    /// dq cannot read the config file. Check the path in `.config_file(..)` and the permissions of the file.
    #[error("cannot read the config file `{path}`: {reason}")]
    FileUnreadable {
        /// The path.
        path: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The config file is not valid TOML.
    #[error("{at}: {reason}")]
    FileSyntax {
        /// The line.
        at: SourceLocation,
        /// The error.
        reason: String,
    },
    /// There is no such setting.
    #[error("{at}: there is no setting `{key}`{}{}", of_topic(.topic.as_ref()), instead(*.place, .suggestion.as_ref()))]
    UnknownKey {
        /// The name in the source.
        key: String,
        /// The topic, for a setting of a topic.
        topic: Option<String>,
        /// Where the source has it.
        at: Source,
        /// Where it belongs, if it is a setting of another place.
        place: Option<&'static str>,
        /// The nearest setting.
        suggestion: Option<String>,
    },
    /// The environment variable names more than one setting, because variables replace many characters of a topic by
    /// `_`. Use the config file instead.
    #[error("the environment variable `{name}` may mean {}: set it in the config file", either(.meanings))]
    AmbiguousVariable {
        /// Its name.
        name: String,
        /// The settings it may mean.
        meanings: Vec<Setting>,
    },
    /// dq cannot read the value.
    #[error("{setting} ({at}): {why}")]
    InvalidValue {
        /// The setting.
        setting: Setting,
        /// Where the value came from.
        at: Source,
        /// The value, and what to write instead.
        why: String,
    },
    /// The value is outside its limits.
    #[error("{setting} is {value} ({at}), but it must be {limit}: write {write}")]
    OutOfRange {
        /// The setting.
        setting: Setting,
        /// Its value.
        value: String,
        /// Where the value came from.
        at: Source,
        /// What is allowed.
        limit: String,
        /// An allowed value, as in a config file.
        write: String,
    },
    /// The builder names a topic without a listener.
    #[error("{at}: topic `{topic}` has settings but no listener{}", did_you_mean(.suggestion.as_ref()))]
    UnknownTopic {
        /// The topic.
        topic: String,
        /// Where the source names it.
        at: Source,
        /// The nearest topic.
        suggestion: Option<String>,
    },
}

impl SettingProblem {
    /// The line of the problem, if there is one.
    pub(crate) fn location(&self) -> Option<SourceLocation> {
        match self {
            Self::FileSyntax { at, .. } => Some(at.clone()),
            Self::UnknownKey { at, .. }
            | Self::InvalidValue { at, .. }
            | Self::OutOfRange { at, .. }
            | Self::UnknownTopic { at, .. } => at.location().cloned(),
            Self::FileUnreadable { .. } | Self::AmbiguousVariable { .. } => None,
        }
    }
}

/// The known name nearest to `wrong`, if at most a third of the letters (or two) differ.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let most = (wrong.chars().count() / 3).max(2);
    let lower = wrong.to_lowercase();
    let lower = dq_grammar::present_name(&lower);
    let distances = known.into_iter().map(|name| (strsim::osa_distance(lower, &name.to_lowercase()), name));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name.to_owned())
}

/// The text `: did you mean `x`?`, or an empty text.
pub(crate) fn did_you_mean(suggestion: Option<&String>) -> String {
    suggestion.map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}
