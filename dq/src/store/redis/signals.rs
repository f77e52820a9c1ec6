//! Signals: one connection for all subscriptions of a store, and the task that owns it.
//!
//! RESP3 brings messages over the connection that subscribed and tells at once when that is gone. Then the task connects
//! again, with growing pauses, subscribes everything anew and says [`Signal::Resubscribed`], because anything may have been
//! missed. A connection that was silent for long is asked whether it is still there: a way that breaks without a word tells
//! nobody. Signals are hints: one that does not fit is dropped.
//!
//! What somebody must change (a password, the permission to listen) ends the subscriptions: who subscribed asks again,
//! hears why not, and can say so.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, Value};
use tokio::sync::{mpsc, oneshot};

use super::connect::{Connector, send};
use super::errors::{Failure, failure, plain};
use super::keys::{Key, Keyspace};
use crate::environment::{Boottime, Clock, TokioClock, doubled};
use crate::job::{JobId, TopicKey};
use crate::store::{BroadcastMessage, CommandKind, Interest, Signal, Signals, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a connection may be silent before it is asked whether it is still there. What that costs counts among the
/// commands of an idle node.
const SILENCE: Duration = Duration::from_secs(30);

/// How long the answer to that may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The subscriptions of a store.
#[derive(Debug)]
pub(super) struct Subscriptions {
    connector: Arc<Connector>,
    keyspace: Keyspace,
    pub(super) silence: Duration,
    hub: Mutex<Option<mpsc::UnboundedSender<Wish>>>,
}

#[derive(Debug)]
struct Wish {
    subscriber: Subscriber,
    done: oneshot::Sender<Result<(), StoreError>>,
}

#[derive(Debug)]
struct Subscriber {
    channels: Vec<String>,
    feed: mpsc::Sender<Signal>,
}

impl Subscriptions {
    pub(super) const fn new(connector: Arc<Connector>, keyspace: Keyspace) -> Self {
        Self { connector, keyspace, silence: SILENCE, hub: Mutex::new(None) }
    }

    /// Subscribes; the future is ready when the server has confirmed it.
    pub(super) async fn subscribe(&self, topic: &TopicKey, interest: Interest) -> Result<Signals, StoreError> {
        let (feed, signals) = Signals::channel();
        let (done, confirmed) = oneshot::channel();
        let keys = self.keyspace.of(topic);
        let mut channels = Vec::new();
        if let Some(node) = &interest.node {
            channels.extend([keys.name(Key::Wake, ""), keys.wake_of(node.as_str())]);
        }
        if interest.broadcasts {
            channels.push(keys.name(Key::BroadcastChannel, ""));
        }
        self.wish(Wish { subscriber: Subscriber { channels, feed }, done });
        let ended = || StoreError::Unavailable { operation: "signals", reason: "the subscription ended".into() };
        confirmed.await.unwrap_or_else(|_| Err(ended()))?;
        Ok(signals)
    }

    /// Hands the wish to the task, which is started where there is none, or none any more.
    fn wish(&self, wish: Wish) {
        let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        let unheard = match hub.as_ref() {
            Some(known) => known.send(wish).err().map(|unsent| unsent.0),
            None => Some(wish),
        };
        let Some(wish) = unheard else { return };
        let (wishes, waiting) = mpsc::unbounded_channel();
        super::spawn(Hub::new(Arc::clone(&self.connector), self.silence).run(waiting));
        // The task that hears it was just started.
        drop(wishes.send(wish));
        *hub = Some(wishes);
    }
}

/// The task's own.
struct Hub {
    connector: Arc<Connector>,
    subscribers: Vec<Subscriber>,
    /// What the connection is subscribed to.
    channels: BTreeSet<String>,
    connection: Option<(MultiplexedConnection, mpsc::UnboundedReceiver<PushInfo>)>,
    /// How often in a row there was no connection, or none that lasted.
    failures: u32,
    connected_at: Duration,
    received_at: Duration,
    silence: Duration,
    /// Under a paused clock an answer would take for ever: nothing is asked.
    asks: bool,
}

enum Replied {
    Wish(Option<Wish>),
    Push(Option<PushInfo>),
    Silence,
    Retry,
}

impl Hub {
    fn new(connector: Arc<Connector>, silence: Duration) -> Self {
        Self {
            connector,
            subscribers: Vec::new(),
            channels: BTreeSet::new(),
            connection: None,
            failures: 0,
            connected_at: Duration::ZERO,
            received_at: Duration::ZERO,
            silence,
            asks: !TokioClock::is_paused(),
        }
    }

    async fn run(mut self, mut wishes: mpsc::UnboundedReceiver<Wish>) {
        loop {
            match self.receive(&mut wishes).await {
                Replied::Wish(None) => return,
                Replied::Wish(Some(Wish { subscriber, done })) => {
                    let subscribed = self.take_in(subscriber).await;
                    // Who asked may have gone away; its feed is closed then.
                    drop(done.send(subscribed));
                }
                Replied::Push(Some(push)) if push.kind == PushKind::Message => {
                    self.received_at = Boottime.now();
                    self.pass_on(push).await;
                }
                Replied::Push(Some(push)) if push.kind != PushKind::Disconnection => {}
                Replied::Push(_) => self.lose(),
                Replied::Silence => self.ask().await,
                Replied::Retry => self.reconnect().await,
            }
        }
    }

    /// The next thing that happens. Cancel safe.
    async fn receive(&mut self, wishes: &mut mpsc::UnboundedReceiver<Wish>) -> Replied {
        let pause = doubled(FIRST_PAUSE, LONGEST_PAUSE, self.failures);
        let is_wanted = !self.subscribers.is_empty();
        match &mut self.connection {
            Some((_, pushes)) => tokio::select! {
                biased;
                wish = wishes.recv() => Replied::Wish(wish),
                push = pushes.recv() => Replied::Push(push),
                () = Boottime.sleep_until(self.received_at + self.silence), if is_wanted && self.asks => Replied::Silence,
            },
            None => tokio::select! {
                biased;
                wish = wishes.recv() => Replied::Wish(wish),
                () = Boottime.sleep_until(Boottime.now() + pause), if is_wanted => Replied::Retry,
            },
        }
    }

    /// The connection is gone. One that lasted is made anew soon, one that did not after a longer pause than the last time.
    fn lose(&mut self) {
        self.connection = None;
        self.failures = if Boottime.now() < self.connected_at + LONGEST_PAUSE { self.failures + 1 } else { 0 };
    }

    /// Asks whether the connection is still there.
    async fn ask(&mut self) {
        self.prune().await;
        let Some((connection, _)) = &mut self.connection else { return };
        let (ping, over) = (redis::cmd("PING"), Boottime.sleep_until(Boottime.now() + ANSWER_WITHIN.min(self.silence)));
        let is_there = tokio::select! {
            biased;
            answer = send(connection, &ping) => {
                // Whatever it says, it is there.
                !answer.is_err_and(|error| matches!(failure("signals", None, error), Failure::Broken(_)))
            }
            () = over => false,
        };
        self.received_at = Boottime.now();
        if !is_there {
            tracing::warn!("the way to the store's signals is broken, subscribing anew");
            self.lose();
        }
    }

    async fn take_in(&mut self, subscriber: Subscriber) -> Result<(), StoreError> {
        self.prune().await;
        if self.connection.is_none() {
            self.connect().await?;
        }
        let subscribed = self.subscribe(&subscriber.channels).await;
        if subscribed.is_ok() {
            self.subscribers.push(subscriber);
        }
        subscribed
    }

    /// A new connection with all subscriptions; those who are there are told. Where that cannot be before somebody has
    /// changed something, their subscriptions end.
    async fn connect(&mut self) -> Result<(), StoreError> {
        let connected = self.subscribe_all().await;
        if connected.as_ref().is_err_and(|error| !error.is_outage()) {
            self.subscribers.clear();
        }
        connected
    }

    async fn subscribe_all(&mut self) -> Result<(), StoreError> {
        let (pushes, pushed) = mpsc::unbounded_channel();
        self.channels.clear();
        self.connection = Some((self.connector.connect("signals", Some(pushes)).await?, pushed));
        self.connected_at = Boottime.now();
        self.received_at = self.connected_at;
        let wanted: Vec<_> = self.subscribers.iter().flat_map(|subscriber| subscriber.channels.clone()).collect();
        self.subscribe(&wanted).await?;
        for subscriber in &self.subscribers {
            // Full: what it missed is covered by what waits there already.
            drop(subscriber.feed.try_send(Signal::Resubscribed));
        }
        Ok(())
    }

    async fn reconnect(&mut self) {
        self.prune().await;
        if self.subscribers.is_empty() {
            return;
        }
        if let Err(error) = self.connect().await {
            self.failures += 1;
            tracing::warn!(error = %error, failures = self.failures, "cannot subscribe, trying again");
        }
    }

    /// Subscribes to what is not subscribed yet.
    async fn subscribe(&mut self, wanted: &[String]) -> Result<(), StoreError> {
        let new: BTreeSet<_> = wanted.iter().filter(|channel| !self.channels.contains(*channel)).cloned().collect();
        let Some((connection, _)) = &mut self.connection else { return Ok(()) };
        if new.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = new.iter().collect();
        if let Err(error) = connection.subscribe(&names).await {
            // The subscriptions of others go on, unless the connection is of no use.
            if matches!(failure("signals", None, error.clone()), Failure::Broken(_)) {
                self.lose();
            }
            return Err(plain("signals", error));
        }
        self.channels.extend(new);
        Ok(())
    }

    /// Forgets subscribers that went away, and channels that nobody wants any more.
    async fn prune(&mut self) {
        self.subscribers.retain(|subscriber| !subscriber.feed.is_closed());
        let wanted: BTreeSet<_> = self.subscribers.iter().flat_map(|subscriber| &subscriber.channels).collect();
        let unwanted: Vec<_> = self.channels.iter().filter(|channel| !wanted.contains(channel)).cloned().collect();
        let Some((connection, _)) = &mut self.connection else { return };
        if !unwanted.is_empty() && connection.unsubscribe(&unwanted).await.is_err() {
            self.connection = None;
        }
        self.channels.retain(|channel| !unwanted.contains(channel));
    }

    async fn pass_on(&mut self, push: PushInfo) {
        let mut data = push.data.into_iter();
        let (Some(Value::BulkString(channel)), Some(Value::BulkString(message))) = (data.next(), data.next()) else {
            return;
        };
        let is_broadcast = channel.ends_with(b":broadcast");
        let message = Bytes::from(message);
        let Some(signal) = (if is_broadcast { broadcast_of(&message) } else { signal_of(&message) }) else { return };
        let mut gone = false;
        for subscriber in &self.subscribers {
            if subscriber.channels.iter().any(|wanted| wanted.as_bytes() == channel) {
                gone |= matches!(subscriber.feed.try_send(signal.clone()), Err(mpsc::error::TrySendError::Closed(_)));
            }
        }
        if gone {
            self.prune().await;
        }
    }
}

/// `ID`, line feed, record.
fn broadcast_of(message: &Bytes) -> Option<Signal> {
    let end = message.iter().position(|byte| *byte == b'\n')?;
    let id = JobId::new(std::str::from_utf8(&message[..end]).ok()?).ok()?;
    Some(Signal::Broadcast(BroadcastMessage { id, record: message.slice(end + 1..) }))
}

/// `due`, `broadcast`, or `command VERB ID`.
fn signal_of(message: &[u8]) -> Option<Signal> {
    match std::str::from_utf8(message).ok()? {
        "due" => Some(Signal::Due),
        "broadcast" => Some(Signal::BroadcastDue),
        text => {
            let (verb, id) = text.strip_prefix("command ")?.split_once(' ')?;
            let verb = match verb {
                "delete" => CommandKind::Delete,
                "cancel" => CommandKind::Cancel,
                "ack" => CommandKind::Ack,
                _ => return None,
            };
            Some(Signal::Command(verb, JobId::new(id).ok()?))
        }
    }
}
