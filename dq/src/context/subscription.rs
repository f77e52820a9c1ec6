//! A subscription to the signals of a topic, which is renewed automatically after growing pauses.
//!
//! Without it jobs still run, after the fallback scan at the latest, but broadcasts are not received. So a failure to subscribe
//! goes to the outages of the node, which the log tells of, and to the task that waits for signals.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::environment::Environment;
use crate::job::TopicKey;
use crate::store::in_call_timeout;
use crate::store::{Interest, Party, Signal, Signals, Store, StoreError};

/// The longest pause after the first failure. Each pause is a random part of its longest, at least a quarter.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after any failure.
const MAX_PAUSE: Duration = Duration::from_secs(8);

enum SubscriptionState {
    /// After a pause, if an attempt has failed before.
    Subscribing(BoxFuture<'static, Result<Signals, StoreError>>),
    Live(Signals),
}

/// A subscription that exists or is being made.
pub(super) struct Subscription {
    store: Arc<dyn Store>,
    topic: TopicKey,
    interest: Interest,
    environment: Environment,
    call_timeout: Duration,
    party: Party,
    /// Attempts in a row that failed.
    failures: u32,
    state: SubscriptionState,
}

impl Subscription {
    /// Subscribes from now on. An attempt without an answer within `call_timeout` is given up for another.
    pub(super) fn new(
        store: Arc<dyn Store>,
        topic: TopicKey,
        interest: Interest,
        environment: Environment,
        call_timeout: Duration,
        party: Party,
    ) -> Self {
        let (failures, state) = (0, SubscriptionState::Subscribing(Box::pin(std::future::pending())));
        let mut new = Self { store, topic, interest, environment, call_timeout, party, failures, state };
        new.subscribe(None);
        new
    }

    /// The next signal; [`Signal::Resubscribed`] whenever the subscription begins. After an error the next call tries again.
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Signal, StoreError> {
        loop {
            match &mut self.state {
                SubscriptionState::Live(signals) => match signals.next().await {
                    Some(signal) => {
                        if let Some(signal) = self.noted(signal) {
                            return Ok(signal);
                        }
                    }
                    None => self.subscribe_later(),
                },
                SubscriptionState::Subscribing(subscribing) => match subscribing.await {
                    Ok(signals) => {
                        self.state = SubscriptionState::Live(signals);
                        self.failures = 0;
                        self.party.answered();
                        return Ok(Signal::Resubscribed);
                    }
                    Err(error) => {
                        self.failed(&error);
                        self.subscribe_later();
                        self.failures += 1;
                        return Err(error);
                    }
                },
            }
        }
    }

    /// A signal that has arrived already.
    pub(super) fn try_next(&mut self) -> Option<Signal> {
        loop {
            let SubscriptionState::Live(signals) = &mut self.state else { return None };
            let signal = signals.try_next()?;
            if let Some(signal) = self.noted(signal) {
                return Some(signal);
            }
        }
    }

    /// Takes note of what a signal says of the subscription. Returns the signal, if it says more.
    fn noted(&self, signal: Signal) -> Option<Signal> {
        match signal {
            Signal::Interrupted(reason) => self.failed(&StoreError::Unavailable { operation: "signals", reason }),
            Signal::Resubscribed => {
                self.party.answered();
                return Some(Signal::Resubscribed);
            }
            other => return Some(other),
        }
        None
    }

    fn failed(&self, error: &StoreError) {
        tracing::debug!(topic = %self.topic.topic, %error, "cannot subscribe to signals; dq tries again, and due jobs wait for the fallback scan");
        self.party.failed(error);
    }

    fn subscribe_later(&mut self) {
        let end = self.environment.now() + self.environment.growing_pause(PAUSE, MAX_PAUSE, self.failures, 4);
        self.subscribe(Some(self.environment.sleep_until(end)));
    }

    fn subscribe(&mut self, pause: Option<BoxFuture<'static, ()>>) {
        let (store, topic, interest) = (self.store.clone(), self.topic.clone(), self.interest.clone());
        let (environment, call_timeout) = (self.environment.clone(), self.call_timeout);
        self.state = SubscriptionState::Subscribing(Box::pin(async move {
            if let Some(pause) = pause {
                pause.await;
            }
            in_call_timeout(&environment, call_timeout, "signals", store.signals(&topic, interest)).await
        }));
    }
}
