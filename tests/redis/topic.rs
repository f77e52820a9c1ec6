//! A topic on a Redis store with one link and one producer, and what nodes and callers of its app begin with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dq::config::NodeSettings;
use dq::context::ContextFactory;
use dq::environment::Environment;
use dq::job::{AppName, Codec, Fence, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::redis::RedisStore;
use dq::store::step::{
    Change, Claim, DEFAULT_BYTES, Outcome, Reclaim, Reconcile, Sequenced, Settle, Settled, Sweep, Swept, Transfer,
    Transferred,
};
use dq::store::{
    AddOutcome, BatchAnswer, Command, CommandKind, CommandOutcome, Interest, Link, NewJob, Numbered, Producer, Store,
    StoreError,
};
use dq::time::Timestamp;
use dq_tests::redis::RedisServer;

pub const LEASE: Duration = Duration::from_secs(15);

pub struct Topic {
    pub store: Arc<RedisStore>,
    pub key: TopicKey,
    pub link: Arc<dyn Link>,
    pub producer: Arc<dyn Producer>,
    number: AtomicU64,
    last_seen: AtomicU64,
}

pub fn key(topic: &str) -> TopicKey {
    TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new(topic).unwrap() }
}

pub fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

pub fn job(name: &str) -> NewJob {
    NewJob::new(id(name), Record::new(&Metadata::default(), Codec::Json, b"{}"))
}

pub fn generated(count: u16) -> NewJob {
    NewJob { id: JobId::generated(count.into(), 7), generated: true, ..job("x") }
}

/// A provider of the app `shop` on the server at `url`.
pub fn provider(url: &str) -> Provider {
    provider_on(RedisStore::new(url).unwrap(), NodeSettings::default())
}

pub fn provider_on(store: RedisStore, settings: NodeSettings) -> Provider {
    Provider::root(key("t").app, Arc::new(store), Environment::of_this_runtime().unwrap(), settings)
}

/// A factory of nodes of the app `shop` on the server at `url`, without what the environment says.
pub fn factory(url: &str) -> ContextFactory {
    ContextFactory::new("shop").store(url).without_inventory().variables([("", ""); 0])
}

/// What the node of a [`Topic`] listens to.
pub fn interest() -> Interest {
    Interest { node: Some(NodeId::new("n")), broadcasts: true, moves: false }
}

/// Waits for what happens in the background.
pub async fn until(happened: impl Fn() -> bool) {
    while !happened() {
        tokio::task::yield_now().await;
    }
}

impl Topic {
    /// Returns the topic `t` on the server at `url`, under the server's clock.
    pub fn on(url: &str) -> Self {
        Self::named(url, "t")
    }

    /// Returns a new server and a topic on it.
    pub fn served() -> (RedisServer, Self) {
        let server = RedisServer::start();
        let topic = Self::on(&server.url());
        (server, topic)
    }

    /// Returns a new server and a topic on it, whose node has entered.
    pub async fn entered() -> (RedisServer, Self) {
        let (server, topic) = Self::served();
        topic.reconcile().await;
        (server, topic)
    }

    /// Opens the topic, as its node does before it enters.
    pub async fn opened(self) -> Self {
        self.store.open(&self.key).await.unwrap();
        self.reconcile().await;
        self
    }

    pub fn named(url: &str, topic: &str) -> Self {
        Self::of(RedisStore::new(url).unwrap(), topic)
    }

    pub fn of(store: RedisStore, topic: &str) -> Self {
        let (store, key) = (Arc::new(store), key(topic));
        let link = store.link(&key, &NodeId::new("n"));
        let producer = store.producer(&key, &ProducerId::new("p"));
        Self { store, key, link, producer, number: AtomicU64::new(0), last_seen: AtomicU64::new(0) }
    }

