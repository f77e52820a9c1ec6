//! What an attribute says of its listener; the config and the environment may say otherwise.

use std::time::Duration;

/// Settings of a listener; what is `None` is left to the next in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListenerSettings {
    /// Handlers at once, on this node.
    pub concurrency: Option<u32>,
    /// The timeout of a handler; zero: no limit.
    pub timeout: Option<Duration>,
    /// What follows a timeout.
    pub on_timeout: Option<OnTimeout>,
    /// The retry policy, as text.
    pub retry: Option<&'static str>,
    /// When a job is acked.
    pub ack: Option<AckMode>,
    /// How many crashes exhaust a job.
    pub max_crashes: Option<u32>,
}

/// What follows a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// As any failure, by the retry policy.
    #[default]
    Retry,
    /// A retry at once; it still counts.
    Immediate,
}

/// When a job is acked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckMode {
    /// When its handler returned.
    #[default]
    OnReturn,
    /// Before its handler starts: at most once. A node that dies loses what it holds, and there is no retry.
    OnClaim,
}

impl ListenerSettings {
    /// Nothing said.
    pub const NONE: Self =
        Self { concurrency: None, timeout: None, on_timeout: None, retry: None, ack: None, max_crashes: None };

    /// With a concurrency.
    #[must_use]
    pub const fn with_concurrency(mut self, concurrency: u32) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// With a timeout; zero: no limit.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// With a choice for timeouts.
    #[must_use]
    pub const fn with_on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.on_timeout = Some(on_timeout);
        self
    }

    /// With a retry policy.
    #[must_use]
    pub const fn with_retry(mut self, retry: &'static str) -> Self {
        self.retry = Some(retry);
        self
    }

    /// With a time of the ack.
    #[must_use]
    pub const fn with_ack(mut self, ack: AckMode) -> Self {
        self.ack = Some(ack);
        self
    }

    /// With a cap of crashes.
    #[must_use]
    pub const fn with_max_crashes(mut self, max_crashes: u32) -> Self {
        self.max_crashes = Some(max_crashes);
        self
    }
}
