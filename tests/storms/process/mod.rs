//! One process of a storm: a node, a producer, or both.
//!
//! It says `ready` once it works, and then how many adds were confirmed; if it adds nothing, it says `over` once no job is left. On stdin it reads `finish`, which ends its adds. It ends
//! cleanly at SIGTERM, and at once when its stdin is closed or its parent dies.

mod callers;
mod listeners;
mod listing;
mod sets;
mod stalls;
mod verdicts;
mod webhook;
pub mod work;

use std::fs::File;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clap::Args;
use dq::prelude::*;
use dq::store::Durability;
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::ledger::Ledger;
use callers::Callers;
pub use callers::rng;
pub use listing::{left, list};
pub use stalls::watch_machine;
use work::Kind;

/// The app of every storm.
pub const APP: &str = "storm";

/// The timing of all nodes and producers.
const LEASE: &str = "3s";
const RENEWAL: &str = "1s";
const CALL_TIMEOUT: &str = "1s";
const CALL_TOTAL: &str = "5s";
const FALLBACK: &str = "2s";
/// How long a call waits for a replica.
const CONFIRMED_WITHIN: Duration = Duration::from_millis(500);

/// How long handlers may go on when their process stops cleanly.
const GRACE: Duration = Duration::from_secs(25);

/// A process that finds more jobs adds none: those of its predecessors come first.
const MAX_LEFT: usize = 2_000;

/// The largest setting of `max_crashes`.
const MAX_CRASHES: u32 = 1_000;

/// How often a process tells its progress.
const PROGRESS: Duration = Duration::from_millis(100);

/// The options of one process. The storm itself gives them.
#[derive(Debug, Clone, Args)]
pub struct Part {
    /// The name of the process.
    #[arg(long)]
    pub name: String,
    /// The URL of the store.
    #[arg(long)]
    pub url: String,
    /// The folder for the files of the storm.
    #[arg(long)]
    pub folder: PathBuf,
    /// The seed of the storm.
    #[arg(long)]
    pub seed: u64,
    /// Runs jobs.
    #[arg(long)]
    pub listens: bool,
    /// Adds so many jobs at most, and sends commands.
    #[arg(long)]
    pub jobs: Option<u64>,
    /// How many jobs it adds in a second.
    #[arg(long, default_value_t = 500)]
    pub rate: u64,
    /// How many producers share the parked jobs, and which of them this one is.
    #[arg(long, num_args = 2, default_values_t = [1, 0])]
    pub share: Vec<u64>,
    /// It is the only process of its store. It lists all jobs before it begins, and its deaths convict no job.
    #[arg(long)]
    pub is_alone: bool,
    /// It adds nothing but first jobs of chains.
    #[arg(long)]
    pub chains: bool,
    /// It adds nothing but sets of so many members.
    #[arg(long)]
    pub sets: Option<u64>,
}

/// Runs the process until it is told to stop.
pub fn run(part: &Part) -> ExitCode {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).expect("it is a signal");
    let ledger = Arc::new(Ledger::create(&part.folder, &part.name).expect("the process has a new name"));
    report(part, &ledger);
    stalls::watch(Arc::clone(&ledger), part.name.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.expect("the system gives threads").block_on(work(part, ledger)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", part.name);
            ExitCode::from(3)
        }
    }
}

/// Writes verdicts into the ledger, and warnings into a log beside it.
fn report(part: &Part, ledger: &Arc<Ledger>) {
    let log = File::create(part.folder.join(format!("{}.log", part.name))).expect("the folder can be written");
    let warnings = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(log).with_filter(LevelFilter::WARN);
    let verdicts = verdicts::Verdicts::new(Arc::clone(ledger)).with_filter(filter_fn(verdicts::is_wanted));
    tracing_subscriber::registry().with(warnings).with(verdicts).init();
}

/// Whether replicas take over from masters that are killed.
fn fails_over(url: &str) -> bool {
    url.starts_with("redis+")
}

/// The store may be down while a process starts. A user would start it again, as this does.
async fn started<T>(part: &Part, start: impl AsyncFn() -> Result<T, dq::Error>) -> Result<T, dq::Error> {
    loop {
        match start().await {
            Err(error) if error.to_string().contains("cannot be reached") => {}
            // It may be without a master for a while.
            Err(_) if fails_over(&part.url) => {}
            started => return started,
        }
    }
}

fn factory(part: &Part, ledger: &Arc<Ledger>) -> ContextFactory {
    let factory = ContextFactory::new(APP).store(&part.url).variables([("", ""); 0]).provide(Arc::clone(ledger));
    let factory = factory.lease(LEASE).heartbeat_interval(RENEWAL).poll_interval(FALLBACK);
    let factory = factory.call_timeout(CALL_TIMEOUT).call_deadline(CALL_TOTAL);
    // A failover may lose what no replica has.
    let factory = match fails_over(&part.url) {
        true => factory.durability(Durability::Wait { replicas: 1, timeout: CONFIRMED_WITHIN }),
        false => factory,
    };
    match (part.listens, part.is_alone) {
        (false, _) => factory.without_listeners(),
        (true, false) => factory,
        // Jobs that were in many crashes would run one by one, and a storm of one process is made of crashes.
        (true, true) => Kind::ALL
            .iter()
            .fold(factory, |factory, kind| factory.topic(kind.topic(), |topic| topic.max_crashes(MAX_CRASHES))),
    }
}

async fn work(part: &Part, ledger: Arc<Ledger>) -> Result<(), dq::Error> {
    let mut jobs = part.jobs;
    if part.is_alone {
        let provider = started(part, async || Provider::connect(APP, &part.url).await).await?;
        if list(&provider, &ledger).await? > MAX_LEFT {
            jobs = jobs.map(|_| 0);
        }
    }
    let context = started(part, async || factory(part, &ledger).start().await).await?;
    let callers = jobs.map(|jobs| Callers::start(part, jobs, context.provider().clone(), Arc::clone(&ledger)));
    let confirmed = callers.as_ref().map(Callers::confirmed).unwrap_or_default();
    let finish = callers.as_ref().map(Callers::finisher);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let ("finish", Some(finish)) = (line.as_str(), &finish) {
                finish.send_replace(true);
            }
        }
        std::process::exit(1);
    });
    // From here on, SIGTERM stops the process cleanly.
    let mut term = signal(SignalKind::terminate()).expect("tokio handles signals");
    println!("ready");
    tokio::spawn(tell(context.provider().clone(), confirmed, part.jobs == Some(0)));
    term.recv().await;
    context.shutdown(GRACE).await;
    Ok(())
}

/// Tells how many adds were confirmed, and when no job is left.
async fn tell(provider: Provider, confirmed: Arc<AtomicU64>, only_finishes: bool) {
    let mut tick = tokio::time::interval(PROGRESS);
    loop {
        tick.tick().await;
        println!("{}", confirmed.load(Relaxed));
        // A query that fails is repeated.
        if only_finishes && left(&provider).await.is_ok_and(|left| left == 0) {
            println!("over");
        }
    }
}
