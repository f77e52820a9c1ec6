//! The provider on a store that the test operates by hand, under the paused clock.

mod bounds;
mod bytes;
mod early;
mod elsewhere;
mod errors;
mod lifecycle;
mod manual_store;
mod order;
mod panics;
mod repeats;
mod within;

use std::sync::Arc;

use tokio::task::JoinHandle;

use self::manual_store::StoreOperator;
use super::{Added, CallError, Provider, TopicProvider};
use crate::config::NodeSettings;
use crate::environment::{Environment, Seeded};
use crate::job::AppName;

fn provider_with(settings: NodeSettings) -> (Provider, TopicProvider, StoreOperator) {
    let (store, operator) = StoreOperator::new();
    let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
    let provider = Provider::root(AppName::new("shop").unwrap(), store, environment, settings);
    let topic = provider.topic("remind").unwrap();
    (provider, topic, operator)
}

fn provider() -> (Provider, TopicProvider, StoreOperator) {
    provider_with(NodeSettings::default())
}

type Adding = JoinHandle<Result<Added, CallError>>;

/// Starts an add and lets it reach its inbox.
async fn start_add(topic: &TopicProvider, id: &str) -> Adding {
    let adding = tokio::spawn(topic.add_json("1").id(id));
    tokio::task::yield_now().await;
    adding
}

async fn start_adds(topic: &TopicProvider, ids: &[&str]) -> Vec<Adding> {
    let mut adding = Vec::new();
    for id in ids {
        adding.push(tokio::spawn(topic.add_json("1").id(id)));
    }
    tokio::task::yield_now().await;
    adding
}

async fn all_added(adding: Vec<Adding>) {
    for add in adding {
        add.await.unwrap().unwrap();
    }
}
