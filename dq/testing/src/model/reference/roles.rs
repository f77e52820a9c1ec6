//! The roles of nodes, and the step `wake` (rules 23 and 24).

use std::time::Duration;

use super::Topic;
use dq::job::{NodeId, State};
use dq::store::step::{ROLE_SLACK, Role, STANDBY_DELAY};
use dq::time::Timestamp;

/// The node that has each role, and when the role lapses.
#[derive(Debug, Clone, Default)]
pub(super) struct Roles {
    watcher: Option<(NodeId, Timestamp)>,
    standby: Option<(NodeId, Timestamp)>,
    publisher: Option<(NodeId, Timestamp)>,
}

impl Roles {
    /// Frees the watcher roles of a node, and when the node is released its publisher role too.
    pub(super) fn free(&mut self, node: &NodeId, released: bool) {
        self.watcher.take_if(|(holder, _)| holder == node);
        self.standby.take_if(|(holder, _)| holder == node);
        self.publisher.take_if(|(holder, _)| released && holder == node);
    }
}

impl Topic {
    fn is_free(&self, role: &Option<(NodeId, Timestamp)>, node: &NodeId) -> bool {
        role.as_ref().is_none_or(|(holder, until)| holder == node || self.now() > *until)
    }

    /// The latest end that a role may have, for a caller with this fallback.
    fn longest(&self, fallback: Duration) -> Timestamp {
        let latest = self.after(fallback);
        latest.after(latest.since(self.now()) / 4).after(ROLE_SLACK)
    }

    fn held_by(&self, node: &NodeId, wake_at: Timestamp) -> Option<(NodeId, Timestamp)> {
        Some((node.clone(), wake_at.max(self.now()).after(ROLE_SLACK)))
    }

    /// Gives a node that has transferred a free role, if there is one. Returns the role and how long the node is to sleep.
    pub(super) fn assign_role(
        &mut self,
        node: &NodeId,
        fallback: Duration,
        lookahead: Duration,
    ) -> (Option<Role>, Duration) {
        let ahead = if self.is_paused() { 0 } else { (lookahead.as_millis() as u64).div_ceil(2) };
        let head = self.opens(self.by_time(State::Delayed, |_| ()).into_iter().map(|(due, _)| due));
        let head = head.map(|head| Timestamp::from_millis(head.as_millis() - ahead));
        let (latest, longest) = (self.after(fallback), self.longest(fallback));
        for (_, until) in [&mut self.roles.watcher, &mut self.roles.standby].into_iter().flatten() {
            *until = longest.min(*until);
        }
        let (role, wake_at) = if self.is_free(&self.roles.watcher, node) {
            let wake_at = head.map_or(latest, |head| head.min(latest));
            self.roles.watcher = self.held_by(node, wake_at);
            self.roles.standby.take_if(|(holder, _)| holder == node);
            (Some(Role::Watcher), wake_at)
        } else if self.is_free(&self.roles.standby, node) {
            let wake_at = head.map_or(latest, |head| head.after(STANDBY_DELAY).min(latest));
            self.roles.standby = self.held_by(node, wake_at);
            (Some(Role::Standby), wake_at)
        } else {
            (None, latest)
        };
        (role, self.until(wake_at).min(fallback))
    }

    /// Makes the node the publisher if that role is free. Returns how long the node is to sleep.
    pub(super) fn assign_publisher(&mut self, node: &NodeId, fallback: Duration) -> Duration {
        let (latest, longest) = (self.after(fallback), self.longest(fallback));
        if let Some((_, until)) = &mut self.roles.publisher {
            *until = longest.min(*until);
        }
        if !self.is_free(&self.roles.publisher, node) {
            return fallback;
        }
        let head = self.opens(self.broadcasts.values().map(|(due, _)| *due));
        let wake_at = head.map_or(latest, |head| head.min(latest));
        self.roles.publisher = self.held_by(node, wake_at);
        self.until(wake_at).min(fallback)
    }

    /// A step has been executed before which the head was this one. If the head is earlier now, the watcher was told, and its
    /// role lapses if it does not come then.
    pub(in super::super) fn tell_watcher(&mut self, before: Option<Timestamp>) {
        let Some(head) = self.head().filter(|head| before.is_none_or(|before| *head < before)) else { return };
        let now = self.now();
        if let Some((_, until)) = self.roles.watcher.as_mut().filter(|(_, until)| now <= *until) {
            *until = head.max(now).after(ROLE_SLACK).min(*until);
        }
    }

    pub(in super::super) fn wake(&mut self, node: &NodeId) {
        self.roles.free(node, false);
    }
}
