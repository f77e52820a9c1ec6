//! Every read of `dq::inspect` at 1,000,000 waiting jobs, on memory and on Redis: how many commands of the store it takes, and how many
//! bytes they answer. And the pages of 5,000 topics.
//!
//! The figures are printed: `cargo test -p dq-tests --test scale -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod counting;
mod fill;
mod meter;
mod reads;
mod topics;

use std::sync::Arc;
use std::time::Instant;

use dq::config::NodeSettings;
use dq::environment::{Environment, WallClock};
use dq::job::AppName;
use dq::provider::Provider;
use dq::store::Store;
use dq::store::memory::MemoryStore;
use dq::store::redis::RedisStore;
use dq_tests::redis::RedisServer;

use counting::CountingStore;
use meter::{Meter, Source};

fn provider(store: Arc<dyn Store>) -> Provider {
    let environment = Environment::of_this_runtime().unwrap();
    Provider::root(AppName::new("shop").unwrap(), store, environment, NodeSettings::default())
}

async fn every_read_is_bounded(store: Arc<dyn Store>, meter: Meter) {
    let began = Instant::now();
    fill::fill(&*store).await;
    println!("filled in {:?}", began.elapsed());
    let provider = provider(store);
    fill::schedules(&provider).await;
    reads::check(&provider, &meter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_of_a_million_jobs_in_memory_is_bounded() {
    let counting = Arc::new(CountingStore::over(Arc::new(MemoryStore::new(Arc::new(WallClock)))));
    every_read_is_bounded(counting.clone(), Source::Requests(counting).into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_of_a_million_jobs_on_redis_is_bounded() {
    let server = RedisServer::start();
    let store = Arc::new(RedisStore::new(&server.url()).unwrap());
    every_read_is_bounded(store, Source::Server(server).into()).await;
}
