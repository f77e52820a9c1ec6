//! A batch that took its process down is split (rule 19).

use std::collections::BTreeSet;
use std::future::pending;

use dq::job::{Cause, State};
use dq::testing::Harness;

use super::{BatchScript, add_all};
use crate::scripted_listener::{MINUTE, MS, SECOND, TestJob, handler_takes, stored_job};

fn hangs() -> BatchScript {
    BatchScript::new(|_| pending())
}

stores!(the_jobs_of_a_batch_whose_process_died_run_as_batches_of_one_and_the_outcomes_before_stay: memory, file, redis);
async fn the_jobs_of_a_batch_whose_process_died_run_as_batches_of_one_and_the_outcomes_before_stay() {
    let stuck = BatchScript::new(|batch| async move {
        batch.ack(&batch[0]);
        batch.rejoin_after(&batch[1], "1h");
        pending().await
    });
    let dq = stuck.start(|topic| topic.timeout("0s")).await;
    add_all(&dq, 0..10).await;
    dq.advance(SECOND).await;
    let script = BatchScript::acks();
    let next = script.beside(&dq, 2).await;
    dq.kill();
    next.advance(MINUTE).await;
    let batches = script.batches();
    assert!(batches.iter().all(|batch| batch.len() == 1), "{batches:?}");
    let ids: BTreeSet<_> = batches.concat().into_iter().collect();
    assert_eq!((batches.len(), ids), (8, (2..10).map(|id| id.to_string()).collect()));
    assert_eq!(next.counts::<TestJob>().await.delayed, 1, "the rejoined one");
    add_all(&next, (20..30).map(|id| id.to_string())).await;
    next.settle().await;
    assert_eq!(script.batches().len(), 1, "others run in a batch");
}

stores!(a_job_that_kills_each_process_is_dead_and_no_job_of_its_batch: memory, file, redis);
async fn a_job_that_kills_each_process_is_dead_and_no_job_of_its_batch() {
    let script = || {
        BatchScript::new(|batch| async move {
            if batch.iter().any(|job| job.id == "3") {
                pending::<()>().await;
            }
            handler_takes(MS).await;
            Ok(batch.rest().ack())
        })
    };
    let (mut dq, mut crashes) = (hangs().start(|topic| topic.timeout("0s")).await, 0);
    add_all(&dq, 0..10).await;
    dq.advance(SECOND).await;
    for seed in 2..20 {
        let next: Harness = script().beside(&dq, seed).await;
        std::mem::replace(&mut dq, next).kill();
        dq.advance(10 * MINUTE).await;
        crashes += 1;
        if stored_job(&dq, "3").await.state == State::Dead {
            break;
        }
    }
    let dead = stored_job(&dq, "3").await;
    assert_eq!(dead.cause, Some(Cause::Crashes));
    assert!((3..=5).contains(&crashes), "`max_crashes` and two more: {crashes}");
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.dead, counts.delayed, counts.running), (1, 0, 0));
}
