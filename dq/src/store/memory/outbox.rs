//! The outbox of a topic: follow-ups that have not arrived (rule 18).

use std::collections::BTreeMap;
use std::mem;

use super::kept::Touches;
use super::now::Now;
use crate::job::{NodeId, TopicName};
use crate::store::{
    Ahead, FollowUpBatches, MAX_AHEAD, OutboxEntry, OutboxPosition, OutboxSeen, Packed, Relay, Relayed,
};
use crate::time::Timestamp;

/// The follow-ups that have not arrived yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    of_targets: BTreeMap<TopicName, OfTarget>,
    /// The last position.
    last: u64,
    /// What it takes in memory, about.
    pub(super) bytes: u64,
    /// The node that relays, and until when.
    relay: Option<(NodeId, Timestamp)>,
    /// What the step has changed.
    pub(super) touched: Touches<(TopicName, OutboxChange)>,
}

/// What is for one target.
#[derive(Debug, Clone, Default)]
pub(super) struct OfTarget {
    /// The position of the last entry, which may have arrived.
    pub(super) last: OutboxPosition,
    /// By place.
    pub(super) entries: BTreeMap<u64, Kept>,
}

/// An entry.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// The position of the entry before it.
    pub(super) after: OutboxPosition,
    /// When it was written, in µs.
    pub(super) written: u64,
    /// What the target does.
    pub(super) batch: Packed,
}

impl Kept {
    pub(super) const fn position(&self, at: u64) -> OutboxPosition {
        OutboxPosition { at, written: self.written }
    }

    fn entry(&self, target: &TopicName, at: u64) -> OutboxEntry {
        let Self { after, batch, .. } = self.clone();
        OutboxEntry { target: target.clone(), position: self.position(at), after, batch }
    }
}

/// What a step has changed, for the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutboxChange {
    /// The entry at this position is new.
    New(u64),
    /// Everything up to this position is gone.
    Gone(u64),
}

fn is_unread(request: &Relay, target: &TopicName, position: u64) -> bool {
    request.unread.iter().any(|(of, at)| of == target && *at == position)
}

const fn bytes_of(packed: &Packed) -> u64 {
    const BESIDE: u64 = 96;
    packed.as_bytes().len() as u64 + BESIDE
}

impl Outbox {
    /// Writes the follow-ups of an outcome.
    pub(super) fn write(&mut self, now: Now, follow_ups: &FollowUpBatches) {
        for (target, batch) in follow_ups.parts() {
            let written = now.micros();
            let position = OutboxPosition { at: written.max(self.last.saturating_add(1)), written };
            let after = self.of_targets.get(target).map_or(OutboxPosition::START, |of| of.last);
            self.put(OutboxEntry { target: target.clone(), position, after, batch: batch.clone() });
            self.touched.add(|| (target.clone(), OutboxChange::New(position.at)));
        }
    }

    pub(super) fn put(&mut self, entry: OutboxEntry) {
        let OutboxEntry { target, position, after, batch } = entry;
        self.raise(&target, position);
        self.bytes += bytes_of(&batch);
        let of = self.of_targets.entry(target).or_default();
        let old = of.entries.insert(position.at, Kept { after, written: position.written, batch });
        self.bytes -= old.map_or(0, |old| bytes_of(&old.batch));
    }

    /// No later entry gets this position or a smaller one.
    pub(super) fn raise(&mut self, target: &TopicName, position: OutboxPosition) {
        self.last = self.last.max(position.at);
        let of = self.of_targets.entry(target.clone()).or_default();
        if position.at >= of.last.at {
            of.last = position;
        }
    }

    /// The position of the entry at this place, which is gone.
    pub(super) fn gone(&self, target: &TopicName, at: u64) -> OutboxPosition {
        let last = self.of_targets.get(target).map(|of| of.last).filter(|last| last.at == at);
        last.unwrap_or(OutboxPosition::clock(at))
    }

    /// Removes what has arrived, but what no node could read.
    fn remove_arrived(&mut self, target: &TopicName, position: u64, unread: &[(TopicName, u64)]) {
        let unread = unread.iter().filter(|(of, at)| of == target && *at <= position);
        let stay: Vec<_> = unread.filter_map(|(_, at)| Some((*at, self.entry(target, *at)?))).collect();
        let stay: Vec<_> = stay.into_iter().map(|(at, kept)| kept.entry(target, at)).collect();
        self.remove(target, position);
        for entry in stay {
            self.touched.add(|| (target.clone(), OutboxChange::New(entry.position.at)));
            self.put(entry);
        }
    }

