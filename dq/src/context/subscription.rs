//! A subscription to the signals of a topic that comes back by itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::environment::Environment;
use crate::job::TopicKey;
use crate::store::{Interest, Signal, Signals, Store, StoreError};

/// The longest pause before subscribing again.
const PAUSE: Duration = Duration::from_secs(1);

enum State {
    Pausing(BoxFuture<'static, ()>),
    Subscribing(BoxFuture<'static, Result<Signals, StoreError>>),
    Live(Signals),
}

/// See the module.
pub(super) struct Subscription {
    store: Arc<dyn Store>,
    topic: TopicKey,
    interest: Interest,
    environment: Environment,
    patience: Duration,
    state: State,
}

impl Subscription {
    /// Subscribes from now on; an attempt that is not answered within `patience` is given up for another.
    pub(super) fn new(
        store: Arc<dyn Store>,
        topic: TopicKey,
        interest: Interest,
        environment: Environment,
        patience: Duration,
    ) -> Self {
        let pause = Box::pin(std::future::ready(()));
        let mut new = Self { store, topic, interest, environment, patience, state: State::Pausing(pause) };
        new.subscribe();
        new
    }

    /// The next signal; [`Signal::Resubscribed`] whenever the subscription begins. Cancel safe.
    pub(super) async fn next(&mut self) -> Signal {
        loop {
            match &mut self.state {
                State::Live(signals) => match signals.next().await {
                    Some(signal) => return signal,
                    None => self.pause(),
                },
                State::Subscribing(subscribing) => match subscribing.await {
                    Ok(signals) => {
                        self.state = State::Live(signals);
                        return Signal::Resubscribed;
                    }
                    Err(error) => {
                        tracing::debug!(topic = %self.topic, error = %error, "cannot subscribe, trying again");
                        self.pause();
                    }
                },
                State::Pausing(pause) => {
                    pause.await;
                    self.subscribe();
                }
            }
        }
    }

    /// A signal that is there already.
    pub(super) fn try_next(&mut self) -> Option<Signal> {
        match &mut self.state {
            State::Live(signals) => signals.try_next(),
            State::Pausing(_) | State::Subscribing(_) => None,
        }
    }

    fn pause(&mut self) {
        let end = self.environment.now() + PAUSE / 4 + self.environment.random_below(PAUSE * 3 / 4);
        self.state = State::Pausing(self.environment.sleep_until(end));
    }

    fn subscribe(&mut self) {
        let (store, topic, interest) = (self.store.clone(), self.topic.clone(), self.interest.clone());
        let too_late = self.environment.sleep_until(self.environment.now() + self.patience);
        self.state = State::Subscribing(Box::pin(async move {
            tokio::select! {
                biased;
                signals = store.signals(&topic, interest) => signals,
                () = too_late => {
                    Err(StoreError::Unavailable { operation: "signals", reason: "no answer in time".into() })
                }
            }
        }));
    }
}
