//! A store without any logic: the test receives every batch and answers it, refuses it, or leaves it unanswered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::job::{NodeId, ProducerId, TopicKey};
use crate::store::{
    AddOutcome, Batch, BatchAnswer, BatchReply, CommandOutcome, Interest, Link, LinkOptions, Pending, Producer, Query,
    QueryReply, Signals, Store, StoreError, TopicCounts,
};

/// Where the store panics, which stands for a defect of dq in the task that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PanicAt {
    Producer,
    Send,
    Answer,
    Query,
}

#[derive(Debug, Clone, Default)]
struct NextPanic(Arc<Mutex<Option<PanicAt>>>);

impl NextPanic {
    /// Panics if this is where.
    fn reach(&self, at: PanicAt) {
        let is_here = self.0.lock().unwrap().take_if(|wanted| *wanted == at).is_some();
        assert!(!is_here, "a panic of the test");
    }
}

/// A batch that the provider sent.
#[derive(Debug)]
pub(super) struct SentBatch {
    /// The producer that sent it, counted from 1.
    pub(super) producer: usize,
    pub(super) identity: ProducerId,
    pub(super) number: u64,
    pub(super) ids: Vec<String>,
    /// The name of the operation.
    name: &'static str,
    answer: oneshot::Sender<Result<BatchReply, StoreError>>,
}

impl SentBatch {
    /// The kind and the ids, such as `add a b`.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.name, self.ids.join(" "))
    }

    pub(super) fn done(self) {
        let outcome = CommandOutcome { found: None, changed: false, removed: None, other_version: None };
        let (added, commanded) = (vec![AddOutcome::Added; self.ids.len()], vec![outcome; self.ids.len()]);
        let reply = self.reply(BatchAnswer::Done(added), BatchAnswer::Done(commanded));
        drop(self.answer.send(Ok(reply)));
    }

    pub(super) fn outcomes(self, outcomes: Vec<AddOutcome>) {
        assert_eq!(self.name, "add");
        self.answer.send(Ok(BatchReply::Add(BatchAnswer::Done(outcomes)))).unwrap();
    }

    pub(super) fn late(self) {
        let reply = self.reply(BatchAnswer::Late, BatchAnswer::Late);
        self.answer.send(Ok(reply)).unwrap();
    }

    /// The one of these answers that is of the kind of the batch.
    fn reply(&self, added: BatchAnswer<AddOutcome>, commanded: BatchAnswer<CommandOutcome>) -> BatchReply {
        if self.name == "add" { BatchReply::Add(added) } else { BatchReply::Command(commanded) }
    }

    pub(super) fn fails(self, error: StoreError) {
        self.answer.send(Err(error)).unwrap();
    }

    pub(super) fn refused(self) {
        self.fails(StoreError::Refused { operation: "add", reason: "loading".into() });
    }

    pub(super) fn unavailable(self) {
        self.fails(StoreError::Unavailable { operation: "add", reason: "reset".into() });
    }
}

/// The test's end of the store.
pub(super) struct StoreOperator(mpsc::UnboundedReceiver<SentBatch>, NextPanic);

impl StoreOperator {
    pub(super) fn new() -> (Arc<ManualStore>, Self) {
        let (sent, operator) = mpsc::unbounded_channel();
        let panics = NextPanic::default();
        let (producers, queries) = (AtomicUsize::new(0), Arc::default());
        (Arc::new(ManualStore { sent, producers, panics: panics.clone(), queries }), Self(operator, panics))
    }

    /// Makes the store panic there, once.
    pub(super) fn panic_at(&self, at: PanicAt) {
        *self.1.0.lock().unwrap() = Some(at);
    }

    /// Waits for the next batch.
    pub(super) async fn next(&mut self) -> SentBatch {
        self.0.recv().await.expect("the provider keeps its store")
    }

    /// The next batch, if one was sent.
    pub(super) fn try_next(&mut self) -> Option<SentBatch> {
        self.0.try_recv().ok()
    }

