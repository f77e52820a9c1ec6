//! Keeps jobs in a Redis or Valkey server, or in a cluster, for many nodes: `redis://` and `rediss://`.
//!
//! Every step is one Lua script (`lua/`), which the server executes as a whole, under its own clock. The scripts hold
//! the rules of the protocol (`docs/internals/protocol/README.md`); the Rust side only builds requests and reads
//! answers. `keys` lists what is kept, and `errors` says what each error means.
//!
//! A store has a few connections to each server (`shards`), however many topics use it. The links of all topics share lines (`lines`), the
//! producers share others, and each keeps the order of its own requests (`connection`). Renewals, queries, wake-ups and
//! broadcasts each have a connection of their own, so that no large answer or request holds them up. This store never
//! retries a step: only the caller knows the sequence number, token or batch number to repeat it under.

mod add_batch;
mod all_nodes;
mod audit;
mod change;
mod check;
mod cluster;
mod confirm;
mod connect;
mod connection;
mod directory;
mod errors;
mod examine;
mod exchange;
mod export;
mod groups;
mod import;
mod inspect;
mod job_sets;
mod keys;
mod line;
mod lines;
mod link;
mod names;
mod nodes;
mod outbox;
mod outcomes;
mod overview;
mod packed;
mod producer;
mod queries;
mod query_connection;
mod record_notes;
mod repair;
mod reply;
mod rows;
mod scripts;
mod sentinel;
mod shards;
mod signals;
mod slots;
mod source;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod told;
mod topic_state;
mod unreadable;
mod url;
mod words;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use self::confirm::Confirm;
use self::connect::Connector;
use self::connection::{AfterBreak, OrderedConnection};
use self::directory::DirectoryEntry;
use self::keys::{Keys, Keyspace};
use self::lines::Lines;
use self::link::RedisLink;
use self::producer::RedisProducer;
use self::scripts::{Scripts, TopicScripts};
use self::shards::{Server, Shards};
use self::source::Source;
use self::unreadable::Skips;
use self::url::Address;
use super::{Due, Durability, Interest, Link, LinkOptions, Producer, Query, QueryReply, Signals, Store, StoreError};
use crate::environment::{Runtime, Spawn, SpawnOn, StoreClock, Task};
use crate::job::{Codec, Metadata, NodeId, ProducerId, Record, TopicKey};
use crate::time::Timestamp;

pub use self::source::Login;
pub use self::url::BadRedisUrl;

/// The most lines that the links of all topics share. With several of them a large answer in one topic leaves the
/// others a way.
const LINK_LINES: usize = 4;

/// The most lines that all producers share.
const PRODUCER_LINES: usize = 4;

/// The same where a `WAIT` blocks its line until the replicas have answered.
const WAITING_LINES: usize = 16;

/// A store in a Redis or Valkey server. It connects when it is first used, and again after a connection broke.
///
/// It works with Redis 6.2, 7 and 8, and with Valkey 8 and 9. The user in the URL needs only the permissions that
/// `docs/guide/deploying-on-redis.md` lists.
#[derive(Debug)]
pub struct RedisStore {
    shards: Arc<Shards>,
    scripts: Arc<Scripts>,
    keyspace: Keyspace,
    /// Whether the settings of the server were checked.
    is_checked: AtomicBool,
    durability: Durability,
    skips: Skips,
}

impl RedisStore {
    /// The store behind `redis://USER:PASSWORD@HOST:PORT/DATABASE`, where only the host is required, or behind a
    /// `rediss://` URL for TLS. `rediss://` has the options `?ca=FILE`, the authority to trust if the system does not
    /// know the one that signed the server's certificate, and `cert=FILE&key=FILE`, a client certificate if the server
    /// wants one. Each is a PEM file, which is read here. Nothing is sent yet.
    ///
    /// `redis+sentinel://HOST,HOST,HOST/SERVICE` follows the master that sentinels name, and `redis+cluster://HOST,HOST,HOST` uses the
    /// servers of a cluster; `rediss+..` is the same over TLS.
    ///
    /// All have the option `?prefix=TEXT`: all keys and channels begin with `TEXT:` instead of `dq:`, so that several
    /// programs that know nothing of each other can share a server. All nodes and producers of an app need the same prefix.
    ///
    /// # Errors
    /// [`BadRedisUrl`] if the URL or a file that it names cannot be used.
    pub fn new(url: &str) -> Result<Self, BadRedisUrl> {
        Self::build(url, None, None)
    }

