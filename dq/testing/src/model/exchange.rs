//! A request as it is sent, and its answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::step::{
    Age, Aged, Begin, Cast, Casted, Exhaust, Hold, Noted, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Settle,
    Settled, Standing, Transfer, Transferred, Turned, Wake,
};
use dq::store::{
    AddOutcome, BatchAnswer, Link, NewJob, Numbered, Pending, Producer, Store, StoreError, WithdrawOutcome, Withdrawal,
};

/// What is sent.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Clock(u64),
    Anew(NodeId, ProducerId),
    Add(ProducerId, Numbered<NewJob>),
    Withdraw(ProducerId, Numbered<Withdrawal>),
    Transfer(NodeId, Transfer),
    Settle(NodeId, Settle),
    Hold(NodeId, Hold),
    Begin(NodeId, Begin),
    Exhaust(NodeId, Exhaust),
    Reconcile(NodeId, Reconcile),
    Reclaim(NodeId, Reclaim),
    Release(NodeId, Release),
    Age(NodeId, Age),
    Cast(NodeId, Cast),
    Wake(NodeId),
}

/// A request, and whether its answer is lost.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) request: Request,
    pub(super) lost: bool,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Added(BatchAnswer<AddOutcome>),
    Withdrawn(BatchAnswer<WithdrawOutcome>),
    Transferred(Turned<Transferred>),
    Settled(Settled),
    Standing(Standing),
    Noted(Noted),
    Reconciled(Turned<Reconciled>),
    Reclaimed(Reclaimed),
    Aged(Turned<Aged>),
    Casted(Casted),
}

/// The store under test, seen as its nodes and callers see it.
pub(super) struct Wires {
    store: Arc<dyn Store>,
    key: TopicKey,
    links: BTreeMap<NodeId, Arc<dyn Link>>,
    producers: BTreeMap<ProducerId, Arc<dyn Producer>>,
}

/// Waits for an answer, or drops it.
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

    /// Sends a request that is no move of the clock. One whose answer is lost has been executed when this returns: another
    /// that changes nothing was answered behind it.
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
            Request::Withdraw(by, batch) => {
                answer(self.producer(by).withdraw(batch.clone()), lost, Answer::Withdrawn).await
            }
            request => self.step(request, lost).await,
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
            Request::Hold(by, it) => answer(self.link(by).hold(*it), lost, Answer::Standing).await,
            Request::Begin(by, it) => answer(self.link(by).begin(it.clone()), lost, Answer::Noted).await,
            Request::Exhaust(by, it) => answer(self.link(by).exhaust(it.clone()), lost, Answer::Noted).await,
            Request::Reconcile(by, it) => answer(self.link(by).reconcile(it.clone()), lost, Answer::Reconciled).await,
            Request::Reclaim(by, it) => answer(self.link(by).reclaim(it.clone()), lost, Answer::Reclaimed).await,
            Request::Release(by, it) => answer(self.link(by).release(*it), lost, Answer::Standing).await,
            Request::Age(by, it) => answer(self.link(by).age(it.clone()), lost, Answer::Aged).await,
            Request::Cast(by, it) => answer(self.link(by).cast(*it), lost, Answer::Casted).await,
            Request::Wake(by) => answer(self.link(by).wake(Wake), lost, |()| Answer::Nothing).await,
            Request::Clock(_) | Request::Anew(..) | Request::Add(..) | Request::Withdraw(..) => Ok(Answer::Nothing),
        }
    }

    /// Waits until what was sent before on the same way has been executed: a repeat of a batch, a heartbeat under no turn.
    async fn pass(&mut self, request: &Request) -> Result<(), StoreError> {
        match request {
            Request::Add(by, batch) => drop(self.producer(by).add(batch.clone()).await?),
            Request::Withdraw(by, batch) => drop(self.producer(by).withdraw(batch.clone()).await?),
            Request::Transfer(by, _) | Request::Settle(by, _) | Request::Reconcile(by, _) => {
                let nothing = Hold { heard: dq::job::Turn(0), lease: std::time::Duration::ZERO };
                self.link(by).hold(nothing).await?;
            }
            _ => {}
        }
        Ok(())
    }
}
