//! Broadcasts: each is published once and never early, and each listener of a connected node receives it at most once (rule
//! 24).
//!
//! Waiting broadcasts are compared after every step, as jobs are. Only a publish, a drop, a replacement, a delete or an ack
//! removes one. What the checker expects to wait falls back with the store. What was published and received does not: a
//! store that fell back may publish again, and only then may a listener receive again.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::version::version;
use super::record::{Checker, Did};
use dq::job::{JobId, NodeId, Record, State};
use dq::store::{AddOutcome, CommandKind};
use dq::testing::seam::View;
use dq::time::Timestamp;

/// How late a broadcast may be published while a listener is connected, without a fault, in ms.
const LATE: u64 = 400;

/// How long a listener may handle other broadcasts before it receives one, without a fault, in µs.
const QUEUED: u64 = 2_000_000;

impl Checker {
    pub(super) fn check_waiting_broadcasts(&mut self, did: &Did, before: &View, after: &View, micros: u64) {
        if let Did::Publish { expires_after } = did {
            self.check_published(*expires_after, (before, after), micros);
        }
        if before.broadcasts.is_empty() && after.broadcasts.is_empty() {
            return;
        }
        let ids: BTreeSet<&JobId> = before.broadcasts.keys().chain(after.broadcasts.keys()).collect();
        for id in ids {
            let [old, new] = [before, after].map(|view| view.broadcasts.get(id).map(|(_, record)| version(record)));
            if old == new {
                continue;
            }
            if let Some(new) = new {
                self.check_new_broadcast(id, new, micros);
            }
            if let Some(old) = old.filter(|_| !matches!(did, Did::Publish { .. })) {
                let job = after.jobs.get(id).map(|job| version(&job.record));
                let waited = before.jobs.get(id).and_then(|job| job.replacement.as_ref());
                let waited = waited.map(|(record, _)| version(record));
                let replaced = waited.is_some() && (waited == job || waited == new);
                self.check_broadcast_gone(did, id, old, replaced);
            }
        }
    }

    /// Checks that what a step published or dropped was due.
    fn check_published(&mut self, expires_after: Duration, (before, after): (&View, &View), now: u64) {
        for (id, (due, record)) in before.broadcasts.iter().filter(|(id, _)| !after.broadcasts.contains_key(*id)) {
            let version = version(record);
            let added = self.expected.broadcasts.added.get(&version).copied();
            if added.is_none_or(|added| now < added.due) {
                self.bad(format!("[24] the broadcast {id} ({version}) is published at {now}, early: {added:?}"));
            }
            if self.is_dropped((*due, record), expires_after, now) {
                self.expected.broadcasts.over.insert(version, "dropped");
                continue;
            }
            self.check_may_publish(id, *due, now);
            self.expected.broadcasts.over.insert(version, "published");
            *self.received.published.entry(version).or_default() += 1;
            self.received.fresh.push(version);
            let put = added.and_then(|added| added.put).unwrap_or_default();
            let open = self.expected.gate.open_since();
            let late = self
                .broadcasts_since
                .map(|since| (now / 1000).saturating_sub(due.as_millis().max(since).max(put).max(open)));
            if let Some(late) = late.filter(|late| *late > LATE) {
                self.bad(format!("[24] the broadcast {id} ({version}) is published {late} ms late without a fault"));
            }
        }
    }

    /// Returns whether it expired before any node published it.
    fn is_dropped(&self, (due, record): (Timestamp, &Record), expires_after: Duration, micros: u64) -> bool {
        let end = record.fixed().expires_at.unwrap_or_else(|| due.after(expires_after));
        end.as_millis() < micros / 1000
    }

    fn check_new_broadcast(&mut self, id: &JobId, new: u64, micros: u64) {
        let ended = self.expected.broadcasts.over.get(&new).or_else(|| self.expected.ended.get(&new));
        if let Some(why) = ended {
            self.bad(format!("[24] the broadcast {id} ({new}) RETURNED after its end: {why}"));
        }
        match self.expected.broadcasts.added.get_mut(&new) {
            Some(added) => added.put = Some(micros / 1000),
            None => self.bad(format!("[24] the broadcast {id} has version {new}, which was never added as one")),
        }
    }

    fn check_broadcast_gone(&mut self, did: &Did, id: &JobId, old: u64, replaced: bool) {
        let why = match did {
            Did::Add { jobs } => jobs
                .iter()
                .any(|(job, outcome)| {
                    job.id == *id && matches!(outcome, AddOutcome::Replaced(_) | AddOutcome::Extended { .. })
                })
                .then_some("replaced"),
            Did::Command { items } => {
                items.iter().filter(|(item, _)| item.id == *id).find_map(|(item, outcome)| match item.verb {
                    CommandKind::Delete | CommandKind::Cancel => Some("deleted"),
                    CommandKind::Ack if item.fence.is_none() => {
                        (outcome.found == Some(State::Delayed)).then_some("acked")
                    }
                    _ => None,
                })
            }
            Did::Settle { .. } | Did::Reclaim { .. } => replaced.then_some("replaced"),
            _ => None,
        };
        match why {
            Some(why) => drop(self.expected.broadcasts.over.insert(old, why)),
            None => self.bad(format!("[24] LOST: the broadcast {id} ({old}) is gone in {did:?}")),
        }
    }

    /// The versions that the last step published.
    pub(in crate::simulation) fn take_published(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.received.fresh)
    }

    /// A connected listener must receive a broadcast that was just published.
    pub(in crate::simulation) fn must_receive(
        &mut self,
        node: &NodeId,
        listener: &'static str,
        version: u64,
        time: u64,
    ) {
        self.received.awaited.insert((node.clone(), listener, version), time);
    }

    /// A listener of a node receives a broadcast.
    pub(in crate::simulation) fn receives(
        &mut self,
        node: &NodeId,
        listener: &'static str,
        (id, version): (&JobId, u64),
    ) {
        let key = (node.clone(), listener, version);
        self.received.awaited.remove(&key);
        let times = self.received.received.entry(key).or_default();
        *times += 1;
        let (times, published) = (*times, self.received.published.get(&version).copied().unwrap_or_default());
        if times > published {
            let receives = format!("{listener} on {node} receives the broadcast {id} ({version})");
            self.bad(format!("[24] {receives} {times} times, but it was published {published} times"));
        }
    }

    /// Checks that no connected listener has missed a broadcast for too long.
    pub(in crate::simulation) fn check_awaited(&mut self, is_here: impl Fn(&NodeId) -> bool, time: u64) {
        self.received.awaited.retain(|(node, ..), _| is_here(node));
        let late = self.received.awaited.iter().find(|(_, since)| **since + QUEUED < time);
        if let Some(((node, listener, version), _)) = late {
            let what = format!("[24] {listener} on {node} has not received the broadcast {version}, without a fault");
            self.bad(what);
        }
    }
}
