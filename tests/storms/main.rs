//! The command `tests/storm`: nodes and producers as processes on a durable store, which are killed, stopped and cut off, and a
//! checker that judges what they wrote down.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod backups;
mod checker;
mod child;
mod cluster;
mod faults;
mod folder;
mod kills;
mod ledger;
mod place;
mod process;
mod redis;
mod server;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// How many findings are printed.
const MAX_SHOWN: usize = 50;

/// Kills, stops and cuts off the nodes, the producers and the store of a program for a while, and then judges whether dq kept its
/// promises. Exits with 1 after a finding.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Command {
    #[command(flatten)]
    storm: Storm,
    #[command(subcommand)]
    part: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// One process of a storm, which the storm starts.
    #[command(hide = true)]
    Process(process::Part),
    /// Checks the files of an earlier storm again.
    Check {
        /// The folder that the storm named.
        folder: PathBuf,
    },
}

/// What to run.
#[derive(Debug, Clone, Args)]
struct Storm {
    /// How long jobs are added.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// How many jobs are added, however long that takes.
    #[arg(long, conflicts_with = "seconds")]
    jobs: Option<u64>,
    /// The store. `file` has one process, which is killed again and again.
    #[arg(long, value_enum, default_value_t = Kind::Redis)]
    store: Kind,
    /// How often the only process is killed at least, 500 times if nothing is said. On Redis: instead of the storm of many
    /// processes.
    #[arg(long)]
    kills: Option<u64>,
    /// Decides the faults and the jobs; the machine decides what they meet.
    #[arg(long)]
    seed: Option<u64>,
    /// How many nodes. Only clean stops happen to the first one.
    #[arg(long, default_value_t = 4)]
    nodes: u64,
    /// How many producers.
    #[arg(long, default_value_t = 2)]
    producers: u64,
    /// How many jobs are added in a second, together.
    #[arg(long, default_value_t = 600)]
    rate: u64,
    /// The mean time from fault to fault at each process, in ms.
    #[arg(long, default_value_t = 4_000)]
    pause: u64,
    /// Where `file` keeps its directory; beside the files of the storm if nothing is said.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Nothing but kills happen, to every node and producer. Only Redis, without `--kills`.
    #[arg(long)]
    only_kills: bool,
    /// The store is a master with a replica, behind sentinels. It is killed every 20 seconds, and besides nothing but kills happen, to
    /// every node and producer. A call is answered once a replica has it. Only Redis, without `--kills`.
    #[arg(long)]
    sentinel: bool,
    /// The store is a cluster of three masters with a replica each. A slot moves every 10 seconds, a master is killed every 20 seconds, and
    /// besides nothing but kills happen, to every node and producer. A call is answered once a replica has it. Only Redis, without `--kills`.
    #[arg(long, conflicts_with = "sentinel")]
    cluster: bool,
    /// Nothing but chains of three jobs are added, each of which follows the one before it.
    #[arg(long)]
    chains: bool,
    /// Nothing but job sets of so many members are added.
    #[arg(long, conflicts_with = "chains")]
    sets: Option<u64>,
    /// Copies the directory each second, and checks that each copy has what was confirmed before. Only `file`.
    #[arg(long)]
    backup: bool,
    /// Redis keeps nothing on disk, so that a restart loses jobs: shows that the checker finds them.
    #[arg(long)]
    forgets: bool,
    /// Keeps the files of the storm, which are kept after a finding anyway.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Redis,
    File,
}

fn main() -> ExitCode {
    let command = Command::parse();
    match command.part {
        Some(Role::Process(part)) => process::run(&part),
        Some(Role::Check { folder }) => match tell(&folder, Vec::new()) {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        },
        None => storm(&command.storm),
    }
}

fn storm(storm: &Storm) -> ExitCode {
    let began = Instant::now();
    let seed = storm.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let folder = folder::Folder::create(seed);
    println!("seed {seed}, files in {}", folder.path().display());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("the system gives threads");
    // The parts that start processes run on this thread: processes end with the thread that started them.
    let unfinished = match (storm.store, storm.kills) {
        (Kind::Redis, None) => runtime.block_on(redis::run(storm, seed, folder.path())),
        (_, kills) => runtime.block_on(kills::run(storm, kills, seed, folder.path())),
    };
    let ran = began.elapsed().as_secs();
    let findings = tell(folder.path(), unfinished);
    println!("{} s, of them {} s to check", began.elapsed().as_secs(), began.elapsed().as_secs() - ran);
    println!("{findings} findings, seed {seed}");
    if findings == 0 && !storm.keep {
        folder.remove();
        return ExitCode::SUCCESS;
    }
    println!("the files are in {}", folder.path().display());
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks the files in a folder and prints what was counted and found. Returns the number of findings.
fn tell(folder: &Path, unfinished: Vec<String>) -> usize {
    let mut report = checker::verify(&ledger::read(folder).expect("the files can be read"));
    for what in unfinished {
        report.findings.push(checker::Finding { rule: "storm", id: String::new(), what });
    }
    for (what, count) in &report.counts {
        println!("{count:9} {what}");
    }
    for finding in report.findings.iter().take(MAX_SHOWN) {
        println!("FOUND {finding}");
    }
    report.findings.len()
}
