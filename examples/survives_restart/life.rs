//! The node as a process of its own: what it prints, and its end.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::runs::{Run, Runs};

/// Any error that ends the program.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// The longest wait for a line: after a kill, other nodes take its jobs once its lease has ended.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A node from its start to its end.
pub(crate) struct Life {
    child: Child,
    lines: Receiver<String>,
}

impl Life {
    /// Starts a node; the first one also adds the jobs.
    pub(crate) fn start(store: &str, run: u64, jobs: Option<u64>) -> Result<Self, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--store", store, "--node-of", &run.to_string()]);
        if let Some(jobs) = jobs {
            command.args(["--add", "--jobs", &jobs.to_string()]);
        }
        // Its stdin ends with this program, and so does the node.
        command.env_remove("DQ_STORE").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or("the node has no stdout")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines();
            while let Some(Ok(line)) = lines.next() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines })
    }

    fn line(&self) -> Result<String, Failed> {
        self.lines.recv_timeout(MAX_WAIT).map_err(|_| "the node ended, or did nothing for a minute".into())
    }

    /// Waits until the store has confirmed all adds. Notes what ran before.
    pub(crate) fn wait_until_added(&self, runs: &mut Runs, life: u32) -> Result<(), Failed> {
        loop {
            match self.line()?.as_str() {
                "added" => return Ok(()),
                line => runs.note(Run::parse(life, line)?),
            }
        }
    }

    /// Notes what the node runs until that is enough.
    pub(crate) fn read_until(&self, runs: &mut Runs, life: u32, enough: impl Fn(&Runs) -> bool) -> Result<(), Failed> {
        while !enough(runs) {
            runs.note(Run::parse(life, &self.line()?)?);
        }
        Ok(())
    }

    /// Notes what a node that has ended had printed.
    fn read_rest(&self, runs: &mut Runs, life: u32) -> Result<(), Failed> {
        self.lines.iter().try_for_each(|line| {
            runs.note(Run::parse(life, &line)?);
            Ok(())
        })
    }

    /// Kills the node with SIGKILL.
    pub(crate) fn kill(&mut self, runs: &mut Runs, life: u32) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        self.read_rest(runs, life)
    }

    /// Stops the node cleanly.
    pub(crate) fn end(&mut self, runs: &mut Runs, life: u32) -> Result<(), Failed> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        self.read_rest(runs, life)?;
        if status.success() { Ok(()) } else { Err(format!("the node ended with {status}").into()) }
    }
}

/// An error of this program must leave no node behind.
impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
