//! Node processes: starting them, reading their output, stopping and killing them.

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};

use dq::DelayJob;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The job that node processes run.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "count")]
pub struct Count {
    /// The number of the job, which is also its id.
    #[job(id)]
    pub n: u64,
}

/// The runs that have begun.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// The number of runs of each job.
    pub of_job: BTreeMap<u64, usize>,
    /// The jobs that each process ran, in order.
    pub of_process: BTreeMap<&'static str, Vec<u64>>,
}

impl Runs {
    /// Returns the jobs that the process `name` ran, in order.
    pub fn by(&self, name: &str) -> &[u64] {
        self.of_process.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The runs that all processes of a test have reported.
#[derive(Debug, Clone)]
pub struct RunLog(watch::Sender<Runs>);

impl Default for RunLog {
    fn default() -> Self {
        Self(watch::Sender::new(Runs::default()))
    }
}

impl RunLog {
    /// Returns the runs reported so far.
    pub fn runs(&self) -> Runs {
        self.0.borrow().clone()
    }

    /// Waits until the runs satisfy `enough`.
    pub async fn until(&self, enough: impl FnMut(&Runs) -> bool) {
        self.0.subscribe().wait_for(enough).await.expect("self holds the sender");
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

/// A node in a process of its own. Dropping the value kills the process.
#[derive(Debug)]
pub struct NodeProcess {
    child: Child,
    stdin: ChildStdin,
    listening: JoinHandle<Vec<String>>,
    node: String,
}

impl NodeProcess {
    /// Starts the program of `node.rs` on `store` with these environment variables, and waits until the node is ready.
    /// `runs` of its runs may end; later ones begin and wait for [`go_on`](Self::go_on).
    pub async fn start(
        program: &str,
        store: &str,
        variables: &[(&str, &str)],
        runs: usize,
        name: &'static str,
        log: &RunLog,
    ) -> Self {
        let mut child = Command::new(program)
            .arg(runs.to_string())
            // The tests read this variable; a node rejects it as an unknown setting.
            .env_remove("DQ_REDIS_SERVER")
            .env("DQ_STORE", store)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program was built");
        let mut lines = BufReader::new(child.stdout.take().expect("the stream is piped")).lines();
        let first = lines.next_line().await.expect("the output is UTF-8").expect("the node prints that it is ready");
        let node = first.strip_prefix("node ").expect("the first line names the node").to_owned();
        let stdin = child.stdin.take().expect("the stream is piped");
        Self { child, stdin, listening: tokio::spawn(log.clone().listen(name, lines)), node }
    }

    /// Returns the id of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns its process id.
    ///
    /// # Panics
    /// If it has ended.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process is running")
    }

    /// Lets all runs end, those that wait and those to come.
    pub async fn go_on(&mut self) {
        self.stdin.write_all(b"go on\n").await.expect("the process reads its stdin");
    }

    /// Kills the process (SIGKILL). When this returns, all of its output has been read.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process is our child");
        self.listening.await.expect("the reading task does not panic");
    }

    /// Stops the process cleanly (SIGTERM). Returns its exit status and the lines it printed besides its runs.
    pub async fn stop(mut self) -> (ExitStatus, Vec<String>) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("the process is running");
        kill_process(pid, Signal::TERM).expect("the process is our child");
        let said = self.listening.await.expect("the reading task does not panic");
        (self.child.wait().await.expect("the process is our child"), said)
    }
}
