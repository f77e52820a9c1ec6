//! A store under the paused clock: nodes, handlers and store agree on virtual time, and requests take none of it.
//!
//! While a request is in flight the paused clock stands still, and the signals of the request arrive before its answer, as on the
//! memory store. A Redis server sends them over other connections, so a marker follows them; a `file:` store has sent them before
//! it answers. So the same tests hold on all stores.

use std::sync::{Arc, Mutex, OnceLock};

use dq::environment::StoreClock;
use dq::job::{AppName, NodeId, ProducerId, TopicKey, TopicName};
#[cfg(unix)]
use dq::store::file::FileStore;
use dq::store::{
    Answer, Batch, BatchReply, Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Request, RequestKind,
    Signals, Store, StoreError,
};
use dq::testing::InFlight;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

#[cfg(unix)]
use crate::file::Folder;
use crate::redis::{CommandConnection, Keyspace};

/// A store with a place of its own, under a clock of this process.
#[derive(Debug)]
pub struct PacedStore(Arc<Paced>);

#[derive(Debug)]
struct Paced {
    store: Arc<dyn Store>,
    /// A topic on each server, and a connection to the server.
    markers: Mutex<Vec<(TopicKey, CommandConnection)>>,
    /// A subscription over each of the connections that all subscriptions share.
    subscribers: tokio::sync::Mutex<Vec<Signals>>,
    // Dropped last: a store is closed before its place goes.
    home: Home,
}

/// Where a store keeps its jobs.
#[derive(Debug)]
enum Home {
    Keyspace(Keyspace),
    #[cfg(unix)]
    Folder {
        _folder: Folder,
    },
}

impl Paced {
    /// Waits until every signal published so far has arrived: a marker that is published now arrives after them.
    async fn receive(&self) {
        let mut subscribers = self.subscribers.lock().await;
        if let (false, Home::Keyspace(keyspace)) = (subscribers.is_empty(), &self.home) {
            for (topic, connection) in self.markers.lock().unwrap().iter_mut() {
                connection.publish(&keyspace.key(topic, "wake"), "due");
            }
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
        let (in_flight, paced) = (InFlight::begin(), Arc::clone(self));
        let answered = tokio::spawn(async move {
            let answer = answer.await;
            if signals {
                paced.receive().await;
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
        Self::within(Keyspace::create(), clock)
    }

    /// Starts a store in this keyspace, under `clock`.
    pub fn within(keyspace: Keyspace, clock: Arc<dyn StoreClock>) -> Arc<Self> {
        let store = keyspace.store_under(clock);
        keyspace.load(&store);
        let marker = |topic: String| {
            let (app, topic) = topic.split_once(':').expect("it is the name of an app and a topic");
            let app = AppName::new(app).expect("the name is valid");
            (TopicKey { app, topic: TopicName::new(topic).expect("the name is valid") }, keyspace.connect())
        };
        let markers = keyspace.topics_of_all_servers("pace").into_iter().map(marker).collect();
        Arc::new(Self::at(Arc::new(store), markers, Home::Keyspace(keyspace)))
    }

    /// Holds the clock for this store, which is open, and removes its folder at the end.
    #[cfg(unix)]
    pub fn of(store: FileStore, folder: Folder) -> Self {
        Self::at(Arc::new(store), Vec::new(), Home::Folder { _folder: folder })
    }

    fn at(store: Arc<dyn Store>, markers: Vec<(TopicKey, CommandConnection)>, home: Home) -> Self {
        let (markers, subscribers) = (Mutex::new(markers), tokio::sync::Mutex::default());
        Self(Arc::new(Paced { store, markers, subscribers, home }))
    }

    /// Returns the keyspace that the store keeps its jobs in.
    ///
    /// # Panics
    /// If it is no Redis store.
    pub fn keyspace(&self) -> &Keyspace {
        match &self.0.home {
            Home::Keyspace(keyspace) => keyspace,
            #[cfg(unix)]
            Home::Folder { .. } => panic!("a `file:` store has a folder"),
        }
    }

    fn asks<'a, T: Send>(
        &'a self,
        query: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        async move {
            let _in_flight = InFlight::begin();
            query.await
        }
        .boxed()
    }
}

impl Store for PacedStore {
    fn url(&self) -> String {
        self.0.store.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        self.asks(self.0.store.ask(query))
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        let (topic, node) = (topic.clone(), node.clone());
        Arc::new(PacedLink { paced: self.0.clone(), topic, node, options, link: OnceLock::new() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(PacedProducer { producer: self.0.store.producer(topic, producer), paced: self.0.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.asks(async move {
            let mut subscribers = self.0.subscribers.lock().await;
            if subscribers.is_empty() {
                let topics: Vec<_> = self.0.markers.lock().unwrap().iter().map(|marker| marker.0.clone()).collect();
                for (topic, broadcasts) in topics.iter().flat_map(|topic| [(topic, false), (topic, true)]) {
                    let interest = Interest { node: Some(NodeId::new("pace")), broadcasts, moves: false };
                    subscribers.push(self.0.store.signals(topic, interest).await?);
                }
            }
            drop(subscribers);
            self.0.store.signals(topic, interest).await
        })
    }
}

/// A link that connects with its first request, so that the clock stands still meanwhile.
#[derive(Debug)]
struct PacedLink {
    paced: Arc<Paced>,
    topic: TopicKey,
    node: NodeId,
    options: LinkOptions,
    link: OnceLock<Arc<dyn Link>>,
}

impl PacedLink {
    fn link(&self) -> &Arc<dyn Link> {
        self.link.get_or_init(|| self.paced.store.link_with(&self.topic, &self.node, self.options))
    }
}

impl Link for PacedLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        let signals = matches!(
            request.kind(),
            RequestKind::Settle
                | RequestKind::Reclaim
                | RequestKind::Release
                | RequestKind::Publish
                | RequestKind::Wake
        );
        let link = self.link();
        self.paced.send(link.clone(), link.ask(request), signals)
    }
}

#[derive(Debug)]
struct PacedProducer {
    producer: Arc<dyn Producer>,
    paced: Arc<Paced>,
}

impl Producer for PacedProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        self.paced.send(self.producer.clone(), self.producer.ask(batch), true)
    }
}
