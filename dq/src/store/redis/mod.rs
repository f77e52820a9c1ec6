//! Jobs in a Redis or Valkey server, for many nodes: `redis://` and `rediss://`.
//!
//! Every step is one Lua script (`lua/`), so it is executed whole, by one clock, the server's. The rules of `PROTOCOL.md`
//! are in the scripts; this side only puts requests together and reads answers. What is kept is described in `keys`, what
//! an error means in `errors`.
//!
//! Each link and each producer has a connection of its own (`connection`): its requests stay in order, and when it is dropped,
//! so is the connection, and with it every answer that was still to come. Looks share one connection, and so do all
//! subscriptions. Nothing here retries a step: whoever sent it knows its turn, its token or its number.

mod check;
mod confirm;
mod connect;
mod connection;
mod errors;
mod inspect;
mod keys;
mod link;
mod outcomes;
mod producer;
mod queries;
mod reply;
mod scripts;
mod signals;
#[cfg(feature = "tls")]
mod tls;
mod url;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use self::check::Check;
use self::confirm::Confirm;
use self::connect::Connector;
use self::connection::Connection;
use self::keys::Keyspace;
use self::link::RedisLink;
use self::producer::RedisProducer;
use self::queries::Queries;
use self::scripts::Scripts;
use self::signals::Subscriptions;
use self::url::Address;
use super::step::MOST_JOBS;
use super::{Durability, Interest, Link, Page, PageRequest, Producer, Signals, Store, StoreError, Stored, TopicCounts};
use crate::environment::{Runtime, Spawn, SpawnOn};
use crate::job::{AppName, Codec, JobId, Metadata, NodeId, ProducerId, Record, TopicKey, TopicName};

pub use self::url::BadRedisUrl;

/// A store in a Redis or Valkey server. It connects when it is used, and again whenever a connection broke.
///
/// Redis from 6.2 on, 7 and 8, and Valkey 8 and 9 serve it. The user of the URL may be limited; `docs/guide/deploying-on-redis.md` says
/// to which commands and keys.
#[derive(Debug)]
pub struct RedisStore {
    connector: Arc<Connector>,
    scripts: Arc<Scripts>,
    keyspace: Keyspace,
    queries: Queries,
    subscriptions: Subscriptions,
    check: Check,
    durability: Durability,
}

impl RedisStore {
    /// The store behind `redis://USER:PASSWORD@HOST:PORT/DATABASE`, of which all but the host may be left out, or
    /// `rediss://` for TLS, with `?ca=FILE` where the server's certificate is signed by nobody the system knows and
    /// `cert=FILE&key=FILE` where the server wants one too; all in PEM. Nothing is sent yet.
    ///
    /// # Errors
    /// [`BadRedisUrl`] when the URL cannot be used.
    pub fn new(url: &str) -> Result<Self, BadRedisUrl> {
        Self::made(url, None, Keyspace::default())
    }

    /// The same store under a clock that a test moves: the hash `clock` of the server, with the fields `seconds` and
    /// `micros`, stands in for the server's clock.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg(feature = "testing")]
    pub fn with_test_clock(url: &str, clock: &str) -> Result<Self, BadRedisUrl> {
        Self::made(url, Some(clock.to_owned()), Keyspace::default())
    }

    /// A store whose keys and channels begin with `prefix` instead of `dq:`, for tests that share a server; with the name
    /// of a hash under a clock that a test moves.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg(feature = "testing")]
    pub fn apart(url: &str, prefix: &str, clock: Option<&str>) -> Result<Self, BadRedisUrl> {
        Self::made(url, clock.map(str::to_owned), Keyspace::new(prefix))
    }

    /// The same store, whose subscriptions are asked after this long a silence whether they are still there. Default: 30 s.
    #[cfg(feature = "testing")]
    #[must_use]
    pub const fn with_silence(mut self, silence: Duration) -> Self {
        self.subscriptions.silence = silence;
        self
    }

    /// A connection of its own to the server, which blocks: for tests that do there what a store does not.
    ///
    /// # Errors
    /// As every connection of the store.
    #[cfg(feature = "testing")]
    pub fn connection(&self) -> Result<::redis::Connection, StoreError> {
        self.connector.blocking("connect")
    }

