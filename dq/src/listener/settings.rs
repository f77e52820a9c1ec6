//! What the settings of a listener choose from.

/// What happens after a handler's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// A retry by the retry policy, as after any failure.
    #[default]
    Retry,
    /// A retry at once. It spends an attempt.
    Immediate,
}

/// When dq acks a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum AckMode {
    /// When its handler has returned: the job runs at least once.
    #[default]
    OnReturn,
    /// Before its handler starts: the job runs at most once. A node that dies loses the jobs it holds, and dq retries
    /// none.
    OnClaim,
}
