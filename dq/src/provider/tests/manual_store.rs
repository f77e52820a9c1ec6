//! A store without any logic: the test receives every batch and answers it, refuses it, or leaves it unanswered.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use crate::store::{
    AddOutcome, BatchAnswer, Command, CommandOutcome, Interest, Link, NewJob, Numbered, Page, PageRequest, Pending,
    Producer, Signals, Store, StoreError, Stored, TopicCounts,
};

type AnswerSender<O> = oneshot::Sender<Result<BatchAnswer<O>, StoreError>>;

enum PendingAnswer {
    Add(AnswerSender<AddOutcome>),
    Command(AnswerSender<CommandOutcome>),
}

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
pub(super) struct SentBatch {
    /// The producer that sent it, counted from 1.
    pub(super) producer: usize,
    pub(super) identity: ProducerId,
    pub(super) number: u64,
    pub(super) ids: Vec<String>,
    answer: PendingAnswer,
}

impl fmt::Debug for SentBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {} of producer {}: {}", self.number, self.producer, self.text())
    }
}

impl SentBatch {
    /// The kind and the ids, such as `add a b`.
    pub(super) fn text(&self) -> String {
        let kind = match self.answer {
            PendingAnswer::Add(_) => "add",
            PendingAnswer::Command(_) => "command",
        };
        format!("{kind} {}", self.ids.join(" "))
    }

    pub(super) fn done(self) {
        let count = self.ids.len();
        match self.answer {
            PendingAnswer::Add(answer) => answer.send(Ok(BatchAnswer::Done(vec![AddOutcome::Added; count]))).ok(),
            PendingAnswer::Command(answer) => {
                let outcome = CommandOutcome { found: None, changed: false, removed: None };
                answer.send(Ok(BatchAnswer::Done(vec![outcome; count]))).is_ok().then_some(())
            }
        };
    }

    pub(super) fn outcomes(self, outcomes: Vec<AddOutcome>) {
        let PendingAnswer::Add(answer) = self.answer else { panic!("a batch of commands") };
        answer.send(Ok(BatchAnswer::Done(outcomes))).unwrap();
    }

    pub(super) fn late(self) {
        match self.answer {
            PendingAnswer::Add(answer) => answer.send(Ok(BatchAnswer::Late)).unwrap(),
            PendingAnswer::Command(answer) => answer.send(Ok(BatchAnswer::Late)).unwrap(),
        }
    }

    pub(super) fn fails(self, error: StoreError) {
        match self.answer {
            PendingAnswer::Add(answer) => answer.send(Err(error)).unwrap(),
            PendingAnswer::Command(answer) => answer.send(Err(error)).unwrap(),
        }
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
    fn begin(self: &Arc<Self>) -> Query {
        self.started.fetch_add(1, Ordering::Relaxed);
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        Query(Arc::clone(self))
    }
}

/// A query in flight.
struct Query(Arc<Queries>);

impl Drop for Query {
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

impl ManualProducer {
    fn send<O: Send + 'static>(
        &self,
        number: u64,
        ids: Vec<String>,
        wrap: impl FnOnce(AnswerSender<O>) -> PendingAnswer,
    ) -> Pending<BatchAnswer<O>> {
        self.panics.reach(PanicAt::Send);
        let (answer, answered) = oneshot::channel();
        let (producer, identity) = (self.producer, self.identity.clone());
        self.sent
            .send(SentBatch { producer, identity, number, ids, answer: wrap(answer) })
            .expect("the test keeps its end");
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

impl Producer for ManualProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        let ids = batch.items.iter().map(|job| job.id.to_string()).collect();
        self.send(batch.number, ids, PendingAnswer::Add)
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        let ids = batch.items.iter().map(|item| item.id.to_string()).collect();
        self.send(batch.number, ids, PendingAnswer::Command)
    }
}

impl Store for ManualStore {
    fn url(&self) -> String {
        "manual:".into()
    }

    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    fn open<'a>(&'a self, _: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    fn link(&self, _: &TopicKey, _: &NodeId) -> Arc<dyn Link> {
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

    fn get<'a>(&'a self, _: &'a TopicKey, _: &'a [JobId]) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        let query = self.queries.begin();
        Box::pin(async move {
            let _query = query;
            std::future::pending().await
        })
    }

    fn page<'a>(&'a self, _: &'a TopicKey, _: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    fn topics<'a>(&'a self, _: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    /// Refuses the first query.
    fn counts<'a>(&'a self, _: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        self.panics.reach(PanicAt::Query);
        let first = self.producers.fetch_add(1, Ordering::Relaxed) == 0;
        let refused = || StoreError::Refused { operation: "counts", reason: "loading".into() };
        Box::pin(std::future::ready(if first { Err(refused()) } else { Ok(TopicCounts::default()) }))
    }
}
