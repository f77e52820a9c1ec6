//! The effective settings, for the start log and for `health()`.

use std::fmt;

use super::layer::Resolved;
use super::settings::{Key, Keyed};
use super::source::Source;
use crate::time::Timestamp;

/// A setting, its value, and where the value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingValue {
    /// Its name, as in a config file.
    pub key: &'static str,
    /// Its value, as in a config file.
    pub value: String,
    /// Where the value came from.
    pub source: Source,
}

/// The effective settings and where each came from. It displays as `lease = 30s (DQ_LEASE), heartbeat_interval = 5s, ..`; a value
/// without a source is a default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectiveSettings(Vec<SettingValue>);

impl EffectiveSettings {
    pub(crate) fn of<S: Keyed>(resolved: &Resolved<S>) -> Self {
        let listed = |key: &Key<S>| SettingValue {
            key: key.name,
            value: (key.show)(&resolved.settings),
            source: resolved.source(key.name),
        };
        Self(S::KEYS.iter().map(listed).collect())
    }

    /// The same, behind the URL of the store, unless the program made that.
    pub(crate) fn with_store(mut self, url: String, source: Option<Source>) -> Self {
        if let Some(source) = source {
            self.0.insert(0, SettingValue { key: "store", value: url, source });
        }
        self
    }

    /// The same, with a value that the store keeps for all nodes: it takes the place of the setting of that name, or comes last.
    pub(crate) fn with_stored(mut self, key: &'static str, value: String, by: String, since: Timestamp) -> Self {
        let stored = SettingValue { key, value, source: Source::Store { by, since } };
        match self.0.iter_mut().find(|listed| listed.key == key) {
            Some(listed) => *listed = stored,
            None => self.0.push(stored),
        }
        self
    }

    /// Every setting, in the order of the methods of [`ContextFactory`](crate::ContextFactory) or [`TopicOverrides`](super::TopicOverrides).
    /// The listing of a node begins with the `store`, if a URL chose it.
    pub fn all(&self) -> &[SettingValue] {
        &self.0
    }

    /// The setting of this name.
    pub fn get(&self, key: &str) -> Option<&SettingValue> {
        self.0.iter().find(|listed| listed.key == key)
    }
}

impl fmt::Display for EffectiveSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, listed) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} = {}", listed.key, listed.value)?;
            if listed.source != Source::Default {
                write!(f, " ({})", listed.source)?;
            }
        }
        Ok(())
    }
}
