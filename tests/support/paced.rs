//! A Redis store under the paused clock: nodes, handlers and server agree on virtual time, and an answer takes none of it.
//!
//! Before each request the server is told what time it is. While one is under way the paused clock stands, and what it
//! signals has arrived before its answer is given, as on the memory store. So the same tests say the same on both.

use std::sync::{Arc, Mutex, OnceLock};

use dq::environment::StoreClock;
use dq::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::redis::RedisStore;
use dq::store::{
    AddOutcome, Answer, BatchAnswer, Command, CommandOutcome, Interest, Link, NewJob, Numbered, Page, PageRequest,
    Pending, Producer, Request, RequestKind, Signals, Store, StoreError, Stored, TopicCounts,
};
use dq::testing::InFlight;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::redis::{Place, Teller};

/// A store in a place of its own, under a clock that is not the server's.
#[derive(Debug)]
pub struct PacedStore {
    store: Arc<RedisStore>,
    pace: Arc<Pace>,
}

/// What keeps the server in time.
#[derive(Debug)]
struct Pace {
    clock: Arc<dyn StoreClock>,
    /// A connection, and the time that the server was told last.
    told: Mutex<(Teller, u64)>,
    /// A subscription that shares the connection of all others.
    subscriber: tokio::sync::Mutex<Option<Signals>>,
    topic: TopicKey,
    place: Place,
}

impl Pace {
    fn tell_time(&self) {
        let mut told = self.told.lock().unwrap();
        let now = self.clock.micros();
        if now != told.1 {
            self.place.set_clock(&mut told.0, now);
            told.1 = now;
        }
    }

    /// Waits until everything that was signalled so far has arrived.
    async fn receive(&self) {
        let mut subscriber = self.subscriber.lock().await;
        if let Some(subscriber) = subscriber.as_mut() {
            let channel = self.place.key(&self.topic, "wake");
            self.told.lock().unwrap().0.tell(&["PUBLISH", &channel, "due"]);
            subscriber.next().await.expect("the server is there");
        }
    }

    /// Sends a request and gives its answer when it is there, and all that it signalled, if it may do that. It is executed
    /// also when nobody waits for that.
    fn send<T: Send + 'static>(
        self: &Arc<Self>,
        way: impl Send + 'static,
        answer: Pending<T>,
        signals: bool,
    ) -> Pending<T> {
        let (in_flight, pace) = (InFlight::begin(), Arc::clone(self));
        let answered = tokio::spawn(async move {
            let answer = answer.await;
            if signals {
                pace.receive().await;
            }
            drop((way, in_flight));
            answer
        });
        async move { answered.await.expect("the runtime is there") }.boxed()
    }
}

impl PacedStore {
    /// A store in a place of its own, under this clock.
    pub fn start(clock: Arc<dyn StoreClock>) -> Arc<Self> {
        let place = Place::find();
        let store = place.store_under_test_clock();
        let topic = TopicKey {
            app: AppName::new("pace").expect("the name is good"),
            topic: TopicName::new("pace").expect("the name is good"),
        };
        let mut teller = place.connect();
        store.scripts().for_each(|script| drop(teller.tell(&["SCRIPT", "LOAD", script])));
        let told = Mutex::new((teller, u64::MAX));
        let pace = Pace { clock, told, subscriber: tokio::sync::Mutex::default(), topic, place };
        Arc::new(Self { store: Arc::new(store), pace: Arc::new(pace) })
    }

    /// Where its jobs are.
    pub fn place(&self) -> &Place {
        &self.pace.place
    }

    fn asks<'a, T: Send>(
        &'a self,
        query: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        async move {
            let _in_flight = InFlight::begin();
            self.pace.tell_time();
            query.await
        }
        .boxed()
    }
}

impl Store for PacedStore {
    fn url(&self) -> String {
        self.store.url()
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.asks(self.store.open(topic))
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        let (store, topic, node) = (self.store.clone(), topic.clone(), node.clone());
        Arc::new(PacedLink { store, topic, node, way: OnceLock::new(), pace: self.pace.clone() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(PacedProducer { way: self.store.producer(topic, producer), pace: self.pace.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.asks(async move {
            let mut subscriber = self.pace.subscriber.lock().await;
            if subscriber.is_none() {
                let all = Interest { node: Some(NodeId::new("pace")), broadcasts: false };
                *subscriber = Some(self.store.signals(&self.pace.topic, all).await?);
            }
            drop(subscriber);
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

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        self.asks(self.store.counts(topic))
    }
}

/// Connects with its first request, so that the clock stands meanwhile.
#[derive(Debug)]
struct PacedLink {
    store: Arc<RedisStore>,
    topic: TopicKey,
    node: NodeId,
    way: OnceLock<Arc<dyn Link>>,
    pace: Arc<Pace>,
}

impl PacedLink {
    fn way(&self) -> &Arc<dyn Link> {
        self.way.get_or_init(|| self.store.link(&self.topic, &self.node))
    }
}

impl Link for PacedLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        self.pace.tell_time();
        let signals = matches!(
            request.kind(),
            RequestKind::Settle
                | RequestKind::Reclaim
                | RequestKind::Release
                | RequestKind::Publish
                | RequestKind::Wake
        );
        let link = self.way();
        self.pace.send(link.clone(), link.ask(request), signals)
    }
}

#[derive(Debug)]
struct PacedProducer {
    way: Arc<dyn Producer>,
    pace: Arc<Pace>,
}

impl Producer for PacedProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        self.pace.tell_time();
        self.pace.send(self.way.clone(), self.way.add(batch), true)
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        self.pace.tell_time();
        self.pace.send(self.way.clone(), self.way.command(batch), true)
    }
}
