//! Builder, config file and environment over one another, under what an add says for itself.

use super::attribute;
use super::layer::{Layer, Resolved};
use super::problem::SettingProblem;
use super::settings::{NodeSettings, TopicSettings};
use super::source::Source;
use super::suggest::nearest;
use crate::listener::Registration;

/// The layers of one node, the strongest last.
#[derive(Debug, Default)]
pub(crate) struct Layers(Vec<Layer>);

impl Layers {
    /// Layers in order of precedence, the strongest last.
    pub(crate) fn new(builder: Layer, file: Option<Layer>, variables: Layer) -> Self {
        Self([Some(builder), file, Some(variables)].into_iter().flatten().collect())
    }

    /// The settings of the node.
    pub(crate) fn node(&self) -> Resolved<NodeSettings> {
        Resolved::from_changes(self.0.iter().flat_map(|layer| &layer.node))
    }

    /// The settings of a topic over what its listener says, and what is wrong with the latter.
    pub(crate) fn topic(&self, topic: &str, listener: &Registration) -> (Resolved<TopicSettings>, Vec<SettingProblem>) {
        let said = attribute::layer(topic, listener);
        let layers = [&said].into_iter().chain(&self.0);
        let changes = layers.filter_map(|layer| layer.topics.get(topic)).flat_map(|(_, changes)| changes);
        (Resolved::from_changes(changes), said.problems.clone())
    }

    /// The URL of the store, and who chose it.
    pub(crate) fn store(&self) -> Option<&(String, Source)> {
        self.0.iter().rev().find_map(|layer| layer.store.as_ref())
    }

    /// Everything that could not be read, and every topic that is named and is none of `known`.
    pub(crate) fn problems(&self, known: Option<&[&str]>) -> Vec<SettingProblem> {
        let mut problems: Vec<_> = self.0.iter().flat_map(|layer| layer.problems.clone()).collect();
        let Some(known) = known else { return problems };
        for (topic, (at, _)) in self.0.iter().flat_map(|layer| &layer.topics) {
            if !known.contains(&topic.as_str()) {
                let suggestion = nearest(topic, known.iter().copied());
                problems.push(SettingProblem::UnknownTopic { topic: topic.clone(), at: at.clone(), suggestion });
            }
        }
        problems
    }
}
