//! The settings of one topic in the builder.

use dq_grammar::topic_settings;

use super::layer::{Layer, SettingChange};
use super::settings::{TopicSettings, setters};
use super::source::{Source, SourceLocation};
use super::value::{Value, Written};
use crate::job::RetryPolicy;
use crate::listener::{AckMode, OnTimeout};

/// The settings of a topic that [`ContextFactory::topic`](crate::ContextFactory::topic) changes on this node.
///
/// They override the listener's attribute; the config file and the environment override them. The start checks the
/// limits.
#[derive(Debug)]
#[must_use = "return it from the closure: a dropped value changes nothing"]
pub struct TopicOverrides {
    topic: String,
    at: SourceLocation,
    layer: Layer,
}

topic_settings!(setters TopicOverrides TopicSettings);

impl TopicOverrides {
    pub(crate) fn new(topic: &str, at: SourceLocation) -> Self {
        Self { topic: topic.to_owned(), at, layer: Layer::default() }
    }

    pub(crate) fn into_layer(self) -> Layer {
        self.layer
    }

    fn set<T: Send + Sync + 'static>(
        mut self,
        key: &'static str,
        value: Result<T, String>,
        put: fn(&mut TopicSettings, &T),
    ) -> Self {
        let change = SettingChange::new(key, Some(&self.topic), Source::Builder(self.at.clone()), value, put);
        self.layer.change_topic(&self.topic, change);
        self
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
        RetryPolicy::read(Written::Text(self))
    }
}

impl IntoRetry for String {
    fn into_retry(self) -> Result<RetryPolicy, String> {
        self.as_str().into_retry()
    }
}
