//! The settings of one topic in the builder.

use dq_grammar::topic_settings;

use super::layer::{Layer, SettingChange};
use super::settings::{TopicSettings, setters};
use super::source::{Source, SourceLocation};
use super::value::{Value, Written};
use crate::job::RetryPolicy;
use crate::listener::{AckMode, OnBlocked, OnTimeout};
use crate::store::Rate;

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

/// What can be a setting of type `T`, such as a [`RetryPolicy`] or a [`Rate`]: a value of it, or its text.
pub trait IntoSetting<T> {
    /// Makes the value.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn into_setting(self) -> Result<T, String>;
}

macro_rules! into_setting {
    ($($type:ty),+) => { $(
        impl IntoSetting<$type> for $type {
            fn into_setting(self) -> Result<$type, String> {
                Ok(self)
            }
        }

        impl IntoSetting<$type> for &str {
            fn into_setting(self) -> Result<$type, String> {
                <$type>::read(Written::Text(self))
            }
        }

        impl IntoSetting<$type> for String {
            fn into_setting(self) -> Result<$type, String> {
                <$type>::read(Written::Text(&self))
            }
        }
    )+ };
}
into_setting!(RetryPolicy, Rate, OnBlocked);
