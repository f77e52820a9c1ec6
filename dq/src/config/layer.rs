//! What one source says of the settings, and how layers of it become the settings that hold.
//!
//! A layer is a list of changes. Layers are applied from the weakest to the strongest, so the last change of a setting
//! holds, and its source is kept beside it: who reads a value can always be told who said so.

use std::collections::BTreeMap;
use std::fmt;

use super::key::{Key, Keyed, Put};
use super::problem::{Setting, SettingProblem};
use super::settings::{NodeSettings, TopicSettings};
use super::source::Source;
use super::value::Written;

/// A setting that a source changes.
pub(crate) struct SettingChange<S: 'static> {
    key: &'static str,
    put: Put<S>,
    source: Source,
}

impl<S> Clone for SettingChange<S> {
    fn clone(&self) -> Self {
        Self { key: self.key, put: self.put.clone(), source: self.source.clone() }
    }
}

impl<S> fmt::Debug for SettingChange<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.key, self.source)
    }
}

impl<S> SettingChange<S> {
    /// A change made in code.
    pub(crate) fn new(key: &'static str, source: Source, put: Put<S>) -> Self {
        Self { key, put, source }
    }

    /// A change read from a text.
    pub(crate) fn read(
        key: &'static Key<S>,
        topic: Option<&str>,
        written: Written<'_>,
        source: Source,
    ) -> Result<Self, Box<SettingProblem>> {
        match (key.read)(written) {
            Ok(put) => Ok(Self { key: key.name, put, source }),
            Err(why) => {
                let setting = Setting::new(topic, key.name);
                Err(Box::new(SettingProblem::BadValue { setting, at: source, why }))
            }
        }
    }
}

/// The settings that hold, and who said so.
#[derive(Debug, Clone)]
pub(crate) struct Resolved<S> {
    pub(crate) settings: S,
    sources: BTreeMap<&'static str, Source>,
}

impl<S: Keyed> Resolved<S> {
    /// Applies the changes to the defaults; a later one outweighs an earlier one.
    pub(crate) fn from_changes<'a>(changes: impl IntoIterator<Item = &'a SettingChange<S>>) -> Self {
        let mut resolved = Self { settings: S::default(), sources: BTreeMap::new() };
        for change in changes {
            (change.put)(&mut resolved.settings);
            resolved.sources.insert(change.key, change.source.clone());
        }
        resolved
    }

    /// Who said what `key` is.
    pub(crate) fn source(&self, key: &str) -> Source {
        self.sources.get(key).cloned().unwrap_or(Source::Default)
    }
}

/// What one source (the builder, the config file, the environment) says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    /// The URL of the store.
    pub(crate) store: Option<(String, Source)>,
    pub(crate) node: Vec<SettingChange<NodeSettings>>,
    /// By topic, with where the topic is first named.
    pub(crate) topics: BTreeMap<String, (Source, Vec<SettingChange<TopicSettings>>)>,
    /// What could not be read.
    pub(crate) problems: Vec<SettingProblem>,
}

impl Layer {
    /// Keeps a change of a node setting, or the problem with it.
    pub(crate) fn change_node(&mut self, change: Result<SettingChange<NodeSettings>, Box<SettingProblem>>) {
        match change {
            Ok(change) => self.node.push(change),
            Err(problem) => self.problems.push(*problem),
        }
    }

    /// Keeps a change of a topic's setting, or the problem with it.
    pub(crate) fn change_topic(
        &mut self,
        topic: &str,
        change: Result<SettingChange<TopicSettings>, Box<SettingProblem>>,
    ) {
        match change {
            Ok(change) => self.name_topic(topic, change.source.clone()).push(change),
            Err(problem) => self.problems.push(*problem),
        }
    }

    /// Notes that the source names a topic, whether it changes anything of it or not.
    pub(crate) fn name_topic(&mut self, topic: &str, source: Source) -> &mut Vec<SettingChange<TopicSettings>> {
        &mut self.topics.entry(topic.to_owned()).or_insert_with(|| (source, Vec::new())).1
    }
}
