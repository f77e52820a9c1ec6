//! Retries: when a failed job runs again, and how often.

use std::error::Error;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::job::State;
use dq::listener::RetryDelay;
use dq::prelude::*;

use crate::scripted_listener::{
    HOUR, Log, SECOND, Script, TestJob, default_settings, handler_takes, stored_job, test_job,
};

/// Each job fails after a second, and its delay counts from then.
#[tokio::test(start_paused = true)]
async fn each_policy_retries_as_often_and_as_late_as_it_says() {
    let policies: [(&str, &[u64]); 5] = [
        ("immediate x 2", &[0, 1, 2]),
        ("30s x 3", &[0, 31, 62, 93]),
        ("1m, 5m, 10m, 30m, 1h", &[0, 61, 362, 963, 2764, 6365]),
        ("exponential 10s x 4, factor 3, max 1m, jitter 0%", &[0, 11, 42, 103, 164]),
        ("", &[0; 6]),
    ];
    for (policy, starts) in policies {
        let script = Script::new(|_, _| async {
            handler_takes(SECOND).await;
            Err("no".into())
        });
        let dq = script.lives(|topic| if policy.is_empty() { topic } else { topic.retry(policy) }, 2 * HOUR).await;
        assert_eq!(stored_job(&dq, "a").await.state, State::Dead);
        let lines = script.log.take();
        if policy.is_empty() {
            assert_eq!(lines.len(), starts.len() + 1, "five retries by default: {lines:?}");
            continue;
        }
        let runs = starts.iter().enumerate().map(|(attempt, at)| format!("{:?} due a {attempt}", *at as u32 * SECOND));
        let (last, failed) = (starts[starts.len() - 1] as u32 + 1, starts.len());
        let last = format!("{:?} final a {failed} error", last * SECOND);
        assert_eq!(lines, runs.chain([last]).collect::<Vec<_>>(), "{policy}");
    }
}

