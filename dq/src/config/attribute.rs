//! What the attribute of a listener, and under it that of its payload, say of a topic.

use std::sync::Arc;

use super::key::Keyed;
use super::layer::{Layer, SettingChange};
use super::settings::TopicSettings;
use super::source::{Source, SourceLocation};
use super::value::Written;
use crate::listener::Registration;

/// The settings of `topic` as its listener's registration has them: the payload's first, then the listener's.
pub(crate) fn layer(topic: &str, listener: &Registration) -> Layer {
    let place = SourceLocation::declared(listener.declared_at);
    let said = listener.settings;
    let mut layer = Layer::default();
    layer.name_topic(topic, Source::Listener(place.clone()));
    let mut policy = |text: &str, source| {
        if let Some(key) = TopicSettings::key("retry") {
            layer.change_topic(topic, SettingChange::read(key, Some(topic), Written::Text(text), source));
        }
    };
    if let Some(text) = listener.payload_retry {
        policy(text, Source::Payload(place.clone()));
    }
    if let Some(text) = said.retry {
        policy(text, Source::Listener(place.clone()));
    }
    let mut put = |key, put| {
        layer.change_topic(topic, Ok(SettingChange::new(key, Source::Listener(place.clone()), put)));
    };
    if let Some(most) = said.concurrency {
        put("concurrency", Arc::new(move |topic: &mut TopicSettings| topic.concurrency = most as usize));
    }
    if let Some(limit) = said.timeout {
        put("timeout", Arc::new(move |topic| topic.timeout = Some(limit).filter(|limit| !limit.is_zero())));
    }
    if let Some(what) = said.on_timeout {
        put("on_timeout", Arc::new(move |topic| topic.on_timeout = what));
    }
    if let Some(when) = said.ack {
        put("ack", Arc::new(move |topic| topic.ack = when));
    }
    if let Some(most) = said.max_crashes {
        put("max_crashes", Arc::new(move |topic| topic.max_crashes = most));
    }
    layer
}
