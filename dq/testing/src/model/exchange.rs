//! The requests and answers between the model and the store under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::step::Renew;
use dq::store::{
    self, AddOutcome, BatchAnswer, Command, CommandOutcome, Link, NewJob, Numbered, Pending, Producer, Store,
    StoreError,
};

/// A request to the store, a change of its clock, or (`Anew`) a new link and a new producer.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Clock(u64),
    Anew(NodeId, ProducerId),
    Add(ProducerId, Numbered<NewJob>),
    Command(ProducerId, Numbered<Command>),
    Step(NodeId, store::Request),
}

/// A request, and whether the model loses its answer.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) request: Request,
    pub(super) lost: bool,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Added(BatchAnswer<AddOutcome>),
    Commanded(BatchAnswer<CommandOutcome>),
    Step(store::Answer),
}

/// The links and producers of the store under test.
pub(super) struct Wires {
    store: Arc<dyn Store>,
    key: TopicKey,
    links: BTreeMap<NodeId, Arc<dyn Link>>,
    producers: BTreeMap<ProducerId, Arc<dyn Producer>>,
}

/// Awaits an answer, or drops it.
async fn answer<T>(pending: Pending<T>, lost: bool, into: impl FnOnce(T) -> Answer) -> Result<Answer, StoreError> {
    if lost { Ok(Answer::Nothing) } else { pending.await.map(into) }
}

impl Wires {
    pub(super) const fn new(store: Arc<dyn Store>, key: TopicKey) -> Self {
        Self { store, key, links: BTreeMap::new(), producers: BTreeMap::new() }
    }

    pub(super) fn link(&mut self, node: &NodeId) -> Arc<dyn Link> {
        let made = || self.store.link(&self.key, node);
        self.links.entry(node.clone()).or_insert_with(made).clone()
    }

    fn producer(&mut self, producer: &ProducerId) -> Arc<dyn Producer> {
        let made = || self.store.producer(&self.key, producer);
        self.producers.entry(producer.clone()).or_insert_with(made).clone()
    }

    /// Sends a request; a change of the clock sends nothing. Even a request whose answer is lost has been executed when this
    /// returns, because another one that changes nothing was answered after it.
    pub(super) async fn send(&mut self, exchange: &Exchange) -> Result<Answer, StoreError> {
        let lost = exchange.lost;
        let answered = match &exchange.request {
            Request::Clock(_) => return Ok(Answer::Nothing),
            Request::Anew(node, producer) => {
                self.links.remove(node);
                self.producers.remove(producer);
                return Ok(Answer::Nothing);
            }
            Request::Add(by, batch) => answer(self.producer(by).add(batch.clone()), lost, Answer::Added).await,
            Request::Command(by, batch) => {
                answer(self.producer(by).command(batch.clone()), lost, Answer::Commanded).await
            }
            Request::Step(by, request) => answer(self.link(by).ask(request.clone()), lost, Answer::Step).await,
        };
        if lost {
            self.pass(&exchange.request).await?;
        }
        answered
    }

    async fn step(&mut self, request: &Request, lost: bool) -> Result<Answer, StoreError> {
        match request {
            Request::Transfer(by, it) => answer(self.link(by).transfer(it.clone()), lost, Answer::Transferred).await,
            Request::Settle(by, it) => answer(self.link(by).settle(it.clone()), lost, Answer::Settled).await,
            Request::Renew(by, it) => answer(self.link(by).renew(*it), lost, Answer::LeaseStatus).await,
            Request::Isolate(by, it) => answer(self.link(by).isolate(it.clone()), lost, Answer::Noted).await,
            Request::Exhaust(by, it) => answer(self.link(by).exhaust(it.clone()), lost, Answer::Noted).await,
            Request::Reconcile(by, it) => answer(self.link(by).reconcile(it.clone()), lost, Answer::Reconciled).await,
            Request::Reclaim(by, it) => answer(self.link(by).reclaim(it.clone()), lost, Answer::Reclaimed).await,
            Request::Release(by, it) => answer(self.link(by).release(*it), lost, Answer::LeaseStatus).await,
            Request::Sweep(by, it) => answer(self.link(by).sweep(it.clone()), lost, Answer::Swept).await,
            Request::Publish(by, it) => answer(self.link(by).publish(*it), lost, Answer::Published).await,
            Request::Wake(by) => answer(self.link(by).wake(Wake), lost, |()| Answer::Nothing).await,
            Request::Clock(_) | Request::Anew(..) | Request::Add(..) | Request::Command(..) => Ok(Answer::Nothing),
        }
    }

    /// Waits until the store has executed the requests before: repeats the batch, or sends a renewal without a valid sequence
    /// number.
    async fn pass(&mut self, request: &Request) -> Result<(), StoreError> {
        match request {
            Request::Add(by, batch) => drop(self.producer(by).add(batch.clone()).await?),
            Request::Command(by, batch) => drop(self.producer(by).command(batch.clone()).await?),
            Request::Step(
                by,
                store::Request::Transfer(_) | store::Request::Settle(_) | store::Request::Reconcile(_),
            ) => {
                let nothing = Renew { last_seen: dq::job::Sequence(0), lease: std::time::Duration::ZERO };
                self.link(by).step(nothing).await?;
            }
            _ => {}
        }
        Ok(())
    }
}
