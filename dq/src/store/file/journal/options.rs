//! What a journal is opened with, and who uses a directory: the text of the lock file.

use std::fmt;

use crate::time::Timestamp;

/// What a journal is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Written into every file of a new journal, so that files of another one are recognized: a random number. An existing
    /// journal keeps its own.
    pub identity: u64,
    /// Who opens it, for the lock file.
    pub holder: Holder,
    /// A new segment begins once one has this many bytes. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Zeros are written ahead of the groups in steps of this many bytes, because overwriting a file takes half as long as
    /// appending to it. 0: none. Default: 1 MiB.
    pub ahead_bytes: u64,
}

impl Options {
    /// The defaults.
    pub const fn new(identity: u64, holder: Holder) -> Self {
        Self { identity, holder, segment_bytes: 64 << 20, ahead_bytes: 1 << 20 }
    }
}

/// A process that uses a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, if the lock file tells.
    pub pid: Option<u32>,
    /// The name of its machine or container, if the lock file tells.
    pub host: Option<String>,
    /// A random number of the process, if the lock file tells: in two containers both may be process 1.
    pub process: Option<u64>,
    /// Since when, if the lock file tells.
    pub since: Option<Timestamp>,
}

impl Holder {
    /// The text of the lock file.
    pub(super) fn encode(&self) -> String {
        let (pid, since) = (self.pid.unwrap_or_default(), self.since.unwrap_or_default().as_millis());
        let (host, process) = (self.host.as_deref().unwrap_or_default(), self.process.unwrap_or_default());
        format!("pid {pid}\nsince {since}\nhost {host}\nprocess {process}\n")
    }

    /// What the text of a lock file tells. A process writes it after it took the lock, so it may be missing for a moment.
    pub(super) fn decode(text: &str) -> Self {
        let line = |key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
        let value = |key: &str| line(key)?.parse::<u64>().ok().filter(|value| *value > 0);
        let host = line("host ").filter(|host| !host.is_empty() && !host.contains(char::is_control));
        Self {
            pid: value("pid ").and_then(|pid| u32::try_from(pid).ok()),
            host: host.map(str::to_owned),
            process: value("process "),
            since: value("since ").map(Timestamp::from_millis),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => write!(f, "another process")?,
        }
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        match self.since {
            Some(since) => write!(f, " since {}", humantime::format_rfc3339_seconds(since.into())),
            None => Ok(()),
        }
    }
}
