//! What a caller may say of a job besides its payload, and the check of it.

use std::time::Duration;

use super::error::AddError;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{Deliver, JobDefaults, Metadata, RetryPolicy};
use crate::store::{Due, OnDuplicate};
use crate::time::{Delay, LONGEST_DELAY, Timestamp};

/// When a job is due, as it was asked for.
#[derive(Debug, Clone)]
pub(super) enum When {
    After(Delay),
    At(Timestamp),
}

/// What was asked for; nothing is checked yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) when: Option<When>,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) retry: Option<String>,
    pub(super) expires_after: Option<Delay>,
    pub(super) retain: Option<Delay>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) deliver: Option<Deliver>,
}

/// What is common to all jobs added with the same options.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) due: Due,
    pub(super) expires_after: Option<Duration>,
    pub(super) metadata: Metadata,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) deliver: Deliver,
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

    /// Checks everything and fills in the defaults. `default_delay` goes before the delay of the payload.
    pub(super) fn check(
        self,
        defaults: &JobDefaults,
        default_delay: Option<Duration>,
        environment: &Environment,
    ) -> Result<Terms, AddError> {
        let usual = bounded("after", default_delay.unwrap_or(defaults.delay))?;
        let (due, delay) = match self.when {
            None => (Due::After(usual), usual),
            Some(When::After(delay)) => {
                let delay = read("after", delay)?;
                (Due::After(delay), delay)
            }
            Some(When::At(at)) => {
                bounded("at", at.since(environment.wall()))?;
                (Due::At(at), usual)
            }
        };
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
        // The payload's own policy is weaker than the listener's settings: the node that runs the job knows both.
        let retry = self.retry.as_deref().map(canonical).transpose()?;
        let metadata = Metadata {
            delay,
            retain: bounded("retain", retain.unwrap_or(defaults.retain))?,
            retry,
            headers: self.headers,
            ..Metadata::default()
        };
        Ok(Terms {
            due,
            expires_after,
            metadata,
            on_duplicate: self.on_duplicate,
            deliver: self.deliver.unwrap_or(defaults.deliver),
        })
    }
}

/// The builder methods that `Add` and `AddMany` share; `$options` finds the [`Options`] in `self`, if it is not too late.
macro_rules! option_methods {
    () => {
        /// Due this long after the store has it: a `Duration`, a text as `"15m"` or `delay!("15m")`; at most ten years.
        /// Defaults to the delay of the topic or of the payload, else to none: due at once.
        pub fn after(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.when = Some($crate::provider::options::When::After(delay)))
        }

        /// Due at this time of the store's clock, at most ten years away; a time that is past is *at once*. A
        /// [`rejoin`](crate::listener::Channel::rejoin) of the job waits for the usual delay of its topic.
        pub fn at(self, time: impl Into<$crate::time::Timestamp>) -> Self {
            let time = time.into();
            self.with(|options| options.when = Some($crate::provider::options::When::At(time)))
        }

        /// If the id is known: leave the old job and be content. This makes an add safe to repeat.
        pub fn keep_existing(self) -> Self {
            self.with(|options| options.on_duplicate = $crate::store::OnDuplicate::Keep)
        }

        /// If the id is known: put the new job in the place of the old one; of a running one, when its run ends.
        pub fn replace_existing(self) -> Self {
            self.with(|options| options.on_duplicate = $crate::store::OnDuplicate::Replace)
        }

        /// The retry policy, as `"none"`, `"30s x 5"` or `"1m, 5m, 10m"`; see [`RetryPolicy`](crate::job::RetryPolicy).
        /// Defaults to that of the payload, else to that of the listener.
        pub fn retry(self, policy: impl Into<String>) -> Self {
            let policy = policy.into();
            self.with(|options| options.retry = Some(policy))
        }

        /// How long after its first due time the job is still worth running; then it goes to DEAD unrun. Defaults to
        /// that of the payload, else to no end.
        pub fn expires_after(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.expires_after = Some(delay))
        }

        /// How long the job is kept as DONE after its ack. Defaults to that of the payload, else to not at all.
        pub fn retain(self, delay: impl $crate::time::IntoDelay) -> Self {
            let delay = delay.into_delay();
            self.with(|options| options.retain = Some(delay))
        }

        /// A header, which the handler reads with `job.header(name)`; one of the same name is replaced. All headers of a
        /// job together are at most 8 KiB, 4 bytes for each included.
        pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
            let (name, value) = (name.into(), value.into());
            self.with(|options| options.header(name, value))
        }

        /// To every connected node that listens to the broadcast channel named as the topic, instead of to one listener.
        pub fn broadcast(self) -> Self {
            self.deliver($crate::job::Deliver::Broadcast)
        }

        /// To the queue, to the broadcasts, or both. Defaults to that of the payload, else to the queue.
        pub fn deliver(self, deliver: $crate::job::Deliver) -> Self {
            self.with(|options| options.deliver = Some(deliver))
        }
    };
}

pub(super) use option_methods;