    pub async fn try_add(&self, items: Vec<NewJob>) -> Result<BatchAnswer<AddOutcome>, StoreError> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        self.producer.add(Numbered { number, items }).await
    }

    pub async fn add(&self, items: Vec<NewJob>) {
        let count = items.len();
        assert_eq!(self.try_add(items).await.unwrap(), BatchAnswer::Done(vec![AddOutcome::Added; count]));
    }

    pub async fn command(&self, verb: CommandKind, name: &str) -> CommandOutcome {
        self.command_for(verb, name, None).await
    }

    /// Sends a command for the run with this fence.
    pub async fn command_for(&self, verb: CommandKind, name: &str, fence: Option<Fence>) -> CommandOutcome {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let items = vec![Command { fence, ..Command::new(verb, id(name)) }];
        match self.producer.command(Numbered { number, items }).await.unwrap() {
            BatchAnswer::Done(mut outcomes) => outcomes.remove(0),
            BatchAnswer::Late => panic!("the call numbers increase"),
        }
    }

    /// A sweep of ten jobs that claims and prunes what has been in its place for these times.
    pub fn sweep(&self, park_timeout: Duration, dead_retention: Duration, dead_max: usize) -> Sweep {
        let (last_seen, limit, bytes, lease, done_max) = (self.last_seen(), 10, DEFAULT_BYTES, LEASE, None);
        Sweep { last_seen, limit, bytes, lease, park_timeout, dead_retention, dead_max, done_max }
    }

    pub async fn swept(&self, sweep: Sweep) -> Swept {
        match self.link.step(sweep).await.unwrap() {
            Sequenced::Done(swept) => swept,
            Sequenced::Reconcile(lease_status) => panic!("the sequence number is current: {lease_status:?}"),
        }
    }

    /// Ends the lease of a node and puts its jobs back. Returns how many there were.
    pub async fn reclaim(&self, server: &RedisServer, node: &str, max_crashes: u32) -> usize {
        server.command(&["ZADD", "dq:{shop:t}:leases", "5", node]);
        let (node, seen) = (NodeId::new(node), Timestamp::from_millis(5));
        let request = Reclaim { node, seen, limit: 10, bytes: DEFAULT_BYTES, max_crashes };
        self.link.step(request).await.unwrap().moved
    }

    pub fn last_seen(&self) -> Sequence {
        Sequence(self.last_seen.load(Ordering::Relaxed))
    }

    pub async fn reconcile(&self) -> usize {
        let request = Reconcile { last_seen: self.last_seen(), after: None, limit: 1_000 };
        match self.link.step(request).await.unwrap() {
            Sequenced::Done(answer) => {
                self.last_seen.store(answer.lease_status.sequence.0, Ordering::Relaxed);
                assert_eq!(answer.rows.len(), answer.lease_status.rows);
                answer.lease_status.rows
            }
            Sequenced::Reconcile(lease_status) => panic!("a first page needs no sequence number: {lease_status:?}"),
        }
    }

    pub async fn try_transfer(&self, limit: usize) -> Result<Transferred, StoreError> {
        self.transfer_of(limit, DEFAULT_BYTES).await
    }

    pub async fn transfer_of(&self, limit: usize, bytes: usize) -> Result<Transferred, StoreError> {
        let request = Transfer { bytes, ..Transfer::new(self.last_seen(), limit, LEASE) };
        match self.link.step(request).await? {
            Sequenced::Done(answer) => {
                self.last_seen.store(answer.lease_status.sequence.0, Ordering::Relaxed);
                Ok(answer)
            }
            Sequenced::Reconcile(lease_status) => panic!("the sequence number is current: {lease_status:?}"),
        }
    }

    /// Waits until every waiting job is due: a job without a delay is due in the next millisecond.
    pub async fn ready(&self) {
        loop {
            let counts = self.store.counts(&self.key).await.unwrap();
            if counts.ready == counts.delayed {
                return;
            }
        }
    }

    pub async fn claims(&self) -> Vec<Claim> {
        self.ready().await;
        self.try_transfer(1_000).await.unwrap().claims
    }

    pub async fn try_settle(&self, claims: &[Claim], change: Change) -> Result<Settled, StoreError> {
        self.settle_with(claims, change, None).await
    }

    pub async fn settle_with(
        &self,
        claims: &[Claim],
        change: Change,
        metadata: Option<Metadata>,
    ) -> Result<Settled, StoreError> {
        let outcome = |claim: &Claim| Outcome { metadata: metadata.clone(), ..claim.outcome(change.clone()) };
        let outcomes = claims.iter().map(outcome).collect();
        self.link.step(Settle { last_seen: self.last_seen(), lease: LEASE, bytes: DEFAULT_BYTES, outcomes }).await
    }
}
