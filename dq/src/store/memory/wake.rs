//! Nodes that give their roles up (PROTOCOL.md rule 23).

use super::notices::To;
use super::places::Shelf;
use super::topic::Topic;
use crate::job::NodeId;

impl Topic {
    /// Frees the node's roles and signals the others.
    pub(crate) fn wake(&mut self, node: &NodeId) {
        self.free_roles(node);
        self.notices.due(To::Nodes);
    }

    pub(super) fn free_roles(&mut self, node: &NodeId) {
        if self.roles.free(node) && self.jobs.shelf(Shelf::Delayed).head().is_some() {
            self.notices.due(To::Nodes);
        }
    }

    pub(super) fn free_publisher(&mut self, node: &NodeId) {
        if self.roles.free_publisher(node) && self.broadcasts.head().is_some() {
            self.notices.broadcast_due(To::Nodes);
        }
    }
}
