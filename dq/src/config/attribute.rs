//! The settings of a topic in the attribute of its listener and, below them, in that of its payload.

use std::sync::Arc;

use super::key::Keyed;
use super::layer::{Layer, SettingChange};
use super::settings::TopicSettings;
use super::source::{Source, SourceLocation};
use super::value::Written;
use crate::listener::Registration;

/// The settings of `topic` in its listener's registration: the payload's first, then the listener's.
pub(crate) fn layer(topic: &str, listener: &Registration) -> Layer {
    let location = SourceLocation::declared(listener.declared_at);
    let settings = listener.settings;
    let mut layer = Layer::default();
    layer.name_topic(topic, Source::Listener(location.clone()));
    let mut policy = |text: &str, source| {
        if let Some(key) = TopicSettings::key("retry") {
            layer.change_topic(topic, SettingChange::read(key, Some(topic), Written::Text(text), source));
        }
    };
    if let Some(text) = listener.payload_retry {
        policy(text, Source::Payload(location.clone()));
    }
    if let Some(text) = settings.retry {
        policy(text, Source::Listener(location.clone()));
    }
    let mut put = |key, put| {
        layer.change_topic(topic, Ok(SettingChange::new(key, Source::Listener(location.clone()), put)));
    };
    if let Some(most) = settings.concurrency {
        put("concurrency", Arc::new(move |topic: &mut TopicSettings| topic.concurrency = most as usize));
    }
    if let Some(limit) = settings.timeout {
        put("timeout", Arc::new(move |topic| topic.timeout = Some(limit).filter(|limit| !limit.is_zero())));
    }
    if let Some(what) = settings.on_timeout {
        put("on_timeout", Arc::new(move |topic| topic.on_timeout = what));
    }
    if let Some(when) = settings.ack {
        put("ack", Arc::new(move |topic| topic.ack = when));
    }
    if let Some(most) = settings.max_crashes {
        put("max_crashes", Arc::new(move |topic| topic.max_crashes = most));
    }
    if let Some(most) = settings.history {
        put("history", Arc::new(move |topic| topic.history = Some(most as usize)));
    }
    if let Some(time) = settings.history_after {
        put("history_after", Arc::new(move |topic| topic.history_after = time));
    }
    if let Some(most) = settings.batch {
        put("batch", Arc::new(move |topic| topic.batch = most as usize));
    }
    if let Some(keeps) = settings.statistics {
        put("statistics", Arc::new(move |topic| topic.statistics = keeps));
    }
    layer
}
