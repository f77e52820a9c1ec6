//! Kills its own node twice, and shows that every job runs all the same. The README in this folder explains it.

mod life;
mod node;
mod runs;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use life::{Failed, Life};
use runs::Runs;

/// Adds jobs, is killed, is started again, and checks that every job ran.
///
/// The program starts itself as a child, which is the node, and kills it with SIGKILL.
#[derive(Debug, Parser)]
#[command(name = "survives_restart")]
struct Arguments {
    /// The store, which must outlive its process: `file:DIRECTORY` or `redis://HOST`
    #[arg(long, value_name = "URL", env = "DQ_STORE", default_value = "file:./dq-data/survives_restart")]
    store: String,
    /// How many jobs to add
    #[arg(long, value_name = "JOBS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=10_000))]
    jobs: u64,
    /// Be the node of this run, and add the jobs if that is said too. The program starts itself with this
    #[arg(long, hide = true, value_name = "RUN")]
    node_of: Option<u64>,
    #[arg(long, hide = true)]
    add: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.node_of {
        Some(run) => node::run(&arguments.store, run, if arguments.add { arguments.jobs } else { 0 }),
        None => survive(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("survives_restart: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Lets a node add the jobs, kills two nodes while they work, and lets a third one finish.
fn survive(arguments: &Arguments) -> Result<(), Failed> {
    if arguments.store.starts_with("memory:") {
        return Err(format!("`{}` ends with its process: name another store with `--store`", arguments.store).into());
    }
    let (jobs, run) = (arguments.jobs, SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64);
    let mut runs = Runs::default();
    for (life, most) in [(1, jobs / 5), (2, 3 * jobs / 5)] {
        let mut node = Life::start(&arguments.store, run, (life == 1).then_some(jobs))?;
        if life == 1 {
            node.wait_until_added(&mut runs, life)?;
            println!("{jobs} jobs are added");
        }
        node.read_until(&mut runs, life, |runs| runs.jobs() >= most)?;
        node.kill(&mut runs, life)?;
        println!("the node is killed while it works");
        eprintln!("killed after {} runs", runs.count());
    }
    let mut node = Life::start(&arguments.store, run, None)?;
    node.read_until(&mut runs, 3, |runs| runs.jobs() == jobs)?;
    node.end(&mut runs, 3)?;
    eprintln!("{} runs, {} of them for jobs that a kill interrupted", runs.count(), runs.count() - runs.jobs());
    runs.check(jobs)?;
    println!("OK: every job ran, none early, and none twice but those that a kill interrupted");
    Ok(())
}
