//! What happens to the other jobs of a group while one of its jobs is not over: for each cause `wait` or `pass`.
//!
//! | text | meaning |
//! |---|---|
//! | `retry: pass` | the group runs other jobs while one waits for its retry |
//! | `dead: wait, park: wait` | the group stands while a job is DEAD or UNACKED |

use std::fmt;
use std::str::FromStr;

use crate::InvalidValue;

/// Why the job of a group does not run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedBy {
    /// It failed, and waits for its retry.
    Retry,
    /// Its handler rejoined it.
    Rejoin,
    /// Its handler parked it: it is UNACKED.
    Park,
    /// It is DEAD.
    Dead,
}

impl BlockedBy {
    const ALL: [Self; 4] = [Self::Retry, Self::Rejoin, Self::Park, Self::Dead];

    const fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Rejoin => "rejoin",
            Self::Park => "park",
            Self::Dead => "dead",
        }
    }
}

/// For which of its jobs a group waits. By default for those that are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnBlocked {
    waits: [bool; BlockedBy::ALL.len()],
}

impl Default for OnBlocked {
    fn default() -> Self {
        Self { waits: [true, false, false, false] }
    }
}

impl OnBlocked {
    /// Whether the group waits for a job that is blocked by this. If not, its other jobs pass it.
    pub const fn waits_for(self, cause: BlockedBy) -> bool {
        self.waits[cause as usize]
    }
}

impl FromStr for OnBlocked {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let mut on_blocked = Self::default();
        for part in text.split(',') {
            let bad = || {
                let part = part.trim();
                InvalidValue::new(format!(
                    "`{part}` is not a cause and `wait` or `pass`: write `retry: pass` or `dead: wait, park: wait`; the causes are retry, rejoin, park and dead"
                ))
            };
            let (cause, what) = part.split_once(':').ok_or_else(bad)?;
            let cause = BlockedBy::ALL.into_iter().find(|known| known.word() == cause.trim()).ok_or_else(bad)?;
            on_blocked.waits[cause as usize] = match what.trim() {
                "wait" => true,
                "pass" => false,
                _ => return Err(bad()),
            };
        }
        Ok(on_blocked)
    }
}

impl fmt::Display for OnBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, cause) in BlockedBy::ALL.into_iter().enumerate() {
            let what = if self.waits_for(cause) { "wait" } else { "pass" };
            write!(f, "{}{}: {what}", if n == 0 { "" } else { ", " }, cause.word())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_does_not_name_is_as_by_default() {
        let text = "dead: wait,retry:pass , park: wait";
        let on_blocked: OnBlocked = text.parse().unwrap();
        let shown = "retry: pass, rejoin: pass, park: wait, dead: wait";
        assert_eq!(on_blocked.to_string(), shown);
        assert_eq!(shown.parse(), Ok(on_blocked));
        let default = "retry: wait, rejoin: pass, park: pass, dead: pass";
        assert_eq!(OnBlocked::default().to_string(), default);
    }

    #[test]
    fn other_texts_are_refused_with_what_to_write() {
        for (text, part) in
            [("", ""), ("wait", "wait"), ("dead: wait, crash: pass", "crash: pass"), ("dead: stop", "dead: stop")]
        {
            let error = text.parse::<OnBlocked>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{part}` is not a cause and `wait` or `pass`: write")), "{error}");
        }
    }
}
