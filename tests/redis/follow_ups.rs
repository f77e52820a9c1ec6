//! Follow-ups between topics whose servers fail over apart.

use std::time::Duration;

use dq::prelude::*;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};

use super::topic::{factory, until};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "first")]
struct First(u32);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "second")]
struct Second(u32);

#[delay_listener(register = false)]
async fn first(job: Job<First>, channel: Channel) -> Result<Decided, JobError> {
    Ok(channel.ack().then(|next| _ = next.add(Second(job.0)))?)
}

/// The keys of the second topic go back to what they were before the first follow-up, as those on a server of their own do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_arrive_after_one_that_a_failover_of_their_topic_took_back() {
    let server = RedisServer::start();
    let factory = factory(&server.url());
    let node = factory.listener::<first>().start().await.unwrap();
    let has_come = || server.command(&["HLEN", "dq:{shop:second}:jobs"]) == ":1";
    let is_removed = || server.command(&["EXISTS", "dq:{shop:first}:outbox"]) == ":0";
    for number in [1, 2] {
        node.provider().add(First(number)).await.unwrap();
        until(|| has_come() && is_removed()).await;
        for key in ["jobs", "delayed", "calls:outbox:first"] {
            server.command(&["DEL", &format!("dq:{{shop:second}}:{key}")]);
        }
    }
    node.shutdown(Duration::ZERO).await;
}
