//! A store that passes everything on, and counts queries, batches and the bytes of the records in its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::{
    Batch, BatchReply, Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Signals, Store, StoreError,
    Stored,
};
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
}

impl Store for CountingStore {
    fn url(&self) -> String {
        self.store.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        if !matches!(query, Query::Prepare {} | Query::Contact {} | Query::Open { .. }) {
            self.counts.asked();
        }
        Box::pin(async move {
            let reply = self.store.ask(query).await?;
            match &reply {
                QueryReply::Get(found) => self.counts.answered(found.iter().flatten()),
                QueryReply::Page(page) => self.counts.answered(page.jobs.iter()),
                _ => {}
            }
            Ok(reply)
        })
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.store.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let producer = self.store.producer(topic, producer);
        Arc::new(CountingProducer { producer, counts: Arc::clone(&self.counts) })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.store.signals(topic, interest)
    }
}

#[derive(Debug)]
struct CountingProducer {
    producer: Arc<dyn Producer>,
    counts: Arc<Counts>,
}

impl Producer for CountingProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        self.counts.asked();
        self.producer.ask(batch)
    }
}
