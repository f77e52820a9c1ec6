//! The command `tests/simulate`: runs seeds of the simulation and reports findings; see `--help`.

mod arguments;
mod progress;
mod seeds;
mod shrunk;
mod taken;

use std::process::ExitCode;

use arguments::{Arguments, Invocation};
use progress::Progress;

fn main() -> ExitCode {
    match arguments::read(std::env::args().skip(1)) {
        Ok(Invocation::Run(arguments)) => run(&arguments),
        Ok(Invocation::Rules) => print_rules(),
        Ok(Invocation::Help) => {
            println!("{}", arguments::usage());
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("{wrong}\n\n{}", arguments::usage());
            ExitCode::from(2)
        }
    }
}

fn print_rules() -> ExitCode {
    let mut missed = false;
    for mut taken in taken::table() {
        let first = taken.first();
        missed |= first.is_none();
        taken.seed = first.map_or("not found".into(), |seed| seed.to_string());
        println!("{}", taken.row());
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run(arguments: &Arguments) -> ExitCode {
    seeds::watch_panics();
    eprintln!("seeds from {} on: {}", arguments.from, arguments.seeds);
    let mut progress = Progress::new(arguments.seeds);
    let (mut found, mut first) = (0, None);
    seeds::run_all(arguments.from, arguments.seeds, arguments.threads, &arguments.options, |seed, ran| {
        progress.count(ran.report.as_ref());
        if let Some(report) = &ran.report {
            report.log.iter().for_each(|line| println!("{line}"));
        }
        let Some(what) = ran.found else { return true };
        found += 1;
        match &ran.report {
            Some(report) => {
                eprintln!("seed {seed} ({}) at {:.3} s: {what}", report.profile.name(), report.time as f64 / 1e6);
            }
            None => eprintln!("seed {seed}: {what}"),
        }
        first.get_or_insert((seed, what));
        arguments.keep_going
    });
    progress.end();
    if let Some((seed, _)) = first.as_ref().filter(|_| arguments.shrinks) {
        shrunk::print(*seed, &arguments.options);
    }
    let line = serde_json::json!({
        "from": arguments.from, "seeds": progress.seeds, "jobs": progress.jobs, "faults": progress.faults, "found": found,
        "seed": first.as_ref().map(|(seed, _)| seed), "what": first.as_ref().map(|(_, what)| what),
    });
    println!("{line}");
    if found > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
