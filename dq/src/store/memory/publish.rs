//! Broadcasts are published and removed in one step (PROTOCOL.md rule 24).

use super::notices::To;
use super::now::Now;
use super::topic::{Topic, within};
use crate::job::{JobId, NodeId, Record};
use crate::store::step::{Publish, Published};
use crate::store::{BroadcastMessage, StoreError};
use crate::time::Timestamp;

impl Topic {
    /// Lets a broadcast wait that is not there.
    pub(super) fn delay_broadcast(&mut self, now: Now, id: JobId, record: Record, due: Timestamp) {
        if self.broadcasts.head().is_none_or(|head| due < head) {
            let to = self.roles.publisher(now).map_or(To::Nodes, |node| To::Node(node.clone()));
            self.notices.broadcast_due(to);
        }
        self.broadcasts.insert(id, record, due);
    }

    /// Publishes due broadcasts and drops those that nobody served in time. O(limit log n).
    pub(crate) fn publish(&mut self, now: Now, node: &NodeId, request: Publish) -> Result<Published, StoreError> {
        within("the limit of a cast", request.limit)?;
        let (mut published, mut dropped) = (0, 0);
        for (due, id, record) in self.broadcasts.take(now.floor(), request.limit) {
            let expires_at = record.fixed().expires_at.unwrap_or_else(|| due.after(request.expires_after));
            if expires_at < now.floor() {
                dropped += 1;
            } else {
                published += 1;
                self.notices.publish(BroadcastMessage { id, record: record.as_bytes().clone() });
            }
        }
        let told = self.roles.tell_publisher(node, now, self.broadcasts.head(), now.after(request.fallback));
        Ok(Published {
            published,
            dropped,
            sleep: now.until(told).min(request.fallback),
            more: self.broadcasts.is_due(now.floor()),
        })
    }
}
