//! How fast the bare client is: whole lives, drains and adds, each at the batch and depth that suit it best.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Scripts, id};
use crate::{Cost, Meter, Server};

/// How the bare client works.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Jobs a script.
    pub batch: usize,
    /// Scripts of one kind in flight.
    pub depth: usize,
}

/// Tries the shapes on a fraction of the jobs, and returns the fastest.
pub async fn best(shapes: &[(usize, usize)], run: impl AsyncFn(Shape) -> Cost) -> Shape {
    let mut fastest = (0.0, Shape { batch: 1, depth: 1 });
    for &(batch, depth) in shapes {
        let shape = Shape { batch, depth };
        let rate = run(shape).await.rate;
        if rate > fastest.0 {
            fastest = (rate, shape);
        }
    }
    fastest.1
}

const QUEUE: &str = "bare";

/// The numbers of the next batch, until all jobs are in one.
fn batch_of(next: &AtomicUsize, jobs: usize, batch: usize) -> Option<Range<usize>> {
    let from = next.fetch_add(batch, Relaxed);
    (from < jobs).then(|| from..jobs.min(from + batch))
}

/// Each of `depth` tasks adds a batch, waits for its answer, and so on; two tasks claim what was added, and ack it with their next
/// claim.
pub async fn lives(server: &Server, jobs: usize, shape: Shape) -> Cost {
    server.empty().await;
    let Shape { batch, depth } = shape;
    let (adding, mut claiming) = (server.connect().await, server.connect().await);
    let scripts = Scripts::load(&mut claiming, QUEUE).await;
    let meter = Meter::on(server).await;
    let batches = jobs.div_ceil(batch);
    let (next, added, taken) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..depth {
        let (next, added, scripts, mut adding) = (next.clone(), added.clone(), scripts.clone(), adding.clone());
        tasks.spawn(async move {
            while let Some(part) = batch_of(&next, jobs, batch) {
                scripts.add(&mut adding, part.map(|n| (id(n), 1_000))).await;
                added.add_permits(1);
            }
            0
        });
    }
    for _ in 0..depth.min(2) {
        let (taken, added, scripts) = (taken.clone(), added.clone(), scripts.clone());
        let (mut claiming, mut acking) = (claiming.clone(), claiming.clone());
        tasks.spawn(async move {
            let (mut held, mut claimed) = (Vec::new(), 0);
            while taken.fetch_add(1, Relaxed) < batches {
                added.acquire().await.unwrap().forget();
                ((), held) = tokio::join!(scripts.ack(&mut acking, &held), scripts.claim(&mut claiming, batch));
                claimed += held.len();
            }
            scripts.ack(&mut acking, &held).await;
            claimed
        });
    }
    assert_eq!(tasks.join_all().await.iter().sum::<usize>(), jobs, "each job is claimed once");
    meter.end_on(server, jobs).await
}

/// Adds jobs to `name` that are due at `due` (ms), 1,000 a script.
pub async fn fill(server: &Server, name: &str, jobs: usize, due: u64) {
    let mut connection = server.connect().await;
    let scripts = Scripts::load(&mut connection, name).await;
    for from in (0..jobs).step_by(1_000) {
        scripts.add(&mut connection, (from..jobs.min(from + 1_000)).map(|n| (id(n), due))).await;
    }
}

/// The `jobs` of `name` that are due are there before it starts; `depth` tasks claim, and ack with their next claim.
pub async fn drain(server: &Server, name: &str, jobs: usize, shape: Shape) -> Cost {
    let mut connection = server.connect().await;
    let scripts = Scripts::load(&mut connection, name).await;
    let meter = Meter::on(server).await;
    let mut tasks = JoinSet::new();
    for _ in 0..shape.depth {
        let (scripts, mut claiming, mut acking) = (scripts.clone(), connection.clone(), connection.clone());
        tasks.spawn(async move {
            let (mut held, mut claimed) = (scripts.claim(&mut claiming, shape.batch).await, 0);
            while !held.is_empty() {
                claimed += held.len();
                ((), held) = tokio::join!(scripts.ack(&mut acking, &held), scripts.claim(&mut claiming, shape.batch));
            }
            claimed
        });
    }
    assert_eq!(tasks.join_all().await.iter().sum::<usize>(), jobs, "each job is claimed once");
    meter.end_on(server, jobs).await
}

/// `callers` tasks add one job after the other, each by a script of its own, over `connections`.
pub async fn add_each(server: &Server, jobs: usize, callers: usize, connections: usize) -> Cost {
    server.empty().await;
    let mut lines = Vec::new();
    for _ in 0..connections {
        lines.push(server.connect().await);
    }
    let scripts = Scripts::load(&mut lines[0], QUEUE).await;
    let meter = Meter::on(server).await;
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (scripts, mut line) = (scripts.clone(), lines[caller % connections].clone());
        tasks.spawn(async move {
            for n in (caller..jobs).step_by(callers) {
                scripts.add(&mut line, std::iter::once((id(n), 1_000))).await;
            }
        });
    }
    tasks.join_all().await;
    meter.end_on(server, jobs).await
}

/// `depth` tasks add batch after batch.
pub async fn add_bulk(server: &Server, jobs: usize, shape: Shape) -> Cost {
    server.empty().await;
    let mut connection = server.connect().await;
    let scripts = Scripts::load(&mut connection, QUEUE).await;
    let meter = Meter::on(server).await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..shape.depth {
        let (next, scripts, mut line) = (next.clone(), scripts.clone(), connection.clone());
        tasks.spawn(async move {
            while let Some(part) = batch_of(&next, jobs, shape.batch) {
                scripts.add(&mut line, part.map(|n| (id(n), 1_000))).await;
            }
        });
    }
    tasks.join_all().await;
    meter.end_on(server, jobs).await
}
