//! The settings of one topic in the builder.

use std::sync::Arc;

use super::key::Put;
use super::layer::{Layer, SettingChange};
use super::problem::{Setting, SettingProblem};
use super::settings::TopicSettings;
use super::source::{Source, SourceLocation};
use super::value::Value;
use crate::job::RetryPolicy;
use crate::listener::{AckMode, OnTimeout};
use crate::time::IntoDelay;

/// The settings of a topic that [`ContextFactory::topic`](crate::ContextFactory::topic) changes on this node.
///
/// They outweigh the listener's attribute; the config file and the environment outweigh them. The start checks the
/// limits.
#[derive(Debug)]
#[must_use = "return it from the closure: a dropped value changes nothing"]
pub struct TopicOverrides {
    topic: String,
    at: SourceLocation,
    layer: Layer,
}

impl TopicOverrides {
    pub(crate) fn new(topic: &str, at: SourceLocation) -> Self {
        Self { topic: topic.to_owned(), at, layer: Layer::default() }
    }

    pub(crate) fn into_layer(self) -> Layer {
        self.layer
    }

    fn put(mut self, key: &'static str, put: Put<TopicSettings>) -> Self {
        self.layer.change_topic(&self.topic, Ok(SettingChange::new(key, Source::Builder(self.at.clone()), put)));
        self
    }

    fn duration(
        mut self,
        key: &'static str,
        duration: impl IntoDelay,
        put: impl Fn(&mut TopicSettings, std::time::Duration) + Send + Sync + 'static,
    ) -> Self {
        match duration.into_delay().duration() {
            Ok(duration) => self.put(key, Arc::new(move |topic| put(topic, duration))),
            Err(bad) => {
                self.wrong(key, bad.to_string());
                self
            }
        }
    }

    fn wrong(&mut self, key: &'static str, why: String) {
        let setting = Setting::new(Some(&self.topic), key);
        let at = Source::Builder(self.at.clone());
        self.layer.problems.push(SettingProblem::BadValue { setting, at, why });
    }

    /// How many handlers run at once on this node. Default 64; 1 to 100,000.
    pub fn concurrency(self, most: usize) -> Self {
        self.put("concurrency", Arc::new(move |topic| topic.concurrency = most))
    }

    /// How long a handler may run, including `final_retry` and `process_unacked`: `"5s"` or a `Duration`; zero means no
    /// limit. Default 30 s. [`on_timeout`](Self::on_timeout) decides what happens then.
    pub fn timeout(self, limit: impl IntoDelay) -> Self {
        self.duration("timeout", limit, |topic, limit| topic.timeout = Some(limit).filter(|limit| !limit.is_zero()))
    }

    /// What happens after a timeout: a retry by the retry policy ([`OnTimeout::Retry`], the default), or a retry at
    /// once.
    pub fn on_timeout(self, what: OnTimeout) -> Self {
        self.put("on_timeout", Arc::new(move |topic| topic.on_timeout = what))
    }

    /// When a failed job runs again: a [`RetryPolicy`], or its text such as `"none"`, `"30s x 5"`, `"1m, 5m, 1h"` or
    /// `"exponential 10s x 5, factor 3, max 1h, jitter 10%"`, which is the default. The policy of an add outweighs it.
    pub fn retry(mut self, policy: impl IntoRetry) -> Self {
        match policy.into_retry() {
            Ok(policy) => self.put("retry", Arc::new(move |topic| topic.retry = policy.clone())),
            Err(why) => {
                self.wrong("retry", why);
                self
            }
        }
    }

    /// When dq acks a job: when its handler has returned ([`AckMode::OnReturn`], the default), or before it starts,
    /// which means at most once.
    pub fn ack(self, when: AckMode) -> Self {
        self.put("ack", Arc::new(move |topic| topic.ack = when))
    }

    /// How often a job may kill its node before dq gives it up. A job that only ran beside others is never given up for that,
    /// so dq may need up to two more crashes until it knows which job kills. Default 3; 1 to 1,000.
    pub fn max_crashes(self, most: u32) -> Self {
        self.put("max_crashes", Arc::new(move |topic| topic.max_crashes = most))
    }

