//! The keys and channels of a topic (`docs/internals/protocol/README.md`, section 2). They share one hash tag, and
//! every key that a script touches is in its KEYS, so a cluster can run the scripts.

use std::sync::Arc;

use super::slots::{Slot, slot_of};
use crate::job::TopicKey;
use crate::time::Timestamp;

/// A key or channel of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// HASH job id → record, as the add wrote it.
    Jobs,
    /// HASH job id → metadata that override those of the record.
    Metadata,
    /// ZSET job id → due time.
    Delayed,
    /// ZSET bounds of the leaves of jobs that are due much later.
    Far,
    /// HASH job id → due time and record of such a job.
    FarJobs,
    /// HASH bound → ids of the leaf.
    FarLeaves,
    /// ZSET job id → when it was parked.
    Unacked,
    /// ZSET job id → when it became DEAD.
    Dead,
    /// ZSET job id → end of its retention.
    Done,
    /// ZSET broadcast id → due time.
    Broadcasts,
    /// HASH broadcast id → record.
    BroadcastJobs,
    /// HASH job id → token, one per node.
    Running,
    /// ZSET node → end of its lease.
    Leases,
    /// STRING, the sequence number of a node, one per node.
    Sequence,
    /// HASH job id → pending command.
    Pending,
    /// HASH job id → record of the replacement in its pending command.
    Replacements,
    /// HASH job id → crashes, and how its run was started.
    Crashes,
    /// STRING, the highest executed number of a producer and the answers to its last batches, one per producer.
    Calls,
    /// HASH protocol version, last fence, roles.
    Meta,
    /// ZSET ids of schedules, all with score 0. It has every schedule, and may name some that are gone.
    Schedules,
    /// ZSET id of a schedule → when its next tick is, or an earlier time. Ticks that it does not have wait like jobs.
    Ticks,
    Grouped,
    /// ZSET follow-ups that have not arrived, all with score 0.
    Outbox,
    /// HASH job id → the set of which it is a member.
    Members,
    /// HASH name of a job set → the set.
    Sets,
    /// ZSET name of a job set → when it ended, or 0.
    SetOrder,
    /// ZSET members of a job set, one for each set.
    Set,
    /// ZSET id that stays taken → until when, and half a millisecond more if its job was deleted.
    Taken,
    /// HASH minute modulo 1440 → what the topic counted in that minute.
    Statistics,
    /// HASH job id → history.
    History,
    /// ZSET id of a job that is gone → when its history is forgotten.
    HistoryEnds,
    /// Channel with signals for every node; with `:NODE` behind it for one node.
    Wake,
    /// Channel of published broadcasts.
    BroadcastChannel,
    /// Channel of moves, for those who listen to the events of the topic.
    EventsChannel,
}

impl Key {
    /// The name behind the hash tag, without an owner.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Metadata => "metadata",
            Self::Delayed => "delayed",
            Self::Far => "far",
            Self::FarJobs => "far-jobs",
            Self::FarLeaves => "far-leaves",
            Self::Unacked => "unacked",
            Self::Dead => "dead",
            Self::Done => "done",
            Self::Broadcasts => "broadcasts",
            Self::BroadcastJobs => "broadcast-jobs",
            Self::Running => "running",
            Self::Leases => "leases",
            Self::Sequence => "sequence",
            Self::Pending => "pending",
            Self::Replacements => "replacements",
            Self::Crashes => "crashes",
            Self::Calls => "calls",
            Self::Meta => "meta",
            Self::Schedules => "schedules",
            Self::Ticks => "ticks",
            Self::Grouped => "grouped",
            Self::Outbox => "outbox",
            Self::Members => "members",
            Self::Sets => "sets",
            Self::SetOrder => "set-order",
            Self::Set => "set",
            Self::Taken => "taken",
            Self::Statistics => "statistics",
            Self::History => "history",
            Self::HistoryEnds => "history-ends",
            Self::Wake => "wake",
            Self::BroadcastChannel => "broadcast",
            Self::EventsChannel => "events",
        }
    }

    /// The type of the key, as the server names it; `channel` for a channel.
    pub(super) const fn redis_type(self) -> &'static str {
        match self {
            Self::Delayed
            | Self::Far
            | Self::Unacked
            | Self::Dead
            | Self::Done
            | Self::Broadcasts
            | Self::Leases
            | Self::Schedules
            | Self::Ticks
            | Self::Grouped
            | Self::Outbox
            | Self::SetOrder
            | Self::Set
            | Self::Taken
            | Self::HistoryEnds => "zset",
            Self::Sequence | Self::Calls => "string",
            Self::Wake | Self::BroadcastChannel | Self::EventsChannel => "channel",
            Self::Jobs
            | Self::Metadata
            | Self::FarJobs
            | Self::FarLeaves
            | Self::BroadcastJobs
            | Self::Running
            | Self::Pending
            | Self::Replacements
            | Self::Crashes
            | Self::History
            | Self::Members
            | Self::Sets
            | Self::Meta
            | Self::Statistics => "hash",
        }
    }

    /// Whether each node, producer or job set has a key of its own.
    pub(super) const fn is_owned(self) -> bool {
        matches!(self, Self::Running | Self::Sequence | Self::Calls | Self::Set)
    }
}

