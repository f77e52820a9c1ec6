//! The place of one process: when the storm kills it, another one takes its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dq_tests::Proxy;
use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::child::Process;
use crate::faults::{Fault, Faults, Network};
use crate::ledger::{Entry, Ledger, now};
use crate::process::Part;

/// How long a process stands still: longer than a lease of three seconds.
const STALL_MS: std::ops::Range<u64> = 3_500..7_000;

/// A place, and the process in it.
#[derive(Debug)]
pub struct Place {
    /// `node-2` or `producer-0`.
    name: String,
    /// The options of its processes.
    part: Part,
    proxy: Proxy,
    ledger: Arc<Ledger>,
    rng: Rng,
    /// What happens here.
    faults: Faults,
    /// The mean time from fault to fault.
    pause: Duration,
    confirmed: Arc<AtomicU64>,
    started: u64,
    earlier: u32,
    process: Option<Process>,
}

async fn pass(time: Duration) {
    sleep_until(Instant::now() + time).await;
}

impl Place {
    /// Makes a place, empty.
    pub fn new(name: &str, part: Part, proxy: Proxy, ledger: &Arc<Ledger>, faults: Faults, pause: Duration) -> Self {
        let (rng, ledger) = (crate::process::rng(part.seed, name), Arc::clone(ledger));
        let (name, confirmed) = (name.to_owned(), Arc::default());
        Self { name, part, proxy, ledger, rng, faults, pause, confirmed, started: 0, earlier: 0, process: None }
    }

    /// The adds that its processes have confirmed.
    pub fn confirmed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.confirmed)
    }

    /// Starts the next process and waits until it works.
    pub async fn start(&mut self) {
        self.started += 1;
        let jobs = self.part.jobs.map(|jobs| jobs.saturating_sub(self.confirmed.load(Relaxed)));
        let url = if self.part.url.is_empty() { self.proxy.url() } else { self.part.url.clone() };
        let part = Part { name: self.process_name(), url, jobs, ..self.part.clone() };
        let process = self.process.insert(Process::start(&part, &self.confirmed));
        process.ready().await;
    }

    fn process_name(&self) -> String {
        format!("{}.{}", self.name, self.started)
    }

    /// Lets faults happen until the storm is over.
    pub async fn suffer(&mut self, mut over: watch::Receiver<bool>) {
        loop {
            let mean = u64::try_from(self.pause.as_millis()).unwrap_or(u64::MAX);
            let pause = Duration::from_millis(self.rng.u64(mean / 5..mean * 9 / 5));
            let process = self.process.as_mut().expect("a process is in its place between faults");
            tokio::select! {
                biased;
                _ = over.wait_for(|over| *over) => return,
                status = process.ended() => {
                    let what = format!("ended of itself: {status}");
                    self.event(&self.process_name(), &what, now());
                    self.start().await;
                }
                () = pass(pause) => self.fault().await,
            }
        }
    }

    async fn fault(&mut self) {
        let fault = Fault::draw(&mut self.rng, self.faults, self.earlier);
        self.earlier += 1;
        let (name, since) = (self.process_name(), now());
        let process = self.process.as_mut().expect("a process is in its place between faults");
        match fault {
            Fault::Kill => {
                process.kill().await;
                self.event(&name, "killed", since);
                let pause = Duration::from_millis(self.rng.u64(0..2_000));
                pass(pause).await;
                self.start().await;
            }
            Fault::Stall => {
                process.stall();
                pass(Duration::from_millis(self.rng.u64(STALL_MS))).await;
                process.go_on();
                self.event(&name, "stalled", since);
            }
            Fault::Stop => {
                let status = process.stop().await;
                let what = if status.success() { "stopped".to_owned() } else { format!("ended of itself: {status}") };
                self.event(&name, &what, since);
                self.start().await;
            }
            Fault::Network(network) => self.network(network).await,
        }
    }

    async fn network(&mut self, network: Network) {
        let since = now();
        network.begin(&self.proxy);
        let lasts = network.duration(&mut self.rng);
        pass(lasts).await;
        self.proxy.mend();
        self.event(&self.name, network.name(), since);
    }

    /// Ends the adds of its process.
    pub async fn finish(&mut self) {
        if let Some(process) = &mut self.process {
            process.finish().await;
        }
    }

    /// Stops its process cleanly. Returns what went wrong.
    pub async fn stop(&mut self) -> Option<String> {
        let name = self.process_name();
        let stopped = timeout(Duration::from_secs(60), self.process.as_mut()?.stop()).await;
        match stopped {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("{name} ended with {status}")),
            Err(_) => Some(format!("{name} did not stop within a minute")),
        }
    }

    fn event(&self, target: &str, what: &str, from: u64) {
        self.ledger.note(Entry::Event { target: target.to_owned(), what: what.to_owned(), from, to: now() });
    }
}
