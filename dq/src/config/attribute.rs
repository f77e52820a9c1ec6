//! The settings of a topic in the attribute of its listener and, below them, in the attribute of its payload.

use super::file::unknown_key;
use super::layer::Layer;
use super::source::{Source, SourceLocation};
use super::value::Written;
use crate::listener::Registration;

/// The settings of `topic` in its listener's registration: the payload's first, then the listener's.
pub(crate) fn layer(topic: &str, listener: &Registration) -> Layer {
    let location = SourceLocation::declared(listener.declared_at);
    let mut layer = Layer::default();
    layer.name_topic(topic, Source::Listener(location.clone()));
    let of_payload = listener.payload_retry.map(|retry| ("retry", retry, Source::Payload(location.clone())));
    let of_listener = listener.settings.iter().map(|&(key, text)| (key, text, Source::Listener(location.clone())));
    for (name, text, source) in of_payload.into_iter().chain(of_listener) {
        if layer.read(Some(topic), name, Written::Text(text), source.clone()).is_none() {
            layer.problems.push(unknown_key(name, Some(topic), source));
        }
    }
    layer
}
