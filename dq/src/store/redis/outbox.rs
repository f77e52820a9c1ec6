//! The outbox of a topic: what waits there, and the next entries for the node that relays.

use std::time::Duration;

use bytes::Bytes;

use super::keys::Key;
use super::reply::malformed;
use super::scripts::Step;
use super::{RedisStore, millis};
use crate::job::{TopicKey, TopicName};
use crate::store::{OutboxEntry, OutboxSeen, Packed, Relay, Relayed, StoreError, relay_of};

impl RedisStore {
    /// The script compares the outbox with the positions in the targets, whose keys have hash tags of their own.
    pub(super) async fn relay_of_topic(&self, topic: &TopicKey, request: &Relay) -> Result<Relayed, StoreError> {
        let (keys, relay) = (self.keyspace.of(topic), relay_of(&topic.topic));
        let own = [Key::Outbox, Key::Meta].map(|key| keys.name(key, ""));
        let position = |target: &TopicName| {
            let target = TopicKey { app: topic.app.clone(), topic: target.clone() };
            self.keyspace.of(&target).name(Key::Calls, relay.as_str())
        };
        let names = own.into_iter().chain(request.arrived.iter().map(position)).collect();
        let mut call = self.scripts.call_on(Step::Relay, names, &keys);
        call.push(request.node.as_str());
        call.push(millis(request.lease));
        call.push(request.limit.max(1));
        call.push(request.bytes);
        call.push(request.arrived.len());
        for target in request.arrived.iter().chain(&request.without) {
            call.push(target.as_str());
        }
        let mut reply = self.queries.ask_list(call).await?;
        let busy = u64::try_from(reply.int()?).ok().map(Duration::from_millis);
        let mut relayed = Relayed { busy, entries: Vec::new(), waiting: reply.count()? };
        while reply.len() > 0 {
            let entry = entry_of(&reply.bytes()?);
            relayed.entries.push(entry.ok_or_else(|| malformed("relay", "another program wrote into the outbox"))?);
        }
        Ok(relayed)
    }

    pub(super) async fn outbox_of(
        &self,
        topic: &TopicKey,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<OutboxSeen>, StoreError> {
        let call = self.call(Step::Outbox, topic).arg(after.map_or("", TopicName::as_str)).arg(limit.max(1));
        let mut reply = self.queries.ask_list(call).await?;
        let mut seen = Vec::new();
        while reply.len() > 0 {
            let target = TopicName::new(reply.text()?).map_err(|_| malformed("outbox", "a name is no topic"))?;
            let (waiting, oldest) = (reply.count()?, reply.count()? as u64);
            seen.push(OutboxSeen { target, waiting, oldest });
        }
        Ok(seen)
    }
}

/// An entry, as the part `put_outbox` writes it.
fn entry_of(bytes: &Bytes) -> Option<OutboxEntry> {
    let mut at = 0;
    let mut text = || {
        let length = bytes[at..].iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&bytes[at..at + length]).ok();
        at += length + 1;
        text
    };
    let target = TopicName::new(text()?).ok()?;
    let (position, after) = (text()?.parse().ok()?, text()?.parse().ok()?);
    Some(OutboxEntry { target, position, after, batch: Packed::from_bytes(bytes.slice(at..)) })
}
