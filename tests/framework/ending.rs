//! How a program ends.

use dq::prelude::*;
use dq::testing::Harness;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "greet")]
struct Greet;

#[delay_listener]
async fn greet(_job: Job<Greet>, heard: &tokio::sync::mpsc::UnboundedSender<()>) -> Result<(), JobError> {
    heard.send(())?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_node_runs_until_the_work_of_the_program_is_done_and_leaves_nothing() {
    let (heard, mut greeted) = tokio::sync::mpsc::unbounded_channel::<()>();
    let harness = Harness::start(|factory| factory.listener::<greet>().provide(heard)).await;
    let store = harness.store();
    let context = harness.into_context();
    let jobs = context.provider().clone();
    let work = async {
        jobs.add(Greet).after("1h").await?;
        greeted.recv().await.expect("the listener lives as long as the node");
        Ok::<_, dq::Error>(jobs.app().clone())
    };
    let app = context.run_until(work).await.unwrap().expect("no signal came").unwrap();

    let topic = dq::job::TopicKey { app, topic: dq::job::TopicName::new("greet").unwrap() };
    let counts = store.counts(&topic).await.unwrap();
    assert_eq!((counts.delayed, counts.running), (0, 0));
    assert!(jobs.add(Greet).await.is_err(), "the node's provider is closed");
}
