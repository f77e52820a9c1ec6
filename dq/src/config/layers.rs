//! The layers of a node: builder, config file and environment. The options of an add outweigh them all.

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

    /// The settings of a topic, including those of its listener, and the problems with the listener's.
    pub(crate) fn topic(&self, topic: &str, listener: &Registration) -> (Resolved<TopicSettings>, Vec<SettingProblem>) {
        let declared = attribute::layer(topic, listener);
        let layers = [&declared].into_iter().chain(&self.0);
        let changes = layers.filter_map(|layer| layer.topics.get(topic)).flat_map(|(_, changes)| changes);
        (Resolved::from_changes(changes), declared.problems.clone())
    }

    /// The URL of the store, and where it came from.
    pub(crate) fn store(&self) -> Option<&(String, Source)> {
        self.0.iter().rev().find_map(|layer| layer.store.as_ref())
    }

    /// Everything that dq could not read, and every topic with settings that is not one of `known`.
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
