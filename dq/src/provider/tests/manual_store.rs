//! A store whose answers are given by hand: every batch comes to the test, which answers it, refuses it, or lets it lie.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use crate::store::{
    AddOutcome, BatchAnswer, Command, CommandOutcome, Interest, Link, NewJob, Numbered, Page, PageRequest, Pending,
    Producer, Signals, Store, StoreError, Stored, TopicCounts,
};

type Answers<O> = oneshot::Sender<Result<BatchAnswer<O>, StoreError>>;

enum AnswerReceiver {
    Add(Answers<AddOutcome>),
    Command(Answers<CommandOutcome>),
}

/// A batch that was sent.
pub(super) struct Sent {
    /// Which handle it came through, counted from 1.
    pub(super) producer: usize,
    pub(super) number: u64,
    pub(super) ids: Vec<String>,
    answer: AnswerReceiver,
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {} through way {}: {}", self.number, self.producer, self.text())
    }
}

impl Sent {
    /// As `add a b`.
    pub(super) fn text(&self) -> String {
        let verb = match self.answer {
            AnswerReceiver::Add(_) => "add",
            AnswerReceiver::Command(_) => "command",
        };
        format!("{verb} {}", self.ids.join(" "))
    }

    pub(super) fn done(self) {
        let count = self.ids.len();
        match self.answer {
            AnswerReceiver::Add(answer) => answer.send(Ok(BatchAnswer::Done(vec![AddOutcome::Added; count]))).ok(),
            AnswerReceiver::Command(answer) => {
                let outcome = CommandOutcome { found: None, changed: false, removed: None };
                answer.send(Ok(BatchAnswer::Done(vec![outcome; count]))).is_ok().then_some(())
            }
        };
    }

    pub(super) fn outcomes(self, outcomes: Vec<AddOutcome>) {
        let AnswerReceiver::Add(answer) = self.answer else { panic!("a withdrawal") };
        answer.send(Ok(BatchAnswer::Done(outcomes))).unwrap();
    }

    pub(super) fn late(self) {
        match self.answer {
            AnswerReceiver::Add(answer) => answer.send(Ok(BatchAnswer::Late)).unwrap(),
            AnswerReceiver::Command(answer) => answer.send(Ok(BatchAnswer::Late)).unwrap(),
        }
    }

    pub(super) fn fails(self, error: StoreError) {
        match self.answer {
            AnswerReceiver::Add(answer) => answer.send(Err(error)).unwrap(),
            AnswerReceiver::Command(answer) => answer.send(Err(error)).unwrap(),
        }
    }

    pub(super) fn refused(self) {
        self.fails(StoreError::Refused { operation: "add", reason: "loading".into() });
    }

    pub(super) fn unavailable(self) {
        self.fails(StoreError::Unavailable { operation: "add", reason: "reset".into() });
    }
}

/// The test's side.
pub(super) struct Desk(mpsc::UnboundedReceiver<Sent>);

impl Desk {
    pub(super) fn new() -> (Arc<ByHand>, Self) {
        let (sent, desk) = mpsc::unbounded_channel();
        (Arc::new(ByHand { sent, producers: AtomicUsize::new(0) }), Self(desk))
    }

    /// The next batch.
    pub(super) async fn next(&mut self) -> Sent {
        self.0.recv().await.expect("the provider lives")
    }

    /// The next batch, which must be this.
    pub(super) async fn expect(&mut self, number: u64, text: &str) -> Sent {
        let sent = self.next().await;
        assert_eq!((sent.number, sent.text().as_str()), (number, text));
        sent
    }

    /// Lets everything run that can without time passing, and nothing is sent.
    pub(super) async fn is_quiet(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if let Ok(sent) = self.0.try_recv() {
            panic!("{sent:?}");
        }
    }

    /// Resolves when nobody can send any more: the store and all producers to it were dropped.
    pub(super) async fn is_left(&mut self) {
        if let Some(sent) = self.0.recv().await {
            panic!("{sent:?}");
        }
    }
}

#[derive(Debug)]
pub(super) struct ByHand {
    sent: mpsc::UnboundedSender<Sent>,
    producers: AtomicUsize,
}

#[derive(Debug)]
struct FakeProducer {
    sent: mpsc::UnboundedSender<Sent>,
    producer: usize,
}

impl FakeProducer {
    fn send<O: Send + 'static>(
        &self,
        number: u64,
        ids: Vec<String>,
        wrap: impl FnOnce(Answers<O>) -> AnswerReceiver,
    ) -> Pending<BatchAnswer<O>> {
        let (answer, answered) = oneshot::channel();
        self.sent.send(Sent { producer: self.producer, number, ids, answer: wrap(answer) }).expect("the desk is there");
        Box::pin(async move {
            match answered.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            }
        })
    }
}

impl Producer for FakeProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        let ids = batch.items.iter().map(|job| job.id.to_string()).collect();
        self.send(batch.number, ids, AnswerReceiver::Add)
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        let ids = batch.items.iter().map(|item| item.id.to_string()).collect();
        self.send(batch.number, ids, AnswerReceiver::Command)
    }
}

impl Store for ByHand {
    fn url(&self) -> String {
        "by-hand:".into()
    }

    fn open<'a>(&'a self, _: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    fn link(&self, _: &TopicKey, _: &NodeId) -> Arc<dyn Link> {
        unreachable!("a provider does not ask for this")
    }

    fn producer(&self, _: &TopicKey, _: &ProducerId) -> Arc<dyn Producer> {
        let producer = self.producers.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(FakeProducer { sent: self.sent.clone(), producer })
    }

    fn signals<'a>(&'a self, _: &'a TopicKey, _: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    fn get<'a>(&'a self, _: &'a TopicKey, _: &'a [JobId]) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        Box::pin(std::future::pending())
    }

    fn page<'a>(&'a self, _: &'a TopicKey, _: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    fn topics<'a>(&'a self, _: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        unreachable!("a provider does not ask for this")
    }

    /// Refuses the first time.
    fn counts<'a>(&'a self, _: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        let first = self.producers.fetch_add(1, Ordering::Relaxed) == 0;
        let refused = || StoreError::Refused { operation: "counts", reason: "loading".into() };
        Box::pin(std::future::ready(if first { Err(refused()) } else { Ok(TopicCounts::default()) }))
    }
}
