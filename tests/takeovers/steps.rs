//! A job that saves its state at each of its steps, in processes that are killed (`kill -9`) at every one of them: before the checkpoint,
//! while it is in flight, or after its answer. The next process continues from the last checkpoint.

use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use dq::prelude::*;
use dq_tests::file::Folder;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::Store;

const LEASE: &str = "1s";

/// A process has that long for whatever it prints next, also if it waits for the lease of the one before.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "steps")]
struct InSteps {
    #[job(id)]
    n: u64,
    steps: u64,
}

/// Prints what it is about to do, and does it when it is told to.
#[delay_listener(register = false, timeout = "none", max_crashes = 1000, retry = "1s x 1000")]
async fn in_steps(job: Job<InSteps>, channel: Channel, told: &Told) -> Result<Decided, JobError> {
    let done: u64 = job.state()?.unwrap_or(0);
    println!("from {done}");
    for step in done + 1..=job.steps {
        println!("step {step}");
        told.wait().await;
        channel.checkpoint(&step).await?;
        println!("saved {step}");
        told.wait().await;
    }
    println!("over");
    Ok(channel.ack())
}

/// A line of stdin lets the handler go on.
#[derive(Clone)]
struct Told(Arc<Mutex<mpsc::UnboundedReceiver<()>>>);

impl Told {
    fn by_stdin() -> Self {
        let (tells, told) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for _ in std::io::stdin().lines().map_while(Result::ok) {
                tells.send(()).expect("the handlers are not gone before the process");
            }
            std::process::exit(0); // the test is gone
        });
        Self(Arc::new(Mutex::new(told)))
    }

    async fn wait(&self) {
        self.0.lock().await.recv().await.expect("the thread reads until the process ends");
    }
}

/// Runs as a node that adds the job if it is not there yet.
pub fn node(steps: u64) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime can be built").block_on(async {
        let factory = ContextFactory::new("steps").without_inventory().listener::<in_steps>().provide(Told::by_stdin());
        let context = factory.start().await.expect("the store is there");
        let added = context.provider().add(InSteps { n: 1, steps }).keep_existing().await.expect("the store is there");
        added.or_error_if_dead().expect("the job is not given up");
        std::future::pending::<()>().await;
        ExitCode::SUCCESS
    })
}

/// A process that runs the job.
struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(store: &str, steps: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program is a file"))
            .args(["--node", "steps", "--steps", &steps.to_string()])
            .env("DQ_STORE", store)
            .env("DQ_LEASE", LEASE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("this program can be started again");
        let stdin = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, stdin, lines }
    }

    /// The next line: a word and, unless the job is over, a number.
    async fn next(&mut self) -> (String, u64) {
        let line = timeout(LIMIT, self.lines.next_line()).await.expect("it prints in time").expect("it is text");
        let line = line.expect("it is not over");
        let (word, number) = line.split_once(' ').unwrap_or((&line, "0"));
        (word.to_owned(), number.parse().expect("it is a number"))
    }

    async fn lets_go_on(&mut self) {
        self.stdin.write_all(b"\n").await.expect("it reads");
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("it is our child");
    }
}

/// Kills a process at each step of a job of so many. Returns whether each began where the one before has saved its state.
pub fn kill_at_each(store: Store, steps: u64) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    match store {
        Store::Redis => {
            let server = RedisServer::start();
            runtime.block_on(kill_all(&server.url(), steps))
        }
        Store::File => {
            let folder = Folder::unmade();
            runtime.block_on(kill_all(&folder.url(), steps))
        }
    }
}

async fn kill_all(store: &str, steps: u64) -> bool {
    // The steps that are certainly saved, and those that may be.
    let (mut saved, mut sent, mut is_right) = (0, 0, true);
    for step in 1..=steps + 1 {
        let mut process = Process::start(store, steps);
        loop {
            match process.next().await {
                (word, from) if word == "from" => {
                    if !(saved..=sent).contains(&from) {
                        println!("the run after step {sent} begins from {from}, and {saved} was saved");
                        is_right = false;
                    }
                }
                (word, at) if word == "step" && at == step => match step % 3 {
                    0 => break,
                    1 => {
                        process.lets_go_on().await;
                        sent = step;
                        break;
                    }
                    _ => process.lets_go_on().await,
                },
                (word, at) if word == "saved" => {
                    (saved, sent) = (at, at);
                    if at == step {
                        break;
                    }
                    process.lets_go_on().await;
                }
                (word, _) if word == "over" => {
                    println!("{steps} steps, a kill at each: continued from the last checkpoint each time: {is_right}");
                    return is_right;
                }
                _ => process.lets_go_on().await,
            }
        }
        process.kill().await;
    }
    println!("the job did not end");
    false
}
