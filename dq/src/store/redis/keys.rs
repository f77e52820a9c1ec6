//! The keys and channels of a topic (`docs/internals/protocol/README.md`, section 2). They share one hash tag, and
//! every key that a script touches is in its KEYS, so a cluster can run the scripts.

use std::sync::Arc;

use super::slots::{Slot, slot_of};
use crate::job::TopicKey;
use crate::time::Timestamp;

macro_rules! keys {
    ($($(#[$doc:meta])+ $key:ident $suffix:literal $type:literal;)+) => {
        /// A key or channel of a topic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Key { $($(#[$doc])+ $key,)+ }

        impl Key {
            /// The name behind the hash tag, without an owner.
            pub(super) const fn suffix(self) -> &'static str {
                match self { $(Self::$key => $suffix,)+ }
            }

            /// The type of the key, as the server names it; `channel` for a channel.
            pub(super) const fn redis_type(self) -> &'static str {
                match self { $(Self::$key => $type,)+ }
            }
        }
    };
}

keys! {
    /// Job id → record, as the add wrote it.
    Jobs "jobs" "hash";
    /// Job id → metadata that override those of the record.
    Metadata "metadata" "hash";
    /// Job id → due time.
    Delayed "delayed" "zset";
    /// Bounds of the leaves of jobs that are due much later.
    Far "far" "zset";
    /// Job id → due time and record of such a job.
    FarJobs "far-jobs" "hash";
    /// Bound → ids of the leaf.
    FarLeaves "far-leaves" "hash";
    /// Job id → when it was parked.
    Unacked "unacked" "zset";
    /// Job id → when it became DEAD.
    Dead "dead" "zset";
    /// Job id → end of its retention.
    Done "done" "zset";
    /// Broadcast id → due time.
    Broadcasts "broadcasts" "zset";
    /// Broadcast id → record.
    BroadcastJobs "broadcast-jobs" "hash";
    /// Job id → token, of a node.
    Running "running" "hash";
    /// Node → end of its lease.
    Leases "leases" "zset";
    /// The sequence number of a node.
    Sequence "sequence" "string";
    /// Job id → pending command.
    Pending "pending" "hash";
    /// Job id → record of the replacement in its pending command.
    Replacements "replacements" "hash";
    /// Job id → crashes, and how its run was started.
    Crashes "crashes" "hash";
    /// The highest executed number of a producer and the answers to its last batches.
    Calls "calls" "string";
    /// Protocol version, last fence, roles.
    Meta "meta" "hash";
    /// Ids of schedules, all with score 0. It has every schedule, and may name some that are gone.
    Schedules "schedules" "zset";
    /// Id of a schedule → when its next tick is, or an earlier time. Ticks that it does not have wait like jobs.
    Ticks "ticks" "zset";
    /// Waiting jobs and seats of groups, all with score 0.
    Grouped "grouped" "zset";
    /// Follow-ups that have not arrived, all with score 0.
    Outbox "outbox" "zset";
    /// Job id → the set of which it is a member.
    Members "members" "hash";
    /// Name of a job set → the set.
    Sets "sets" "hash";
    /// Name of a job set → when it ended, or 0.
    SetOrder "set-order" "zset";
    /// Members of a job set.
    Set "set" "zset";
    /// Id that stays taken → until when, and half a millisecond more if its job was deleted.
    Taken "taken" "zset";
    /// Minute modulo 1440 → what the topic counted in that minute.
    Statistics "statistics" "hash";
    /// Job id → history.
    History "history" "hash";
    /// Id of a job that is gone → when its history is forgotten.
    HistoryEnds "history-ends" "zset";
    /// Channel with signals for every node; with `:NODE` behind it for one node.
    Wake "wake" "channel";
    /// Channel of published broadcasts.
    BroadcastChannel "broadcast" "channel";
    /// Channel of moves, for those who listen to the events of the topic.
    EventsChannel "events" "channel";
}

impl Key {
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
