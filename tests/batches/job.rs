//! The job of these tests, and how each ends. The node and the test share it.

use dq::DelayJob;
use serde::{Deserialize, Serialize};

/// A job with a number.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "batched")]
pub struct Numbered {
    #[job(id)]
    pub n: u64,
}

/// Whether each run of this job fails.
pub const fn fails(n: u64) -> bool {
    n % 10 == 7
}
