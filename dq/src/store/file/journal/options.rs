//! What a journal is opened with, and who uses a directory: the text of the lock file.

use std::fmt;

use crate::time::Timestamp;

/// What a journal is opened with.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Written into every file of a new journal, so that files of another one are recognized: a random number. An existing
    /// journal keeps its own.
    pub identity: u64,
    /// Who opens it, for the lock file.
    pub holder: Holder,
    /// The version of the content of the frames that are appended. Frames of older versions come with theirs; a file with a newer
    /// one is refused.
    pub content: u32,
    /// A new segment begins once one has this many bytes. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Zeros are written ahead of the groups in steps of this many bytes, because overwriting a file takes half as long as
    /// appending to it. 0: none. Default: 1 MiB.
    pub ahead_bytes: u64,
}

impl Options {
    /// The defaults.
    pub const fn new(identity: u64, holder: Holder, content: u32) -> Self {
        Self { identity, holder, content, segment_bytes: 64 << 20, ahead_bytes: 1 << 20 }
    }
}

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