    /// The texts of its scripts. A server that knows them all (`SCRIPT LOAD`) executes requests strictly in order; one that
    /// is asked for a script for the first time executes that request behind others that are under way.
    #[cfg(feature = "testing")]
    pub fn scripts(&self) -> impl Iterator<Item = &str> {
        self.scripts.texts()
    }

    fn made(url: &str, test_clock: Option<String>, keyspace: Keyspace) -> Result<Self, BadRedisUrl> {
        let connector = Arc::new(Connector::new(Address::parse(url)?));
        let scripts = Arc::new(Scripts::new(test_clock));
        Ok(Self {
            queries: Queries::new(Arc::clone(&connector), Arc::clone(&scripts)),
            subscriptions: Subscriptions::new(Arc::clone(&connector), keyspace.clone()),
            keyspace,
            check: Check::default(),
            durability: Durability::Local,
            connector,
            scripts,
        })
    }

    /// The same store, whose callers are answered when this is so. Default: [`Durability::Local`]. A factory sets it by its
    /// `durability`; this is for a store that is made by hand.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    fn open_connection(&self, topic: &TopicKey, confirm: Option<Confirm>) -> Connection {
        let directory = self.keyspace.directory(topic.app.as_str());
        let mut note = redis::cmd("SADD");
        note.arg(directory).arg(topic.topic.as_str());
        Connection::open(Arc::clone(&self.connector), Arc::clone(&self.scripts), note, confirm)
    }
}

impl Store for RedisStore {
    fn url(&self) -> String {
        self.connector.url()
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.queries.ask(self.scripts.call(scripts::Step::Open, &self.keyspace.of(topic), "")).await?;
            self.check.once(&self.queries, &self.connector.url(), self.durability).await;
            Ok(())
        })
    }

    /// # Panics
    /// Outside of a tokio runtime, like [`producer`](Self::producer).
    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        let (scripts, keys) = (Arc::clone(&self.scripts), self.keyspace.of(topic));
        Arc::new(RedisLink {
            connection: self.open_connection(topic, None),
            scripts,
            keys,
            node: node.clone(),
            dropped: Arc::default(),
        })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let (scripts, keys) = (Arc::clone(&self.scripts), self.keyspace.of(topic));
        let connection = self.open_connection(topic, Confirm::of(self.durability));
        Arc::new(RedisProducer { connection, scripts, keys, producer: producer.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(self.subscriptions.subscribe(topic, interest))
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        Box::pin(self.get_by_ids(topic, ids))
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.page_of(topic, request))
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        Box::pin(async move {
            let topics = self.topics_of(app).await?;
            self.check.once(&self.queries, &self.connector.url(), self.durability).await;
            Ok(topics)
        })
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        Box::pin(self.counts_of(topic))
    }
}

/// Starts a task on the current runtime: lines belong to whoever opens them.
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    let here = Handle::current();
    SpawnOn { own: here.clone(), handlers: here }.spawn(Runtime::Own, Box::pin(task));
}

/// The last time that a script calculates with exactly, and the longest period, in ms.
const LAST_MS: u64 = 1 << 42;

/// A period in whole milliseconds, rounded up.
fn millis(period: Duration) -> u64 {
    crate::time::millis_ceil(period).min(LAST_MS)
}

/// A period in whole microseconds, rounded up.
fn micros(period: Duration) -> u64 {
    u64::try_from(period.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(LAST_MS * 1_000)
}

/// A front as a script puts it before a payload; the parking fence is the store's and left out.
fn metadata_bytes(metadata: Metadata) -> Vec<u8> {
    let record = Record::new(&Metadata { parked_by: None, ..metadata }, Codec::Json, b"");
    let bytes = record.as_bytes();
    bytes[..bytes.len() - 1].to_vec()
}

/// Checks a bound of a request before anything is sent.
const fn within(what: &'static str, size: usize) -> Result<(), StoreError> {
    if size > MOST_JOBS { Err(StoreError::OverLimit { what, size, limit: MOST_JOBS }) } else { Ok(()) }
}
