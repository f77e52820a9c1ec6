//! The naive heap that the memory store is compared with: tasks push jobs into a heap behind a mutex, and a worker starts a task
//! for each that is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex};

use dq_bench::{Cost, Meter, now_ms};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

use crate::job::{Nothing, nothing};
use crate::listener::Tally;

#[derive(Default)]
struct Jobs {
    due: BinaryHeap<Reverse<(u64, u64)>>,
    payloads: HashMap<u64, Vec<u8>>,
    added: Vec<oneshot::Sender<()>>,
    next: u64,
}

#[derive(Clone, Default)]
struct Heap(Arc<(Mutex<Jobs>, Notify)>);

impl Heap {
    fn push(&self, answer: Option<oneshot::Sender<()>>) {
        let payload = serde_json::to_vec(&nothing()).unwrap();
        let mut jobs = self.0.0.lock().unwrap();
        let id = jobs.next;
        jobs.next += 1;
        jobs.due.push(Reverse((now_ms(), id)));
        jobs.payloads.insert(id, payload);
        jobs.added.extend(answer);
    }

    /// Adds a job and waits until the worker has seen it.
    async fn add(&self) {
        let (answer, added) = oneshot::channel();
        self.push(Some(answer));
        self.0.1.notify_one();
        added.await.unwrap();
    }

    /// Starts a task for each job that is due, until it is dropped.
    async fn work(self, tally: Tally) {
        loop {
            let (mut due, answers) = (Vec::new(), {
                let mut jobs = self.0.0.lock().unwrap();
                std::mem::take(&mut jobs.added)
            });
            for answer in answers {
                let _ = answer.send(());
            }
            {
                let (mut jobs, now) = (self.0.0.lock().unwrap(), now_ms());
                while due.len() < 100
                    && let Some(Reverse((at, id))) = jobs.due.peek().copied()
                    && at <= now
                {
                    jobs.due.pop();
                    due.push(jobs.payloads.remove(&id).expect("each job has a payload"));
                }
            }
            if due.is_empty() {
                self.0.1.notified().await;
            }
            for payload in due {
                let tally = tally.clone();
                tokio::spawn(async move {
                    std::hint::black_box(serde_json::from_slice::<Nothing>(&payload).unwrap());
                    tally.count();
                });
            }
        }
    }
}

/// Whole lives: each of `callers` adds a job and waits for the answer.
pub(crate) async fn lives(jobs: usize, callers: usize) -> Cost {
    let (heap, tally) = (Heap::default(), Tally::of(jobs));
    let worker = tokio::spawn(heap.clone().work(tally.clone()));
    let meter = Meter::start();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let heap = heap.clone();
        tasks.spawn(async move {
            for _ in 0..jobs / callers {
                heap.add().await;
            }
        });
    }
    tally.all().await;
    let cost = meter.end(jobs);
    worker.abort();
    cost
}

/// All jobs are there before it starts.
pub(crate) async fn drain(jobs: usize) -> Cost {
    let (heap, tally) = (Heap::default(), Tally::of(jobs));
    (0..jobs).for_each(|_| heap.push(None));
    let meter = Meter::start();
    let worker = tokio::spawn(heap.work(tally.clone()));
    tally.all().await;
    let cost = meter.end(jobs);
    worker.abort();
    cost
}
