//! Every key of a topic (PROTOCOL.md section 2). All of them share one hash tag, so that every script is cluster-safe, and
//! a script is given all it touches.

use std::sync::Arc;

use crate::job::TopicKey;

/// What a key of a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// HASH job id → record.
    Jobs,
    /// ZSET job id → due.
    Delayed,
    /// ZSET job id → when it was parked.
    Unacked,
    /// ZSET job id → when it was given up.
    Dead,
    /// ZSET job id → end of its retention.
    Done,
    /// ZSET broadcast id → due.
    Broadcasts,
    /// HASH broadcast id → record.
    BroadcastJobs,
    /// HASH job id → token, of one node.
    Running,
    /// ZSET node → lease end.
    Leases,
    /// STRING, the last executed turn of one node.
    Sequence,
    /// HASH job id → mark.
    Pending,
    /// HASH job id → crashes, begun.
    Crashes,
    /// HASH number mod 16 → number, answer, of one producer.
    Calls,
    /// HASH protocol version, fence, roles.
    Meta,
    /// Channel of any node; with `:NODE` behind it of one.
    Wake,
    /// Channel of broadcasts.
    BroadcastChannel,
}

impl Key {
    /// What stands behind the hash tag.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Delayed => "delayed",
            Self::Unacked => "unacked",
            Self::Dead => "dead",
            Self::Done => "done",
            Self::Broadcasts => "broadcasts",
            Self::BroadcastJobs => "broadcast-jobs",
            Self::Running => "running",
            Self::Leases => "leases",
            Self::Sequence => "sequence",
            Self::Pending => "pending",
            Self::Crashes => "crashes",
            Self::Calls => "calls",
            Self::Meta => "meta",
            Self::Wake => "wake",
            Self::BroadcastChannel => "broadcast",
        }
    }

    /// The type as the server names it; `channel` for what is no key.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Delayed | Self::Unacked | Self::Dead | Self::Done | Self::Broadcasts | Self::Leases => "zset",
            Self::Sequence => "string",
            Self::Wake | Self::BroadcastChannel => "channel",
            Self::Jobs
            | Self::BroadcastJobs
            | Self::Running
            | Self::Pending
            | Self::Crashes
            | Self::Calls
            | Self::Meta => "hash",
        }
    }

    /// Whether each node or producer has its own.
    pub(super) const fn is_owned(self) -> bool {
        matches!(self, Self::Running | Self::Sequence | Self::Calls)
    }
}

/// What the names of all keys of a store begin with: `dq:`, but for tests that share a server with others.
#[derive(Debug, Clone)]
pub(super) struct Keyspace(Arc<str>);

impl Keyspace {
    pub(super) fn new(prefix: &str) -> Self {
        Self(prefix.into())
    }

    /// The keys of a topic.
    pub(super) fn of(&self, topic: &TopicKey) -> Keys {
        Keys { prefix: format!("{}{{{topic}}}:", self.0), topic: topic.clone() }
    }

    /// The directory of the topics of an app, for people.
    pub(super) fn directory(&self, app: &str) -> String {
        format!("{}{{{app}}}:topics", self.0)
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
    prefix: String,
    topic: TopicKey,
}

impl Keys {
    pub(super) const fn topic(&self) -> &TopicKey {
        &self.topic
    }

    /// The name of a key; `owner` is the node or producer of those that have one.
    pub(super) fn name(&self, key: Key, owner: &str) -> String {
        match key.is_owned() {
            true => format!("{}{}:{owner}", self.prefix, key.suffix()),
            false => format!("{}{}", self.prefix, key.suffix()),
        }
    }

    /// The channel of one node.
    pub(super) fn wake_of(&self, node: &str) -> String {
        format!("{}:{node}", self.name(Key::Wake, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{AppName, TopicName};

    #[test]
    fn all_keys_of_a_topic_share_one_hash_tag() {
        let topic = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("a:b").unwrap() };
        let keys = Keyspace::default().of(&topic);
        assert_eq!(keys.name(Key::BroadcastJobs, "n"), "dq:{shop:a:b}:broadcast-jobs");
        assert_eq!(keys.name(Key::Running, "n"), "dq:{shop:a:b}:running:n");
        assert_eq!(keys.wake_of("n"), "dq:{shop:a:b}:wake:n");
    }
}
