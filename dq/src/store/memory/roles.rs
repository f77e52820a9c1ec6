//! Who is told when the head is due, so that not all come for one job (PROTOCOL.md rule 23), and who for broadcasts.

use super::now::Now;
use crate::job::NodeId;
use crate::store::step::{ROLE_SLACK, Role, STANDBY_DELAY};
use crate::time::Timestamp;

/// A role that a node has until a little after the time it was told.
#[derive(Debug, Clone)]
struct Held {
    node: NodeId,
    until: Timestamp,
}

/// The roles of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Roles {
    watcher: Option<Held>,
    standby: Option<Held>,
    publisher: Option<Held>,
}

fn is_free(role: Option<&Held>, node: &NodeId, now: Now) -> bool {
    role.is_none_or(|held| held.node == *node || now.floor() > held.until)
}

fn held(node: &NodeId, now: Now, told: Timestamp) -> Option<Held> {
    Some(Held { node: node.clone(), until: told.max(now.floor()).after(ROLE_SLACK) })
}

fn leave(role: &mut Option<Held>, node: &NodeId) -> bool {
    role.take_if(|held| held.node == *node).is_some()
}

impl Roles {
    /// The watcher, while its role has not lapsed: a dead one must not be the only one who hears.
    pub(super) fn watcher(&self, now: Now) -> Option<&NodeId> {
        self.watcher.as_ref().filter(|held| now.floor() <= held.until).map(|held| &held.node)
    }

    /// Who is told when a broadcast is due, under the same condition.
    pub(super) fn publisher(&self, now: Now) -> Option<&NodeId> {
        self.publisher.as_ref().filter(|held| now.floor() <= held.until).map(|held| &held.node)
    }

    /// Gives `node` a role if one is free, and tells it when to come again.
    pub(super) fn tell(
        &mut self,
        node: &NodeId,
        now: Now,
        head: Option<Timestamp>,
        fallback: Timestamp,
    ) -> (Option<Role>, Timestamp) {
        if is_free(self.watcher.as_ref(), node, now) {
            let told = head.map_or(fallback, |head| head.min(fallback));
            self.watcher = held(node, now, told);
            leave(&mut self.standby, node);
            return (Some(Role::Watcher), told);
        }
        if is_free(self.standby.as_ref(), node, now) {
            let told = head.map_or(fallback, |head| head.after(STANDBY_DELAY).min(fallback));
            self.standby = held(node, now, told);
            return (Some(Role::Standby), told);
        }
        (None, fallback)
    }

    /// The same for broadcasts.
    pub(super) fn tell_publisher(
        &mut self,
        node: &NodeId,
        now: Now,
        head: Option<Timestamp>,
        fallback: Timestamp,
    ) -> Timestamp {
        if !is_free(self.publisher.as_ref(), node, now) {
            return fallback;
        }
        let told = head.map_or(fallback, |head| head.min(fallback));
        self.publisher = held(node, now, told);
        told
    }

    /// Frees what `node` watches; whether it did.
    pub(super) fn free(&mut self, node: &NodeId) -> bool {
        let watched = leave(&mut self.watcher, node);
        let deputised = leave(&mut self.standby, node);
        watched || deputised
    }

    /// The same for broadcasts.
    pub(super) fn free_publisher(&mut self, node: &NodeId) -> bool {
        leave(&mut self.publisher, node)
    }
}
