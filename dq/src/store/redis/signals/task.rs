//! The task that owns the connection of all subscriptions.
//!
//! With RESP3 the server pushes messages over the connection that subscribed, and the client learns at once when that
//! connection closes. The task then connects again, with growing pauses, renews all subscriptions and sends
//! [`Signal::Resubscribed`], because any signal may have been missed. A connection can also break without a word, so
//! the task sends a `PING` over one that has been silent for long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};
use tokio::sync::{mpsc, watch};

use super::{Subscribe, Subscriber, signal_of};
use crate::environment::{Boottime, Clock, TokioClock, doubled};
use crate::store::redis::connect::{Connector, DrivenConnection, send};
use crate::store::redis::errors::{Failure, classify, of_command};
use crate::store::redis::slots::{Slot, SlotMap};
use crate::store::{Signal, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long the server may take to subscribe: the task serves many subscribers, so they must not wait long for a connection that hangs.
const SUBSCRIBED_WITHIN: Duration = Duration::from_secs(10);

/// How long the answer to a `PING` may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What the task owns: the connection and all subscribers.
pub(super) struct SubscriptionTask {
    connector: Arc<Connector>,
    subscribers: Vec<Subscriber>,
    /// What the connection is subscribed to.
    channels: BTreeSet<String>,
    connection: Option<Pushing>,
    /// How many attempts in a row ended without a connection, or with one that did not last.
    failures: u32,
    connected_at: Duration,
    received_at: Duration,
    /// Of a cluster: reports when slots have moved.
    moves: Option<watch::Receiver<SlotMap>>,
    /// False under a paused clock, where no `PING` would be answered in time.
    pings: bool,
}

/// A connection, and what the server pushes over it.
type Pushing = (DrivenConnection, mpsc::UnboundedReceiver<PushInfo>);

/// Waits until slots have moved.
async fn next_move(moves: &mut Option<watch::Receiver<SlotMap>>) {
    match moves {
        // Its sender lives as long as the connector.
        Some(moves) => drop(moves.changed().await),
        None => std::future::pending().await,
    }
}

/// What the server pushes next; `None`: the connection is gone.
async fn next_push(connection: &mut Option<Pushing>) -> Option<PushInfo> {
    match connection {
        Some((_, pushes)) => pushes.recv().await,
        None => std::future::pending().await,
    }
}

impl SubscriptionTask {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        let moves = connector.node.as_ref().map(|node| node.cluster.changes());
        Self {
            connector,
            moves,
            subscribers: Vec::new(),
            channels: BTreeSet::new(),
            connection: None,
            failures: 0,
            connected_at: Duration::ZERO,
            received_at: Duration::ZERO,
            pings: !TokioClock::is_paused(),
        }
    }

    pub(super) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Subscribe>) {
        loop {
            let pause = doubled(FIRST_PAUSE, MAX_PAUSE, self.failures);
            let (is_connected, is_needed) = (self.connection.is_some(), !self.subscribers.is_empty());
            tokio::select! {
                biased;
                request = requests.recv() => {
                    // Without a request the store was dropped.
                    let Some(Subscribe { subscriber, done }) = request else { return };
                    let subscribed = self.add(subscriber).await;
                    // The subscriber may have gone away; then its feed is closed.
                    drop(done.send(subscribed));
                }
                () = next_move(&mut self.moves) => self.let_go().await,
                push = next_push(&mut self.connection) => match push {
                    Some(push) if push.kind == PushKind::Message => {
                        self.received_at = Boottime.now();
                        self.deliver(push).await;
                    }
                    Some(push) if push.kind != PushKind::Disconnection => {}
                    _ => self.disconnected(),
                },
                () = Boottime.sleep_until(self.received_at + self.connector.check_period), if is_connected && is_needed && self.pings => {
                    self.ping().await;
                }
                () = Boottime.sleep_until(Boottime.now() + pause), if !is_connected && is_needed => self.reconnect().await,
            }
        }
    }

    /// Notes that the connection is gone. The pause before the next one is short if it lasted, otherwise longer than
    /// before.
    fn disconnected(&mut self) {
        self.connection = None;
        self.failures = if Boottime.now() < self.connected_at + MAX_PAUSE { self.failures + 1 } else { 0 };
    }

    /// Checks that the connection still works.
    async fn ping(&mut self) {
        self.prune().await;
        let Some((driven, _)) = &mut self.connection else { return };
        let within = ANSWER_WITHIN.min(self.connector.check_period);
        let (ping, over) = (redis::cmd("PING"), Boottime.sleep_until(Boottime.now() + within));
        let works = tokio::select! {
            biased;
            answer = send(&mut driven.connection, &ping) => {
                // Any answer will do, even an error.
                !answer.is_err_and(|error| matches!(classify("signals", None, &error), Failure::Broken(_)))
            }
            () = over => false,
        };
        self.received_at = Boottime.now();
        if !works {
            tracing::info!("the connection for the store's signals is broken, subscribing again");
            self.disconnected();
        }
    }

    fn has(&self, slot: Slot) -> bool {
        self.connector.node.as_ref().is_none_or(|node| node.has(slot))
    }

    /// Ends the subscriptions whose slots another server has.
    async fn let_go(&mut self) {
        let subscribers = std::mem::take(&mut self.subscribers);
        self.subscribers = subscribers.into_iter().filter(|subscriber| self.has(subscriber.slot)).collect();
        match self.subscribers.is_empty() {
            true => self.connection = None,
            false => self.prune().await,
        }
    }

    async fn add(&mut self, subscriber: Subscriber) -> Result<(), StoreError> {
        if !self.has(subscriber.slot) {
            let reason = "the slot of the topic has moved (this is temporary)".to_owned();
            return Err(StoreError::Refused { operation: "signals", reason });
        }
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

    /// Connects and renews all subscriptions. An error that the operator must fix ends them.
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
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(SUBSCRIBED_WITHIN)).set_push_sender(pushes);
        self.connection = Some((self.connector.connect_driven("signals", config).await?, pushed));
        self.connected_at = Boottime.now();
        self.received_at = self.connected_at;
        let wanted: Vec<_> = self.subscribers.iter().flat_map(|subscriber| subscriber.channels.clone()).collect();
        self.subscribe(&wanted).await?;
        for subscriber in &self.subscribers {
            // If its feed is full, the signals that wait there make the subscriber look at the store anyway.
            subscriber.feed.send(Signal::Resubscribed);
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
            tracing::debug!(error = %error, failures = self.failures, "cannot subscribe to the store's signals, trying again");
            let reason = match error {
                StoreError::Unavailable { reason, .. } | StoreError::NotSent { reason, .. } => reason,
                other => other.to_string(),
            };
            for subscriber in &self.subscribers {
                // If its feed is full, the subscriber hears of the outage from its requests.
                subscriber.feed.send(Signal::Interrupted(reason.clone()));
            }
        }
    }

    /// Subscribes the connection to those of these channels that are new.
    async fn subscribe(&mut self, wanted: &[String]) -> Result<(), StoreError> {
        let new: BTreeSet<_> = wanted.iter().filter(|channel| !self.channels.contains(*channel)).cloned().collect();
        let Some((driven, _)) = &mut self.connection else { return Ok(()) };
        if new.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = new.iter().collect();
        if let Err(error) = driven.connection.client.subscribe(&names).await {
            let is_broken = matches!(classify("signals", None, &error), Failure::Broken(_));
            let error = of_command("signals", &error);
            // Other subscriptions go on when the user may not listen to these channels.
            if is_broken || error.is_outage() {
                self.disconnected();
            }
            return Err(error);
        }
        self.channels.extend(new);
        Ok(())
    }

    /// Removes subscribers that have gone away, and unsubscribes from channels that none needs any more.
    async fn prune(&mut self) {
        self.subscribers.retain(|subscriber| !subscriber.feed.is_closed());
        let wanted: BTreeSet<_> = self.subscribers.iter().flat_map(|subscriber| &subscriber.channels).collect();
        let unwanted: Vec<_> = self.channels.iter().filter(|channel| !wanted.contains(channel)).cloned().collect();
        let Some((driven, _)) = &mut self.connection else { return };
        if !unwanted.is_empty() && driven.connection.client.unsubscribe(&unwanted).await.is_err() {
            self.connection = None;
        }
        self.channels.retain(|channel| !unwanted.contains(channel));
    }

    /// Passes the signal in a message on to the subscribers of its channel.
    async fn deliver(&mut self, push: PushInfo) {
        let mut data = push.data.into_iter();
        let (Some(Value::BulkString(channel)), Some(Value::BulkString(message))) = (data.next(), data.next()) else {
            return;
        };
        let Some(signal) = signal_of(&channel, message) else { return };
        let mut has_closed = false;
        for subscriber in &self.subscribers {
            if subscriber.channels.iter().any(|wanted| wanted.as_bytes() == channel) {
                subscriber.feed.send(signal.clone());
                has_closed |= subscriber.feed.is_closed();
            }
        }
        if has_closed {
            self.prune().await;
        }
    }
}
