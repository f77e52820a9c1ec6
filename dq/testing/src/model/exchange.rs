//! A request as the model sends it, and its answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::operation::AGEING;
use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::step::Isolate;
use dq::store::{self, Batch, BatchReply, Interest, Link, LinkOptions, Pending, Producer, Signals, Store, StoreError};

/// What the model sends.
#[derive(Debug, Clone)]
pub(super) enum ModelRequest {
    Clock(u64),
    Reconnect(NodeId, ProducerId),
    /// A batch of this producer, under this number.
    Batch(ProducerId, u64, Batch),
    Step(NodeId, store::Request),
}

/// A request, and whether its answer is lost.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) request: ModelRequest,
    pub(super) lost: bool,
}

/// What the store answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ModelAnswer {
    Nothing,
    Batch(BatchReply),
    /// The topic drains, so the add was refused.
    Draining,
    Step(store::Answer),
}

/// A store, seen as its nodes and callers see it.
pub(super) struct Connections {
    pub(super) store: Arc<dyn Store>,
    pub(super) key: TopicKey,
    links: BTreeMap<NodeId, Arc<dyn Link>>,
    /// Every node listens, so that no signal takes a role away.
    signals: BTreeMap<NodeId, Signals>,
    producers: BTreeMap<ProducerId, Arc<dyn Producer>>,
}

/// Waits for an answer, or drops it.
async fn answer<T>(
    pending: Pending<T>,
    lost: bool,
    into: impl FnOnce(T) -> ModelAnswer,
) -> Result<ModelAnswer, StoreError> {
    if lost { Ok(ModelAnswer::Nothing) } else { pending.await.map(into) }
}

impl Connections {
    pub(super) const fn new(store: Arc<dyn Store>, key: TopicKey) -> Self {
        Self { store, key, links: BTreeMap::new(), signals: BTreeMap::new(), producers: BTreeMap::new() }
    }

    pub(super) fn link(&mut self, node: &NodeId) -> Arc<dyn Link> {
        let made = || self.store.link_with(&self.key, node, LinkOptions { ageing: AGEING, ..LinkOptions::default() });
        self.links.entry(node.clone()).or_insert_with(made).clone()
    }

    fn producer(&mut self, producer: &ProducerId) -> Arc<dyn Producer> {
        let made = || self.store.producer(&self.key, producer);
        self.producers.entry(producer.clone()).or_insert_with(made).clone()
    }

    /// Sends a request that does not move the clock. If its answer is lost, a second request that changes nothing follows, and
    /// its answer shows that the first one was executed.
    pub(super) async fn send(&mut self, exchange: &Exchange) -> Result<ModelAnswer, StoreError> {
        let lost = exchange.lost;
        let answered = match &exchange.request {
            ModelRequest::Clock(_) => return Ok(ModelAnswer::Nothing),
            ModelRequest::Reconnect(node, producer) => {
                self.links.remove(node);
                self.producers.remove(producer);
                return Ok(ModelAnswer::Nothing);
            }
            ModelRequest::Batch(by, _, batch) => self.ask_batch(by, batch, lost).await,
            ModelRequest::Step(by, request) => {
                if !self.signals.contains_key(by) {
                    let interest = Interest { node: Some(by.clone()), broadcasts: false, moves: false };
                    self.signals.insert(by.clone(), self.store.signals(&self.key, interest).await?);
                }
                answer(self.link(by).ask(request.clone()), lost, ModelAnswer::Step).await
            }
        };
        if lost {
            self.pass(&exchange.request).await?;
        }
        answered
    }

    async fn ask_batch(&mut self, by: &ProducerId, batch: &Batch, lost: bool) -> Result<ModelAnswer, StoreError> {
        match answer(self.producer(by).ask(batch.clone()), lost, ModelAnswer::Batch).await {
            Err(StoreError::Draining { .. }) if matches!(batch, Batch::Add { .. }) => Ok(ModelAnswer::Draining),
            other => other,
        }
    }

    /// Waits until everything that was sent before over the same connection was executed: sends a repeated batch, or an
    /// `isolate` of no job that names no sequence number.
    async fn pass(&mut self, request: &ModelRequest) -> Result<(), StoreError> {
        match request {
            ModelRequest::Batch(by, _, batch) => drop(self.ask_batch(by, batch, false).await?),
            ModelRequest::Step(
                by,
                store::Request::Transfer(_) | store::Request::Settle(_) | store::Request::Reconcile(_),
            ) => {
                // Not a renewal, which may have a connection of its own.
                let (last_seen, lease) = (dq::job::Sequence(0), std::time::Duration::ZERO);
                let nothing = Isolate { last_seen, lease, isolation: None, runs: Vec::new() };
                self.link(by).step(nothing).await?;
            }
            _ => {}
        }
        Ok(())
    }
}
