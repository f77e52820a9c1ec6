//! The options of an add, and their check.

use std::time::Duration;

use super::error::AddError;
use super::limit;
use super::when::When;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{Deliver, JobDefaults, Metadata, RetryPolicy};
use crate::store::{Due, OnDuplicate};
use crate::telemetry;
use crate::time::{Delay, LONGEST_DELAY};

/// The options as the caller gave them, unchecked.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) when: Option<When>,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) at_most: Option<Delay>,
    pub(super) retry: Option<String>,
    pub(super) expires_after: Option<Delay>,
    pub(super) retain: Option<Delay>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) deliver: Option<Deliver>,
    pub(super) within: Option<Delay>,
}

/// Checked options, with the defaults filled in: what all jobs added with the same options share.
#[derive(Debug, Clone)]
pub(super) struct CheckedOptions {
    pub(super) due: Due,
    pub(super) expires_after: Option<Duration>,
    pub(super) metadata: Metadata,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) deliver: Deliver,
    pub(super) within: Option<Duration>,
    /// The delay of the payload, which a job has that is due at a time.
    usual: Duration,
}

fn bounded(field: &'static str, delay: Duration) -> Result<Duration, AddError> {
    if delay > LONGEST_DELAY {
        return Err(AddError::DelayTooLong { field, delay, limit: LONGEST_DELAY });
    }
    Ok(delay)
}

fn read(field: &'static str, delay: Delay) -> Result<Duration, AddError> {
    let delay = delay.duration().map_err(|source| AddError::BadDelay { field, source })?;
    bounded(field, delay)
}

fn canonical(retry: &str) -> Result<String, AddError> {
    Ok(retry.parse::<RetryPolicy>()?.to_string())
}

impl Options {
    /// Sets a header; one of the same name is replaced.
    pub(super) fn header(&mut self, name: String, value: String) {
        match self.headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.headers.push((name, value)),
        }
    }

    /// Keeps the trace of the caller in the headers. Not for a schedule: its ticks have no caller.
    pub(super) fn carry_trace(&mut self) {
        telemetry::carry(&mut self.headers, NodeSettings::LONGEST_HEADERS);
    }

    /// Checks every option and fills in the defaults.
    pub(super) fn check(self, defaults: &JobDefaults, environment: &Environment) -> Result<CheckedOptions, AddError> {
        let usual = bounded("after", defaults.delay)?;
        let (due, delay) = due(self.when.clone(), usual, environment)?;
        let on_duplicate = self.extension(delay)?;
        let size = self.headers.iter().map(|(name, value)| 4 + name.len() + value.len()).sum();
        if size > NodeSettings::LONGEST_HEADERS {
            return Err(AddError::HeadersTooLarge { size, limit: NodeSettings::LONGEST_HEADERS });
        }
        let expires_after = self.expires_after.map(|delay| read("expires_after", delay)).transpose()?;
        let expires_after = match expires_after.or(defaults.expires_after) {
            Some(duration) => Some(bounded("expires_after", duration)?),
            None => None,
        };
        let retain = self.retain.map(|delay| read("retain", delay)).transpose()?;
        // The listener's settings override the payload's policy: the node that runs the job knows both.
        let retry = self.retry.as_deref().map(canonical).transpose()?;
        let metadata = Metadata {
            delay,
            retain: bounded("retain", retain.unwrap_or(defaults.retain))?,
            retry,
            headers: self.headers,
            ..Metadata::default()
        };
        Ok(CheckedOptions {
            due,
            expires_after,
            metadata,
            on_duplicate,
            deliver: self.deliver.unwrap_or(defaults.deliver),
            within: limit::read(self.within).map_err(AddError::BadWithin)?,
            usual,
        })
    }
}

impl Options {
    /// What an add does about a known id, with the limit of an extension by this delay.
    fn extension(&self, by: Duration) -> Result<OnDuplicate, AddError> {
        if !matches!(self.on_duplicate, OnDuplicate::Extend { .. }) {
            return Ok(self.on_duplicate);
        }
        let at_most = self.at_most.clone().map(|delay| read("at_most", delay)).transpose()?;
        match at_most.filter(|at_most| *at_most < by) {
            Some(at_most) => Err(AddError::LimitBelowDelay { by, at_most }),
            None => Ok(OnDuplicate::Extend { at_most }),
        }
    }
}

