//! Adds while the store is away: a directory takes them, and a task sends them afterwards, each once and in their order.
//!
//! The provider's store stands behind [`Buffered`]. While it answers, batches go to it. A batch of adds that certainly never left goes
//! into the directory, and from then on all adds do while the store is away, and those of a topic until none of it waits there: so their order
//! holds. Everything else that callers ask fails as it does without a buffer. A batch that was on its way is repeated for a moment, and is then *unknown* to
//! its callers, because the store may have executed it.
//!
//! What waits is sent as an outbox is relayed (rule 18): the directory has a name, each batch gets a number, and the store never forgets
//! the last one that has arrived. The numbers follow the store's clock and what the store has, and are kept on the disk before they are used: so each
//! batch is executed once, however often this program is killed, how long that takes, and whatever its clock says.

use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::environment::{Environment, Runtime};
use crate::job::{AppName, NodeId, ProducerId, TopicKey};
use crate::store::{
    Batch, BatchReply, Interest, Link, LinkOptions, NewJob, Numbered, Pending, Producer, Query, QueryReply, Signals,
    Store, StoreError,
};
use crate::time::Timestamp;

use entries::Entries;
pub use state::BufferHealth;
use state::BufferState;

mod entries;
mod sender;
mod state;

/// For how long a batch that was on its way when the store went away is repeated.
const IN_DOUBT: Duration = Duration::from_secs(2);

/// How much a buffer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many jobs may wait.
    pub(crate) jobs: usize,
    /// How many bytes they may have.
    pub(crate) bytes: usize,
    /// After this long the buffer drops them.
    pub(crate) age: Duration,
    /// How long an answer of the store may take.
    pub(crate) call_timeout: Duration,
}

/// A directory that takes adds while the store is away.
#[derive(Debug)]
pub(crate) struct Buffer {
    store: Arc<dyn Store>,
    entries: Entries,
    environment: Environment,
    bounds: Bounds,
    state: Mutex<BufferState>,
    changed: Arc<Notify>,
}

impl Buffer {
    /// Opens the buffer that `directory` keeps, and begins to send what waits there.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        directory: Arc<dyn Store>,
        app: &AppName,
        environment: Environment,
        bounds: Bounds,
    ) -> Result<Arc<Self>, StoreError> {
        directory.prepare().await?;
        let (entries, state) = Entries::open(directory, app, &environment).await?;
        let (state, changed) = (Mutex::new(state), Arc::new(Notify::new()));
        let buffer = Arc::new(Self { store, entries, environment, bounds, state, changed });
        buffer.environment.spawn(Runtime::Own, sender::run(Arc::downgrade(&buffer)));
        Ok(buffer)
    }

    /// What waits.
    pub(crate) fn health(&self) -> BufferHealth {
        self.state().health(self.entries.url())
    }

    /// Puts a batch into the directory. It is on the disk when the answer comes.
    fn keep(self: &Arc<Self>, topic: &TopicKey, jobs: Vec<NewJob>) -> Pending<BatchReply> {
        let kept = {
            let mut state = self.state();
            state.write(topic, jobs, self.environment.wall(), self.bounds).map(|written| {
                let answer = self.entries.write(topic, &written);
                (written, answer)
            })
        };
        self.changed.notify_one();
        let (buffer, topic) = (Arc::clone(self), topic.clone());
        Box::pin(async move {
            let (written, answer) = kept?;
            match answer.await {
                Ok(()) => Ok(written.answer()),
                Err(error) => {
                    buffer.state().forget(&topic, &[written.place]);
                    Err(error)
                }
            }
        })
    }

    /// The store's clock by now, in µs: the last time that it told and what has passed since, or the wall clock if it has told none.
    fn now_of_store(&self, state: &BufferState) -> u64 {
        match state.clock {
            Some((micros, at)) => micros.saturating_add(self.environment.now().saturating_sub(at).as_micros() as u64),
            None => self.environment.wall().as_millis().saturating_mul(1_000),
        }
    }

    /// The store's clock, as far as the buffer knows it, while the store is away.
    pub(super) fn clock_while_away(&self) -> Option<Timestamp> {
        let state = self.state();
        state.away_for(self.environment.now()).map(|_| Timestamp::floor_micros(self.now_of_store(&state)))
    }

    /// The store does not answer: from now on adds go into the directory.
    fn went_away(&self, error: &StoreError) {
        if self.state().goes_away(self.environment.now()) {
            let (store, directory) = (self.store.url(), self.entries.url());
            tracing::warn!(store, directory, %error, "the store cannot be reached: adds wait in the directory, and are sent when it is back");
        }
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sender waits without keeping the buffer alive, and ends with it.
impl Drop for Buffer {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// A store behind a buffer.
#[derive(Debug)]
pub(super) struct Buffered(pub(super) Arc<Buffer>);

impl Store for Buffered {
    fn url(&self) -> String {
        self.0.store.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        self.0.store.ask(query)
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.0.store.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let inner = self.0.store.producer(topic, producer);
        let forwarded = self.0.state().forwarded_of(topic, producer);
        Arc::new(BufferedProducer { inner, buffer: Arc::clone(&self.0), topic: topic.clone(), forwarded })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.0.store.signals(topic, interest)
    }
}

/// Sends batches to the store, or puts them into the buffer.
#[derive(Debug)]
struct BufferedProducer {
    inner: Arc<dyn Producer>,
    buffer: Arc<Buffer>,
    topic: TopicKey,
    /// The highest number of the producer that went to the store, also before its connection broke.
    forwarded: Arc<AtomicU64>,
}

impl Producer for BufferedProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        let Batch::Add { batch: Numbered { number, items } } = batch else { return self.inner.ask(batch) };
        let is_repeat = number <= self.forwarded.load(Relaxed);
        let (takes, away) = {
            let state = self.buffer.state();
            (state.takes(&self.topic), state.away_for(self.buffer.environment.now()))
        };
        if takes && !is_repeat {
            return self.buffer.keep(&self.topic, items);
        }
        if is_repeat && away.is_some_and(|away| away >= IN_DOUBT) {
            return Box::pin(ready(Err(in_doubt())));
        }
        self.forwarded.fetch_max(number, Relaxed);
        let answer = self.inner.ask(Batch::Add { batch: Numbered { number, items: items.clone() } });
        let (buffer, topic) = (Arc::clone(&self.buffer), self.topic.clone());
        Box::pin(async move {
            match answer.await {
                Err(error) if error.is_unreachable() => {
                    buffer.went_away(&error);
                    match error.nothing_done() && !is_repeat {
                        true => buffer.keep(&topic, items).await,
                        false => Err(error),
                    }
                }
                answer => answer,
            }
        })
    }

    fn take_back(&self) -> bool {
        self.inner.take_back()
    }

    fn silent_for(&self) -> Option<Duration> {
        self.inner.silent_for()
    }
}

/// The error of a batch that the store may have executed before it went away.
fn in_doubt() -> StoreError {
    StoreError::Other {
        operation: "add",
        source: "the connection broke before the store answered, which may have added the job: check that before you add it again".into(),
    }
}
