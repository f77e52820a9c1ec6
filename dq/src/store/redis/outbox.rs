//! The outbox of a topic: what waits there, and the next entries for the node that relays.

use std::time::Duration;

use bytes::Bytes;
use redis::{Cmd, Pipeline, Value};

use super::keys::Key;
use super::reply::{Readable, Text, malformed, read};
use super::scripts::{Step, TopicScripts};
use super::unreadable::{shown, unreadable};
use super::{RedisStore, millis};
use crate::job::{TopicKey, TopicName};
use crate::store::{
    Ahead, MAX_AHEAD, OutboxEntry, OutboxPosition, OutboxSeen, Packed, Relay, Relayed, StoreError, relay_of,
};

impl RedisStore {
    /// The targets say what they have, and the script removes that. The two go over one connection, which a failover breaks.
    pub(super) async fn relay_of_topic(&self, topic: &TopicKey, request: &Relay) -> Result<Relayed, StoreError> {
        let mut positions = Pipeline::with_capacity(request.arrived.len());
        for (target, _) in &request.arrived {
            let target = TopicKey { app: topic.app.clone(), topic: target.clone() };
            positions.add_command(self.position_in(&target, &topic.topic));
        }
        let call_with = |positions: Vec<Value>| {
            let mut call = self.scripts_of(topic).call(Step::Relay).arg((request.node.as_str(), millis(request.lease)));
            call.push((request.limit.max(1), request.bytes, MAX_AHEAD, request.arrived.len(), request.unread.len()));
            for ((target, answered), position) in request.arrived.iter().zip(positions) {
                // Where another program has written over what a target has, nothing of it is removed, and its entries come again.
                let OutboxPosition { at, written } = position_of("relay", position).unwrap_or_default();
                call.push((target.as_str(), at, written, *answered));
            }
            request
                .unread
                .iter()
                .for_each(|(target, position)| call.push((target.as_str(), format!("{position:016}"))));
            request.without.iter().for_each(|target| call.push(target.as_str()));
            call
        };
        let (busy, waiting, skipped, ahead, entries): (Option<_>, _, Option<Bytes>, Vec<_>, Vec<_>) =
            match request.arrived.is_empty() {
                true => self.shards.ask(call_with(Vec::new())).await?,
                false => self.shards.ask_after("relay", &positions, call_with).await?,
            };
        Ok(Relayed {
            busy: busy.map(Duration::from_millis),
            entries: entries.iter().filter_map(entry_of).collect(),
            ahead: ahead.into_iter().filter_map(ahead_of).collect(),
            waiting,
            skipped: skipped.map(|bytes| shown(&bytes)),
        })
    }

    pub(super) async fn set_back_in(
        &self,
        topic: &TopicKey,
        source: &TopicName,
        from: OutboxPosition,
        to: OutboxPosition,
    ) -> Result<bool, StoreError> {
        let scripts = TopicScripts::new(&self.scripts, self.keyspace.of(topic), relay_of(source).as_str());
        self.shards.ask(scripts.call(Step::SetBack).arg((from.to_string(), to.to_string()))).await
    }

    pub(super) async fn follow_ups_of(
        &self,
        topic: &TopicKey,
        after: Option<(&TopicName, u64)>,
        limit: usize,
    ) -> Result<Vec<OutboxEntry>, StoreError> {
        // Behind the entry at this position, whatever it says.
        let from = after.map_or_else(|| "-".into(), |(target, position)| format!("({target}\0{position:016}\u{1}"));
        let (keys, page) = (self.keyspace.of(topic), (from, "+", "BYLEX", "LIMIT", 0, limit.max(1)));
        let entries: Vec<_> = self.shards.read_key("follow_ups", &keys, Key::Outbox, "ZRANGE", page).await?;
        let read = |entry| entry_of(entry).ok_or_else(|| unreadable("follow_ups", Key::Outbox, entry));
        entries.iter().map(read).collect()
    }

    /// The command that reads up to which position the follow-ups of `source` have arrived in a topic. A key of another type, which would be an
    /// error to `GET` and hold up the other targets, is to `MGET` one that is not there.
    pub(super) fn position_in(&self, topic: &TopicKey, source: &TopicName) -> Cmd {
        let mut cmd = redis::cmd("MGET");
        cmd.arg(self.keyspace.of(topic).name(Key::Calls, relay_of(source).as_str()));
        cmd
    }

    pub(super) async fn outbox_of(
        &self,
        topic: &TopicKey,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<OutboxSeen>, StoreError> {
        let call = self.scripts_of(topic).call(Step::Outbox);
        let seen: Vec<_> = self.shards.ask(call.arg((after.map_or("", TopicName::as_str), limit.max(1)))).await?;
        // What another program has written in the place of a position is before all.
        let seen = seen.into_iter().filter_map(|(Text(target), waiting, oldest, Readable(before)): (_, _, i64, _)| {
            let target = TopicName::stored(&target).ok()?;
            let oldest = u64::try_from(oldest).unwrap_or_default();
            Some(OutboxSeen { target, waiting, oldest, before: before.unwrap_or_default() })
        });
        Ok(seen.collect())
    }
}

/// The position in the answer to that command. What was answered may follow it.
pub(super) fn position_of(operation: &'static str, kept: Value) -> Result<OutboxPosition, StoreError> {
    let (kept,) = read::<(Option<_>,)>(operation, kept)?;
    let Some(Text(kept)) = kept else { return Ok(OutboxPosition::START) };
    let position = kept.split(' ').next().unwrap_or_default();
    position.parse().map_err(|_| malformed(operation, "a position is no number"))
}

/// A target that is ahead, as the script tells it.
fn ahead_of((Text(target), at, written, Readable(back_to), is_far): AheadRow) -> Option<Ahead> {
    let (target, position) = (TopicName::stored(&target).ok()?, OutboxPosition { at, written });
    Some(Ahead { target, position, back_to: back_to.unwrap_or_default(), is_far })
}

type AheadRow = (Text, u64, u64, Readable<OutboxPosition>, bool);

/// An entry, as the part `post` writes it; `None` if target and position cannot be read. What follows them is then a batch that cannot
/// be read.
pub(super) fn entry_of(bytes: &Bytes) -> Option<OutboxEntry> {
    let mut at = 0;
    let mut text = || {
        let length = bytes[at..].iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&bytes[at..at + length]).ok();
        at += length + 1;
        text
    };
    let target = TopicName::stored(text()?).ok()?;
    let place = text()?.parse().ok()?;
    let before = text().and_then(|before| {
        let (after, written) = before.split_once(';').map_or((before, None), |(after, at)| (after, Some(at)));
        Some((after.parse().ok()?, written.map_or(Some(place), |at| at.parse().ok())?))
    });
    let (after, written) = before.unwrap_or((OutboxPosition::START, place));
    let batch = if before.is_some() { bytes.slice(at..) } else { Bytes::new() };
    let position = OutboxPosition { at: place, written };
    Some(OutboxEntry { target, position, after, batch: Packed::from_bytes(batch) })
}

/// The number of an entry, as the part `calls` takes it.
pub(super) fn number_of(entry: &OutboxEntry) -> String {
    format!("{}<{}", entry.position, entry.after)
}
