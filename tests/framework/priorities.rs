//! Priorities: which of the due jobs run first.

use dq::job::Priority;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{MS, SECOND, Script, TestJob, handler_takes, test_job};

/// Adds a job that is due then.
async fn add(provider: &Provider, id: &str, priority: Priority, after: std::time::Duration) {
    provider.add(test_job(id)).priority(priority).after(after).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn due_jobs_run_by_their_priorities_and_the_delay_of_none_is_longer() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic.concurrency(1)).await;
    for (id, priority) in [("low", Priority::Low), ("normal", Priority::Normal), ("high", Priority::High)] {
        add(dq.provider(), id, priority, 10 * SECOND).await;
    }
    add(dq.provider(), "low, early", Priority::Low, 5 * SECOND).await;
    dq.advance(20 * SECOND).await;
    let wanted = ["5s due low, early 0", "10s due high 0", "11s due normal 0", "12s due low 0"];
    assert_eq!(script.log.take(), wanted, "no job waits for one that is not due");
}

stores!(a_low_job_starts_under_a_flood_of_high_ones_once_it_has_been_due_for_twice_the_ageing: memory, file, redis);
async fn a_low_job_starts_under_a_flood_of_high_ones_once_it_has_been_due_for_twice_the_ageing() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic.concurrency(1).priority_ageing("10s")).await;
    for n in 0..40 {
        add(dq.provider(), &format!("high-{n}"), Priority::High, n * SECOND + SECOND).await;
    }
    add(dq.provider(), "low", Priority::Low, SECOND - MS).await;
    // The one permit is taken, and from then on there is always a high job.
    add(dq.provider(), "first", Priority::High, SECOND - 2 * MS).await;
    dq.advance(30 * SECOND).await;
    let started = script.log.take().into_iter().find(|line| line.contains("low"));
    assert_eq!(started.as_deref(), Some("21.998s due low 0"), "it became due at 999 ms");
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority() {
    let script = Script::new(|job: Job<TestJob>, channel: Channel| async move {
        if job.attempt() == 0 && job.id == "high" {
            return Err("not yet".into());
        }
        if job.id == "busy" {
            handler_takes(2 * SECOND).await;
        }
        Ok(channel.ack())
    });
    let dq = script.start(|topic| topic.concurrency(1).retry("5s x 1")).await;
    add(dq.provider(), "high", Priority::High, SECOND).await;
    dq.advance(2 * SECOND).await;
    script.log.take();
    add(dq.provider(), "busy", Priority::Normal, 3 * SECOND).await;
    add(dq.provider(), "normal", Priority::Normal, 3 * SECOND + MS).await;
    dq.advance(10 * SECOND).await;
    let wanted = ["due busy 0", "due high 1", "due normal 0"];
    assert_eq!(script.log.take_without_times(), wanted, "the retry is due while the one permit is taken");
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work", priority = "high")]
struct Urgent {
    #[job(id)]
    id: String,
}

#[tokio::test(start_paused = true)]
async fn a_payload_and_an_add_say_the_priority() {
    let dq = Script::acks().start(|topic| topic).await;
    let provider = dq.provider();
    let urgent = |id: &str| Urgent { id: id.into() };
    provider.add(urgent("by type")).after("1h").await.unwrap();
    provider.add(urgent("by add")).priority(Priority::Low).after("1h").await.unwrap();
    provider.add(test_job("none")).after("1h").await.unwrap();
    let inspector = provider.inspect();
    for (id, priority) in [("by type", Priority::High), ("by add", Priority::Low), ("none", Priority::Normal)] {
        assert_eq!(inspector.job("work", id).await.unwrap().unwrap().priority, priority, "{id}");
    }
    assert_eq!(
        "urgent".parse::<Priority>().unwrap_err().to_string(),
        "`urgent` is not a priority: write `high`, `normal` or `low`"
    );
}
