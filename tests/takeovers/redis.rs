//! Nodes in processes of their own on Redis, which are killed.

use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use dq::prelude::*;
use dq_tests::redis::RedisServer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::Options;
use crate::figures::{Figures, limit};
use crate::work::{Held, add, keep_busy, listening, waits};

/// A process of a group, by its number.
struct Process {
    number: u64,
    child: Child,
    stdin: ChildStdin,
}

/// Kills so many processes, some in each group.
pub fn measure(lease: Duration, options: &Options) -> Figures {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(async {
        let left = Arc::new(AtomicUsize::new(options.kills));
        let (took, mut all) = mpsc::unbounded_channel();
        let mut groups = Vec::new();
        for group in 0..options.groups {
            let group = Group {
                app: format!("group{group}"),
                url: server.url(),
                lease,
                random: fastrand::Rng::with_seed(options.seed * 1_000 + group as u64),
                processes: Vec::new(),
                started: 0,
            };
            groups.push(tokio::spawn(group.run(Arc::clone(&left), took.clone())));
        }
        drop(took);
        let mut figures = Figures::default();
        while let Some((is_busy, took)) = all.recv().await {
            figures.add(is_busy, took);
            if figures.count().is_multiple_of(50) {
                eprintln!("lease {lease:?}: {} of {}", figures.count(), options.kills);
            }
        }
        for group in groups {
            group.await.expect("every job of the group began in time");
        }
        figures
    })
}

/// Nodes that share two topics.
struct Group {
    app: String,
    url: String,
    lease: Duration,
    random: fastrand::Rng,
    processes: Vec<Process>,
    started: u64,
}

impl Group {
    async fn run(mut self, left: Arc<AtomicUsize>, took: mpsc::UnboundedSender<(bool, Duration)>) {
        let store = self.url.clone();
        let factory = ContextFactory::new(&self.app).store(store).variables([("", ""); 0]);
        let provider = factory.connect().await.expect("the server runs");
        let adding = tokio::spawn(keep_busy(provider.clone(), self.random.fork()));
        let (says, mut said) = mpsc::unbounded_channel();
        let mut n = 0;
        while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            while self.processes.len() < 2 || self.processes.len() < 4 && self.random.bool() {
                self.start(&says).await;
            }
            let [before, after] = waits(self.lease, &mut self.random);
            sleep_until(Instant::now() + before).await;
            n += 1;
            let is_busy = self.random.bool();
            add(&provider, is_busy, n).await;
            let holder = begins(&mut said, self.lease, n).await;
            sleep_until(Instant::now() + after).await;
            let place = self.processes.iter().position(|process| process.number == holder).expect("it runs");
            let died = Instant::now();
            self.processes.swap_remove(place).child.kill().await.expect("it is our child");
            // A node that was out of time for its lease may have begun its own job again before it died.
            let next = loop {
                let next = begins(&mut said, self.lease, n).await;
                if let Some(place) = self.processes.iter().position(|process| process.number == next) {
                    break &mut self.processes[place];
                }
            };
            took.send((is_busy, died.elapsed())).expect("the receiver waits until the last group is gone");
            next.stdin.write_all(format!("{n}\n").as_bytes()).await.expect("it reads");
        }
        adding.abort();
    }

    /// Starts a process, and waits until it is ready.
    async fn start(&mut self, says: &mpsc::UnboundedSender<(u64, u64)>) {
        self.started += 1;
        let number = self.started;
        let mut child = Command::new(std::env::current_exe().expect("this program is a file"))
            .args(["--node", &self.app])
            .env_remove("DQ_REDIS_SERVER")
            .env("DQ_STORE", &self.url)
            .env("DQ_LEASE", format!("{}ms", self.lease.as_millis()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("this program can be started again");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let stdin = child.stdin.take().expect("it is piped");
        lines.next_line().await.expect("it is text").expect("it says that it is ready");
        let says = says.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // The group may be gone.
                drop(line.parse().map(|n| says.send((number, n))));
            }
        });
        self.processes.push(Process { number, child, stdin });
    }
}

/// Waits until this job begins, and returns the number of its process.
async fn begins(said: &mut mpsc::UnboundedReceiver<(u64, u64)>, lease: Duration, n: u64) -> u64 {
    let wanted = async {
        loop {
            let (number, began) = said.recv().await.expect("the group holds a sender");
            if began == n {
                return number;
            }
        }
    };
    let limit = limit(lease);
    timeout(limit, wanted).await.unwrap_or_else(|_| panic!("job {n} did not begin within {limit:?}, lease {lease:?}"))
}

/// Runs as a node: prints the number of each held job that begins, and releases the one that a line of stdin names.
pub fn node(app: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime can be built").block_on(async {
        let (begins, mut reports) = mpsc::unbounded_channel();
        let (release, released) = watch::channel(0);
        let context =
            listening(ContextFactory::new(app), Held { begins, released }).start().await.expect("the server runs");
        context.ready().await;
        println!("ready");
        tokio::spawn(async move {
            while let Some(n) = reports.recv().await {
                println!("{n}");
            }
        });
        let over = tokio::task::spawn_blocking(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                release.send_replace(line.parse().unwrap_or_default());
            }
        });
        over.await.expect("reading does not panic");
        drop(context);
        ExitCode::SUCCESS
    })
}
