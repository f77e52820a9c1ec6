//! The events of a topic: what happens to its jobs, as it happens.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use serde::{Serialize, Serializer};
use tokio::sync::mpsc;

use crate::environment::{Environment, Runtime};
use crate::job::{JobId, TopicKey};
use crate::store::{Interest, LISTENING, Moves, Signal, Signals, Store, StoreError, Transition, in_call_timeout};
use crate::time::Timestamp;

/// What its errors call it.
const OPERATION: &str = "events";

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
        what: Transition,
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
            what: &'a Transition,
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
    pub(super) fn new(source: Source) -> Self {
        // What a slow reader does not take waits in the subscription, which is bounded and counts what it loses.
        let (out, batches) = mpsc::channel(1);
        source.environment.clone().spawn(Runtime::Own, Listener { source, out }.run());
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

/// What tasks that follow a topic need to know.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) store: Arc<dyn Store>,
    pub(super) environment: Environment,
    pub(super) call_timeout: Duration,
    pub(super) topic: TopicKey,
}

impl Source {
    /// The answer of the store, unless it takes longer than `call_timeout`.
    pub(super) async fn answered<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        in_call_timeout(&self.environment, self.call_timeout, operation, answer).await
    }
}

/// Feeds [`Events`]; ends when they are dropped.
struct Listener {
    source: Source,
    out: mpsc::Sender<Vec<Event>>,
}

impl Listener {
    async fn run(self) {
        tokio::select! {
            biased;
            () = self.out.closed() => {} // nobody reads any more
            () = self.listen() => {}
        }
    }

    async fn listen(&self) {
        let mut failures = 0;
        loop {
            let Err(error) = self.listen_until_failure(&mut failures).await;
            tracing::debug!(topic = %self.source.topic.topic, %error, "cannot listen to the events of a topic; dq tries again");
            if failures == 0 {
                self.send(Event::Interrupted(error.to_string())).await;
            }
            let pause = self.source.environment.growing_pause(PAUSES.0, PAUSES.1, failures, 4);
            failures += 1;
            self.source.environment.sleep_until(self.source.environment.now() + pause).await;
        }
    }

    /// Subscribes and passes events on, until the store fails.
    async fn listen_until_failure(&self, failures: &mut u32) -> Result<Infallible, StoreError> {
        let interest = Interest { node: None, broadcasts: false, moves: true };
        let mut signals =
            self.source.answered(OPERATION, self.source.store.signals(&self.source.topic, interest)).await?;
        loop {
            self.source.answered(OPERATION, self.source.store.listen(&self.source.topic)).await?;
            *failures = 0;
            self.send(Event::Listening).await;
            self.pass_on(&mut signals).await?;
        }
    }

    /// Passes events on, and renews in time, until the subscription or the store has failed. `Ok`: it works again, and events may be
    /// missing.
    async fn pass_on(&self, signals: &mut Signals) -> Result<(), StoreError> {
        let mut renewed = self.source.environment.now();
        loop {
            tokio::select! {
                biased;
                () = self.source.environment.sleep_until(renewed + RENEW) => {
                    let began = self.source.environment.now();
                    self.source.answered(OPERATION, self.source.store.listen(&self.source.topic)).await?;
                    if began > renewed + LISTENING {
                        return Ok(());
                    }
                    renewed = began;
                }
                // Nothing is taken out of the subscription that the reader has no room for.
                batch = self.next_batch(signals) => match batch? {
                    Some((place, events)) => place.send(events),
                    None => return Ok(()),
                }
            }
        }
    }

    /// The next events, and the place for them; `None` if the subscription began anew.
    async fn next_batch(&self, signals: &mut Signals) -> Result<Option<(EventPlace<'_>, Vec<Event>)>, StoreError> {
        let Ok(place) = self.out.reserve().await else { return pending().await };
        let ended = |reason| StoreError::Unavailable { operation: OPERATION, reason };
        loop {
            let events = match signals.next().await {
                Some(Signal::Moves(moves)) => events_of(moves),
                Some(Signal::MovesMissed(missed)) => vec![Event::Missed(missed)],
                Some(Signal::Resubscribed) => return Ok(None),
                Some(Signal::Interrupted(reason)) => return Err(ended(reason)),
                None => return Err(ended("the subscription ended".into())),
                Some(_) => continue,
            };
            return Ok(Some((place, events)));
        }
    }

    /// Tells the reader; [`run`](Self::run) sees when it has gone.
    async fn send(&self, event: Event) {
        let _ = self.out.send(vec![event]).await;
    }
}

/// Room for one more batch in the channel to the reader.
type EventPlace<'a> = mpsc::Permit<'a, Vec<Event>>;

fn events_of(moves: Moves) -> Vec<Event> {
    let Moves { at, moves, more } = moves;
    let missed = (more > 0).then_some(Event::Missed(more));
    moves.into_iter().map(|(id, what)| Event::Job { at, id, what }).chain(missed).collect()
}
