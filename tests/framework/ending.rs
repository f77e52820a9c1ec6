//! How a program with a node ends.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::start;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "greet")]
struct Greet;

#[delay_listener]
async fn greet(_job: Job<Greet>, received: &tokio::sync::mpsc::UnboundedSender<()>) -> Result<(), JobError> {
    received.send(())?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn run_until_stops_the_node_when_its_future_ends_and_leaves_no_jobs() {
    let (received, mut greeted) = tokio::sync::mpsc::unbounded_channel::<()>();
    let harness = start(|factory| factory.listener::<greet>().provide(received)).await;
    let store = harness.store();
    let context = harness.into_context();
    let jobs = context.provider().clone();
    let work = async {
        jobs.add(Greet).after("1h").await?;
        greeted.recv().await.expect("the listener lives as long as the node");
        Ok::<_, dq::Error>(jobs.app().clone())
    };
    let (done, stopped) = context.run_until(work).await.unwrap();
    assert_eq!(stopped.left, 0, "the outcome may still have waited for its answer");
    let app = done.expect("no signal came").unwrap();

    let topic = dq::job::TopicKey { app, topic: dq::job::TopicName::new("greet").unwrap() };
    let counts = store.counts(&topic).await.unwrap();
    assert_eq!((counts.delayed, counts.running), (0, 0));
    let refused = jobs.add(Greet).id("late").await.unwrap_err().to_string();
    assert_eq!(refused, "job `late` of topic `greet` was not added: the provider was stopped");
}
