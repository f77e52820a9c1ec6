//! Signals: one connection to each server for the wake-ups of all nodes of a store, and one for the subscriptions to broadcasts, each
//! owned by a [task](SubscriptionTask). A server closes a connection whose reader is too far behind; large broadcasts must
//! not take the wake-ups along.
//!
//! Signals are hints: one that does not parse is dropped. A temporary error interrupts the subscriptions;
//! one that the operator must fix (a password, the permission to subscribe) ends them. The subscriber then subscribes
//! again and gets the error.
//!
//! In a cluster `PUBLISH` counts the subscribers of its own server, and by that a script sees whether a node listens. So a topic is
//! subscribed at the server of its slot. Once the slot has moved, the task ends these subscriptions, and the subscribers
//! subscribe again.

mod task;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use self::task::SubscriptionTask;
use super::connect::Connector;
use super::keys::{Key, Keys};
use super::slots::Slot;
use crate::job::{JobId, NodeId};
use crate::store::step::MAX_LEASE;
use crate::store::{
    BroadcastMessage, CommandKind, Feed, Interest, LATEST_DUE, Moves, Signal, Signals, StoreError, Transition,
};
use crate::time::Timestamp;

/// The subscriptions of a store at one server.
#[derive(Debug)]
pub(super) struct Subscriptions {
    connector: Arc<Connector>,
    wake_ups: Task,
    broadcasts: Task,
}

/// The task of one connection, once it runs.
type Task = Mutex<Option<mpsc::UnboundedSender<Subscribe>>>;

/// Asks the task to subscribe.
#[derive(Debug)]
struct Subscribe {
    subscriber: Subscriber,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// The channels that a node or broadcast channel listens to, and where its signals go.
#[derive(Debug)]
struct Subscriber {
    channels: Vec<String>,
    slot: Slot,
    feed: Feed,
}

impl Subscriptions {
    pub(super) const fn new(connector: Arc<Connector>) -> Self {
        Self { connector, wake_ups: Mutex::new(None), broadcasts: Mutex::new(None) }
    }

    /// Subscribes. Returns when the server has confirmed it.
    pub(super) async fn subscribe(&self, keys: &Keys, interest: Interest) -> Result<Signals, StoreError> {
        let (feed, signals) = Signals::channel(&interest);
        let (done, confirmed) = oneshot::channel();
        let mut channels = Vec::new();
        if let Some(node) = &interest.node {
            channels.extend([keys.name(Key::Wake, ""), keys.wake_of(node.as_str())]);
        }
        if interest.broadcasts {
            channels.push(keys.name(Key::BroadcastChannel, ""));
        }
        if interest.moves {
            channels.push(keys.name(Key::EventsChannel, ""));
        }
        let subscriber = Subscriber { channels, slot: keys.slot(), feed };
        let task = if interest.broadcasts || interest.moves { &self.broadcasts } else { &self.wake_ups };
        self.send(task, Subscribe { subscriber, done });
        let ended = || StoreError::Unavailable { operation: "signals", reason: "the subscription ended".into() };
        confirmed.await.unwrap_or_else(|_| Err(ended()))?;
        Ok(signals)
    }

