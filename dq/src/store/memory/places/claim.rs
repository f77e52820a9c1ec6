//! How a node takes jobs out of a place.

use std::collections::BTreeSet;

use super::{Holder, Jobs, Place, Run, Slot, TimedPlace, Touch, fitting};
use crate::job::{Fence, NodeId, Token};
use crate::store::step::Claim;
use crate::time::Timestamp;

impl Jobs {
    /// Gives `node` up to `limit` jobs of a place whose time is `until` or earlier, with up to `bytes` of records, under
    /// this fence and lease.
    pub(in crate::store::memory) fn claim(
        &mut self,
        (place, until, limit, bytes): (TimedPlace, Timestamp, usize, usize),
        node: &NodeId,
        (fence, lease): (Fence, Timestamp),
    ) -> Vec<Claim> {
        let index = match place {
            TimedPlace::Delayed => &mut self.delayed,
            TimedPlace::Unacked => &mut self.unacked,
            TimedPlace::Dead => &mut self.dead,
            TimedPlace::Done => &mut self.done,
        };
        if limit == 0 || !index.is_due(until) {
            return Vec::new();
        }
        let holder = self.holders.entry(node.clone()).or_insert_with(|| Holder { lease, rows: BTreeSet::new() });
        // All slots are looked up before the first one changes. With many jobs waiting each lookup misses the caches, and lookups that
        // do not depend on each other wait for the memory together.
        let size = |id| self.slots.get(id).map_or(0, |slot: &Slot| slot.record.as_bytes().len());
        let count = fitting(index.until(until).take(limit).map(size), bytes);
        let mut claims = Vec::with_capacity(count);
        for _ in 0..count {
            let (due, id) = index.pop_first().expect("it was counted");
            let slot = self.slots.get_mut(&id).expect("an indexed job has a slot");
            let token = Token { fence, due };
            slot.place = Place::Running(Box::new(Run { node: node.clone(), token, isolation: None, pending: None }));
            self.touched.change(&id, &mut slot.touched, Touch::CLAIMED);
            holder.rows.insert(id.clone());
            claims.push(Claim { id, token, record: slot.record.clone(), crashes: slot.crashes });
        }
        claims
    }
}