    /// Removes everything up to this position.
    pub(super) fn remove(&mut self, target: &TopicName, position: u64) {
        let Some(of) = self.of_targets.get_mut(target) else { return };
        let left = position.checked_add(1).map(|next| of.entries.split_off(&next)).unwrap_or_default();
        let gone = mem::replace(&mut of.entries, left);
        if gone.is_empty() {
            return;
        }
        self.bytes -= gone.values().map(|kept| bytes_of(&kept.batch)).sum::<u64>();
        self.touched.add(|| (target.clone(), OutboxChange::Gone(position)));
    }

    /// How many entries there are. O(targets).
    pub(super) fn waiting(&self) -> usize {
        self.of_targets.values().map(|of| of.entries.len()).sum()
    }

    /// What waits for each target behind this one, or begins with the first.
    pub(super) fn seen(&self, after: Option<&TopicName>, limit: usize) -> Vec<OutboxSeen> {
        let waits = self.of_targets.iter().filter(|(target, _)| after.is_none_or(|after| *target > after));
        let seen = waits.filter_map(|(target, of)| {
            let Kept { after, written, .. } = of.entries.values().next()?;
            let (target, waiting) = (target.clone(), of.entries.len());
            Some(OutboxSeen { target, waiting, oldest: *written, before: *after })
        });
        seen.take(limit).collect()
    }

    /// The entries in order, of one target after the other.
    fn entries(&self) -> impl Iterator<Item = OutboxEntry> {
        self.of_targets
            .iter()
            .flat_map(|(target, of)| of.entries.iter().map(|(position, kept)| kept.entry(target, *position)))
    }

    /// The entries behind this one.
    pub(super) fn behind(&self, after: Option<(&TopicName, u64)>, limit: usize) -> Vec<OutboxEntry> {
        let is_behind = |entry: &OutboxEntry| after.is_none_or(|after| (&entry.target, entry.position.at) > after);
        self.entries().filter(is_behind).take(limit).collect()
    }

    /// The next entries that the node asks for, but of those targets in `without`.
    fn next(&self, request: &Relay, without: &[TopicName]) -> Vec<OutboxEntry> {
        let mut size = 0;
        let is_unread = |entry: &OutboxEntry| is_unread(request, &entry.target, entry.position.at);
        let asked = self.entries().filter(|entry| !without.contains(&entry.target) && !is_unread(entry));
        let fit = asked.enumerate().take_while(|(n, entry)| {
            size += entry.batch.as_bytes().len();
            *n == 0 || size <= request.bytes
        });
        fit.take(request.limit.max(1)).map(|(_, entry)| entry).collect()
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = (&TopicName, &OfTarget)> {
        self.of_targets.iter()
    }

    pub(super) fn entry(&self, target: &TopicName, position: u64) -> Option<&Kept> {
        self.of_targets.get(target)?.entries.get(&position)
    }

    /// The target is ahead, if it has a position that is of no entry. What no node could read tells nothing: later ones have passed it.
    fn ahead(&self, now: Now, request: &Relay, target: &TopicName, position: OutboxPosition) -> Option<Ahead> {
        let entries = &self.of_targets.get(target)?.entries;
        let back_to = entries.iter().find(|(at, _)| !is_unread(request, target, **at))?.1.after;
        let is_known = entries.get(&position.at).is_some_and(|kept| kept.written == position.written);
        if position.at <= back_to.at || is_known {
            return None;
        }
        let is_far = position.at > now.micros().saturating_add(MAX_AHEAD);
        Some(Ahead { target: target.clone(), position, back_to, is_far })
    }

    /// The next entries for the node that relays, once what has arrived is gone. `arrived` are the positions that the targets themselves have.
    pub(super) fn relay(&mut self, now: Now, request: &Relay, arrived: &[(TopicName, OutboxPosition)]) -> Relayed {
        // Further ahead is a time from before the clock fell back.
        let ahead = now.floor()..now.after(request.lease);
        let other = self
            .relay
            .as_ref()
            .filter(|(node, until)| *node != request.node && *until > ahead.start && *until <= ahead.end);
        if let Some((_, until)) = other {
            let busy = Some(until.since(now.floor()));
            return Relayed { busy, waiting: self.waiting(), ..Relayed::default() };
        }
        let (mut ahead, mut without) = (Vec::new(), request.without.clone());
        for (target, position) in arrived {
            if let Some(one) = self.ahead(now, request, target, *position) {
                without.push(target.clone());
                ahead.push(one);
            } else {
                let answered = request.arrived.iter().find(|(answered, _)| answered == target);
                let arrived = answered.map_or(position.at, |(_, answered)| position.at.min(*answered));
                self.remove_arrived(target, arrived, &request.unread);
            }
        }
        let entries = self.next(request, &without);
        self.relay = (!entries.is_empty()).then(|| (request.node.clone(), now.after(request.lease)));
        Relayed { entries, ahead, waiting: self.waiting(), ..Relayed::default() }
    }
}
