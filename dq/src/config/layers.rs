//! The layers of a node: builder, config file and environment. The options of an add outweigh them all.

use super::file::unknown_key;
use super::layer::{Layer, Resolved};
use super::problem::{SettingProblem, nearest};
use super::settings::{NodeSettings, TopicSettings};
use super::source::{Source, SourceLocation};
use super::unused::{AllUnused, Unused};
use super::value::Written;
use crate::listener::Registration;

/// The layers of one node, the strongest last.
#[derive(Debug, Default)]
pub(crate) struct Layers(Vec<Layer>);

impl Layers {
    /// Layers in order of precedence, the strongest last.
    pub(crate) fn new(builder: Layer, file: Option<Layer>, variables: Layer) -> Self {
        Self([Some(builder), file, Some(variables)].into_iter().flatten().collect())
    }

    /// The settings of the node. Intervals that nobody set follow the others.
    pub(crate) fn node(&self) -> Resolved<NodeSettings> {
        Resolved::from_changes(self.0.iter().flat_map(|layer| &layer.node)).fitted()
    }

    /// The settings of a topic, including those of its listener, and the problems with the listener's.
    pub(crate) fn topic(&self, topic: &str, listener: &Registration) -> (Resolved<TopicSettings>, Vec<SettingProblem>) {
        let declared = declared(topic, listener);
        let layers = [&declared].into_iter().chain(&self.0);
        let changes = layers.filter_map(|layer| layer.topics.get(topic)).flat_map(|(_, changes)| changes);
        (Resolved::from_changes(changes), declared.problems.clone())
    }

    /// The URL of the store, and where it came from.
    pub(crate) fn store(&self) -> Option<&(String, Source)> {
        self.0.iter().rev().find_map(|layer| layer.store.as_ref())
    }

    /// Everything that dq could not read, and every topic that the builder names and that is not one of `known`.
    pub(crate) fn problems(&self, known: Option<&[&str]>) -> Vec<SettingProblem> {
        let mut problems: Vec<_> = self.0.iter().flat_map(|layer| layer.problems.clone()).collect();
        for (topic, at) in self.without_listener(known).filter(|(_, at)| !matches!(at, Source::File(_))) {
            let suggestion = nearest(topic, known.iter().copied().flatten().copied());
            problems.push(SettingProblem::UnknownTopic { topic: topic.to_owned(), at: at.clone(), suggestion });
        }
        problems
    }

    /// What the config file and the environment have for other programs, or misspelled.
    pub(crate) fn unused(&self, known: Option<&[&str]>) -> AllUnused {
        let in_file = self.without_listener(known).filter_map(|(topic, at)| match at {
            Source::File(at) => {
                let suggestion = nearest(topic, known.iter().copied().flatten().copied());
                Some(Unused::new(topic, Some(at.clone()), suggestion))
            }
            _ => None,
        });
        let variables = self.0.iter().flat_map(|layer| layer.of_other_programs.iter().cloned());
        AllUnused {
            variables: self.0.iter().flat_map(|layer| layer.unused_variables.iter().cloned()).collect(),
            topics: in_file.chain(variables).collect(),
        }
    }

    /// The topics with settings that are not among `known`; none where nothing is known.
    fn without_listener<'a>(&'a self, known: Option<&'a [&str]>) -> impl Iterator<Item = (&'a str, &'a Source)> {
        let topics = self.0.iter().flat_map(|layer| &layer.topics).map(|(topic, (at, _))| (topic.as_str(), at));
        topics.filter(move |(topic, _)| known.is_some_and(|known| !known.contains(topic)))
    }
}

/// The settings of `topic` in the attributes of its listener and, below them, of its payload.
fn declared(topic: &str, listener: &Registration) -> Layer {
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
