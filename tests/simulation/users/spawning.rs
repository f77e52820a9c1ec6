//! Tasks that a handler spawns outlive its node, and the account says so; what the handler awaits ends with the node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dq::prelude::*;
use dq_testing::{Faults, simulate};
use serde::{Deserialize, Serialize};
use tokio::time::sleep as handler_takes;

const OUTLIVES: &str = "have spawned GO ON, unlike in reality: 1 at most";

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "note", delay = "5s")]
struct Note;

#[delay_listener(register = false)]
struct Notes {
    written: Arc<AtomicU64>,
    spawns: bool,
}

impl DelayListener for Notes {
    type Job = Note;

    async fn on_due(&self, _job: Job<Note>, channel: Channel) -> Result<Decided, JobError> {
        let written = Arc::clone(&self.written);
        let write = async move {
            handler_takes(Duration::from_secs(5)).await;
            written.fetch_add(1, Relaxed);
        };
        if self.spawns {
            tokio::spawn(write).await?
        } else {
            write.await
        }
        Ok(channel.ack())
    }
}

/// The accounts of runs in which nodes may be killed.
fn accounts(spawns: bool) -> Vec<String> {
    let account = |seed| {
        let run = simulate(|| Arc::new(AtomicU64::new(0)))
            .node(move |factory, written| factory.provide(written).provide(spawns).listener::<Notes>())
            .work(|jobs, _| async move { while jobs.add(Note).id("n").keep_existing().await.is_err() {} })
            .check(|_, _| Err("look"));
        let run = run.nodes(1).faults(Faults::none().crashes(true)).shrinks_for(Duration::ZERO);
        run.seeds(seed..seed + 1).try_run().unwrap_err().account
    };
    (0..20).map(account).collect()
}

/// The lines that say that a node is killed, each with the next one.
fn kills(accounts: &[String]) -> Vec<(&str, &str)> {
    let lines = accounts.iter().flat_map(|account| account.lines().zip(account.lines().skip(1)));
    lines.filter(|(line, _)| line.contains("IS KILLED")).collect()
}

#[test]
fn the_account_names_spawned_tasks_that_outlive_their_node() {
    let accounts = accounts(true);
    let (while_it_runs, after): (Vec<_>, Vec<_>) =
        kills(&accounts).into_iter().partition(|(_, next)| next.contains(OUTLIVES));
    assert!(!while_it_runs.is_empty(), "{accounts:#?}");
    assert!(after.iter().any(|(kill, _)| kill.ends_with("just after it ran note/n")), "{accounts:#?}");
    assert!(!while_it_runs.iter().any(|(kill, _)| kill.ends_with("just after it ran note/n")), "{accounts:#?}");
}

#[test]
fn what_a_handler_awaits_ends_with_its_node() {
    let accounts = accounts(false);
    let kills = kills(&accounts);
    let mut gone = kills.iter().filter(|(_, next)| next.contains("ends with its node")).peekable();
    assert!(gone.peek().is_some(), "{accounts:#?}");
    let time = |line: &str| line.split(" s  ").next().map(str::to_owned);
    assert!(gone.all(|(kill, next)| time(kill) == time(next)), "{accounts:#?}");
    let all = accounts.iter().map(|account| account.matches("ends with its node").count()).sum::<usize>();
    assert_eq!(all, kills.iter().filter(|(_, next)| next.contains("ends with its node")).count(), "{accounts:#?}");
    assert!(accounts.iter().all(|account| !account.contains("GO ON")), "{accounts:#?}");
}
