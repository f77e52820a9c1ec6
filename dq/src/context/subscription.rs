//! A subscription to the signals of a topic that comes back by itself, after growing pauses.
//!
//! Without it jobs run all the same, as late as the fallback scan comes, and broadcasts are not heard: so it says when it
//! cannot be made, in the log and to who listens.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::environment::Environment;
use crate::job::TopicKey;
use crate::store::{Interest, Signal, Signals, Store, StoreError};

/// The longest first pause before subscribing again.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest of all.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

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
    call_timeout: Duration,
    /// Attempts in a row that failed.
    failures: u32,
    state: State,
}

impl Subscription {
    /// Subscribes from now on; an attempt that is not answered within `call_timeout` is given up for another.
    pub(super) fn new(
        store: Arc<dyn Store>,
        topic: TopicKey,
        interest: Interest,
        environment: Environment,
        call_timeout: Duration,
    ) -> Self {
        let pause = Box::pin(std::future::ready(()));
        let mut new =
            Self { store, topic, interest, environment, call_timeout, failures: 0, state: State::Pausing(pause) };
        new.subscribe();
        new
    }

    /// The next signal, [`Signal::Resubscribed`] whenever the subscription begins; or why it could not be made, after which
    /// it is tried again. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Signal, StoreError> {
        loop {
            match &mut self.state {
                State::Live(signals) => match signals.next().await {
                    Some(signal) => return Ok(signal),
                    None => self.pause(),
                },
                State::Subscribing(subscribing) => match subscribing.await {
                    Ok(signals) => {
                        self.state = State::Live(signals);
                        self.failures = 0;
                        return Ok(Signal::Resubscribed);
                    }
                    Err(error) => {
                        if self.failures == 0 {
                            tracing::warn!(topic = %self.topic, error = %error, "cannot subscribe to signals, trying again");
                        }
                        self.pause();
                        self.failures += 1;
                        return Err(error);
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
        let end = self.environment.now() + self.environment.growing_pause(PAUSE, LONGEST_PAUSE, self.failures, 4);
        self.state = State::Pausing(self.environment.sleep_until(end));
    }

    fn subscribe(&mut self) {
        let (store, topic, interest) = (self.store.clone(), self.topic.clone(), self.interest.clone());
        let too_late = self.environment.sleep_until(self.environment.now() + self.call_timeout);
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
