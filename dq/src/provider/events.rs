//! The events of a topic: what happens to its jobs, as it happens.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use serde::{Serialize, Serializer};
use tokio::sync::mpsc;

use crate::environment::{Environment, Runtime};
use crate::job::{JobId, TopicKey};
use crate::store::{Interest, JobMove, LISTENING, Moves, Signal, Signals, Store, StoreError};
use crate::time::Timestamp;

/// How often a listener says that it still listens.
const RENEW: Duration = LISTENING.checked_div(3).expect("three is not zero");

/// The longest pause after the first failure, and after any.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// An item of the [events](Events) of a topic. As JSON it is an object: of a job `at`, `id`, `event` and its details, otherwise
/// `missed`, `listening` or `interrupted`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Something happened to a job.
    Job {
        /// When, by the store's clock.
        at: Timestamp,
        /// The job.
        id: JobId,
        /// What.
        what: JobMove,
    },
    /// This many events are missing here: the reader was too slow, or one step made more than a message has room for.
    Missed(u64),
    /// Events come from here on. It is the first item; later it ends an interruption, in which events may be missing.
    Listening,
    /// The store cannot be reached, or refuses, for this reason. dq tries again until it can; events may be missing.
    Interrupted(String),
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            at: u64,
            id: &'a str,
            #[serde(flatten)]
            what: &'a JobMove,
        }
        match self {
            Self::Job { at, id, what } => Line { at: at.as_millis(), id: id.as_str(), what }.serialize(to),
            Self::Missed(missed) => to.collect_map([("missed", missed)]),
            Self::Listening => to.collect_map([("listening", true)]),
            Self::Interrupted(why) => to.collect_map([("interrupted", why)]),
        }
    }
}

/// The events of a topic, as [`Provider::events`](super::Provider::events) says. Dropping it ends the subscription. It never ends by
/// itself, unless the runtime of the provider does. Cancel safe.
#[must_use = "a stream does nothing until it is polled"]
pub struct Events {
    batches: mpsc::Receiver<Vec<Event>>,
    next: VecDeque<Event>,
}

impl Events {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        environment: &Environment,
        call_timeout: Duration,
        topic: &TopicKey,
    ) -> Self {
        // What a slow reader does not take waits in the subscription, which is bounded and counts what it loses.
        let (out, batches) = mpsc::channel(1);
        let listener = Listener {
            store: Arc::clone(store),
            environment: environment.clone(),
            call_timeout,
            topic: topic.clone(),
            out,
        };
        environment.spawn(Runtime::Own, listener.run());
        Self { batches, next: VecDeque::new() }
    }

    /// Waits for the next event. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.next.pop_front() {
                return Poll::Ready(Some(event));
            }
            match self.batches.poll_recv(cx) {
                Poll::Ready(Some(batch)) => self.next = batch.into(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// Feeds [`Events`]; ends when they are dropped.
struct Listener {
    store: Arc<dyn Store>,
    environment: Environment,
    call_timeout: Duration,
    topic: TopicKey,
    out: mpsc::Sender<Vec<Event>>,
}

/// Nobody reads any more.
struct Gone;

impl Listener {
    async fn run(self) {
        let mut failures = 0;
        loop {
            let error = match self.listen_until_failure(&mut failures).await {
                Ok(error) => error,
                Err(Gone) => return,
            };
            tracing::debug!(topic = %self.topic.topic, %error, "cannot listen to the events of a topic; dq tries again");
            if failures == 0 && self.send(vec![Event::Interrupted(error.to_string())]).await.is_err() {
                return;
            }
            let pause = self.environment.growing_pause(PAUSES.0, PAUSES.1, failures, 4);
            failures += 1;
            tokio::select! {
                biased;
                () = self.out.closed() => return,
                () = self.environment.sleep_until(self.environment.now() + pause) => {}
            }
        }
    }

    /// Subscribes and passes events on, until the store fails or nobody reads any more.
    async fn listen_until_failure(&self, failures: &mut u32) -> Result<StoreError, Gone> {
        let interest = Interest { node: None, broadcasts: false, moves: true };
        let mut signals = match self.in_time(self.store.signals(&self.topic, interest)).await? {
            Ok(signals) => signals,
            Err(error) => return Ok(error),
        };
        loop {
            if let Err(error) = self.in_time(self.store.listen(&self.topic)).await? {
                return Ok(error);
            }
            *failures = 0;
            self.send(vec![Event::Listening]).await?;
            if let Some(error) = self.pass_on(&mut signals).await? {
                return Ok(error);
            }
        }
    }

    /// Passes events on, and renews in time, until the subscription or the store has failed. `None`: it works again, and events may
    /// be missing.
    async fn pass_on(&self, signals: &mut Signals) -> Result<Option<StoreError>, Gone> {
        let mut renewed = self.environment.now();
        loop {
            let batch = tokio::select! {
                biased;
                () = self.out.closed() => return Err(Gone),
                () = self.environment.sleep_until(renewed + RENEW) => {
                    let began = self.environment.now();
                    if let Err(error) = self.in_time(self.store.listen(&self.topic)).await? {
                        return Ok(Some(error));
                    }
                    if began > renewed + LISTENING {
                        return Ok(None);
                    }
                    renewed = began;
                    continue;
                }
                // Nothing is taken out of the subscription that the reader has no room for.
                batch = self.next_batch(signals) => batch?,
            };
            match batch {
                Batch::Events(place, events) => place.send(events),
                Batch::Resubscribed => return Ok(None),
                Batch::Ended(reason) => return Ok(Some(StoreError::Unavailable { operation: "events", reason })),
            };
        }
    }

    async fn next_batch<'a>(&'a self, signals: &mut Signals) -> Result<Batch<'a>, Gone> {
        let place = self.out.reserve().await.map_err(|_| Gone)?;
        loop {
            return Ok(match signals.next().await {
                Some(Signal::Moves(moves)) => Batch::Events(place, events_of(moves)),
                Some(Signal::MovesMissed(missed)) => Batch::Events(place, vec![Event::Missed(missed)]),
                Some(Signal::Resubscribed) => Batch::Resubscribed,
                Some(Signal::Interrupted(reason)) => Batch::Ended(reason),
                None => Batch::Ended("the subscription ended".into()),
                Some(_) => continue,
            });
        }
    }

    async fn send(&self, events: Vec<Event>) -> Result<(), Gone> {
        self.out.send(events).await.map_err(|_| Gone)
    }

    async fn in_time<T>(
        &self,
        asked: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, Gone> {
        let too_late = self.environment.sleep_until(self.environment.now() + self.call_timeout);
        tokio::select! {
            biased;
            () = self.out.closed() => Err(Gone),
            answer = asked => Ok(answer),
            () = too_late => {
                let waited = humantime::format_duration(self.call_timeout);
                let reason = format!("no answer within {waited} (`call_timeout`)");
                Ok(Err(StoreError::Unavailable { operation: "events", reason }))
            }
        }
    }
}

/// What came of the subscription.
enum Batch<'a> {
    Events(mpsc::Permit<'a, Vec<Event>>, Vec<Event>),
    Resubscribed,
    Ended(String),
}

fn events_of(moves: Moves) -> Vec<Event> {
    let Moves { at, moves, more } = moves;
    let missed = (more > 0).then_some(Event::Missed(more));
    moves.into_iter().map(|(id, what)| Event::Job { at, id, what }).chain(missed).collect()
}
