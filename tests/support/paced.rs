//! A Redis store under the paused clock: nodes, handlers and server agree on virtual time, and requests take none of it.
//!
//! Before each request the store sets the server's time. While a request is in flight the paused clock stands still, and the
//! signals of the request arrive before its answer, as on the memory store. So the same tests hold on both stores.

use std::sync::{Arc, Mutex, OnceLock};

use dq::environment::StoreClock;
use dq::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::redis::RedisStore;
use dq::store::{
    AddOutcome, Answer, BatchAnswer, ChangeOutcome, Command, CommandOutcome, DueCount, HistorySetting, Interest,
    JobChange, JobHistory, Link, MinuteCounts, NewJob, NodesPage, NodesRequest, Numbered, Page, PageRequest, Pending,
    Producer, Request, RequestKind, SetTopic, Signals, Store, StoreError, Stored, TopicCounts, TopicOverview, TopicSet,
    TopicState,
};
use dq::testing::InFlight;
use dq::time::Timestamp;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::redis::{CommandConnection, Keyspace};

/// A Redis store in a keyspace of its own, under a clock of this process.
#[derive(Debug)]
pub struct PacedStore {
    store: Arc<RedisStore>,
    pace: Arc<Pace>,
}

/// What keeps the server's clock and signals in step with the paused clock.
#[derive(Debug)]
struct Pace {
    clock: Arc<dyn StoreClock>,
    /// A connection, and the time that the server was last set to.
    last_set: Mutex<(CommandConnection, u64)>,
    /// A subscription over each of the connections that all subscriptions share.
    subscribers: tokio::sync::Mutex<Vec<Signals>>,
    topic: TopicKey,
    keyspace: Keyspace,
}

impl Pace {
    fn set_time(&self) {
        let mut last_set = self.last_set.lock().unwrap();
        let now = self.clock.micros();
        if now != last_set.1 {
            self.keyspace.set_clock(&mut last_set.0, now);
            last_set.1 = now;
        }
    }

    /// Waits until every signal published so far has arrived: a marker that is published now arrives after them.
    async fn receive(&self) {
        let mut subscribers = self.subscribers.lock().await;
        if !subscribers.is_empty() {
            let channel = self.keyspace.key(&self.topic, "wake");
            self.last_set.lock().unwrap().0.command(&["PUBLISH", &channel, "due"]);
        }
        for subscriber in subscribers.iter_mut() {
            subscriber.next().await.expect("the server is reachable");
        }
    }

    /// Sends a request and returns its answer, after its signals have arrived if `signals` is set. The request is executed
    /// even if the caller drops the answer.
    fn send<T: Send + 'static>(
        self: &Arc<Self>,
        connection: impl Send + 'static,
        answer: Pending<T>,
        signals: bool,
    ) -> Pending<T> {
        let (in_flight, pace) = (InFlight::begin(), Arc::clone(self));
        let answered = tokio::spawn(async move {
            let answer = answer.await;
            if signals {
                pace.receive().await;
            }
            drop((connection, in_flight));
            answer
        });
        async move { answered.await.expect("the task does not panic") }.boxed()
    }
}

impl PacedStore {
    /// Starts a store in a keyspace of its own, under `clock`.
    pub fn start(clock: Arc<dyn StoreClock>) -> Arc<Self> {
        let keyspace = Keyspace::create();
        let store = keyspace.store_under_test_clock();
        let topic = TopicKey {
            app: AppName::new("pace").expect("the name is valid"),
            topic: TopicName::new("pace").expect("the name is valid"),
        };
        let mut connection = keyspace.connect();
        store.scripts().for_each(|script| drop(connection.command(&["SCRIPT", "LOAD", script])));
        let last_set = Mutex::new((connection, u64::MAX));
        let pace = Pace { clock, last_set, subscribers: tokio::sync::Mutex::default(), topic, keyspace };
        Arc::new(Self { store: Arc::new(store), pace: Arc::new(pace) })
    }

    /// Returns the keyspace that the store keeps its jobs in.
    pub fn keyspace(&self) -> &Keyspace {
        &self.pace.keyspace
    }

    fn asks<'a, T: Send>(
        &'a self,
        query: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        async move {
            let _in_flight = InFlight::begin();
            self.pace.set_time();
            query.await
        }
        .boxed()
    }
}