    /// Sends a request to the task, and starts the task if it does not run.
    fn send(&self, task: &Task, subscribe: Subscribe) {
        let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
        let unsent = match task.as_ref() {
            Some(running) => running.send(subscribe).err().map(|unsent| unsent.0),
            None => Some(subscribe),
        };
        let Some(subscribe) = unsent else { return };
        let (requests, received) = mpsc::unbounded_channel();
        super::spawn(SubscriptionTask::new(Arc::clone(&self.connector)).run(received));
        // The receiver belongs to the task that was just started, so this cannot fail.
        drop(requests.send(subscribe));
        *task = Some(requests);
    }
}

/// The signal in a message, if it is one.
fn signal_of(channel: &[u8], message: Vec<u8>) -> Option<Signal> {
    if channel.ends_with(b":events") {
        return moves_of(&message).map(Signal::Moves);
    }
    match channel.ends_with(b":broadcast") {
        true => broadcast_of(&Bytes::from(message)),
        false => hint_of(&message),
    }
}

/// `NUMBER ID`, line feed, record.
fn broadcast_of(message: &Bytes) -> Option<Signal> {
    let end = message.iter().position(|byte| *byte == b'\n')?;
    let (number, id) = std::str::from_utf8(&message[..end]).ok()?.split_once(' ')?;
    let (number, id) = (number.parse().ok()?, JobId::new(id).ok()?);
    Some(Signal::Broadcast(BroadcastMessage { number, id, record: message.slice(end + 1..) }))
}

/// `due`, `due MS`, `lease MS NODE`, `broadcast`, `paused`, `state`, `outbox`, or `command VERB ID`. Any program may have written it,
/// so its numbers are bounded as those of a store are. A due time that does not parse counts as none.
fn hint_of(message: &[u8]) -> Option<Signal> {
    match std::str::from_utf8(message).ok()? {
        "due" => Some(Signal::Due(None)),
        "broadcast" => Some(Signal::BroadcastDue),
        "paused" => Some(Signal::Paused),
        "state" => Some(Signal::StateChanged),
        "outbox" => Some(Signal::Outbox),
        text => {
            if let Some(ms) = text.strip_prefix("due ") {
                return Some(Signal::Due(ms.parse().ok().map(Timestamp::from_millis).filter(|due| *due <= LATEST_DUE)));
            }
            if let Some((ms, node)) = text.strip_prefix("lease ").and_then(|rest| rest.split_once(' ')) {
                let lasts = Duration::from_millis(ms.parse().ok()?).min(MAX_LEASE);
                return Some(Signal::Lease(NodeId::new(node), lasts));
            }
            let (verb, id) = text.strip_prefix("command ")?.split_once(' ')?;
            let verb = CommandKind::ALL.into_iter().find(|kind| kind.as_str() == verb)?;
            Some(Signal::Command(verb, JobId::new(id).ok()?))
        }
    }
}

/// The moves in a message, as the part `recorder.lua` writes them: a line with the clock and how many moves had no room, then a line for
/// each move. The fields of a line are separated by tabs, which no id has. A line that does not parse counts among those without room.
fn moves_of(message: &[u8]) -> Option<Moves> {
    let mut lines = std::str::from_utf8(message).ok()?.split('\n');
    let (at, more) = lines.next()?.split_once('\t')?;
    let mut moves = Moves {
        at: Timestamp::from_millis(at.parse().ok()?),
        moves: Vec::new(),
        more: more.parse().ok().map(u32::into)?,
    };
    for line in lines {
        match move_of(line) {
            Some(known) => moves.moves.push(known),
            None => moves.more += 1,
        }
    }
    Some(moves)
}

fn move_of(line: &str) -> Option<(JobId, Transition)> {
    let mut fields = line.splitn(4, '\t');
    let (kind, time, name, id) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let known = Transition::read(kind, time, name)?;
    Some((JobId::new(id).ok()?, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_hint_are_bounded() {
        let most = u64::MAX;
        assert_eq!(hint_of(format!("due {most}").as_bytes()), Some(Signal::Due(None)));
        assert_eq!(hint_of(b"due 7"), Some(Signal::Due(Some(Timestamp::from_millis(7)))));
        let lease = |lasts| Some(Signal::Lease(NodeId::new("n"), lasts));
        assert_eq!(hint_of(format!("lease {most} n").as_bytes()), lease(MAX_LEASE));
        assert_eq!(hint_of(b"lease 7 n"), lease(Duration::from_millis(7)));
        assert_eq!(moves_of(format!("7\t{most}").as_bytes()), None);
        for other in
            [&b"lease 99999999999999999999 n"[..], b"command stop a", b"\xff", b"", b"lease 1", b"command cancel "]
        {
            assert_eq!(hint_of(other), None);
        }
    }
}
