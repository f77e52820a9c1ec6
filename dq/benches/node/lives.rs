//! What a node does with the jobs of a benchmark: whole lives, and the drain of a backlog.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use dq::prelude::*;
use dq_bench::{Cost, Meter, Server};

use crate::job::{call, factory};
use crate::listener::Tally;

/// A figure of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// On Redis; otherwise on the memory store.
    pub(crate) on_redis: bool,
    /// Callers, and jobs a call; none where a backlog drains.
    pub(crate) callers: Option<(usize, usize)>,
}

#[allow(dead_code, reason = "some benchmarks have figures of their own")]
pub(crate) const LINES: [Line; 5] = [
    Line { name: "Redis, lives, 64 callers, a job each", on_redis: true, callers: Some((64, 1)) },
    Line { name: "Redis, lives, 16 callers, 100 jobs each", on_redis: true, callers: Some((16, 100)) },
    Line { name: "Redis, drain", on_redis: true, callers: None },
    Line { name: "memory, lives, 64 callers, a job each", on_redis: false, callers: Some((64, 1)) },
    Line { name: "memory, drain", on_redis: false, callers: None },
];

/// The number of the next memory store.
static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Line {
    /// Measures it on an empty store. `node` gives the factory its listener, which counts the runs.
    pub(crate) async fn cost<F>(self, server: &Server, jobs: usize, node: F) -> Cost
    where
        F: FnOnce(ContextFactory, Tally) -> ContextFactory,
    {
        let (url, server) = if self.on_redis {
            server.empty().await;
            (server.url(), Some(server))
        } else {
            (format!("memory:{}", NEXT.fetch_add(1, Relaxed)), None)
        };
        match self.callers {
            Some(callers) => lives(&url, server, jobs, callers, node).await,
            None => drain(&url, server, jobs, node).await,
        }
    }
}

async fn lives<F>(url: &str, server: Option<&Server>, jobs: usize, callers: (usize, usize), node: F) -> Cost
where
    F: FnOnce(ContextFactory, Tally) -> ContextFactory,
{
    let tally = Tally::of(jobs);
    let dq = node(factory(url), tally.clone()).start().await.unwrap();
    dq.ready().await;
    let meter = Meter::on(server).await;
    let provider = dq.provider().clone();
    tokio::spawn(async move { call(&provider, jobs, callers, Duration::ZERO).await });
    tally.all().await;
    let cost = meter.end_on(server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

/// The context that adds the backlog stays, because a memory store ends with its last one.
pub(crate) async fn drain<F>(url: &str, server: Option<&Server>, jobs: usize, node: F) -> Cost
where
    F: FnOnce(ContextFactory, Tally) -> ContextFactory,
{
    let adding = factory(url).without_listeners().start().await.unwrap();
    call(adding.provider(), jobs, (1, 1_000), Duration::ZERO).await;
    let tally = Tally::of(jobs);
    let node = node(factory(url), tally.clone());
    let meter = Meter::on(server).await;
    let dq = node.start().await.unwrap();
    tally.all().await;
    let cost = meter.end_on(server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    cost
}
