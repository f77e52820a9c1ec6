//! How a program with a node ends.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

use crate::backend::Shared;
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
    assert!(jobs.add(Greet).await.is_err(), "the node's provider is closed");
}

/// The next test runs this one as a process of its own: a node with a handler that never ends and an hour of grace.
#[cfg(unix)]
#[tokio::test]
async fn a_program_that_is_busy_for_an_hour() {
    #[delay_listener(register = false, timeout = "none")]
    async fn busy(_job: Job<Greet>) -> Result<(), JobError> {
        println!("running");
        std::future::pending().await
    }
    let Ok(store) = std::env::var("DQ_TEST_BUSY") else { return };
    let factory = ContextFactory::new("test").store(Shared::at(&store)).without_inventory().variables([("", ""); 0]);
    let dq = factory.listener::<busy>().grace("1h").start().await.unwrap();
    let (provider, probe) = (dq.provider().clone(), dq.probe());
    tokio::spawn(async move {
        while probe.health().topics[0].condition != dq::context::Condition::Stopping {
            tokio::task::yield_now().await;
        }
        println!("stopping");
    });
    // The node handles signals before there is a job whose output triggers one.
    let (ended, added) = tokio::join!(biased; dq.run_until_signal(), provider.add(Greet));
    ended.unwrap();
    added.unwrap();
    println!("stopped");
}

#[cfg(unix)]
stores!(the_first_signal_starts_the_grace_and_the_second_ends_it on the real clock: memory, file, redis);
#[cfg(unix)]
async fn the_first_signal_starts_the_grace_and_the_second_ends_it() {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::io::{AsyncBufReadExt, BufReader};

    let store = Shared::named("busy");
    let mut busy = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::a_program_that_is_busy_for_an_hour", "--nocapture", "--test-threads=1"])
        .env("DQ_TEST_BUSY", store.address())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(busy.id().unwrap().try_into().unwrap()).unwrap();
    let mut lines = BufReader::new(busy.stdout.take().unwrap()).lines();
    let mut signals = [Signal::INT, Signal::TERM].into_iter();
    let mut seen = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let said = ["running", "stopping", "stopped"].into_iter().find(|word| line.ends_with(word));
        seen.extend(said);
        if let Some("running" | "stopping") = said {
            kill_process(pid, signals.next().unwrap()).unwrap();
        }
    }
    assert_eq!(seen, ["running", "stopping", "stopped"]);
    assert!(busy.wait().await.unwrap().success());
}
