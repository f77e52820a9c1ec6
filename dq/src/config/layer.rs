//! The settings of one source, and how such layers become the effective settings.
//!
//! A layer is a list of changes. dq applies the layers from the weakest to the strongest, so the last change of a
//! setting wins. It keeps the source of each value, so that a message can name it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::problem::{Setting, SettingProblem};
use super::settings::{Key, Keyed, NodeSettings, Put, TopicSettings};
use super::source::Source;
use super::unused::Unused;
use super::value::Written;
use crate::store::masked_url;

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
    /// Makes a change in code, or the problem with its value.
    pub(crate) fn new<T: Send + Sync + 'static>(
        key: &'static str,
        topic: Option<&str>,
        source: Source,
        value: Result<T, String>,
        put: fn(&mut S, &T),
    ) -> Result<Self, Box<SettingProblem>> {
        let put = value.map(|value| Arc::new(move |settings: &mut S| put(settings, &value)) as Put<S>);
        Self::checked(key, topic, source, put)
    }

    /// Reads a change from a text.
    pub(crate) fn read(
        key: &'static Key<S>,
        topic: Option<&str>,
        written: Written<'_>,
        source: Source,
    ) -> Result<Self, Box<SettingProblem>> {
        // No setting but the store is a URL, and the error shows the value.
        let masked;
        let written = match written {
            Written::Text(url) if url.contains("://") => {
                masked = masked_url(url);
                Written::Text(&masked)
            }
            other => other,
        };
        Self::checked(key.name, topic, source, (key.read)(written))
    }

    fn checked(
        key: &'static str,
        topic: Option<&str>,
        source: Source,
        put: Result<Put<S>, String>,
    ) -> Result<Self, Box<SettingProblem>> {
        match put {
            Ok(put) => Ok(Self { key, put, source }),
            Err(why) => {
                Err(Box::new(SettingProblem::InvalidValue { setting: Setting::new(topic, key), at: source, why }))
            }
        }
    }
}

/// The effective settings and where each came from.
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

    /// Whether nobody set `key`, and it has its default.
    pub(super) fn is_default(&self, key: &str) -> bool {
        !self.sources.contains_key(key)
    }

    /// Whether nobody set `key`; it may follow other settings.
    pub(super) fn is_free(&self, key: &str) -> bool {
        matches!(self.source(key), Source::Default | Source::Follows(_))
    }

    /// Notes that the value of `key`, which nobody set, follows the settings `from`.
    pub(super) fn derive(&mut self, key: &'static str, from: &'static [&'static str]) {
        self.sources.insert(key, Source::Follows(from));
    }

    /// Where the value of `key` came from.
    pub(crate) fn source(&self, key: &str) -> Source {
        self.sources.get(key).cloned().unwrap_or(Source::Default)
    }
}

/// The settings of one source: the builder, the config file or the environment.
#[derive(Clone, Default)]
pub(crate) struct Layer {
    /// The URL of the store.
    pub(crate) store: Option<(String, Source)>,
    pub(crate) node: Vec<SettingChange<NodeSettings>>,
    /// The changes of each topic, and where the source first names the topic.
    pub(crate) topics: BTreeMap<String, (Source, Vec<SettingChange<TopicSettings>>)>,
    /// What dq could not read.
    pub(crate) problems: Vec<SettingProblem>,
    /// Variables that name no setting.
    pub(super) unused_variables: Vec<Unused>,
    /// Variables of topics that have no listener in this program.
    pub(super) of_other_programs: Vec<Unused>,
}

/// Shows no secret of the URL.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store.as_ref().map(|(url, at)| (masked_url(url), at));
        let mut shown = f.debug_struct("Layer");
        shown.field("store", &store).field("node", &self.node).field("topics", &self.topics);
        shown.field("problems", &self.problems).finish_non_exhaustive()
    }
}

impl Layer {
    /// Adds a change of a node setting, or the problem with it.
    pub(crate) fn change_node(&mut self, change: Result<SettingChange<NodeSettings>, Box<SettingProblem>>) {
        match change {
            Ok(change) => self.node.push(change),
            Err(problem) => self.problems.push(*problem),
        }
    }

    /// Adds a change of a topic's setting, or the problem with it.
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

    /// Adds the change that a source writes, or the problem with it. `None`: the node, or a topic, has no setting of this name.
    pub(super) fn read(&mut self, topic: Option<&str>, name: &str, written: Written<'_>, source: Source) -> Option<()> {
        match topic {
            Some(topic) => {
                let change = SettingChange::read(TopicSettings::key(name)?, Some(topic), written, source);
                self.change_topic(topic, change);
            }
            None => self.change_node(SettingChange::read(NodeSettings::key(name)?, None, written, source)),
        }
        Some(())
    }

    /// Records that the source names a topic, even if it changes none of its settings.
    pub(crate) fn name_topic(&mut self, topic: &str, source: Source) -> &mut Vec<SettingChange<TopicSettings>> {
        &mut self.topics.entry(topic.to_owned()).or_insert_with(|| (source, Vec::new())).1
    }
}
