//! A topic that changes while it is exported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dq::environment::WallClock;
use dq::job::{Fence, JobId, Metadata, NodeId, ProducerId, Record, State, TopicKey};
use dq::store::memory::MemoryStore;
use dq::store::{
    Import, Interest, JobCopy, Link, LinkOptions, OnDuplicate, Producer, Query, QueryReply, Signals, Store, StoreError,
};
use dq::time::Timestamp;
use dq_cli::failure::Failure;
use dq_cli::progress::Progress;
use dq_cli::{Repeating, export, import};
use futures_util::future::BoxFuture;

use crate::round_trip::{choice, key, options};

/// A memory store to which somebody adds a job once a page of an export was read.
#[derive(Debug)]
struct BusyStore {
    inner: MemoryStore,
    is_changed: AtomicBool,
}

/// Adds a DEAD job.
async fn add(store: &MemoryStore, name: &str) {
    let record = Record::new(&Metadata::default(), dq::job::Codec::Json, b"{}");
    let id = JobId::new(name).unwrap();
    let copy = JobCopy::new(id, record, State::Dead, Timestamp::from_millis(5));
    let import = Import { copies: vec![copy], on_duplicate: OnDuplicate::Reject, fence: Fence(0) };
    store.producer(&key(), &ProducerId::new(name)).import(1, import).await.unwrap();
}

impl Store for BusyStore {
    fn url(&self) -> String {
        self.inner.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        Box::pin(async move {
            let exports = matches!(query, Query::Export { .. });
            let reply = self.inner.ask(query).await;
            if exports && !self.is_changed.swap(true, Ordering::Relaxed) {
                add(&self.inner, "added meanwhile").await;
            }
            reply
        })
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.inner.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.inner.producer(topic, producer)
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.inner.signals(topic, interest)
    }
}

/// Exports a topic that changes meanwhile. Returns the result and what was written.
async fn exported(arguments: &[&str]) -> (Result<export::Report, Failure>, Vec<u8>) {
    let store = BusyStore { inner: MemoryStore::new(Arc::new(WallClock)), is_changed: AtomicBool::new(false) };
    add(&store.inner, "there before").await;
    let mut written = Vec::new();
    let repeating = Repeating(Duration::ZERO);
    let done =
        export::export(&store, &key().app, &choice(arguments), repeating, &mut written, &Progress::hidden()).await;
    (done, written)
}

#[tokio::test]
async fn an_export_whose_topic_changes_is_refused_and_cannot_be_imported_unnoticed() {
    let (failed, written) = exported(&[]).await;
    let failed = failed.unwrap_err();
    assert!(matches!(failed, Failure::Changed(_)), "{failed}");
    let what = "topic `orders` changed while it was read (1 dead jobs before, 2 read, 2 after)";
    assert!(failed.to_string().starts_with(what), "{failed}");

    let new = MemoryStore::new(Arc::new(WallClock));
    let failed = import::import(&new, &options("p"), &written[..], &Progress::hidden()).await.unwrap_err();
    assert!(matches!(failed, Failure::CutOff { .. }), "{failed}");
}

#[tokio::test]
async fn a_topic_that_changes_while_a_live_app_is_exported_is_warned_about() {
    let (done, written) = exported(&["--running"]).await;
    assert_eq!(done.unwrap().changed.len(), 1);
    assert!(written.ends_with(b"{\"end\":{\"jobs\":2}}\n"));
}