/// The maximum that a policy does not state cut the first delay, which it states, to an hour.
#[tokio::test(start_paused = true)]
async fn a_first_delay_of_hours_is_waited_for_in_full() {
    let script = Script::fails("no");
    let dq = script.start(|topic| topic.retry("exponential 6h x 2, jitter 0%")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    for retry in 1..=2 {
        dq.advance(6 * HOUR - SECOND).await;
        assert_eq!(dq.counts::<TestJob>().await.delayed, 1);
        dq.advance(SECOND).await;
        assert_eq!(script.log.take().iter().filter(|line| line.contains("due a")).count(), 1 + usize::from(retry == 1));
    }
    assert_eq!(stored_job(&dq, "a").await.state, State::Dead);
    for (policy, says) in [
        ("3651d x 1", "longer than ten years"),
        ("exponential 6h x 3, max 1h", "`max 1h` is shorter than the first delay, which is 6h"),
    ] {
        let refused = dq.provider().add(test_job("b")).retry(policy).await.unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn jitter_spreads_the_retries_of_jobs_that_failed_together() {
    let script = Script::fails("no");
    let dq = script.start(default_settings).await;
    for id in 0..50 {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.settle().await;
    script.log.take();
    let (mut early, mut late) = (0, 0);
    for _ in 0..20 {
        dq.advance(SECOND / 10).await; // up to 2 s: no retry is that early
    }
    assert!(script.log.take().is_empty());
    dq.advance(8 * SECOND).await;
    early += script.log.take().len();
    dq.advance(2 * SECOND).await;
    late += script.log.take().len();
    assert_eq!(early + late, 50, "10 s, ten percent more or less");
    assert!(early > 5 && late > 5, "{early} and {late}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_function_chooses_each_delay_and_when_to_give_up() {
    let script = Script::fails("try later").retry_delay(|failed, failure| match failed {
        _ if failure.message != "try later" => RetryDelay::Exhausted,
        1 => RetryDelay::After(7 * SECOND),
        2 => RetryDelay::By("1m x 9".parse().unwrap()),
        _ => RetryDelay::Exhausted,
    });
    let _dq = script.lives(default_settings, HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "7s due a 1", "67s due a 2", "67s final a 3 error"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_function_that_panics_falls_back_to_the_settings() {
    let script = Script::fails("no").retry_delay(|_, _| panic!("a defect of the user's"));
    let dq = script.lives(|topic| topic.retry("1m"), HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "60s due a 1", "60s final a 2 error"]);
    assert_eq!(dq.health().topics[0].counters.restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_retry_function_runs_in_the_task_of_the_handler_that_failed() {
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let (of_handler, of_function) = (tasks.clone(), tasks.clone());
    let script = Script::new(move |_, _| {
        let tasks = of_handler.clone();
        async move {
            tasks.lock().unwrap().push(tokio::task::try_id());
            Err("no".into())
        }
    });
    let script = script.retry_delay(move |_, _| {
        of_function.lock().unwrap().push(tokio::task::try_id());
        RetryDelay::Exhausted
    });
    let _dq = script.runs(default_settings).await;
    let tasks = tasks.lock().unwrap();
    assert!(tasks.len() == 2 && tasks[0].is_some() && tasks[0] == tasks[1], "{tasks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_function_is_asked_after_a_timeout_and_a_panic_too() {
    let asked = Log::new();
    let record = asked.clone();
    let script = Script::new(|job, _| async move {
        assert!(job.attempt() > 0, "the first run panics");
        pending().await
    });
    let script = script.retry_delay(move |failed, failure| {
        record.record(format_args!("{failed} {}", failure.cause));
        if failed < 3 { RetryDelay::After(7 * SECOND) } else { RetryDelay::Exhausted }
    });
    let _dq = script.lives(|topic| topic.timeout("5s").retry("1h"), HOUR).await;
    assert_eq!(asked.take(), ["0ns 1 panic", "12s 2 timeout", "24s 3 timeout"]);
    assert_eq!(script.log.take(), ["0ns due a 0", "7s due a 1", "19s due a 2", "24s final a 3 timeout"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_function_cannot_delay_a_job_for_more_than_ten_years() {
    let script = Script::fails("no").retry_delay(|_, _| RetryDelay::After(Duration::MAX));
    let dq = script.start(default_settings).await;
    let clock = dq.counts::<TestJob>().await.clock;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let head = dq.counts::<TestJob>().await.head.unwrap();
    assert_eq!(head.since(clock), dq::time::MAX_DELAY);
}

#[tokio::test(start_paused = true)]
async fn the_retry_policy_of_an_add_overrides_all_others() {
    let script = Script::fails("no").retry_delay(|_, _| RetryDelay::Exhausted);
    let dq = script.start(|topic| topic.retry("1h")).await;
    dq.provider().add(test_job("a")).retry("2m").await.unwrap();
    dq.provider().add(test_job("b")).retry("none").await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(
        script.log.take(),
        ["0ns due a 0", "0ns due b 0", "0ns final b 1 error", "120s due a 1", "120s final a 2 error"]
    );
}

#[tokio::test(start_paused = true)]
async fn every_run_and_on_exhausted_get_the_job_as_it_was_added() {
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let see = |job: &Job<TestJob>, seen: &Mutex<Vec<_>>| {
        let seen_job = (job.attempt(), (*job).clone(), job.header("trace").map(str::to_owned));
        seen.lock().unwrap().push(seen_job);
    };
    let (by_handler, by_on_exhausted) = (seen.clone(), seen.clone());
    let script = Script::new(move |job, channel| {
        see(&job, &by_handler);
        async move {
            let attempt = job.attempt();
            job.into_payload().id.push_str("changed");
            match attempt {
                0 => Err("no".into()),
                1 => panic!("no"),
                2 => pending().await,
                3 => Ok(channel.rejoin_at(std::time::SystemTime::now() + Duration::from_secs(40 * 366 * 86_400))),
                _ => Err("no".into()),
            }
        }
    });
    let script = script.on_exhausted(move |job, _| {
        see(&job, &by_on_exhausted);
        std::future::ready(())
    });
    let dq = script.start(|topic| topic.retry("1s x 4")).await;
    dq.provider().add(test_job("payload")).id("a").header("trace", "7").await.unwrap();
    dq.advance(HOUR).await;
    let as_added = |attempt| (attempt, test_job("payload"), Some("7".to_owned()));
    assert_eq!(*seen.lock().unwrap(), (0..=5).map(as_added).collect::<Vec<_>>());
}

#[derive(Debug, thiserror::Error)]
#[error("account {0} is closed")]
struct Closed(u32);

/// Fails like this, and gives up if `retry_delay` finds a [`Closed`]. Returns what became of the job.
async fn fails_with(error: impl Fn() -> JobError + Send + Sync + 'static) -> (Vec<String>, State) {
    let script = Script::new(move |_, _| {
        let error = error();
        async move { Err(error) }
    });
    let script = script.retry_delay(|_, failure| match failure.downcast_ref::<Closed>() {
        Some(Closed(7)) => RetryDelay::Exhausted,
        _ => RetryDelay::BySettings,
    });
    let dq = script.runs(|topic| topic.retry("1h")).await;
    let state = stored_job(&dq, "a").await.state;
    (script.log.take_without_times(), state)
}

#[tokio::test(start_paused = true)]
async fn retry_delay_finds_the_error_itself_in_whatever_the_handler_wrapped_it() {
    #[derive(Debug, thiserror::Error)]
    #[error("the payment failed")]
    struct Payment(#[source] Box<dyn Error + Send + Sync>);

    let given_up = (vec!["due a 0".to_owned(), "final a 1 error".to_owned()], State::Dead);
    type Wrapper = (&'static str, fn() -> JobError);
    let wrappers: [Wrapper; 7] = [
        ("itself", || Closed(7).into()),
        ("a box", || Box::new(Closed(7)).into()),
        ("a box of any error", || Box::<dyn Error + Send + Sync>::from(Closed(7)).into()),
        ("an arc", || Arc::new(Closed(7)).into()),
        ("an arc of any error", || (Arc::new(Closed(7)) as Arc<dyn Error + Send + Sync>).into()),
        ("a source", || Payment(Box::new(Closed(7))).into()),
        ("a context of anyhow", || anyhow::Error::from(Closed(7)).context("cannot charge").into()),
    ];
    for (wrapper, error) in wrappers {
        assert_eq!(fails_with(error).await, given_up, "{wrapper}");
    }
    let bare = || JobError::from(anyhow::Error::from(Closed(7)).reallocate_into_boxed_dyn_error_without_backtrace());
    assert_eq!(fails_with(bare).await, given_up, "anyhow without a context, as the guide has it");
    for other in [|| Closed(8).into(), || JobError::from("account 7 is closed")] {
        assert_eq!(fails_with(other).await.1, State::Delayed);
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_handler_is_dropped_where_handlers_run_and_its_panic_harms_nothing() {
    #[derive(Debug, thiserror::Error)]
    #[error("no")]
    struct Drops(Arc<Mutex<usize>>);
    impl Drop for Drops {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
            std::panic::panic_any("in a drop");
        }
    }
    let dropped = Arc::new(Mutex::new(0));
    let error = dropped.clone();
    let script = Script::new(move |_, _| {
        let error = Drops(error.clone());
        async move { Err(error.into()) }
    });
    let dq = script.lives(|topic| topic.retry("1m x 2"), HOUR).await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Dead);
    assert_eq!(*dropped.lock().unwrap(), 3);
    assert_eq!(dq.health().topics[0].counters.restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_is_not_retried_whatever_the_policy_and_its_cause_is_kept() {
    let script = Script::new(|job, channel| async move {
        match job.id().as_str() {
            "fatal" => Err(JobError::fatal(Closed(7))),
            _ => Ok(channel.dead("account 7 is closed")),
        }
    });
    let script = script.retry_delay(|_, _| panic!("it is not asked"));
    let dq = script.start(|topic| topic.retry("1m x 5")).await;
    for (id, retry) in [("fatal", None), ("dead", None), ("fatal", Some("1s x 9"))] {
        let add = dq.provider().add(test_job(id)).replace_existing();
        match retry {
            Some(retry) => add.retry(retry).await.unwrap(),
            None => add.await.unwrap(),
        };
        dq.settle().await;
        assert_eq!(script.log.take_without_times(), [format!("due {id} 0"), format!("final {id} 1 error")]);
        let dead = stored_job(&dq, id).await;
        assert_eq!((dead.state, dead.attempts, dead.error.as_str()), (State::Dead, 1, "account 7 is closed"));
    }
    dq.provider().requeue::<TestJob>("dead").await.unwrap().or_error_if_unchanged().unwrap();
    dq.settle().await;
    assert_eq!(script.log.take_without_times(), ["due dead 0", "final dead 1 error"], "a requeue runs it again");
}
