//! The outbox of a topic: what waits there, and the next entries for the node that relays.

use std::time::Duration;

use bytes::Bytes;
use redis::{Cmd, Pipeline, Value};

use super::keys::Key;
use super::reply::{Reply, malformed};
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
            let mut call =
                self.scripts_of(topic).call(Step::Relay).arg(request.node.as_str()).arg(millis(request.lease));
            call = call.arg(request.limit.max(1)).arg(request.bytes).arg(MAX_AHEAD);
            call = call.arg(request.arrived.len()).arg(request.unread.len());
            for ((target, answered), position) in request.arrived.iter().zip(&positions) {
                // Where another program has written over what a target has, nothing of it is removed, and its entries come again.
                let OutboxPosition { at, written } = position_of("relay", position).unwrap_or_default();
                call = call.arg(target.as_str()).arg(at).arg(written).arg(*answered);
            }
            for (target, position) in &request.unread {
                call = call.arg(target.as_str()).arg(format!("{position:016}"));
            }
            request.without.iter().for_each(|target| call.push(target.as_str()));
            Ok(call)
        };
        let answer = match request.arrived.is_empty() {
            true => self.shards.ask(call_with(Vec::new())?).await?,
            false => self.shards.ask_after("relay", &positions, call_with).await?,
        };
        let mut reply = Reply::list("relay", answer)?;
        let busy = u64::try_from(reply.int()?).ok().map(Duration::from_millis);
        let (waiting, skipped) = (reply.count()?, reply.bytes()?);
        let skipped = (!skipped.is_empty()).then(|| shown(&skipped));
        let ahead = reply.nested()?.each(ahead_of)?;
        let entries = reply.each(|reply| Ok(entry_of(&reply.bytes()?)))?;
        Ok(Relayed { busy, entries, ahead, waiting, skipped })
    }

    pub(super) async fn set_back_in(
        &self,
        topic: &TopicKey,
        source: &TopicName,
        from: OutboxPosition,
        to: OutboxPosition,
    ) -> Result<bool, StoreError> {
        let scripts = TopicScripts::new(&self.scripts, self.keyspace.of(topic), relay_of(source).as_str());
        let answer = self.shards.ask(scripts.call(Step::SetBack).arg(from.to_string()).arg(to.to_string())).await?;
        Ok(answer == Value::Int(1))
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
        let entries = self.shards.read_key("follow_ups", &keys, Key::Outbox, "ZRANGE", page).await?;
        entries_in(Reply::list("follow_ups", entries)?)
    }

    pub(super) async fn arrived_in(&self, topic: &TopicKey, source: &TopicName) -> Result<OutboxPosition, StoreError> {
        position_of("arrived", &self.shards.command("arrived", &self.position_in(topic, source)).await?)
    }

    /// The command that reads up to which position the follow-ups of `source` have arrived in a topic. A key of another type, which would be an
    /// error to `GET` and hold up the other targets, is to `MGET` one that is not there.
    fn position_in(&self, topic: &TopicKey, source: &TopicName) -> Cmd {
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
        let call = self.scripts_of(topic).call(Step::Outbox).arg(after.map_or("", TopicName::as_str)).arg(limit.max(1));
        self.shards.ask_list(call).await?.each(|reply| {
            let target = TopicName::stored(&reply.text()?).map_err(|_| malformed("outbox", "a name is no topic"))?;
            let (waiting, oldest) = (reply.count()?, reply.count()? as u64);
            // What another program has written there is before all.
            let before = position_in("outbox", &reply.text()?).unwrap_or_default();
            Ok(Some(OutboxSeen { target, waiting, oldest, before }))
        })
    }
}

/// The position in the answer to that command. What was answered may follow it.
fn position_of(operation: &'static str, kept: &Value) -> Result<OutboxPosition, StoreError> {
    let Value::Array(kept) = kept else { return Err(malformed(operation, "expected a list")) };
    let Some(Value::BulkString(kept)) = kept.first() else { return Ok(OutboxPosition::START) };
    let position = kept.split(|byte| *byte == b' ').next().and_then(|text| std::str::from_utf8(text).ok());
    position_in(operation, position.unwrap_or_default())
}

fn position_in(operation: &'static str, text: &str) -> Result<OutboxPosition, StoreError> {
    text.parse().map_err(|_| malformed(operation, "a position is no number"))
}

fn ahead_of(reply: &mut Reply) -> Result<Option<Ahead>, StoreError> {
    let target = TopicName::stored(&reply.text()?).map_err(|_| malformed("relay", "a name is no topic"))?;
    let position = position_in("relay", &format!("{},{}", reply.text()?, reply.text()?))?;
    let back_to = position_in("relay", &reply.text()?).unwrap_or_default();
    Ok(Some(Ahead { target, position, back_to, is_far: reply.count()? == 1 }))
}

fn entries_in(reply: Reply) -> Result<Vec<OutboxEntry>, StoreError> {
    let operation = reply.operation;
    reply.each(|reply| {
        let entry = reply.bytes()?;
        entry_of(&entry).ok_or_else(|| unreadable(operation, Key::Outbox, &entry)).map(Some)
    })
}

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