impl Store for PacedStore {
    fn url(&self) -> String {
        self.store.url()
    }

    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.asks(self.store.contact())
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.asks(self.store.open(topic))
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        let (store, topic, node) = (self.store.clone(), topic.clone(), node.clone());
        Arc::new(PacedLink { store, topic, node, counts: false, link: OnceLock::new(), pace: self.pace.clone() })
    }

    fn counting_link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        let (store, topic, node) = (self.store.clone(), topic.clone(), node.clone());
        Arc::new(PacedLink { store, topic, node, counts: true, link: OnceLock::new(), pace: self.pace.clone() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(PacedProducer { producer: self.store.producer(topic, producer), pace: self.pace.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.asks(async move {
            let mut subscribers = self.pace.subscribers.lock().await;
            if subscribers.is_empty() {
                for broadcasts in [false, true] {
                    let interest = Interest { node: Some(NodeId::new("pace")), broadcasts, moves: false };
                    subscribers.push(self.store.signals(&self.pace.topic, interest).await?);
                }
            }
            drop(subscribers);
            self.store.signals(topic, interest).await
        })
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        self.asks(self.store.get(topic, ids))
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.asks(self.store.page(topic, request))
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        self.asks(self.store.topics(app))
    }

    fn schedules<'a>(
        &'a self,
        topic: &'a TopicKey,
        after: Option<&'a JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<JobId>, StoreError>> {
        self.asks(self.store.schedules(topic, after, limit))
    }

    fn keep_history<'a>(
        &'a self,
        topic: &'a TopicKey,
        setting: HistorySetting,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.asks(self.store.keep_history(topic, setting))
    }

    fn history<'a>(
        &'a self,
        topic: &'a TopicKey,
        id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<JobHistory>, StoreError>> {
        self.asks(self.store.history(topic, id))
    }

    fn topic_state<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicState, StoreError>> {
        self.asks(self.store.topic_state(topic))
    }

    fn overview<'a>(&'a self, topic: &'a TopicKey, nodes: usize) -> BoxFuture<'a, Result<TopicOverview, StoreError>> {
        self.asks(self.store.overview(topic, nodes))
    }

    fn nodes<'a>(&'a self, topic: &'a TopicKey, request: NodesRequest) -> BoxFuture<'a, Result<NodesPage, StoreError>> {
        self.asks(self.store.nodes(topic, request))
    }

    fn due_counts<'a>(
        &'a self,
        topic: &'a TopicKey,
        times: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<DueCount>, StoreError>> {
        self.asks(self.store.due_counts(topic, times))
    }

    fn statistics<'a>(
        &'a self,
        topic: &'a TopicKey,
        from: u64,
        to: u64,
    ) -> BoxFuture<'a, Result<Vec<MinuteCounts>, StoreError>> {
        self.asks(self.store.statistics(topic, from, to))
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        self.asks(self.store.counts(topic))
    }
}

/// A link that connects with its first request, so that the clock stands still meanwhile.
#[derive(Debug)]
struct PacedLink {
    store: Arc<RedisStore>,
    topic: TopicKey,
    node: NodeId,
    /// Whether the topic counts what its steps do.
    counts: bool,
    link: OnceLock<Arc<dyn Link>>,
    pace: Arc<Pace>,
}

impl PacedLink {
    fn link(&self) -> &Arc<dyn Link> {
        self.link.get_or_init(|| match self.counts {
            true => self.store.counting_link(&self.topic, &self.node),
            false => self.store.link(&self.topic, &self.node),
        })
    }
}

impl Link for PacedLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        self.pace.set_time();
        let signals = matches!(
            request.kind(),
            RequestKind::Settle
                | RequestKind::Reclaim
                | RequestKind::Release
                | RequestKind::Publish
                | RequestKind::Wake
        );
        let link = self.link();
        self.pace.send(link.clone(), link.ask(request), signals)
    }
}

#[derive(Debug)]
struct PacedProducer {
    producer: Arc<dyn Producer>,
    pace: Arc<Pace>,
}

impl Producer for PacedProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        self.pace.set_time();
        self.pace.send(self.producer.clone(), self.producer.add(batch), true)
    }

    fn set(&self, number: u64, set: SetTopic) -> Pending<BatchAnswer<TopicSet>> {
        self.pace.set_time();
        self.pace.send(self.producer.clone(), self.producer.set(number, set), true)
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        self.pace.set_time();
        self.pace.send(self.producer.clone(), self.producer.command(batch), true)
    }

    fn change(&self, batch: Numbered<JobChange>) -> Pending<BatchAnswer<ChangeOutcome>> {
        self.pace.set_time();
        self.pace.send(self.producer.clone(), self.producer.change(batch), true)
    }
}
