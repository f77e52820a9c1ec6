//! A `file:` store under the paused clock, which stands still while an answer waits for the disk.
//!
//! The store executes a request, and sends its signals, before `ask` returns, as the memory store does. So the same tests hold on
//! both.

use std::sync::Arc;

use dq::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::file::FileStore;
use dq::store::{
    AddOutcome, Answer, BatchAnswer, ChangeOutcome, Command, CommandOutcome, DueCount, HistorySetting, Interest,
    JobChange, JobHistory, Link, MinuteCounts, NewJob, NodesPage, NodesRequest, Numbered, Page, PageRequest, Pending,
    Producer, Request, SetTopic, Signals, Store, StoreError, Stored, TopicCounts, TopicOverview, TopicSet, TopicState,
};
use dq::testing::InFlight;
use dq::time::Timestamp;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::file::Folder;

/// A store in a folder of its own that holds the paused clock until it has answered.
#[derive(Debug)]
pub struct PacedFileStore(Arc<Directory>);

/// The store is closed before its folder goes.
#[derive(Debug)]
struct Directory {
    store: FileStore,
    _folder: Folder,
}

impl PacedFileStore {
    /// Holds the clock for this store, which is open, and removes its folder at the end.
    pub fn of(store: FileStore, folder: Folder) -> Self {
        Self(Arc::new(Directory { store, _folder: folder }))
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

/// Holds the clock until the answer is there, whether or not the caller waits for it.
fn hold<T: Send + 'static>(answer: Pending<T>) -> Pending<T> {
    let in_flight = InFlight::begin();
    let answered = tokio::spawn(async move {
        let answer = answer.await;
        drop(in_flight);
        answer
    });
    async move { answered.await.expect("the task does not panic") }.boxed()
}

impl Store for PacedFileStore {
    fn url(&self) -> String {
        self.0.store.url()
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.asks(self.0.store.prepare())
    }

    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.asks(self.0.store.contact())
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.asks(Store::open(&self.0.store, topic))
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        Arc::new(PacedLink { link: self.0.store.link(topic, node), _directory: self.0.clone() })
    }

    fn counting_link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        Arc::new(PacedLink { link: self.0.store.counting_link(topic, node), _directory: self.0.clone() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(PacedProducer { producer: self.0.store.producer(topic, producer), _directory: self.0.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.asks(self.0.store.signals(topic, interest))
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        self.asks(self.0.store.get(topic, ids))
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.asks(self.0.store.page(topic, request))
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        self.asks(self.0.store.topics(app))
    }

    fn schedules<'a>(
        &'a self,
        topic: &'a TopicKey,
        after: Option<&'a JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<JobId>, StoreError>> {
        self.asks(self.0.store.schedules(topic, after, limit))
    }

    fn keep_history<'a>(
        &'a self,
        topic: &'a TopicKey,
        setting: HistorySetting,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.asks(self.0.store.keep_history(topic, setting))
    }

    fn history<'a>(
        &'a self,
        topic: &'a TopicKey,
        id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<JobHistory>, StoreError>> {
        self.asks(self.0.store.history(topic, id))
    }

    fn topic_state<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicState, StoreError>> {
        self.asks(self.0.store.topic_state(topic))
    }

    fn overview<'a>(&'a self, topic: &'a TopicKey, nodes: usize) -> BoxFuture<'a, Result<TopicOverview, StoreError>> {
        self.asks(self.0.store.overview(topic, nodes))
    }

    fn nodes<'a>(&'a self, topic: &'a TopicKey, request: NodesRequest) -> BoxFuture<'a, Result<NodesPage, StoreError>> {
        self.asks(self.0.store.nodes(topic, request))
    }

    fn due_counts<'a>(
        &'a self,
        topic: &'a TopicKey,
        times: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<DueCount>, StoreError>> {
        self.asks(self.0.store.due_counts(topic, times))
    }

    fn statistics<'a>(
        &'a self,
        topic: &'a TopicKey,
        from: u64,
        to: u64,
    ) -> BoxFuture<'a, Result<Vec<MinuteCounts>, StoreError>> {
        self.asks(self.0.store.statistics(topic, from, to))
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        self.asks(self.0.store.counts(topic))
    }
}

#[derive(Debug)]
struct PacedLink {
    link: Arc<dyn Link>,
    _directory: Arc<Directory>,
}

impl Link for PacedLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        hold(self.link.ask(request))
    }
}

#[derive(Debug)]
struct PacedProducer {
    producer: Arc<dyn Producer>,
    _directory: Arc<Directory>,
}

impl Producer for PacedProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        hold(self.producer.add(batch))
    }

    fn set(&self, number: u64, set: SetTopic) -> Pending<BatchAnswer<TopicSet>> {
        hold(self.producer.set(number, set))
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        hold(self.producer.command(batch))
    }

    fn change(&self, batch: Numbered<JobChange>) -> Pending<BatchAnswer<ChangeOutcome>> {
        hold(self.producer.change(batch))
    }
}
