//! What a measurement costs: time, and CPU and context switches of this process and of the server.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::server::{Server, Spent};

/// User and system time of this process so far.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Context switches so far, voluntary and not, of the threads that this process has now.
pub fn switches() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
    let count = |status: String| -> u64 {
        let lines = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        lines.filter_map(|(_, number)| number.trim().parse::<u64>().ok()).sum()
    };
    tasks.map(|task| count(status(task))).sum()
}

/// CPU time so far of the threads of this process that are called `dq`, on which dq itself works.
fn own_threads() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|task| task.path());
    let text = |path: &std::path::Path, name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
    let own = tasks.filter(|task| text(task, "comm").trim() == "dq");
    // `schedstat` begins with the nanoseconds that the thread has run.
    own.filter_map(|task| text(&task, "schedstat").split(' ').next()?.parse().ok()).map(Duration::from_nanos).sum()
}

/// Memory of this process that is in RAM, bytes.
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

/// The costs of a job; those of the server are 0 where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Jobs a second.
    pub rate: f64,
    /// CPU time of the server's main thread, µs.
    pub redis_us: f64,
    /// Time within scripts, µs.
    pub script_us: f64,
    /// Commands of clients.
    pub commands: f64,
    /// Calls of commands within scripts.
    pub calls: f64,
    /// CPU time of this process, µs.
    pub client_us: f64,
    /// CPU time of dq's own threads, µs.
    pub own_us: f64,
    /// Context switches of this process.
    pub switches: f64,
}

/// A running measurement.
#[derive(Debug)]
pub struct Meter {
    start: Instant,
    cpu: Duration,
    own: Duration,
    switches: u64,
    spent: Spent,
}

impl Meter {
    /// Starts one of this process and a server, if there is one.
    pub async fn on(server: impl Into<Option<&Server>>) -> Self {
        let spent = match server.into() {
            Some(server) => server.spent().await,
            None => Spent::default(),
        };
        Self { spent, ..Self::start() }
    }

    /// Starts one of this process.
    pub fn start() -> Self {
        Self { switches: switches(), own: own_threads(), cpu: cpu(), start: Instant::now(), spent: Spent::default() }
    }

    /// Ends one of this process, with the costs of each of `jobs`.
    pub fn end(self, jobs: usize) -> Cost {
        let jobs = jobs as f64;
        Cost {
            rate: jobs / self.start.elapsed().as_secs_f64(),
            redis_us: 0.0,
            script_us: 0.0,
            commands: 0.0,
            calls: 0.0,
            client_us: (cpu() - self.cpu).as_secs_f64() * 1e6 / jobs,
            own_us: own_threads().saturating_sub(self.own).as_secs_f64() * 1e6 / jobs,
            switches: (switches() - self.switches) as f64 / jobs,
        }
    }

    /// Ends one of this process and a server, if there is one.
    pub async fn end_on(self, server: impl Into<Option<&Server>>, jobs: usize) -> Cost {
        let before = self.spent;
        let own = self.end(jobs);
        let Some(server) = server.into() else { return own };
        let (now, each) = (server.spent().await, |now: f64, before: f64| (now - before) / jobs as f64);
        Cost {
            redis_us: each(now.main_us, before.main_us),
            script_us: each(now.script_us, before.script_us),
            // Reading what a server has spent takes a connection, which says HELLO and two times CLIENT.
            commands: each(now.commands, before.commands),
            calls: each(now.calls, before.calls),
            ..own
        }
    }
}