    /// Waits for the next batch and checks its number and its text.
    pub(super) async fn expect(&mut self, number: u64, text: &str) -> SentBatch {
        let sent = self.next().await;
        assert_eq!((sent.number, sent.text().as_str()), (number, text));
        sent
    }

    /// Runs every task until it waits, without letting time pass, and checks that no batch was sent.
    pub(super) async fn expect_nothing(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if let Ok(sent) = self.0.try_recv() {
            panic!("{sent:?}");
        }
    }

    /// Waits until the provider has dropped the store and all its producers, and checks that no batch was sent before.
    pub(super) async fn expect_end(&mut self) {
        if let Some(sent) = self.0.recv().await {
            panic!("{sent:?}");
        }
    }
}

/// The provider's end of the store.
#[derive(Debug)]
pub(super) struct ManualStore {
    sent: mpsc::UnboundedSender<SentBatch>,
    producers: AtomicUsize,
    panics: NextPanic,
    pub(super) queries: Arc<Queries>,
}

/// How many queries are in flight, and how many there were at most.
#[derive(Debug, Default)]
pub(super) struct Queries {
    in_flight: AtomicUsize,
    pub(super) most: AtomicUsize,
    pub(super) started: AtomicUsize,
}

impl Queries {
    fn begin(self: &Arc<Self>) -> InFlight {
        self.started.fetch_add(1, Ordering::Relaxed);
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

/// A query in flight.
struct InFlight(Arc<Queries>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct ManualProducer {
    sent: mpsc::UnboundedSender<SentBatch>,
    producer: usize,
    identity: ProducerId,
    panics: NextPanic,
}

impl Producer for ManualProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        self.panics.reach(PanicAt::Send);
        let name = batch.name();
        let (number, ids) = match batch {
            Batch::Add { batch } => (batch.number, batch.items.iter().map(|job| job.id.to_string()).collect()),
            Batch::Command { batch } => (batch.number, batch.items.iter().map(|item| item.id.to_string()).collect()),
            other => unreachable!("a test sends {other:?}"),
        };
        let (answer, answered) = oneshot::channel();
        let (producer, identity) = (self.producer, self.identity.clone());
        self.sent.send(SentBatch { producer, identity, number, ids, name, answer }).expect("the test keeps its end");
        let panics = self.panics.clone();
        Box::pin(async move {
            match answered.await {
                Ok(answer) => {
                    panics.reach(PanicAt::Answer);
                    answer
                }
                Err(_) => std::future::pending().await,
            }
        })
    }
}

impl Store for ManualStore {
    fn url(&self) -> String {
        "manual:".into()
    }

    /// Never answers a `get` or a `repair`, and refuses the first `counts`.
    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        match query {
            Query::Get { .. } | Query::Repair { .. } => {
                let query = self.queries.begin();
                Box::pin(async move {
                    let _query = query;
                    std::future::pending().await
                })
            }
            Query::Counts { .. } => {
                self.panics.reach(PanicAt::Query);
                let first = self.producers.fetch_add(1, Ordering::Relaxed) == 0;
                let refused = || StoreError::Refused { operation: "counts", reason: "loading".into() };
                let counts = QueryReply::Counts(TopicCounts::default());
                Box::pin(std::future::ready(if first { Err(refused()) } else { Ok(counts) }))
            }
            other => unreachable!("a provider does not ask for {other:?}"),
        }
    }

    fn link_with(&self, _: &TopicKey, _: &NodeId, _: LinkOptions) -> Arc<dyn Link> {
        unreachable!("a provider does not ask for this")
    }

    fn producer(&self, _: &TopicKey, identity: &ProducerId) -> Arc<dyn Producer> {
        self.panics.reach(PanicAt::Producer);
        let producer = self.producers.fetch_add(1, Ordering::Relaxed) + 1;
        let (sent, panics) = (self.sent.clone(), self.panics.clone());
        Arc::new(ManualProducer { sent, producer, identity: identity.clone(), panics })
    }

    fn signals<'a>(&'a self, _: &'a TopicKey, _: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        unreachable!("a provider does not ask for this")
    }
}
