//! What an embedded engine must do to keep a queue of jobs, and the thread that batches for it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dq_bench::now_ms;
use tokio::sync::{mpsc, oneshot};

/// A claim takes at most this many jobs; so does dq's.
const MAX_CLAIMED: usize = 250;
/// A transaction does at most this much work, one call after the other.
const MAX_WORK: usize = 4_096;

/// How long the thread waits for work while jobs wait that are not due.
const PAUSE: Duration = Duration::from_micros(100);

/// What a caller wants done durably.
#[derive(Debug)]
pub(crate) enum Work {
    /// New jobs: the id of each, and when it is due.
    Add(Vec<(String, u64)>),
    /// These jobs have run, under this fence.
    Ack(Vec<String>, u64),
}

impl Work {
    const fn added(&self) -> usize {
        match self {
            Self::Add(jobs) => jobs.len(),
            Self::Ack(..) => 0,
        }
    }
}

/// Jobs that a transaction has claimed, and under which fence.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    pub(crate) ids: Vec<String>,
    pub(crate) fence: u64,
}

/// An embedded engine that keeps jobs by id and by due time.
pub(crate) trait Engine: Sized + 'static {
    /// Its name in the table.
    const NAME: &'static str;

    /// Opens a new store in this empty folder.
    fn open(folder: &Path) -> Self;

    /// Does all of this in one transaction, which is durable when this returns. Then claims up to `most` jobs that are due at
    /// `now` in the same transaction, in the order of their due times; their payloads are read.
    fn transact(&mut self, work: &[Work], now: u64, most: usize, fence: u64) -> Claimed;
}

type Order = (Work, oneshot::Sender<()>);

/// A queue on an engine. Callers who come during a commit share the next one.
#[derive(Clone)]
pub(crate) struct Queue {
    orders: mpsc::UnboundedSender<Order>,
}

static IDS: AtomicU64 = AtomicU64::new(0);

/// An id of 14 characters, larger than all before it, which is the best case of a tree.
pub(crate) fn next_id() -> String {
    format!("{:014x}", IDS.fetch_add(1, Relaxed))
}

impl Queue {
    /// Starts the thread that owns the engine. What it claims goes to `worker`, if there is one, and while that has two claims to
    /// do no more are made.
    pub(crate) fn start<E: Engine>(folder: &Path, worker: Option<mpsc::Sender<Claimed>>) -> (Self, JoinHandle<()>) {
        let (sender, orders) = mpsc::unbounded_channel();
        let folder = folder.to_owned();
        let thread = thread::spawn(move || run(&mut E::open(&folder), orders, worker.as_ref()));
        (Self { orders: sender }, thread)
    }

    /// Waits until this is durable.
    pub(crate) async fn order(&self, work: Work) {
        let (done, wait) = oneshot::channel();
        self.orders.send((work, done)).unwrap();
        wait.await.unwrap();
    }
}

fn run<E: Engine>(engine: &mut E, mut orders: mpsc::UnboundedReceiver<Order>, worker: Option<&mpsc::Sender<Claimed>>) {
    let (mut work, mut callers, mut fence) = (Vec::new(), Vec::new(), 0);
    let (mut may_be_due, mut waiting) = (false, 0);
    loop {
        let permit = worker.and_then(|worker| worker.try_reserve().ok());
        if permit.is_some() && waiting > 0 {
            // With jobs left to claim there is work, whether anybody calls or not. The last may be due in a millisecond.
            if !may_be_due && orders.is_empty() {
                thread::sleep(PAUSE);
            }
        } else {
            let Some((first, caller)) = orders.blocking_recv() else { return };
            work.push(first);
            callers.push(caller);
        }
        while work.len() < MAX_WORK {
            let Ok((next, caller)) = orders.try_recv() else { break };
            work.push(next);
            callers.push(caller);
        }
        waiting += work.iter().map(Work::added).sum::<usize>();
        fence += 1;
        let most = if permit.is_some() { MAX_CLAIMED } else { 0 };
        let claimed = engine.transact(&work, now_ms(), most, fence);
        waiting -= claimed.ids.len();
        may_be_due = match permit {
            Some(permit) if !claimed.ids.is_empty() => {
                let is_full = claimed.ids.len() == MAX_CLAIMED;
                permit.send(claimed);
                is_full
            }
            Some(_) => false,
            None => true,
        };
        work.clear();
        // Nobody waits any more for the acks of a line that has ended.
        for caller in callers.drain(..) {
            let _ = caller.send(());
        }
    }
}
