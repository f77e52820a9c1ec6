//! The storm of one process, which adds and runs jobs and is killed at random instants. It is made for the store in a directory,
//! which belongs to one process; it also runs on Redis.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dq::store::file::CheckError;
use tokio::time::{Instant, sleep_until, timeout};

use crate::backups::Backups;
use crate::child::Process;
use crate::ledger::{Entry, Ledger, now, read};
use crate::process::{Part, rng, watch_machine};
use crate::server::Server;
use crate::{Kind, Storm};

/// How often the process is killed, if nothing else is asked for.
const KILLS: u64 = 500;

/// How long a process lives on Redis, ms. Jobs of a dead node wait there until its lease is over.
const LIVES_ON_REDIS: std::ops::Range<u64> = 500..9_000;
/// How long it lives in a directory.
const LIVES_IN_DIRECTORY: std::ops::Range<u64> = 5..900;

/// How long the last process may take to finish all jobs.
const MAX_END: Duration = Duration::from_secs(300);

/// Checks the store in a directory while nobody uses it. A process that was killed while it started may have left no store, as long
/// as no job was added.
///
/// # Errors
/// What is wrong with it.
fn check(url: &str, confirmed: u64) -> Result<(), String> {
    match url.strip_prefix("file:").map(dq::store::file::check) {
        None | Some(Ok(_)) => Ok(()),
        Some(Err(CheckError::NoDirectory { .. } | CheckError::NoStore { .. })) if confirmed == 0 => Ok(()),
        Some(Err(error)) => Err(error.to_string()),
    }
}

/// Runs a storm, which writes its files into `folder`. Returns what could not be finished, and what the checks of the store found.
pub async fn run(storm: &Storm, kills: Option<u64>, seed: u64, folder: &Path) -> Vec<String> {
    let ledger = Arc::new(Ledger::create(folder, "storm").expect("the folder is new"));
    watch_machine(Arc::clone(&ledger), storm.directory.as_deref().unwrap_or(folder));
    let (server, url, lives) = match storm.store {
        Kind::Redis => {
            let server = Server::start(storm.forgets);
            let url = server.url();
            (Some(server), url, LIVES_ON_REDIS)
        }
        Kind::File => {
            let directory = storm.directory.as_deref().unwrap_or(folder).join(format!("store-{seed}"));
            (None, format!("file:{}", directory.display()), LIVES_IN_DIRECTORY)
        }
    };
    let (kills, mut rng, mut wrong) = (kills.unwrap_or(KILLS), rng(seed, "kills"), Vec::new());
    let confirmed = Arc::<AtomicU64>::default();
    let part = |number: u64| Part {
        name: format!("owner-0.{number}"),
        url: url.clone(),
        folder: folder.to_owned(),
        seed,
        listens: true,
        jobs: Some(u64::MAX),
        rate: storm.rate,
        share: vec![1, 0],
        is_alone: true,
        chains: storm.chains,
        sets: storm.sets,
    };
    let directory = url.strip_prefix("file:").filter(|_| storm.backup);
    let backups = directory.map(|directory| Backups::start(directory.into(), folder.join("copies")));
    let (jobs, mut number) = (storm.jobs.unwrap_or(0), 0);
    while number < kills || confirmed.load(Relaxed) < jobs {
        number += 1;
        let mut process = Process::start(&part(number), &confirmed);
        // Now and then a process is killed while it starts.
        if rng.u32(0..10) > 0 && !process.ready().await {
            wrong.push(format!("{} ended with {}", part(number).name, process.ended().await));
            return wrong;
        }
        sleep_until(Instant::now() + Duration::from_millis(rng.u64(lives.clone()))).await;
        let from = now();
        process.kill().await;
        let target = part(number).name;
        ledger.note(Entry::Event { target: target.clone(), what: "killed".into(), from, to: now() });
        if let Err(what) = check(&url, confirmed.load(Relaxed)) {
            wrong.push(format!("after the kill of {target}: {what}"));
            return wrong;
        }
        if number % 50 == 0 {
            println!("{number} kills, {} jobs", confirmed.load(Relaxed));
        }
    }
    if let Some(backups) = backups {
        wrong.extend(backups.stop(&read(folder).expect("the files can be read")));
    }
    // The last process adds nothing and finishes all jobs. Then another one lists what is left.
    let last = Part { jobs: Some(0), ..part(number + 1) };
    let lister = Part { listens: false, jobs: None, ..part(number + 2) };
    for part in [last, lister] {
        wrong.extend(finish(&part, &confirmed).await.err());
    }
    wrong.extend(check(&url, confirmed.load(Relaxed)).err());
    drop(server);
    wrong
}

/// Lets a process do what it has to do, and stops it cleanly.
async fn finish(part: &Part, confirmed: &Arc<AtomicU64>) -> Result<(), String> {
    let mut process = Process::start(part, confirmed);
    let over = async { if part.jobs.is_some() { process.over().await } else { process.ready().await } };
    match timeout(MAX_END, over).await {
        Ok(true) => {}
        Ok(false) => return Err(format!("{} ended with {}", part.name, process.ended().await)),
        Err(_) => return Err(format!("jobs are not over, {} s after the storm", MAX_END.as_secs())),
    }
    let status = process.stop().await;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", part.name)) }
}
