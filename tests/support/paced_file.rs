//! A `file:` store under the paused clock, which stands still while an answer waits for the disk.
//!
//! The store executes a request, and sends its signals, before `ask` returns, as the memory store does. So the same tests hold on
//! both.

use std::sync::Arc;

use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::file::FileStore;
use dq::store::{
    Answer, Batch, BatchReply, Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Request, Signals,
    Store, StoreError,
};
use dq::testing::InFlight;
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

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        self.asks(self.0.store.ask(query))
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        Arc::new(PacedLink { link: self.0.store.link_with(topic, node, options), _directory: self.0.clone() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(PacedProducer { producer: self.0.store.producer(topic, producer), _directory: self.0.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.asks(self.0.store.signals(topic, interest))
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
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        hold(self.producer.ask(batch))
    }
}