/// The prefix of all keys of a store: `dq:`, except in tests that share a server.
#[derive(Debug, Clone)]
pub(super) struct Keyspace(Arc<str>);

impl Keyspace {
    pub(super) fn new(prefix: &str) -> Self {
        Self(prefix.into())
    }

    /// What every key begins with.
    pub(super) fn prefix(&self) -> &str {
        &self.0
    }

    /// The name under which the doctor sets a key of this name aside that has a wrong type. No key of a topic has such a name.
    pub(super) fn set_aside(&self, name: &str, at: Timestamp) -> String {
        let rest = name.strip_prefix(&*self.0).unwrap_or(name);
        format!("{}set-aside:{}:{rest}", self.0, at.as_millis())
    }

    /// The keys of a topic.
    pub(super) fn of(&self, topic: &TopicKey) -> Keys {
        Keys { prefix: format!("{}{{{topic}}}:", self.0).into(), topic: topic.clone() }
    }

    /// The keys of the ZSET with the topics of an app, a directory for people, and of the HASH that says when each was entered last.
    pub(super) fn directory(&self, app: &str) -> [String; 2] {
        ["topics", "entered"].map(|what| format!("{}{{{app}}}:{what}", self.0))
    }
}

impl Default for Keyspace {
    fn default() -> Self {
        Self::new("dq:")
    }
}

/// The names of the keys of one topic.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: Arc<str>,
    topic: TopicKey,
}

impl Keys {
    pub(super) const fn topic(&self) -> &TopicKey {
        &self.topic
    }

    /// In which slot of a cluster they are.
    pub(super) fn slot(&self) -> Slot {
        slot_of(self.prefix.as_bytes())
    }

    /// The full name of a key. `owner` is the node, producer or job set of an owned key, and is ignored for other keys.
    pub(super) fn name(&self, key: Key, owner: &str) -> String {
        let mut name = String::new();
        self.write_name(key, owner, &mut name);
        name
    }

    /// Writes the full name of a key in place of what `name` holds.
    pub(super) fn write_name(&self, key: Key, owner: &str, name: &mut String) {
        name.clear();
        name.push_str(&self.prefix);
        name.push_str(key.suffix());
        if key.is_owned() {
            name.push(':');
            name.push_str(owner);
        }
    }

    /// The channel with signals for one node.
    pub(super) fn wake_of(&self, node: &str) -> String {
        format!("{}:{node}", self.name(Key::Wake, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripts::Step;
    use super::*;
    use crate::job::{AppName, TopicName};

    #[test]
    fn all_keys_of_a_topic_share_one_hash_tag() {
        let topic = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("a:b").unwrap() };
        let keys = Keyspace::default().of(&topic);
        let used: Vec<_> = Step::ALL.iter().flat_map(|step| step.keys()).collect();
        assert!(used.len() > 100, "{used:?}");
        for name in used.into_iter().map(|key| keys.name(*key, "n")).chain([keys.wake_of("n")]) {
            assert_eq!(name.find('{'), Some("dq:".len()), "{name}");
            assert_eq!(name.find('}'), Some("dq:{shop:a:b".len()), "{name}");
        }
        assert_eq!(keys.name(Key::BroadcastJobs, "n"), "dq:{shop:a:b}:broadcast-jobs");
        assert_eq!(keys.name(Key::Running, "n"), "dq:{shop:a:b}:running:n");
        assert_eq!(keys.wake_of("n"), "dq:{shop:a:b}:wake:n");
    }
}
