//! The roles of nodes: watcher and standby watcher for jobs, publisher for broadcasts (rules 23 and 24). Only a node with a
//! role learns when the head is due, so that not every node transfers for one job.

use super::now::Now;
use super::signals::Recipient;
use crate::job::NodeId;
use crate::store::step::{ROLE_SLACK, Role, STANDBY_DELAY};
use crate::time::Timestamp;

/// The node that has a role, and when the role lapses: a little after the node should have acted.
#[derive(Debug, Clone)]
struct RoleHolder {
    node: NodeId,
    until: Timestamp,
}

/// Who was told of a lease: one node, or all but the node that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    One(NodeId),
    All { but: NodeId },
}

/// The roles of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Roles {
    watcher: Option<RoleHolder>,
    standby: Option<RoleHolder>,
    publisher: Option<RoleHolder>,
    /// Who was told last of a lease, and when that ends: in the place of the watcher, and of the standby watcher.
    told: [Option<(Timestamp, Told)>; 2],
}

fn is_free(role: Option<&RoleHolder>, node: &NodeId, now: Now) -> bool {
    role.is_none_or(|held| held.node == *node || now.floor() > held.until)
}

fn holder(node: &NodeId, now: Now, wake_at: Timestamp) -> Option<RoleHolder> {
    Some(RoleHolder { node: node.clone(), until: wake_at.max(now.floor()).after(ROLE_SLACK) })
}

/// Cuts the end of a role to what a holder could have asked for, as after a clock that jumped back (rule 20). `fallback` is the
/// end of the caller's own fallback, which its jitter may have made a fifth shorter.
fn lapse(role: &mut Option<RoleHolder>, now: Now, fallback: Timestamp) {
    if let Some(held) = role {
        held.until = held.until.min(fallback.after(fallback.since(now.floor()) / 4).after(ROLE_SLACK));
    }
}

fn leave(role: &mut Option<RoleHolder>, node: &NodeId) -> bool {
    role.take_if(|held| held.node == *node).is_some()
}

impl Roles {
    /// The watcher, which is about to learn that the head is due at this earlier time: its role lapses if it does not come
    /// then. `None` if it has lapsed: a dead watcher must not be the only node that is signalled.
    pub(super) fn expect_watcher(&mut self, now: Now, due: Timestamp) -> Option<&NodeId> {
        let held = self.watcher.as_mut().filter(|held| now.floor() <= held.until)?;
        held.until = held.until.min(due.max(now.floor()).after(ROLE_SLACK));
        Some(&held.node)
    }

    /// Who is to learn when the new lease of `node` ends: another node that has a role, or all nodes if none has. `None`: they were told of
    /// another lease that ends before, and look at all leases then (rule 20).
    pub(super) fn tell_lease(&mut self, now: Now, node: &NodeId, end: Timestamp) -> Option<Recipient> {
        let roles = [&self.watcher, &self.standby].into_iter().enumerate();
        let mut others = roles.filter_map(|(place, role)| Some((place, role.as_ref()?)));
        let other = others.find(|(_, held)| held.node != *node && now.floor() <= held.until);
        let (place, holder) = other.map_or((1, None), |(place, held)| (place, Some(held.node.clone())));
        let to = holder.map_or_else(|| Told::All { but: node.clone() }, Told::One);
        // A node that has a role now may have come after all were told.
        let is_known = |(end, told): &(Timestamp, Told)| now.floor() < *end && *told == to;
        if self.told[place].as_ref().is_some_and(|told| is_known(told) && told.0 <= end) {
            return None;
        }
        let recipient = match &to {
            Told::One(node) => Recipient::Node(node.clone()),
            Told::All { .. } => Recipient::Nodes,
        };
        self.told[place] = Some((end, to));
        Some(recipient)
    }

    /// The signal of the lease of `teller` reached no subscriber of this node, so it went to all nodes.
    pub(super) fn told_all(&mut self, node: &NodeId, teller: &NodeId) {
        for (_, told) in self.told.iter_mut().flatten() {
            if matches!(told, Told::One(one) if one == node) {
                *told = Told::All { but: teller.clone() };
            }
        }
    }

    /// The watcher and the standby watcher, and when their roles lapse or have lapsed.
    pub(super) fn watchers(&self) -> [Option<(NodeId, Timestamp)>; 2] {
        let seen = |role: &Option<RoleHolder>| role.as_ref().map(|held| (held.node.clone(), held.until));
        [seen(&self.watcher), seen(&self.standby)]
    }

    /// The publisher, unless its role has lapsed.
    pub(super) fn publisher(&self, now: Now) -> Option<&NodeId> {
        self.publisher.as_ref().filter(|held| now.floor() <= held.until).map(|held| &held.node)
    }

    /// Gives `node` a free role, if there is one. Returns the role and when the node is to come again.
    pub(super) fn assign(
        &mut self,
        node: &NodeId,
        now: Now,
        head: Option<Timestamp>,
        fallback: Timestamp,
    ) -> (Option<Role>, Timestamp) {
        lapse(&mut self.watcher, now, fallback);
        lapse(&mut self.standby, now, fallback);
        if is_free(self.watcher.as_ref(), node, now) {
            let wake_at = head.map_or(fallback, |head| head.min(fallback));
            self.watcher = holder(node, now, wake_at);
            leave(&mut self.standby, node);
            return (Some(Role::Watcher), wake_at);
        }
        if is_free(self.standby.as_ref(), node, now) {
            let wake_at = head.map_or(fallback, |head| head.after(STANDBY_DELAY).min(fallback));
            self.standby = holder(node, now, wake_at);
            return (Some(Role::Standby), wake_at);
        }
        (None, fallback)
    }

    /// Makes `node` the publisher if that role is free. Returns when the node is to come again.
    pub(super) fn assign_publisher(
        &mut self,
        node: &NodeId,
        now: Now,
        head: Option<Timestamp>,
        fallback: Timestamp,
    ) -> Timestamp {
        lapse(&mut self.publisher, now, fallback);
        if !is_free(self.publisher.as_ref(), node, now) {
            return fallback;
        }
        let wake_at = head.map_or(fallback, |head| head.min(fallback));
        self.publisher = holder(node, now, wake_at);
        wake_at
    }

    /// Frees the watcher roles of `node`. Returns whether it had one.
    pub(super) fn free(&mut self, node: &NodeId) -> bool {
        let watched = leave(&mut self.watcher, node);
        let stood_by = leave(&mut self.standby, node);
        watched || stood_by
    }

    /// Takes the role of watcher from a node that does not listen, so that one of the others comes when the head is due.
    pub(super) fn free_watcher(&mut self, node: &NodeId) {
        leave(&mut self.watcher, node);
    }

    /// Frees the publisher role of `node`. Returns whether it had it.
    pub(super) fn free_publisher(&mut self, node: &NodeId) -> bool {
        leave(&mut self.publisher, node)
    }
}
