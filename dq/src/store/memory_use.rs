//! How much memory the jobs of a store take.

use std::fmt;

use serde::Serialize;

use super::{Danger, FindingCode};

/// What the jobs of a store take in memory, and how much they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct MemoryUse {
    /// What they take, in bytes, as the store counts it.
    pub bytes: u64,
    /// How much they may take before the store refuses adds; `None`: there is no limit.
    pub limit: Option<u64>,
}

impl MemoryUse {
    /// What it means that so much is in use. `what` names who uses it, and `setting` the limit.
    pub(crate) fn danger(self, what: &str, setting: &str) -> Option<Danger> {
        let percent = self.bytes.saturating_mul(100).checked_div(self.limit?)?;
        let code = match percent {
            0..80 => return None,
            80..95 => FindingCode::MemoryNearlyFull,
            _ => FindingCode::MemoryFull,
        };
        Some(Danger { code, text: format!("{what} {percent} % of {setting} ({self})") })
    }
}

/// As `812 of 1024 MiB`.
impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        match self.limit {
            Some(limit) => write!(f, "{} of {} MiB", mib(self.bytes), mib(limit)),
            None => write!(f, "{} MiB", mib(self.bytes)),
        }
    }
}
