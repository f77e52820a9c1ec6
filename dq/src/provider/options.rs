//! The options of an add, and their check.

use std::fmt;
use std::time::Duration;

use super::added::{Extending, Once};
use super::call::{Call, Verb};
use super::error::Invalid;
use super::inputs::{When, bounded, read};
use crate::environment::Environment;
use crate::job::{Delivery, GroupName, InvalidValue, JobDefaults, Metadata, Priority, RetryPolicy, Weight, limits};
use crate::store::{Due, MaxWaiting, OnDuplicate};
use crate::telemetry;
use crate::time::{Delay, IntoDelay, MAX_UNIQUE, MIN_UNIQUE, Timestamp};

/// The options as the caller gave them, unchecked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(super) when: Option<When>,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) at_most: Option<Delay>,
    pub(super) retry: Option<String>,
    pub(super) expires_after: Option<Delay>,
    pub(super) retain: Option<Delay>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) deliver: Option<Delivery>,
    pub(super) priority: Option<Priority>,
    pub(super) group: Option<Result<GroupName, InvalidValue>>,
    pub(super) weight: Option<Result<Weight, InvalidValue>>,
    pub(super) unique_for: Option<Delay>,
}

/// Checked options, with the defaults filled in: what all jobs added with the same options share.
#[derive(Debug, Clone)]
pub(super) struct CheckedOptions {
    pub(super) due: Due,
    pub(super) expires_after: Option<Duration>,
    pub(super) metadata: Metadata,
    /// Whether the call says the weight, so that of a payload does not count.
    pub(super) is_weighed: bool,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) deliver: Delivery,
    pub(super) max_waiting: Option<MaxWaiting>,
    pub(super) unique_for: Option<Duration>,
    /// The delay of the payload, which a job has that is due at a time.
    usual: Duration,
}

/// Reads for how long an id stays taken.
fn unique_for(time: Delay) -> Result<Duration, Invalid> {
    let (field, given) = ("unique_for", read("unique_for", time)?);
    let is_allowed = (MIN_UNIQUE..=MAX_UNIQUE).contains(&given);
    if is_allowed { Ok(given) } else { Err(Invalid::OutOfRange { field, given, range: "write 1s to 30d" }) }
}

pub(super) fn canonical(retry: &str) -> Result<String, Invalid> {
    Ok(retry.parse::<RetryPolicy>().map_err(Invalid::BadRetry)?.to_string())
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
        telemetry::carry(&mut self.headers, limits::HEADERS.most as usize);
    }

    /// Checks every option and fills in the defaults.
    pub(super) fn check(self, defaults: &JobDefaults, environment: &Environment) -> Result<CheckedOptions, Invalid> {
        let usual = bounded("after", defaults.delay)?;
        let (due, delay) = due(self.when.clone(), usual, environment)?;
        let on_duplicate = self.extension(delay)?;
        let expires_after = self.expires_after.map(|delay| read("expires_after", delay)).transpose()?;
        let expires_after = match expires_after.or(defaults.expires_after) {
            Some(duration) => Some(bounded("expires_after", duration)?),
            None => None,
        };
        let unique_for = self.unique_for.map(unique_for).transpose()?.or(defaults.unique_for);
        let retain = self.retain.map(|delay| read("retain", delay)).transpose()?;
        // The listener's settings override the payload's policy: the node that runs the job knows both.
        let retry = self.retry.as_deref().map(canonical).transpose()?;
        let is_weighed = self.weight.is_some();
        let metadata = Metadata {
            delay,
            retain: bounded("retain", retain.unwrap_or(defaults.retain))?,
            priority: self.priority.unwrap_or(defaults.priority),
            weight: self.weight.transpose().map_err(Invalid::BadWeight)?.unwrap_or_default(),
            group: self.group.transpose().map_err(Invalid::BadGroup)?,
            retry,
            headers: self.headers,
            ..Metadata::default()
        };
        metadata.check_new()?;
        Ok(CheckedOptions {
            due,
            expires_after,
            metadata,
            is_weighed,
            on_duplicate,
            deliver: self.deliver.unwrap_or(defaults.deliver),
            max_waiting: MaxWaiting::of(defaults),
            unique_for,
            usual,
        })
    }
}

impl Options {
    /// What an add does about a known id, with the limit of an extension by this delay.
    fn extension(&self, after: Duration) -> Result<OnDuplicate, Invalid> {
        if !matches!(self.on_duplicate, OnDuplicate::Extend { .. }) {
            return Ok(self.on_duplicate);
        }
        let at_most = self.at_most.clone().map(|delay| read("at_most", delay)).transpose()?;
        match at_most.filter(|at_most| *at_most < after) {
            Some(at_most) => Err(Invalid::LimitBelowDelay { after, at_most }),
            None => Ok(OnDuplicate::Extend { at_most }),
        }
    }
}

impl CheckedOptions {
    /// These options for a job that is due at a time of its own.
    pub(super) fn due(&self, when: When, environment: &Environment) -> Result<Self, Invalid> {
        let (due, delay) = due(Some(when), self.usual, environment)?;
        Ok(Self { due, metadata: Metadata { delay, ..self.metadata.clone() }, ..self.clone() })
    }
}

