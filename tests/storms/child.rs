//! A process of the storm, as the storm sees it.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

use crate::process::Part;

/// What a process has said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Nothing,
    Ready,
    Over,
}

/// A running process. Dropping the value kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    said: watch::Receiver<Said>,
}

impl Process {
    /// Starts a process, which adds what it confirms to `confirmed`.
    ///
    /// # Panics
    /// If this program cannot be started again.
    pub fn start(part: &Part, confirmed: &Arc<AtomicU64>) -> Self {
        let program = std::env::current_exe().expect("this program is a file");
        let mut command = Command::new(program);
        command.args(["process", "--name", &part.name, "--url", &part.url, "--folder"]).arg(Path::new(&part.folder));
        command.args(["--seed", &part.seed.to_string(), "--rate", &part.rate.to_string()]);
        command.args(["--share", &part.share[0].to_string(), &part.share[1].to_string()]);
        command.args(part.listens.then_some("--listens")).args(part.is_alone.then_some("--is-alone"));
        command.args(part.chains.then_some("--chains"));
        if let Some(members) = part.sets {
            command.args(["--sets", &members.to_string()]);
        }
        if let Some(jobs) = part.jobs {
            command.args(["--jobs", &jobs.to_string()]);
        }
        // The tests read this variable; a node rejects it as an unknown setting.
        command.env_remove("DQ_REDIS_SERVER").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("this program can be started again");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let stdin = child.stdin.take().expect("it is piped");
        let (says, said) = watch::channel(Said::Nothing);
        let confirmed = Arc::clone(confirmed);
        tokio::spawn(async move {
            let mut last = 0;
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(count) = line.parse::<u64>() {
                    confirmed.fetch_add(count - last, Relaxed);
                    last = count;
                } else {
                    says.send_replace(if line == "over" { Said::Over } else { Said::Ready });
                }
            }
        });
        Self { child, stdin, said }
    }

    /// Waits until the process works, or has ended.
    pub async fn ready(&mut self) -> bool {
        self.said.wait_for(|said| *said >= Said::Ready).await.is_ok()
    }

    /// Waits until no job is left, or the process has ended. Only a process that adds none says so.
    pub async fn over(&mut self) -> bool {
        self.said.wait_for(|said| *said == Said::Over).await.is_ok()
    }

    /// Ends its adds.
    pub async fn finish(&mut self) {
        // A process that has ended adds nothing.
        let _ = self.stdin.write_all(b"finish\n").await;
    }

    /// Waits until it ends of itself. Cancel safe.
    pub async fn ended(&mut self) -> ExitStatus {
        self.child.wait().await.expect("it is our child")
    }

    /// Kills it (SIGKILL).
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("it is our child");
    }

    /// Stops it cleanly (SIGTERM), and waits for its end.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// Makes it stand still (SIGSTOP).
    pub fn stall(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // A process that has ended of itself gets no signal; its place reports the end.
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)) {
            let _ = kill_process(pid, signal);
        }
    }
}
