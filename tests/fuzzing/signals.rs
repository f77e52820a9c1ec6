//! Signals: a node gets any, in any order, and neither stops a handler nor misses a job.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::environment::TokioClock;
use dq::job::{JobId, NodeId, ProducerId, TopicKey};
use dq::store::memory::MemoryStore;
use dq::store::{
    BroadcastMessage, CommandKind, Feed, Interest, Link, LinkOptions, Producer, Query, QueryReply, Signal, Signals,
    Store, StoreError,
};
use dq::time::Timestamp;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::node::{Node, paused};
use crate::target::Found;

/// How many signals a node gets.
const SIGNALS: u64 = 60;

/// A memory store whose signals are generated ones only.
#[derive(Debug)]
struct Signalling {
    inner: MemoryStore,
    feeds: Mutex<Vec<Feed>>,
}

impl Store for Signalling {
    fn url(&self) -> String {
        self.inner.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        self.inner.ask(query)
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.inner.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.inner.producer(topic, producer)
    }

    fn signals<'a>(&'a self, _: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        let (feed, signals) = Signals::channel(&interest);
        self.feeds.lock().expect("nobody panics").push(feed);
        std::future::ready(Ok(signals)).boxed()
    }
}

fn id(draw: &Draw) -> JobId {
    let ids = ["long", "innocent-0", "innocent-1", "dq:schedule:x"];
    JobId::new(if draw.one_in(4) { grammar::id(draw) } else { draw.pick(&ids).to_owned() })
        .unwrap_or_else(|_| JobId::new("long").expect("it is an id"))
}

fn signal(draw: &Draw) -> Signal {
    let at = || Timestamp::from_millis(if draw.one_in(2) { draw.number() } else { NOW + draw.below(90_000) });
    match draw.below(12) {
        0 | 1 => Signal::Due(draw.one_in(2).then(at)),
        2 => Signal::Lease(NodeId::new(draw.text()), Duration::from_millis(draw.number())),
        3 => Signal::BroadcastDue,
        4 => Signal::Paused,
        5 => Signal::StateChanged,
        6 => {
            let record = grammar::record(draw).into();
            Signal::Broadcast(BroadcastMessage { number: draw.number(), id: id(draw), record })
        }
        _ => {
            let verbs = [CommandKind::Delete, CommandKind::Cancel, CommandKind::Ack, CommandKind::Requeue];
            Signal::Command(verbs[draw.below(4) as usize], id(draw))
        }
    }
}

/// A job runs for a minute, under signals that no command stands behind.
pub fn signals(draw: &Draw, found: &mut Found) {
    paused(async {
        let clock = Arc::new(TokioClock::at(NOW * 1_000));
        let store = Arc::new(Signalling { inner: MemoryStore::new(clock), feeds: Mutex::default() });
        let node = Node::start(store.clone()).await;
        let topic = node.dq.provider().topic("t").expect("it is a topic");
        topic.add_json(json!(0)).id("long").after("0s").await.expect("a memory store takes it");
        for _ in 0..SIGNALS {
            for feed in store.feeds.lock().expect("nobody panics").iter() {
                feed.send(signal(draw));
            }
            found.input(true);
            node.dq.advance(Duration::from_millis(if draw.one_in(2) { 0 } else { draw.below(1_500) })).await;
        }
        node.runs_innocent_jobs(found).await;
        if node.runs.of("long") != (1, true) {
            found.let_in(format!("a signal stopped a handler: {:?}", node.runs.of("long")));
        }
    });
}
