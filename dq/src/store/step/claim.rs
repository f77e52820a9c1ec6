//! A claimed job.

use super::{Change, Outcome};
use crate::job::{JobId, Record, Token};

/// A job that a node claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub id: JobId,
    /// The token of the run, which every outcome must carry.
    pub token: Token,
    /// Its record.
    pub record: Record,
    /// Crashes since its last settled outcome.
    pub crashes: u32,
}

impl Claim {
    /// What its run asks, without new metadata.
    pub fn outcome(&self, change: Change) -> Outcome {
        Outcome { id: self.id.clone(), token: self.token, change, metadata: None }
    }
}