    /// How long a job is UNACKED before dq calls `process_unacked`. Default 7 days; 1 ms to 10 years.
    pub fn unacked_age(self, age: impl IntoDelay) -> Self {
        self.duration("unacked_age", age, |topic, age| topic.unacked_age = age)
    }

    /// How long the store keeps DEAD jobs. Default 30 days; 1 ms to 10 years.
    pub fn dead_kept(self, time: impl IntoDelay) -> Self {
        self.duration("dead_kept", time, |topic, time| topic.dead_kept = time)
    }

    /// How many DEAD jobs the store keeps; it removes the oldest first. Default 100,000; 1 to 10,000,000.
    pub fn dead_most(self, most: usize) -> Self {
        self.put("dead_most", Arc::new(move |topic| topic.dead_most = most))
    }

    /// How long before its due time this node may claim a job: `"5ms"` or a `Duration`. Its handler then starts when the job is
    /// due, never earlier, and not after the trip to the store. Default zero; at most 50 ms, in whole milliseconds.
    ///
    /// Within that time the job already counts as running: a delete or cancel takes effect, but if it comes while the handler
    /// starts, the job runs.
    pub fn lookahead(self, time: impl IntoDelay) -> Self {
        self.duration("lookahead", time, |topic, time| topic.lookahead = time)
    }

    /// How late jobs may start, `"1s"` or a `Duration`: if more than one in a hundred of the last minute start later than that,
    /// [`health()`](crate::Context::health) says that the topic is degraded, and how many were late. Default: nobody looks; zero
    /// means that too. 1 ms to 10 years.
    pub fn lateness_objective(self, most: impl IntoDelay) -> Self {
        self.duration("lateness_objective", most, |topic, most| {
            topic.lateness_objective = Some(most).filter(|most| !most.is_zero());
        })
    }

    /// How many of its moves the topic keeps of each job, the newest: at most 100; zero: none, and the topic forgets those that it has.
    /// Without this the topic stays as it is. It holds for all nodes and producers of the topic, and costs memory of the store and time
    /// of its steps: the guide says how much.
    pub fn history(self, moves: usize) -> Self {
        self.put("history", Arc::new(move |topic| topic.history = Some(moves)))
    }

    /// For how long the topic keeps the history of a job after its end, so that `why` can say what became of it: `"1d"` or a
    /// `Duration`, at most 30 days. Default zero: it goes with the job. Needs [`history`](Self::history).
    pub fn history_after(self, time: impl IntoDelay) -> Self {
        self.duration("history_after", time, |topic, time| topic.history_after = time)
    }

    /// How many jobs a batch has at most, for a listener that takes a [`Batch`](crate::Batch). Default 100; 1 to 1,000.
    pub fn batch(self, most: usize) -> Self {
        self.put("batch", Arc::new(move |topic| topic.batch = most))
    }

    /// How many bytes the records of a batch have at most. A larger job is a batch of its own. Default 1 MiB; 1 byte to 16 MiB.
    pub fn batch_bytes(self, most: usize) -> Self {
        self.put("batch_bytes", Arc::new(move |topic| topic.batch_bytes = most))
    }

    /// Whether the store counts, minute by minute for a day, how many jobs this node claims, how late, and how their runs end:
    /// what [`Inspector::past`](crate::inspect::Inspector::past), `dq timeline` and the dashboard show. Each step that claims or
    /// settles then costs up to two commands more on Redis. Default `false`, which costs nothing.
    pub fn statistics(self, keeps: bool) -> Self {
        self.put("statistics", Arc::new(move |topic| topic.statistics = keeps))
    }
}

/// A value that can be a retry policy: a [`RetryPolicy`], or its text.
pub trait IntoRetry {
    /// Makes the policy.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn into_retry(self) -> Result<RetryPolicy, String>;
}

impl IntoRetry for RetryPolicy {
    fn into_retry(self) -> Result<RetryPolicy, String> {
        Ok(self)
    }
}

impl IntoRetry for &str {
    fn into_retry(self) -> Result<RetryPolicy, String> {
        RetryPolicy::read(super::value::Written::Text(self))
    }
}

impl IntoRetry for String {
    fn into_retry(self) -> Result<RetryPolicy, String> {
        self.as_str().into_retry()
    }
}
