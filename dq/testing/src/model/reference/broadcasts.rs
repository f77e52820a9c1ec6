//! The step `publish` (rule 24).

use super::Topic;
use dq::job::NodeId;
use dq::store::step::{Publish, Published};

impl Topic {
    /// The limit must not separate broadcasts with the same due time, because the store chooses their order.
    pub(in super::super) fn publish(&mut self, node: &NodeId, request: &Publish) -> Published {
        let now = self.now();
        let mut due: Vec<_> = self.broadcasts.iter().filter(|(_, (due, _))| *due <= now).collect();
        due.sort_by_key(|(_, (due, _))| *due);
        let ids: Vec<_> = due.into_iter().take(request.limit).map(|(id, _)| id.clone()).collect();
        let (mut published, mut dropped) = (0, 0);
        for id in ids {
            let (due, record) = &self.broadcasts[&id];
            let own = record.metadata().expect("the model adds readable records").expires_at;
            let expired = own.unwrap_or_else(|| due.after(request.expires_after)) < now;
            if !expired && !self.may_take(*due) {
                continue;
            }
            self.broadcasts.remove(&id);
            *(if expired { &mut dropped } else { &mut published }) += 1;
        }
        self.published += published as u64;
        let sleep = self.assign_publisher(node, request.fallback);
        let more = self.broadcasts.values().any(|(due, _)| *due <= now && self.may_take(*due));
        Published { published, dropped, last_number: self.published, sleep, more }
    }

    /// A limit of about `n` that does not separate broadcasts with the same due time.
    pub(in super::super) fn publish_limit(&self, n: usize) -> usize {
        let mut due: Vec<_> = self.broadcasts.values().map(|(due, _)| *due).collect();
        due.sort();
        let last = due.get(n - 1).copied();
        last.map_or(n, |last| due.iter().filter(|due| **due <= last).count())
    }
}
