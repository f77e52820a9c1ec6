//! A store that passes everything on, and counts queries, batches and the bytes of the records in its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dq::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::{
    AddOutcome, BatchAnswer, ChangeOutcome, Command, CommandOutcome, DueCount, Interest, JobChange, JobHistory, Link,
    MinuteCounts, NewJob, NodesPage, NodesRequest, Numbered, Page, PageRequest, Pending, Producer, Signals, Store,
    StoreError, Stored, TopicCounts, TopicNames, TopicOverview, TopicState,
};
use dq::time::Timestamp;
use futures_util::future::BoxFuture;

#[derive(Debug, Default)]
struct Counts {
    commands: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn asked(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    fn answered<'a>(&self, jobs: impl Iterator<Item = &'a Stored>) {
        let bytes = jobs.map(|job| (job.id.as_str().len() + job.record.as_bytes().len()) as u64).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct CountingStore {
    store: Arc<dyn Store>,
    counts: Arc<Counts>,
}

impl CountingStore {
    pub(crate) fn over(store: Arc<dyn Store>) -> Self {
        Self { store, counts: Arc::default() }
    }

    /// The commands and bytes since the last call.
    pub(crate) fn take(&self) -> (u64, u64) {
        (self.counts.commands.swap(0, Ordering::Relaxed), self.counts.bytes.swap(0, Ordering::Relaxed))
    }

    fn asks<T>(&self, answer: T) -> T {
        self.counts.asked();
        answer
    }
}

impl Store for CountingStore {
    fn url(&self) -> String {
        self.store.url()
    }

    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.contact()
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.open(topic)
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        self.store.link(topic, node)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let producer = self.store.producer(topic, producer);
        Arc::new(CountingProducer { producer, counts: Arc::clone(&self.counts) })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.store.signals(topic, interest)
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        self.counts.asked();
        Box::pin(async move {
            let found = self.store.get(topic, ids).await?;
            self.counts.answered(found.iter().flatten());
            Ok(found)
        })
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.counts.asked();
        Box::pin(async move {
            let page = self.store.page(topic, request).await?;
            self.counts.answered(page.jobs.iter());
            Ok(page)
        })
    }

    fn schedules<'a>(
        &'a self,
        topic: &'a TopicKey,
        after: Option<&'a JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<JobId>, StoreError>> {
        self.asks(self.store.schedules(topic, after, limit))
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        self.asks(self.store.topics(app))
    }

    fn topics_behind<'a>(
        &'a self,
        app: &'a AppName,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<TopicNames, StoreError>> {
        self.asks(self.store.topics_behind(app, after, limit))
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

    fn history<'a>(
        &'a self,
        topic: &'a TopicKey,
        id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<JobHistory>, StoreError>> {
        self.asks(self.store.history(topic, id))
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

#[derive(Debug)]
struct CountingProducer {
    producer: Arc<dyn Producer>,
    counts: Arc<Counts>,
}

impl Producer for CountingProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        self.counts.asked();
        self.producer.add(batch)
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        self.counts.asked();
        self.producer.command(batch)
    }

    fn change(&self, batch: Numbered<JobChange>) -> Pending<BatchAnswer<ChangeOutcome>> {
        self.counts.asked();
        self.producer.change(batch)
    }

    fn import(&self, number: u64, import: dq::store::Import) -> Pending<BatchAnswer<dq::store::ImportOutcome>> {
        self.counts.asked();
        self.producer.import(number, import)
    }
}
