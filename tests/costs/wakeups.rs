//! How often dq's own thread wakes up for a job that falls due alone.

use std::fs;
use std::time::Duration;

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::{ALONE, assert_at_most, bounds};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "orders")]
struct Order(u64);

#[delay_listener(register = false)]
async fn run(_job: Job<Order>, ran: &UnboundedSender<()>) -> Result<(), JobError> {
    Ok(ran.send(())?)
}

/// How often the threads named `dq` of this process went to sleep.
fn sleeps() -> u64 {
    let of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        if !status.starts_with("Name:\tdq\n") {
            return 0;
        }
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    fs::read_dir("/proc/self/task").unwrap().map(|task| of(task.unwrap())).sum()
}

/// The jobs are added together and fall due one after the other, so that only their runs wake the thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_job_wakes_the_node_a_few_times() {
    const JOBS: u64 = 100;
    let _alone = ALONE.lock().await;
    let (ran, mut received) = unbounded_channel::<()>();
    let factory = ContextFactory::new("costs").store("memory:").without_inventory().variables([("", ""); 0]);
    let dq = factory.listener::<run>().provide(ran).start().await.unwrap();
    dq.ready().await;
    for n in 0..JOBS {
        dq.provider().add(Order(n)).after(Duration::from_millis(500 + 10 * n)).await.unwrap();
    }
    let before = sleeps();
    for _ in 0..JOBS {
        received.recv().await.unwrap();
    }
    let found = (sleeps() - before) as f64 / JOBS as f64;
    assert_at_most("wake-ups of a due job", found, bounds::WAKEUPS_ALONE);
    dq.shutdown(Duration::from_secs(1)).await;
}
