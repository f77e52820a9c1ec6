//! A program adds jobs while Redis is away, and is killed meanwhile.

use std::process::Stdio;

use dq_tests::file::Folder;
use dq_tests::redis::RedisServer;
use dq_tests::{NodeProcess, RunLog};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A process that adds jobs, through a buffer where Redis is away.
struct Adder {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// The jobs whose adds were answered.
    added: Vec<u64>,
}

impl Adder {
    fn start(server: &RedisServer, folder: &Folder, from: u64) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_node"))
            .args(["add", folder.path().to_str().unwrap(), &from.to_string()])
            .env_remove("DQ_REDIS_SERVER")
            .env("DQ_STORE", server.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, lines, added: Vec::new() }
    }

    /// Reads what it prints until a line is this one, or so many more jobs were added.
    async fn until(&mut self, end: &str, more: usize) {
        let most = self.added.len() + more;
        while let Some(line) = self.lines.next_line().await.unwrap() {
            if let Some(n) = line.strip_prefix("added ") {
                self.added.push(n.parse().unwrap());
            }
            if line == end || self.added.len() == most {
                return;
            }
        }
        panic!("the process has ended");
    }

    /// Kills it (SIGKILL), and returns the jobs whose adds were answered.
    async fn kill(mut self) -> Vec<u64> {
        self.child.kill().await.unwrap();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            self.added.extend(line.strip_prefix("added ").map(|n| n.parse::<u64>().unwrap()));
        }
        self.added
    }
}

/// How many adds come between two events: `DQ_BUFFERED_ADDS`, for a long form of this test.
fn some() -> usize {
    std::env::var("DQ_BUFFERED_ADDS").map_or(200, |text| text.parse().expect("DQ_BUFFERED_ADDS is a number"))
}

/// Each process begins far behind the jobs of the one before it.
const APART: u64 = 1_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adds_of_a_program_that_is_killed_while_redis_is_away_arrive_once() {
    let mut server = RedisServer::start_with(&["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    let (folder, mut added, some) = (Folder::unmade(), Vec::new(), some());
    let mut first = Adder::start(&server, &folder, 0);
    first.until("", some).await;
    server.kill();
    first.until("away", APART as usize).await;
    first.until("", some).await;
    added.extend(first.kill().await);
    let mut second = Adder::start(&server, &folder, APART);
    second.until("", some).await;
    added.extend(second.kill().await);
    server.restart();
    let mut third = Adder::start(&server, &folder, 2 * APART);
    third.stdin.write_all(b"end\n").await.unwrap();
    third.until("sent", APART as usize).await;
    added.extend(third.kill().await);
    assert!(added.len() >= 3 * some, "{}", added.len());

    let log = RunLog::default();
    let node = NodeProcess::start(env!("CARGO_BIN_EXE_node"), &server.url(), &[], 1_000_000, "one", &log).await;
    log.until(|runs| added.iter().all(|n| runs.of_job.contains_key(n))).await;
    assert!(node.stop().await.0.success());
    let runs = log.runs();
    let twice: Vec<_> = runs.of_job.iter().filter(|(_, runs)| **runs > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
