//! Who is told when the head is due (rule 23).

use std::time::Duration;

use super::Topic;
use dq::job::NodeId;
use dq::store::step::{ROLE_SLACK, Role, STANDBY_DELAY};
use dq::time::Timestamp;

/// Who has which role, and until when it stays taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Roles {
    watcher: Option<(NodeId, Timestamp)>,
    standby: Option<(NodeId, Timestamp)>,
    publisher: Option<(NodeId, Timestamp)>,
}

impl Roles {
    /// Frees the roles of a node; that of the caster only when it ends.
    pub(super) fn leave(&mut self, node: &NodeId, ends: bool) {
        self.watcher.take_if(|(holder, _)| holder == node);
        self.standby.take_if(|(holder, _)| holder == node);
        self.publisher.take_if(|(holder, _)| ends && holder == node);
    }
}

impl Topic {
    fn is_free(&self, role: &Option<(NodeId, Timestamp)>, node: &NodeId) -> bool {
        role.as_ref().is_none_or(|(holder, until)| holder == node || self.now() > *until)
    }

    fn taken(&self, node: &NodeId, told: Timestamp) -> Option<(NodeId, Timestamp)> {
        Some((node.clone(), told.max(self.now()).after(ROLE_SLACK)))
    }

    /// The role of a node that has transferred, and how long it is to sleep.
    pub(super) fn tell(&mut self, node: &NodeId, fallback: Duration) -> (Option<Role>, Duration) {
        let latest = self.after(fallback);
        let (role, told) = if self.is_free(&self.roles.watcher, node) {
            let told = self.head().map_or(latest, |head| head.min(latest));
            self.roles.watcher = self.taken(node, told);
            self.roles.standby.take_if(|(holder, _)| holder == node);
            (Some(Role::Watcher), told)
        } else if self.is_free(&self.roles.standby, node) {
            let told = self.head().map_or(latest, |head| head.after(STANDBY_DELAY).min(latest));
            self.roles.standby = self.taken(node, told);
            (Some(Role::Standby), told)
        } else {
            (None, latest)
        };
        (role, self.until(told).min(fallback))
    }

    pub(super) fn tell_publisher(&mut self, node: &NodeId, fallback: Duration) -> Duration {
        let latest = self.after(fallback);
        if !self.is_free(&self.roles.publisher, node) {
            return fallback;
        }
        let told = self.broadcasts.values().map(|(due, _)| *due).min().map_or(latest, |head| head.min(latest));
        self.roles.publisher = self.taken(node, told);
        self.until(told).min(fallback)
    }

    pub(in super::super) fn wake(&mut self, node: &NodeId) {
        self.roles.leave(node, false);
    }
}
