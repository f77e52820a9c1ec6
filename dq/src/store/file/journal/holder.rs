//! Who uses a directory: the text of the lock file.

use std::fmt;

use crate::time::Timestamp;

/// A process that uses a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, if the lock file tells.
    pub pid: Option<u32>,
    /// Since when, if the lock file tells.
    pub since: Option<Timestamp>,
}

impl Holder {
    /// The text of the lock file.
    pub(super) fn encode(&self) -> String {
        let (pid, since) = (self.pid.unwrap_or_default(), self.since.unwrap_or_default().as_millis());
        format!("pid {pid}\nsince {since}\n")
    }

    /// What the text of a lock file tells. A process writes it after it took the lock, so it may be missing for a moment.
    pub(super) fn decode(text: &str) -> Self {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        let pid = value("pid ").and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Self { pid, since: value("since ").filter(|since| *since > 0).map(Timestamp::from_millis) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => write!(f, "another process")?,
        }
        match self.since {
            Some(since) => write!(f, " since {}", humantime::format_rfc3339_seconds(since.into())),
            None => Ok(()),
        }
    }
}