impl CheckedOptions {
    /// These options for a job that is due at a time of its own.
    pub(super) fn due(&self, when: When, environment: &Environment) -> Result<Self, AddError> {
        let (due, delay) = due(Some(when), self.usual, environment)?;
        Ok(Self { due, metadata: Metadata { delay, ..self.metadata.clone() }, ..self.clone() })
    }
}

/// When a job is due, and the delay of its rejoins.
fn due(when: Option<When>, usual: Duration, environment: &Environment) -> Result<(Due, Duration), AddError> {
    Ok(match when {
        None => (Due::Usual(usual), usual),
        Some(When::After(delay)) => {
            let delay = read("after", delay)?;
            (Due::After(delay), delay)
        }
        Some(When::At(at)) => {
            bounded("at", at.since(environment.wall()))?;
            (Due::At(at), usual)
        }
    })
}

/// The builder methods that `Add` and `AddMany` share, and those of the extensions among them. Each calls `self.with`, which changes the [`Options`] until the first
/// poll.
macro_rules! option_methods {
    () => {
        /// Makes the job due this long after the store adds it: a `Duration`, a text such as `"15m"`, or `delay!("15m")`; at
        /// most ten years. Defaults to the delay of the topic or of the payload; without one the job is due at once.
        pub fn after(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.when = Some($crate::provider::when::When::After(delay)))
        }

        /// Makes the job due at this time of the store's clock, at most ten years away; a time in the past means at once. A
        /// [`rejoin`](crate::listener::Channel::rejoin) of the job waits for the delay of the payload.
        pub fn at(self, time: impl Into<$crate::time::Timestamp>) -> Self {
            let time = time.into();
            self.with(|options| options.when = Some($crate::provider::when::When::At(time)))
        }

        $crate::provider::options::shared_option_methods!();
    };
}

/// The builder methods of an add that may extend a job.
macro_rules! extension_methods {
    () => {
        /// Makes the job due this long after the store adds or extends it: a `Duration`, a text such as `"30m"`, or `delay!("30m")`; at
        /// most ten years. Defaults to the delay of the topic or of the payload.
        pub fn by(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.when = Some(When::After(delay)))
        }

        /// Bounds how long extensions can put the job off, counted from its first add; without this, for ever. A job that was added
        /// in another way counts from its first extension. Less than [`by`](Self::by) is an error, and nothing is sent.
        pub fn at_most(self, limit: impl $crate::time::IntoDelay) -> Self {
            let limit = limit.into_delay();
            self.with(|options| options.at_most = Some(limit))
        }
    };
}

/// The builder methods of every add.
macro_rules! shared_option_methods {
    () => {
        /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or
        /// a text such as `"500ms"`, at most an hour. For callers that cannot wait that long, such as an HTTP handler. When the
        /// time is over, the error says whether the job was certainly not added, or whether that is unknown.
        pub fn within(self, time: impl $crate::time::IntoDelay) -> Self {
            let time = time.into_delay();
            self.with(|options| options.within = Some(time))
        }

        /// Sets the retry policy, such as `"none"`, `"30s x 5"` or `"1m, 5m, 10m"`; see
        /// [`RetryPolicy`](crate::job::RetryPolicy). It outweighs every setting of the topic
        /// ([the order](crate::config#which-source-counts)).
        pub fn retry(self, policy: impl Into<String>) -> Self {
            let policy = policy.into();
            self.with(|options| options.retry = Some(policy))
        }

        /// Sets how long after its first due time the job is still worth running; after that it goes to DEAD without a run.
        /// Defaults to the payload's value; without one the job does not expire.
        pub fn expires_after(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.expires_after = Some(delay))
        }

        /// Sets how long the job is kept as DONE after its ack. Defaults to the payload's value; without one the job is not
        /// kept.
        pub fn retain(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.retain = Some(delay))
        }

        /// Sets a header, which the handler reads with `job.header(name)`; it replaces a header of the same name. All headers
        /// of a job together are at most 8 KiB, including 4 bytes for each.
        pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
            let (name, value) = (name.into(), value.into());
            self.with(|options| options.header(name, value))
        }

        /// Delivers the job to every connected node that listens to the broadcast channel of the topic's name, instead of to
        /// one listener.
        pub fn broadcast(self) -> Self {
            self.deliver($crate::job::Deliver::Broadcast)
        }

        /// Delivers the job to the queue, to the broadcasts, or to both. Defaults to the payload's value, or to the queue.
        pub fn deliver(self, deliver: $crate::job::Deliver) -> Self {
            self.with(|options| options.deliver = Some(deliver))
        }
    };
}

pub(super) use {extension_methods, option_methods, shared_option_methods};
