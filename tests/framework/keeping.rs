//! The state that a run leaves for the next one, with its decision, with its error, or by a checkpoint.

use std::sync::Mutex;

use dq::job::{State, StateError};
use dq::listener::CheckpointError;
use dq::prelude::*;
use dq::testing::Harness;
use dq_tests::Fault;

use crate::scripted_listener::{
    HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, handler_takes, start, stored_job, test_job,
};

/// What the store has kept of a job.
async fn kept(dq: &Harness, id: &str) -> Option<u32> {
    let details = dq.job::<TestJob>(id).await.expect("the store has the job").details.unwrap();
    details.state.map(|state| state.decode().unwrap())
}

/// Acks once it has been told which of the three it is.
#[tokio::test(start_paused = true)]
async fn a_rejoin_and_a_retry_hand_a_state_to_the_next_run_and_a_plain_one_leaves_it() {
    let script = Script::new(|job, channel| async move {
        let run: u32 = job.state()?.unwrap_or(0);
        Ok(match run {
            0 => channel.rejoin_after("3d").with(&1)?,
            1 if job.attempt() == 0 => return Err(JobError::from("no").with(&2)?),
            2 if job.attempt() == 1 => return Err("no, and nothing to keep".into()),
            2 => channel.rejoin_at(job.due() + 5 * SECOND).with(&3)?,
            3 => channel.back_off("10s").with(&4)?,
            4 => channel.park().with(&5)?,
            _ => channel.ack(),
        })
    });
    let log = script.log.clone();
    let dq = script.lives(|topic| topic.retry("1m x 3"), 4 * 24 * HOUR).await;
    assert_eq!((stored_job(&dq, "a").await.state, kept(&dq, "a").await), (State::Unacked, Some(5)));
    assert_eq!(log.take().len(), 6);
    dq.provider().requeue::<TestJob>("a").await.unwrap().or_error_if_unchanged().unwrap();
    dq.settle().await;
    assert_eq!(log.take().len(), 1);
    assert!(dq.job::<TestJob>("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn on_exhausted_and_a_requeue_see_the_last_state_and_a_replacement_none() {
    let script = Script::new(|job, channel| async move {
        match job.state::<u32>()? {
            None => Ok(channel.dead("it makes no sense").with(&7)?),
            Some(state) => Ok(channel.rejoin_after("1h").with(&(state + 1))?),
        }
    });
    let script = script.on_exhausted(|job, _| async move { assert_eq!(job.state(), Ok(Some(7))) });
    let dq = script.lives(default_settings, MINUTE).await;
    assert_eq!((stored_job(&dq, "a").await.state, kept(&dq, "a").await), (State::Dead, Some(7)));
    dq.provider().requeue::<TestJob>("a").await.unwrap().or_error_if_unchanged().unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(kept(&dq, "a").await, Some(8));
    dq.provider().add(test_job("a")).replace_existing().after(HOUR).await.unwrap();
    assert_eq!(kept(&dq, "a").await, None);
}

stores!(a_crash_resumes_at_the_last_checkpoint_and_so_do_a_failure_and_a_timeout: memory, file, redis);
async fn a_crash_resumes_at_the_last_checkpoint_and_so_do_a_failure_and_a_timeout() {
    let script = Script::new(|job, channel| async move {
        let done: u32 = job.state()?.unwrap_or(0);
        channel.checkpoint(&(done + 1)).await?;
        match done {
            0 => std::future::pending().await, // its node is killed
            1 => panic!("no"),
            2 => std::future::pending().await, // its time passes
            _ => Ok(channel.ack()),
        }
    });
    let settings = |topic: dq::config::TopicOverrides| topic.retry("1s x 9").timeout("40s");
    let log = script.log.clone();
    let dq = script.runs(settings).await;
    assert_eq!(kept(&dq, "a").await, Some(1), "it is saved while the job runs");
    let next = script.beside(&dq, 2, settings).await;
    dq.kill();
    next.advance(5 * MINUTE).await;
    assert!(next.job::<TestJob>("a").await.is_none());
    assert_eq!(log.take_without_times(), ["due a 0", "due a 0", "due a 1", "due a 2"]);
}

stores!(a_checkpoint_tells_a_run_that_its_job_is_no_longer_its_own: memory, file, redis);
async fn a_checkpoint_tells_a_run_that_its_job_is_no_longer_its_own() {
    let said = std::sync::Arc::new(Mutex::new(Vec::new()));
    let says = said.clone();
    let script = Script::new(move |job, channel| {
        let says = says.clone();
        async move {
            handler_takes(10 * SECOND).await;
            let answer = channel.checkpoint(&1).await;
            says.lock().unwrap().push((job.id().to_string(), answer));
            Ok(channel.ack())
        }
    });
    let dq = script.start(default_settings).await;
    dq.provider().add_many(["deleted", "replaced"].map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    dq.provider().delete::<TestJob>("deleted").await.unwrap();
    dq.provider().add(test_job("replaced")).replace_existing().after(HOUR).await.unwrap();
    dq.advance(2 * MINUTE).await;
    said.lock().unwrap().sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(*said.lock().unwrap(), [("deleted".into(), Err(CheckpointError::Ended)), ("replaced".into(), Ok(()))]);
    assert_eq!(kept(&dq, "replaced").await, None, "the replacement");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_too_large_is_refused_where_it_is_made() {
    let script = Script::new(|_, channel| async move {
        let large = "x".repeat(64 << 10);
        let refused = StateError::TooLarge { size: (64 << 10) + 2, limit: 64 << 10 };
        assert_eq!(channel.checkpoint(&large).await, Err(CheckpointError::State(refused.clone())));
        assert!(JobError::from("no").with(&large).is_err());
        Ok(channel.rejoin_after("1h").with(&large).map_err(|error| {
            assert_eq!(error, refused);
            error
        })?)
    });
    let dq = script.lives(default_settings, SECOND).await;
    let failed = stored_job(&dq, "a").await;
    assert!(failed.error.contains("only its key in the state"), "{}", failed.error);
}

stores!(while_the_store_is_away_a_checkpoint_fails_soon_and_the_run_may_go_on: memory, file, redis);
/// The run continues without its checkpoints, and so does the node.
async fn while_the_store_is_away_a_checkpoint_fails_soon_and_the_run_may_go_on() {
    for fault in [Fault::Unavailable, Fault::Refused, Fault::Lost, Fault::AnswerLost] {
        let script = Script::new(|job, channel| async move {
            for step in job.state()?.unwrap_or(0)..4_u32 {
                let since = tokio::time::Instant::now();
                let saved = channel.checkpoint(&step).await;
                assert!(since.elapsed() <= 5 * SECOND, "{:?}", since.elapsed());
                if let Err(error) = saved {
                    assert_eq!(error, CheckpointError::Unconfirmed);
                }
                handler_takes(SECOND).await;
            }
            channel.checkpoint(&4).await?;
            Ok(channel.rejoin_after("1h"))
        });
        let (dq, faults) = script.on_faulty(|topic| topic.retry("10s x 9")).await;
        faults.fail_only("note", fault);
        dq.provider().add(test_job("a")).await.unwrap();
        dq.advance(30 * SECOND).await;
        faults.clear();
        dq.advance(5 * MINUTE).await;
        assert_eq!((stored_job(&dq, "a").await.state, kept(&dq, "a").await), (State::Delayed, Some(4)), "{fault:?}");
        assert!(dq.health().ready, "{fault:?} {:?}", dq.health());
    }
}

/// What is shown of the progress of a job.
async fn shown(dq: &Harness) -> Option<String> {
    let job = dq.provider().inspect().job("work", "a").await.unwrap().expect("the store has the job");
    job.progress.map(|progress| progress.to_string())
}

/// A handler that says a hundred times a second how far it has come, for ten seconds, and then nothing for ten more.
fn hundred_a_second() -> Script {
    Script::new(|_, channel| async move {
        for n in 1..=1_000 {
            channel.progress(n, 1_000, format!("row {n}"));
            handler_takes(10 * MS).await;
        }
        handler_takes(10 * SECOND).await;
        Ok(channel.rejoin_after("1h"))
    })
}

#[tokio::test(start_paused = true)]
async fn progress_is_written_once_a_second_at_most_and_the_last_one_while_the_run_lasts() {
    let (dq, faults) = hundred_a_second().on_faulty(default_settings).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    assert_eq!(shown(&dq).await.as_deref(), Some("1 of 1000 (0 %): row 1"));
    dq.advance(5_500 * MS).await;
    let middle = shown(&dq).await.expect("it runs");
    assert!(middle.contains(": row 4") || middle.contains(": row 5"), "{middle}");
    dq.advance(8 * SECOND).await;
    assert_eq!(shown(&dq).await.as_deref(), Some("1000 of 1000 (100 %): row 1000"));
    let notes = faults.requests_for("note");
    assert!((9..=12).contains(&notes), "{notes}");
    dq.advance(MINUTE).await;
    assert_eq!((stored_job(&dq, "a").await.state, shown(&dq).await), (State::Delayed, None));
}

stores!(the_last_progress_is_shown_although_the_store_was_away_when_it_came: memory, file, redis);
async fn the_last_progress_is_shown_although_the_store_was_away_when_it_came() {
    for fault in [Fault::Unavailable, Fault::Refused, Fault::Lost, Fault::AnswerLost] {
        let script = Script::new(|_, channel| async move {
            channel.progress(1, 2, "before");
            handler_takes(5 * SECOND).await;
            channel.progress(2, 2, "while it is away");
            handler_takes(HOUR).await;
            Ok(channel.ack())
        });
        let (dq, faults) = script.on_faulty(|topic| topic.timeout("2h")).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.advance(SECOND).await;
        faults.fail_only("note", fault);
        dq.advance(9 * SECOND).await;
        faults.clear();
        dq.advance(20 * SECOND).await;
        assert_eq!(shown(&dq).await.as_deref(), Some("2 of 2 (100 %): while it is away"), "{fault:?}");
    }
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, DelayJob)]
#[job(topic = "batches")]
struct InBatches {
    #[job(id)]
    id: u32,
}

/// Each job of a batch has a state of its own.
#[delay_listener(batch_size = 10, register = false)]
async fn in_batches(batch: Batch<InBatches>) -> Result<Decided, JobError> {
    for job in &batch {
        match job.state::<u32>()? {
            None => {
                batch.checkpoint(job, &(job.id * 10)).await?;
                batch.rejoin_after(job, "1h");
            }
            Some(state) => {
                assert_eq!(state, job.id * 10);
                batch.fail(job, JobError::fatal("enough").with(&(state + 1))?);
            }
        }
    }
    let rest = batch.rest();
    assert_eq!(rest.checkpoint(&1).await, Err(CheckpointError::NoJob));
    Ok(rest.ack())
}

#[tokio::test(start_paused = true)]
async fn each_job_of_a_batch_has_a_state_of_its_own() {
    let dq = start(|factory| factory.batch_listener::<in_batches>()).await;
    dq.provider().add_many((1..=3).map(|id| InBatches { id })).await.unwrap().all().unwrap();
    dq.advance(2 * HOUR).await;
    for id in 1..=3_u32 {
        let job = dq.job::<InBatches>(&id.to_string()).await.expect("it is DEAD");
        assert_eq!(job.details.unwrap().state.unwrap().decode(), Ok(id * 10 + 1));
    }
}
