//! The storm of many processes on Redis.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dq::Provider;
use dq::inspect::FindingCode;
use dq::provider::CallError;
use dq_tests::Proxy;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::Storm;
use crate::faults::Faults;
use crate::ledger::Ledger;
use crate::place::Place;
use crate::process::{APP, Part, left, list, rng};
use crate::server::Server;

/// How much rarer faults of the store are than those of a process.
const STORE_PAUSES: u32 = 3;

/// How often the storm looks how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// How long the number of jobs that are not over may stay the same once the storm is over.
const MAX_HALT: Duration = Duration::from_secs(60);

/// Whether replicas take over from masters that are killed. Nothing else happens to such a store, and nothing but kills to the processes.
const fn fails_over(storm: &Storm) -> bool {
    storm.sentinel || storm.cluster
}

/// Runs a storm, which writes its files into `folder`. Returns what could not be finished.
pub async fn run(storm: &Storm, seed: u64, folder: &Path) -> Vec<String> {
    let ledger = Arc::new(Ledger::create(folder, "storm").expect("the folder is new"));
    crate::process::watch_machine(Arc::clone(&ledger), folder);
    let server = match (storm.sentinel, storm.cluster) {
        (true, _) => Server::behind_sentinels(),
        (_, true) => Server::of_a_cluster(),
        _ => Server::start(storm.forgets),
    };
    let mut places = places(storm, seed, folder, &ledger, &server);
    join_all(places.iter_mut().map(Place::start)).await;
    let over = watch::Sender::new(false);
    let pause = Duration::from_millis(storm.pause);
    let store_rng = rng(seed, "store");
    let store = server.clone().suffer(Arc::clone(&ledger), store_rng, pause * STORE_PAUSES, over.subscribe());
    let store = (fails_over(storm) || !storm.only_kills).then(|| tokio::spawn(store));
    let confirmed: Vec<_> = places.iter().map(Place::confirmed).collect();
    let end = async {
        let began = Instant::now();
        let mut shown = 0;
        loop {
            sleep_until(Instant::now() + LOOK).await;
            let added: u64 = confirmed.iter().map(|count| count.load(Relaxed)).sum();
            if began.elapsed().as_secs() / 10 > shown {
                shown = began.elapsed().as_secs() / 10;
                println!("{:4} s: {added} jobs", began.elapsed().as_secs());
            }
            let is_over = match storm.jobs {
                Some(jobs) => added >= jobs,
                None => began.elapsed() >= Duration::from_secs(storm.seconds),
            };
            if is_over {
                break;
            }
        }
        over.send_replace(true);
    };
    let suffer = join_all(places.iter_mut().map(|place| place.suffer(over.subscribe())));
    let ((), _) = tokio::join!(end, suffer);
    if let Some(store) = store {
        store.await.expect("the server starts again");
    }
    finish(&mut places, &server, &ledger).await
}

fn places(storm: &Storm, seed: u64, folder: &Path, ledger: &Arc<Ledger>, server: &Server) -> Vec<Place> {
    let port = server.port();
    let (folder, pause) = (folder.to_owned(), Duration::from_millis(storm.pause));
    let part = |listens, jobs, share| Part {
        name: String::new(),
        // The other storms have a proxy on the way.
        url: if fails_over(storm) { server.url() } else { String::new() },
        folder: folder.clone(),
        seed,
        listens,
        jobs,
        rate: storm.rate / storm.producers.max(1),
        share,
        is_alone: false,
        chains: storm.chains,
        sets: storm.sets,
    };
    let faults = |number| match number {
        _ if storm.only_kills || fails_over(storm) => Faults::Kills,
        0 => Faults::Stops,
        _ => Faults::All,
    };
    let nodes = (0..storm.nodes).map(|number| {
        let part = part(true, None, vec![1, 0]);
        Place::new(&format!("node-{number}"), part, Proxy::start(port), ledger, faults(number), pause)
    });
    let producers = (0..storm.producers).map(|number| {
        let jobs = storm.jobs.map_or(u64::MAX, |jobs| jobs.div_ceil(storm.producers));
        let part = part(false, Some(jobs), vec![storm.producers, number]);
        Place::new(&format!("producer-{number}"), part, Proxy::start(port), ledger, faults(number + 1), pause)
    });
    nodes.chain(producers).collect()
}

/// Waits until all jobs are over, stops all processes, and lists what is left.
async fn finish(places: &mut [Place], server: &Server, ledger: &Ledger) -> Vec<String> {
    let mut wrong = Vec::new();
    for place in places.iter_mut() {
        place.finish().await;
    }
    let provider = Provider::connect(APP, server.url()).await.expect("the server works again");
    let (mut last, mut since) = (usize::MAX, Instant::now());
    while last > 0 {
        sleep_until(Instant::now() + LOOK).await;
        match left(&provider).await {
            Ok(now) if now == last && since.elapsed() > MAX_HALT => {
                wrong.push(format!("{now} jobs are not over, and nothing happens for a minute"));
                break;
            }
            Ok(now) if now == last => {}
            Ok(now) => (last, since) = (now, Instant::now()),
            Err(error) => {
                wrong.push(format!("a query in the calm: {error}"));
                break;
            }
        }
    }
    wrong.extend(join_all(places.iter_mut().map(Place::stop)).await.into_iter().flatten());
    if let Err(error) = list(&provider, ledger).await {
        wrong.push(format!("the last listing: {error}"));
    }
    wrong.extend(examined(&provider).await.unwrap_or_else(|error| vec![format!("the doctor: {error}")]));
    wrong
}

/// What the doctor finds in the topics once no node is left, except that none is.
async fn examined(provider: &Provider) -> Result<Vec<String>, CallError> {
    let mut doctor = provider.inspect().doctor(None)?;
    while doctor.step().await?.is_some() {}
    let findings =
        doctor.findings().iter().filter(|finding| finding.topic.is_some() && finding.code != FindingCode::NoListener);
    Ok(findings.map(|finding| format!("the doctor finds: {finding}")).collect())
}
