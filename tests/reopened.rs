//! A store that is made again from the changes of its steps: what a node of the next process finds.

use std::sync::Arc;
use std::time::Duration;

use dq::environment::TokioClock;
use dq::job::{AppName, JobId, State, TopicKey, TopicName};
use dq::prelude::*;
use dq::store::memory::MemoryStore;
use dq::testing::Harness;
use dq_tests::journaled::Changes;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work {
    #[job(id)]
    number: u64,
}

#[delay_listener(register = false, timeout = "0s", max_crashes = 1)]
async fn never_ends(job: Job<Work>) -> Result<(), JobError> {
    std::hint::black_box(job.number);
    std::future::pending().await
}

/// The next process opens the store that these changes make.
async fn opened(changes: &Arc<Changes>, n: u64) -> (Harness, MemoryStore) {
    let store = MemoryStore::journaled(Arc::new(TokioClock::new()), changes.clone());
    changes.replay_into(&store, 0);
    let dq = Harness::start_on(Arc::new(store.clone()), n, |factory| factory.listener::<never_ends>()).await;
    (dq, store)
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_process_died_runs_again_at_once_and_one_that_kills_each_process_becomes_dead() {
    let key = TopicKey { app: AppName::new("test").unwrap(), topic: TopicName::new("work").unwrap() };
    let job = |store: &MemoryStore| store.view(&key).jobs.remove(&JobId::new("1").unwrap()).unwrap();
    let changes = Arc::<Changes>::default();
    let (mut dq, _) = opened(&changes, 1).await;
    dq.provider().add(Work { number: 1 }).await.unwrap();
    dq.settle().await;
    let mut lives = Vec::new();
    for n in 2..10 {
        dq.kill();
        let store;
        (dq, store) = opened(&changes, n).await;
        dq.advance(Duration::from_millis(10)).await;
        let job = job(&store);
        lives.push((job.state, job.crashes));
        if job.state == State::Dead {
            break;
        }
    }
    assert_eq!(lives, [(State::Running, 1), (State::Dead, 0)], "the second crash convicts it, as on any store");
}
