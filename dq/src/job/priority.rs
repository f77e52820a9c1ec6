//! How a job stands to other due jobs of its topic.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dq_grammar::InvalidValue;

/// Which of the due jobs of a topic a node claims first.
///
/// A job overtakes due jobs of the next lower priority that have been due for less than the `priority_ageing` of the topic longer, ten minutes
/// by default; and it overtakes them by twice that if they are two lower. So no job starves. A job that is not due yet competes with none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Before `normal` and `low`.
    High,
    /// What a job has that names none.
    #[default]
    Normal,
    /// After `high` and `normal`.
    Low,
}

impl Priority {
    /// Every priority, the highest first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The priority as a word, for example `high`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// How much later the due time of such a job counts, against that of a high one, in a claim.
    pub(crate) fn shift(self, ageing: Duration) -> Duration {
        ageing * self as u32
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Priority {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let bad = || InvalidValue::new(format!("`{text}` is not a priority: write `high`, `normal` or `low`"));
        Self::ALL.into_iter().find(|priority| priority.as_str() == text).ok_or_else(bad)
    }
}