/// When a job is due, and the delay of its rejoins.
fn due(when: Option<When>, usual: Duration, environment: &Environment) -> Result<(Due, Duration), Invalid> {
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

/// A verb that adds jobs, with the options of an add: [`Add`](super::Add), [`AddMany`](super::AddMany) and
/// [`AddSchedule`](super::AddSchedule).
pub trait Adds: Verb {
    /// How the caller says when the jobs are due.
    #[doc(hidden)]
    type Timing;

    #[doc(hidden)]
    fn options(&mut self) -> &mut Options;
}

impl<V: Adds> Call<V> {
    pub(super) fn set(self, change: impl FnOnce(&mut Options)) -> Self {
        self.with(|verb| change(verb.options()))
    }

    /// Sets the retry policy, such as `"none"`, `"30s x 5"` or `"1m, 5m, 10m"`; see
    /// [`RetryPolicy`](crate::job::RetryPolicy). It overrides every setting of the topic
    /// ([the order](crate::config#which-source-counts)).
    pub fn retry(self, policy: impl Into<String>) -> Self {
        self.set(|options| options.retry = Some(policy.into()))
    }

    /// Sets how long after its first due time the job is still worth running; after that it goes to DEAD without a run.
    /// Defaults to the payload's value; without one the job does not expire.
    pub fn expires_after(self, delay: impl IntoDelay) -> Self {
        self.set(|options| options.expires_after = Some(delay.into_delay()))
    }

    /// Sets how long the job is kept as DONE after its ack. Defaults to the payload's value; without one the job is not
    /// kept.
    pub fn retain(self, delay: impl IntoDelay) -> Self {
        self.set(|options| options.retain = Some(delay.into_delay()))
    }

    /// Sets a header, which the handler reads with `job.header(name)`; it replaces a header of the same name. All headers
    /// of a job together are at most 8 KiB, including 4 bytes for each.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|options| options.header(name.into(), value.into()))
    }

    /// Delivers the job to every connected node that listens to the broadcast channel of the topic's name, instead of to
    /// one listener.
    pub fn broadcast(self) -> Self {
        self.deliver(Delivery::Broadcast)
    }

    /// Delivers the job to the queue, to the broadcasts, or to both. Defaults to the payload's value, or to the queue.
    pub fn deliver(self, deliver: Delivery) -> Self {
        self.set(|options| options.deliver = Some(deliver))
    }

    /// Sets which due jobs of the topic go before this one; see [`Priority`]. Defaults to the payload's value, or to
    /// [`Normal`](Priority::Normal).
    pub fn priority(self, priority: Priority) -> Self {
        self.set(|options| options.priority = Some(priority))
    }

    /// Puts the job into a group, such as `"customer-42"`: of its jobs no more run at a time, over all nodes, than the setting
    /// `group_concurrency` allows, in the order of their due times. 1 to 128 bytes. Defaults to what `#[job(group = "..")]` of the payload
    /// says; without one the job has no group.
    pub fn group(self, group: impl fmt::Display) -> Self {
        self.set(|options| options.group = Some(GroupName::of(&group)))
    }

    /// Sets how much of the `rate` of the topic the start of the job spends, 1 to 10,000, such as the tokens of a request. Each run spends it.
    /// Defaults to what `#[job(weight = "..")]` of the payload says, or to 1; without a rate it has no effect.
    pub fn weight(self, weight: impl fmt::Display) -> Self {
        self.set(|options| options.weight = Some(Weight::of(&weight)))
    }
}

/// The timings that may name a delay. The timing of a schedule may not.
#[doc(hidden)]
pub trait TakesDelay {}

impl TakesDelay for Once {}

impl TakesDelay for Extending {}

impl<V: Adds<Timing: TakesDelay>> Call<V> {
    /// Makes the job due this long after the store adds or extends it: a `Duration`, a text such as `"15m"`, or `delay!("15m")`; at
    /// most ten years. Defaults to the delay of the topic or of the payload; without one the job is due at once.
    pub fn after(self, delay: impl IntoDelay) -> Self {
        self.set(|options| options.when = Some(When::After(delay.into_delay())))
    }
}

impl<V: Adds<Timing = Once>> Call<V> {
    /// Keeps the id of the job taken for this long after the store adds it, whatever becomes of the job: 1 s to 30 days. Until then an add with
    /// the id finds it [`Kept(Done)`](super::AddedHow::Kept) if the job has ended, and [`KeptDeleted`](super::AddedHow::KeptDeleted) if it was
    /// deleted. So an add that is repeated adds the job once, even after it has run. Defaults to the payload's value; without one the
    /// id is free once the job is gone. An add with `replace_existing` is always a new job.
    pub fn unique_for(self, time: impl IntoDelay) -> Self {
        self.set(|options| options.unique_for = Some(time.into_delay()))
    }

    /// Makes the job due at this time of the store's clock, at most ten years away; a time in the past means at once. A
    /// [`rejoin`](crate::listener::Channel::rejoin) of the job waits for the delay of the payload.
    pub fn at(self, time: impl Into<Timestamp>) -> Self {
        self.set(|options| options.when = Some(When::At(time.into())))
    }
}

impl<V: Adds<Timing = Extending>> Call<V> {
    /// Bounds how long extensions can put the job off, counted from its first add; without this, for ever. A job that was added
    /// in another way counts from its first extension. Less than [`after`](Self::after) is an error, and nothing is sent.
    pub fn at_most(self, limit: impl IntoDelay) -> Self {
        self.set(|options| options.at_most = Some(limit.into_delay()))
    }
}