    /// The same store, which asks `login` before each new connection who it is, instead of using the user and password of
    /// the URL: for passwords that rotate and tokens that expire. A connection that is open stays open until the server
    /// closes it. The answer counts towards the two seconds that connecting may take, and an error is retried like a server
    /// that cannot be reached.
    ///
    /// ```
    /// # use dq::store::redis::{Login, RedisStore};
    /// let store = RedisStore::new("rediss://redis.internal")?
    ///     .with_login(|| async { Ok(Login::new("dq", std::fs::read_to_string("/run/secrets/redis")?.trim())) });
    /// # Ok::<(), dq::store::redis::BadRedisUrl>(())
    /// ```
    #[must_use]
    pub fn with_login<F>(self, login: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = std::io::Result<Login>> + Send + 'static,
    {
        self.with_source(|source| source.with_login(login))
    }

    /// The same store, over streams that `open` makes: a Unix socket, a tunnel, or TLS with a configuration of your own. dq
    /// speaks RESP on them at once, so with TLS `open` returns a stream whose handshake is done. Write `redis://` in the URL,
    /// which then only gives the user, the database and the name in logs. `open` may take two seconds, and an error is
    /// retried like a server that cannot be reached.
    #[must_use]
    pub fn with_streams<S, F>(self, open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
        F: Future<Output = std::io::Result<S>> + Send + 'static,
    {
        self.with_source(|source| source.with_streams(open))
    }

    fn with_source(self, change: impl FnOnce(Source) -> Source) -> Self {
        self.over(|connector| Connector { source: change(connector.source), ..connector })
    }

    /// A store whose keys and channels begin with `prefix` instead of `dq:`, for tests that share a server. `clock`
    /// is one that a test moves. It replaces the server's: a script gets the time at which it is sent.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg(feature = "testing")]
    pub fn apart(url: &str, prefix: &str, clock: Option<Arc<dyn StoreClock>>) -> Result<Self, BadRedisUrl> {
        Self::build(url, clock, Some(Keyspace::new(prefix)))
    }

    /// The same store, which looks at its connections when they were idle for this long: it closes a line that had no request for as
    /// long, or for up to twice as long, and checks its subscriptions. Default: 30 s.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_check_period(self, period: Duration) -> Self {
        self.over(|connector| Connector { check_period: period, ..connector })
    }

    /// The texts of the store's scripts. A server that knows them all (`SCRIPT LOAD`) executes requests strictly in
    /// order. A request whose script the server does not know yet is executed behind the requests that are in flight.
    #[cfg(feature = "testing")]
    pub fn scripts(&self) -> impl Iterator<Item = &str> {
        self.scripts.texts()
    }

    /// The keys begin as `keyspace` says, or as the URL does.
    fn build(
        url: &str,
        test_clock: Option<Arc<dyn StoreClock>>,
        keyspace: Option<Keyspace>,
    ) -> Result<Self, BadRedisUrl> {
        let address = Address::parse(url)?;
        let of_url = || address.prefix.as_ref().map(|prefix| Keyspace::new(&format!("{prefix}:")));
        let (keyspace, durability) = (keyspace.or_else(of_url).unwrap_or_default(), Durability::Local);
        let shards = Shards::new(Connector::new(address), Confirm::of(durability));
        Ok(Self {
            shards: Arc::new(shards),
            scripts: Arc::new(Scripts::new(test_clock)),
            keyspace,
            is_checked: AtomicBool::default(),
            durability,
            skips: Skips::default(),
        })
    }

    /// The same store, which connects so.
    fn over(self, change: impl FnOnce(Connector) -> Connector) -> Self {
        let connector = change(self.shards.connector.clone());
        Self { shards: Arc::new(Shards::new(connector, Confirm::of(self.durability))), ..self }
    }

    /// An ordered connection for a topic.
    fn ordered(&self, keys: &Keys, lines: fn(&Server) -> &Lines, after_break: AfterBreak) -> OrderedConnection {
        OrderedConnection::new(Arc::clone(&self.shards), keys.slot(), lines, after_break)
    }

    /// The same store, whose producers answer once this durability is reached. Default: [`Durability::Local`]. A
    /// factory sets it from its `durability`; call this for a store that is made by hand.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }.over(|connector| connector)
    }
}

impl Store for RedisStore {
    fn url(&self) -> String {
        self.shards.connector.address.masked.clone()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        Box::pin(self.answer(query))
    }

    /// The steps of the link panic outside a tokio runtime, like those of a [`producer`](Self::producer).
    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        let keys = self.keyspace.of(topic);
        Arc::new(RedisLink {
            connection: self.ordered(&keys, |server| &server.links, AfterBreak::Fail),
            prompt: self.ordered(&keys, |server| &server.prompt, AfterBreak::Fail),
            scripts: TopicScripts::new(&self.scripts, keys, node.as_str()),
            options,
            dropped: Arc::default(),
        })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let keys = self.keyspace.of(topic);
        let connection = self.ordered(&keys, |server| &server.producers, AfterBreak::GoOn);
        let entry = DirectoryEntry::new(Arc::clone(&self.shards), &self.keyspace, topic);
        let scripts = TopicScripts::new(&self.scripts, keys, producer.as_str());
        Arc::new(RedisProducer::new(connection, scripts, entry))
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        let keys = self.keyspace.of(topic);
        Box::pin(async move {
            let server = self.shards.known("signals", Some(keys.slot())).await?;
            server.subscriptions.subscribe(&keys, interest).await
        })
    }
}

/// Starts a task on the current runtime, which is that of the caller who opens a connection.
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Task {
    let here = Handle::current();
    SpawnOn::new(here.clone(), here).spawn(Runtime::Own, Box::pin(task))
}

/// The latest time, and the longest period, with which scripts calculate exactly, in ms.
const LAST_MS: u64 = 1 << 42;

/// A period in whole milliseconds, rounded up.
fn millis(period: Duration) -> u64 {
    crate::time::millis_ceil(period).min(LAST_MS)
}

/// A period in whole microseconds, rounded up.
fn micros(period: Duration) -> u64 {
    u64::try_from(period.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(LAST_MS * 1_000)
}

/// A due time as scripts take it: µs from now on, and as `~` those which the default delay of the topic takes the place of; or a time in ms.
fn due_text(due: Due) -> String {
    match due {
        Due::After(delay) => format!("+{}", micros(delay)),
        Due::Usual(delay) => format!("~{}", micros(delay)),
        Due::At(at) => format!("@{}", millis_of(at)),
    }
}

/// A time in milliseconds.
fn millis_of(at: Timestamp) -> u64 {
    at.as_millis().min(LAST_MS)
}

/// Metadata as bytes, as a script puts them in front of a payload. The parking fence belongs to the store and is left
/// out.
fn metadata_bytes(metadata: Metadata) -> Vec<u8> {
    let record = Record::new(&Metadata { parked_by: None, ..metadata }, Codec::Json, b"");
    let bytes = record.as_bytes();
    bytes[..bytes.len() - 1].to_vec()
}
