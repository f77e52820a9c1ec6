//! Node processes: what they say, and their end.

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};

use dq::DelayJob;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the node processes work on.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "count")]
pub struct Count {
    /// Its number, and its id.
    #[job(id)]
    pub n: u64,
}

/// Which runs were begun.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// Of each job: how many.
    pub of_job: BTreeMap<u64, usize>,
    /// Of each process: of which jobs, in order.
    pub of_process: BTreeMap<&'static str, Vec<u64>>,
}

impl Runs {
    /// The runs that this process began.
    pub fn by(&self, name: &str) -> &[u64] {
        self.of_process.get(name).map_or(&[], Vec::as_slice)
    }
}

/// What all processes of a test have said.
#[derive(Debug, Clone)]
pub struct Received(watch::Sender<Runs>);

impl Default for Received {
    fn default() -> Self {
        Self(watch::Sender::new(Runs::default()))
    }
}

impl Received {
    /// What was begun so far.
    pub fn runs(&self) -> Runs {
        self.0.borrow().clone()
    }

    /// Waits until that is enough.
    pub async fn until(&self, enough: impl FnMut(&Runs) -> bool) {
        self.0.subscribe().wait_for(enough).await.expect("it lives as long as this");
    }

    async fn listen(self, name: &'static str, mut lines: Lines<BufReader<ChildStdout>>) -> Vec<String> {
        let mut others = Vec::new();
        while let Ok(Some(line)) = lines.next_line().await {
            match line.strip_prefix("ran ").and_then(|n| n.parse().ok()) {
                Some(n) => {
                    self.0.send_modify(|runs| {
                        *runs.of_job.entry(n).or_default() += 1;
                        runs.of_process.entry(name).or_default().push(n);
                    });
                }
                None => others.push(line),
            }
        }
        others
    }
}

/// A node in a process of its own; it is killed when this is dropped.
#[derive(Debug)]
pub struct NodeProcess {
    child: Child,
    stdin: ChildStdin,
    listening: JoinHandle<Vec<String>>,
    node: String,
}

impl NodeProcess {
    /// Starts the program of `node.rs` on this store, with these variables, and waits until it is ready. So many of its runs
    /// end before it is told to [`go_on`](Self::go_on); the others only begin.
    pub async fn start(
        program: &str,
        store: &str,
        variables: &[(&str, &str)],
        runs: usize,
        name: &'static str,
        last_seen: &Received,
    ) -> Self {
        let mut child = Command::new(program)
            .arg(runs.to_string())
            // It is for the tests, and a node refuses what is no setting of dq.
            .env_remove("DQ_REDIS_SERVER")
            .env("DQ_STORE", store)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program was built");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next_line().await.expect("it is text").expect("it says that it is ready");
        let node = first.strip_prefix("node ").expect("the first line names the node").to_owned();
        let stdin = child.stdin.take().expect("it is piped");
        Self { child, stdin, listening: tokio::spawn(last_seen.clone().listen(name, lines)), node }
    }

    /// The id of its node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Lets all runs end.
    pub async fn go_on(&mut self) {
        self.stdin.write_all(b"go on\n").await.expect("it reads");
    }

    /// Ends it where it is (SIGKILL); all that it has said is heard when this returns.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it is this process's child");
        self.listening.await.expect("it only reads");
    }

    /// Stops it cleanly (SIGTERM): how it ended, and what it said besides its runs.
    pub async fn stop(mut self) -> (ExitStatus, Vec<String>) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("it runs");
        kill_process(pid, Signal::TERM).expect("it is this process's child");
        let said = self.listening.await.expect("it only reads");
        (self.child.wait().await.expect("it is this process's child"), said)
    }
}
