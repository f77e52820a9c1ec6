//! The steps that concern roles: `publish` sends due broadcasts (rule 24), `wake` gives the watcher roles up (rule 23).

use std::time::Duration;

use super::now::Now;
use super::signals::Recipient;
use super::topic::Topic;
use crate::job::{JobId, NodeId, Record};
use crate::store::step::{Publish, Published};
use crate::store::{BroadcastMessage, Signal, StoreError, Transition};
use crate::time::Timestamp;

impl Topic {
    /// Adds a broadcast with an unknown id; signals the publisher if it is due before all others.
    pub(super) fn delay_broadcast(&mut self, now: Now, id: JobId, record: Record, due: Timestamp) {
        if self.broadcasts.head().is_none_or(|head| due < head) {
            self.signal_earlier_broadcast(now);
        }
        self.broadcasts.insert(id, record, due);
    }

    /// Tells the publisher, or every node if there is no publisher, that the next broadcast is due earlier.
    pub(super) fn signal_earlier_broadcast(&mut self, now: Now) {
        let to = self.roles.publisher(now).map_or(Recipient::Nodes, |node| Recipient::Node(node.clone()));
        self.notices.broadcast_due(to);
    }

    /// Removes and publishes due broadcasts; drops those that have expired. O(limit log n).
    pub(crate) fn publish(&mut self, now: Now, node: &NodeId, request: Publish) -> Result<Published, StoreError> {
        let (mut published, mut dropped) = (0, 0);
        let gate = self.gate(now);
        let latest = gate.latest(now.floor());
        let is_expired = |due: Timestamp, record: &Record| {
            record.fixed().expires_at.unwrap_or_else(|| due.after(request.expires_after)) < now.floor()
        };
        let goes = |due, record: &Record| latest.is_some_and(|latest| due <= latest) || is_expired(due, record);
        for (due, id, record) in self.broadcasts.take(now.floor(), request.limit, request.bytes, goes) {
            if is_expired(due, &record) {
                dropped += 1;
                self.record.note(&id, || Transition::Removed);
            } else {
                published += 1;
                self.record.note(&id, || Transition::Published);
                self.broadcasts.published = self.broadcasts.published.saturating_add(1);
                let number = self.broadcasts.published;
                let message = BroadcastMessage { number, id, record: record.as_bytes().clone() };
                self.notices.push(Recipient::Channel, Signal::Broadcast(message));
            }
        }
        let head = gate.opens(self.broadcasts.head(), Duration::ZERO);
        let wake_at = self.roles.assign_publisher(node, now, head, now.after(request.fallback));
        Ok(Published {
            published,
            dropped,
            last_number: self.broadcasts.published,
            sleep: now.until(wake_at).min(request.fallback),
            more: latest.is_some_and(|latest| self.broadcasts.is_due(latest)),
        })
    }

    /// Frees the watcher roles of the node and signals all nodes.
    pub(crate) fn wake(&mut self, node: &NodeId) {
        self.free_roles(node);
        self.notices.due();
    }

    /// Frees the watcher roles of the node; signals all nodes if it had one and a job waits.
    pub(super) fn free_roles(&mut self, node: &NodeId) {
        if self.roles.free(node) && self.jobs.head().is_some() {
            self.notices.due();
        }
    }

    /// Frees the publisher role of the node; signals all nodes if it had that role and a broadcast waits.
    pub(super) fn free_publisher(&mut self, node: &NodeId) {
        if self.roles.free_publisher(node) && self.broadcasts.head().is_some() {
            self.notices.broadcast_due(Recipient::Nodes);
        }
    }
}
