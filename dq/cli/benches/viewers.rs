//! What a program on a `file:` store pays for those who look at its directory: CPU time a life at 50,000 lives a second, beside `dq top`
//! with every verb that looks, and beside a loop that computes for as long and looks at nothing; the column `bare` is the program alone.
//!
//! `cargo bench -p dq-cli --bench viewers -- [--quick]`; it needs `script` of util-linux, because `dq top` wants a terminal.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../../benches/node/job.rs"]
mod job;
#[path = "../../benches/node/listener.rs"]
mod listener;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dq_bench::{Arguments, Bench, Folder, Meter, Side};
use job::{factory, nothing};
use listener::{Tally, do_nothing};

const RATE: usize = 50_000;
/// Jobs of one call.
const BATCH: usize = 100;

/// The verbs that look, each run once beside `dq top`.
const VERBS: [&[&str]; 6] = [
    &["topics"],
    &["jobs", "nothing"],
    &["nodes", "nothing"],
    &["timeline", "nothing"],
    &["schedules", "list", "nothing"],
    &["doctor", "nothing"],
];

/// Who is beside the program.
#[derive(Clone, Copy)]
enum Beside {
    Nobody,
    Viewers,
    /// A loop that keeps a core busy for so much of the time.
    Busy(f64),
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// CPU time of the processes that this one has waited for, s.
fn children() -> f64 {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

/// Looks at the directory until the time is over.
fn look(store: &str, until: Instant) {
    let dq = env!("CARGO_BIN_EXE_dq");
    let top = format!(
        "exec timeout {} {dq} top --store {store} --app bench",
        until.duration_since(Instant::now()).as_secs_f64()
    );
    let mut top = quiet(Command::new("script").args(["-qfec", &top, "/dev/null"])).spawn().unwrap();
    let pause = until.duration_since(Instant::now()) / (VERBS.len() as u32 + 1);
    for verb in VERBS {
        std::thread::sleep(pause);
        let done = quiet(Command::new(dq).args(verb).args(["--store", store, "--app", "bench"])).status().unwrap();
        assert!(done.code().is_some_and(|code| code <= 1 || code == 5), "{verb:?} ends with {done}");
    }
    top.wait().unwrap();
}

/// Lives at the rate for so long; returns their cost, and the part of the time for which those beside kept a core busy.
async fn lives(folder: &Path, time: Duration, beside: Beside) -> (dq_bench::Cost, f64) {
    let store = format!("file:{}", folder.display());
    let jobs = (RATE as f64 * time.as_secs_f64()) as usize / BATCH * BATCH;
    let tally = Tally::of(jobs);
    let dq = factory(&store).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    dq.ready().await;
    let (start, spent) = (Instant::now(), children());
    let others = std::thread::spawn({
        let store = store.clone();
        move || match beside {
            Beside::Nobody => {}
            Beside::Viewers => look(&store, start + time),
            Beside::Busy(part) => {
                let role = ["--role".to_owned(), part.to_string()];
                let child = quiet(Command::new(std::env::current_exe().unwrap()).args(role)).spawn().unwrap();
                std::thread::sleep(time);
                end(child);
            }
        }
    });
    let meter = Meter::start();
    for n in 0..jobs / BATCH {
        let at = start + Duration::from_secs_f64((n * BATCH) as f64 / RATE as f64);
        tokio::time::sleep_until(at.into()).await;
        let provider = dq.provider().clone();
        tokio::spawn(async move { provider.add_many((0..BATCH).map(|_| nothing())).await.unwrap().all().unwrap() });
    }
    tally.all().await;
    let cost = meter.end(jobs);
    others.join().unwrap();
    dq.shutdown(Duration::from_secs(1)).await;
    (cost, (children() - spent) / time.as_secs_f64())
}

/// Keeps a core busy for this part of the time, until it is killed.
fn busy(part: f64) -> ! {
    const SLICE: Duration = Duration::from_millis(100);
    loop {
        let start = Instant::now();
        while start.elapsed() < SLICE.mul_f64(part.min(1.0)) {
            std::hint::black_box(part);
        }
        std::thread::sleep(SLICE.saturating_sub(start.elapsed()));
    }
}

async fn round(bench: &mut Bench, n: usize, time: Duration) {
    let mut share = 0.0;
    let sides = [Beside::Nobody, Beside::Viewers];
    for at in 0..3 {
        let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"), "viewers");
        // The loop comes last, because it computes for as long as those who looked in this round.
        let beside = if at == 2 { Beside::Busy(share) } else { sides[(at + n) % 2] };
        bench.step("lives");
        let (cost, part) = lives(&folder.0, time, beside).await;
        let names: &[(Side, &str)] = match beside {
            Beside::Nobody => &[(Side::Bare, "beside viewers"), (Side::Bare, "beside a busy loop")],
            Beside::Viewers => &[(Side::Dq, "beside viewers")],
            Beside::Busy(_) => &[(Side::Dq, "beside a busy loop")],
        };
        for (side, name) in names {
            bench.record_cost(*side, name, &cost);
        }
        if matches!(beside, Beside::Viewers) {
            share = part;
            bench.record(Side::Dq, "CPU of the viewers", "% of a core", part * 100.0);
        }
    }
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    if let [part] = &arguments.role[..] {
        busy(part.parse().unwrap());
    }
    let time = Duration::from_secs(arguments.scaled(8, 30) as u64);
    let mut bench = Bench::start("viewers", arguments, 3);
    for n in bench.rounds() {
        round(&mut bench, n, time).await;
    }
    bench.finish();
}
