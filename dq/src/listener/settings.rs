//! The settings in a listener's attribute; the config file and the environment outweigh them.

use std::time::Duration;

/// Settings of a listener. `None` leaves a setting to the next source in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListenerSettings {
    /// How many handlers run at once on a node.
    pub concurrency: Option<u32>,
    /// The timeout of a handler; zero means no limit.
    pub timeout: Option<Duration>,
    /// What happens after a timeout.
    pub on_timeout: Option<OnTimeout>,
    /// The retry policy, as text.
    pub retry: Option<&'static str>,
    /// When dq acks a job.
    pub ack: Option<AckMode>,
    /// How often a job may kill its node before dq gives it up.
    pub max_crashes: Option<u32>,
    /// How many moves of each job the topic keeps.
    pub history: Option<u32>,
    /// For how long it keeps them after the end of the job.
    pub history_after: Option<Duration>,
    /// How many jobs a batch has at most.
    pub batch: Option<u32>,
    /// Whether the store counts what the node does.
    pub statistics: Option<bool>,
}

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

impl ListenerSettings {
    /// No setting.
    pub const NONE: Self = Self {
        concurrency: None,
        timeout: None,
        on_timeout: None,
        retry: None,
        ack: None,
        max_crashes: None,
        history: None,
        history_after: None,
        batch: None,
        statistics: None,
    };

    /// Sets the concurrency.
    #[must_use]
    pub const fn with_concurrency(mut self, concurrency: u32) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Sets the timeout; zero means no limit.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets what happens after a timeout.
    #[must_use]
    pub const fn with_on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.on_timeout = Some(on_timeout);
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub const fn with_retry(mut self, retry: &'static str) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Sets when dq acks a job.
    #[must_use]
    pub const fn with_ack(mut self, ack: AckMode) -> Self {
        self.ack = Some(ack);
        self
    }

    /// Sets how often a job may kill its node before dq gives it up.
    #[must_use]
    pub const fn with_max_crashes(mut self, max_crashes: u32) -> Self {
        self.max_crashes = Some(max_crashes);
        self
    }

    /// Sets how many moves of each job the topic keeps; zero: none.
    #[must_use]
    pub const fn with_history(mut self, moves: u32) -> Self {
        self.history = Some(moves);
        self
    }

    /// Sets for how long the topic keeps them after the end of the job.
    #[must_use]
    pub const fn with_history_after(mut self, time: Duration) -> Self {
        self.history_after = Some(time);
        self
    }

    /// Sets how many jobs a batch has at most.
    #[must_use]
    pub const fn with_batch(mut self, batch: u32) -> Self {
        self.batch = Some(batch);
        self
    }

    /// Sets whether the store counts what the node does.
    #[must_use]
    pub const fn with_statistics(mut self, keeps: bool) -> Self {
        self.statistics = Some(keeps);
        self
    }
}
