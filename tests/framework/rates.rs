//! Rates: how many jobs of a topic all nodes together start within a period, and `back_off`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::inspect::NotRunReason;
use dq::prelude::*;
use dq::provider::{CallError, Limit, Refusal};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::scripted_listener::{MINUTE, MS, SECOND, Script, TestJob, handler_takes, test_job};

/// When each handler started.
type Starts = Arc<Mutex<Vec<Duration>>>;

/// Handlers of ten milliseconds; every third job fails once, and another third rejoins once.
fn timed() -> (Script, Starts) {
    let starts = Starts::default();
    let script = {
        let (starts, begin, seen) = (starts.clone(), Instant::now(), Mutex::new(Vec::<String>::new()));
        Script::new(move |job, channel| {
            starts.lock().unwrap().push(begin.elapsed());
            let is_first = {
                let mut seen = seen.lock().unwrap();
                let is_first = !seen.contains(&job.id);
                seen.push(job.id.clone());
                is_first
            };
            async move {
                handler_takes(10 * MS).await;
                match job.id.parse::<u32>().unwrap() % 3 {
                    0 if is_first => Err("again".into()),
                    1 if is_first => Ok(channel.rejoin_after("1s")),
                    _ => Ok(channel.ack()),
                }
            }
        })
    };
    (script, starts)
}

stores!(all_nodes_together_start_no_more_than_the_rate_and_all_but_half_a_percent_of_it: memory, redis);
async fn all_nodes_together_start_no_more_than_the_rate_and_all_but_half_a_percent_of_it() {
    let (script, starts) = timed();
    let settings = |topic: TopicOverrides| topic.rate("100/s").retry("1s");
    let dq = script.start(settings).await;
    let _other = script.beside(&dq, 2, settings).await;
    dq.provider().add_many((0..900).map(test_job)).await.unwrap().all().unwrap();
    dq.provider().add_many((900..1_800).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(MINUTE).await;
    let starts = starts.lock().unwrap();
    let most = starts.iter().map(|from| starts.iter().filter(|at| (*from..*from + SECOND).contains(at)).count()).max();
    assert!(most <= Some(100), "{most:?} in a second");
    let in_20_seconds = starts.iter().filter(|at| **at < 20 * SECOND).count();
    assert!(in_20_seconds >= 1_980, "{in_20_seconds} of 2000 in 20 s");
    assert_eq!(starts.len(), 1_800 + 1_200, "each third job failed once, and each third rejoined once");
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_is_spent_is_a_reason_to_wait() {
    let (script, _) = timed();
    let dq = script.start(|topic| topic.rate("6/m")).await;
    dq.provider().add_many((2..39).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(3 * SECOND).await;
    dq.provider().add(test_job(39)).await.unwrap();
    let why = dq.provider().inspect().why("work", "39").await.unwrap();
    let text = why.to_string();
    assert!(matches!(why.reasons[0], NotRunReason::RateSpent { .. }), "{text}");
    assert!(text.contains("has spent its rate, which lets the next job start in "), "{text}");
    assert!(text.contains("37 other jobs"), "{text}");
    dq.provider().pause::<TestJob>().reason("audit").await.unwrap();
    let reasons = dq.provider().inspect().why("work", "39").await.unwrap().reasons;
    assert!(
        matches!(reasons[..], [NotRunReason::Paused { .. }, .., NotRunReason::RateSpent { .. }]),
        "both: {reasons:?}"
    );
}

stores!(a_handler_that_backs_off_stops_its_topic_on_all_nodes: memory, file, redis);
async fn a_handler_that_backs_off_stops_its_topic_on_all_nodes() {
    let runs = Arc::new(AtomicUsize::new(0));
    let script = {
        let runs = runs.clone();
        Script::new(move |_, channel| {
            let run = runs.fetch_add(1, Relaxed);
            async move { Ok(if run == 0 { channel.back_off("30s") } else { channel.ack() }) }
        })
    };
    let dq = script.start(|topic| topic.concurrency(1)).await;
    let _other = script.beside(&dq, 2, |topic| topic.concurrency(1)).await;
    dq.provider().add(test_job("limited")).await.unwrap();
    dq.advance(100 * MS).await;
    dq.provider().add_many((0..50).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(20 * SECOND).await;
    assert_eq!(runs.load(Relaxed), 1, "nothing starts");
    let pause = dq.provider().topic_state::<TestJob>().await.unwrap().pause.unwrap();
    assert_eq!(pause.reason, "the handler of job limited backed off");
    assert_eq!(pause.by, dq.health().node);
    assert_eq!(dq.counts::<TestJob>().await.delayed, 51);
    dq.advance(11 * SECOND).await;
    assert_eq!(runs.load(Relaxed), 52, "all at the end of the pause, and the first one again");
    assert_eq!(dq.health().topics[0].counters.failed, 0, "no attempt is spent");
}

stores!(a_resume_ends_a_back_off_and_a_bad_delay_is_a_failure: memory, file, redis);
async fn a_resume_ends_a_back_off_and_a_bad_delay_is_a_failure() {
    for (delay, failed) in [("5m", 0), ("25h", 1), ("soon", 1)] {
        let runs = Arc::new(AtomicUsize::new(0));
        let script = {
            let runs = runs.clone();
            Script::new(move |_, channel| {
                let run = runs.fetch_add(1, Relaxed);
                async move { Ok(if run == 0 { channel.back_off(delay) } else { channel.ack() }) }
            })
        };
        let dq = script.start(|topic| topic.retry("none")).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.provider().add(test_job("b")).after("1s").await.unwrap();
        dq.advance(5 * SECOND).await;
        let counters = dq.health().topics[0].counters;
        assert_eq!((counters.failed, counters.acked), (failed, failed), "{delay}");
        dq.provider().resume::<TestJob>().await.unwrap();
        dq.advance(SECOND).await;
        assert_eq!(
            dq.health().topics[0].counters.acked,
            1,
            "{delay}: the other job runs, and this one after its delay"
        );
    }
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work", weight = "{tokens}", group = "customer-7", delay = "1h")]
struct Prompt {
    #[job(id)]
    id: u32,
    tokens: u16,
}

#[tokio::test(start_paused = true)]
async fn an_add_that_is_heavier_than_its_rate_is_refused_with_the_rate_in_the_code() {
    let dq = Script::acks().start(|topic| topic.rate("10/s, burst 4")).await;
    dq.settle().await;
    let added = dq.provider().add_many([(1, 14), (2, 15), (3, 1)].map(|(id, tokens)| Prompt { id, tokens })).await;
    assert_eq!(added.unwrap().iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let error = dq.provider().add(Prompt { id: 2, tokens: 1 }).weight(15).await.unwrap_err();
    assert!(!error.may_be_repeated(), "{error}");
    let CallError::Refused { refusal: Refusal::TooHeavy { weight, rate, group: None }, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((weight.get(), rate.most()), (15, 14));
    assert_eq!(
        error.to_string(),
        "job `2` of topic `work` was not added: its weight is 15, and the rate 10/s, burst 4 of its topic allows 14 in a period; raise the rate or its burst, or split the job"
    );
    let work = dq.provider().topic("work").unwrap();
    work.set_limit(Limit::GroupRate("8/s".parse().unwrap())).await.unwrap();
    let error = dq.provider().add(Prompt { id: 4, tokens: 9 }).await.unwrap_err();
    assert!(error.to_string().contains("the rate 8/s of its group customer-7 allows 8 in a period"), "{error}");
    dq.provider().add(Prompt { id: 2, tokens: 8 }).await.unwrap();
}
