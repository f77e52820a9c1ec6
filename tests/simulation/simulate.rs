//! Runs seeds of the simulation and says what was found, as `tests/simulate` documents.

use std::process::ExitCode;
use std::time::Instant;

use dq::testing::simulation::{Options, Profile, simulate};

struct Arguments {
    seeds: u64,
    from: u64,
    log: bool,
    keep_going: bool,
    options: Options,
}

fn profile(name: &str) -> Profile {
    match name {
        "calm" => Profile::Calm,
        "killers" => Profile::Killers,
        "net" => Profile::Net,
        "noclock" => Profile::NoClock,
        "all" => Profile::All,
        "fall" => Profile::Fall,
        "clock" => Profile::Clock,
        "deaf" => Profile::Deaf,
        "crowd" => Profile::Crowd,
        other => panic!("there is no profile `{other}`"),
    }
}

fn arguments() -> Arguments {
    let mut arguments = Arguments { seeds: 1_000, from: 0, log: false, keep_going: false, options: Options::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|text| text.parse().ok()).expect("a number follows");
        match word.as_str() {
            "--seeds" => arguments.seeds = number(),
            "--from" => arguments.from = number(),
            "--without" => arguments.options.without = Some(number() as u8),
            "--log" => arguments.log = true,
            "--keep-going" => arguments.keep_going = true,
            "--profile" => arguments.options.profile = Some(profile(&words.next().expect("a profile follows"))),
            other => panic!("what is `{other}`? see tests/simulate"),
        }
    }
    arguments
}

fn main() -> ExitCode {
    let mut arguments = arguments();
    arguments.options.log = arguments.log;
    let start = Instant::now();
    let (mut jobs, mut faults, mut found, mut steps, mut handled) = (0, 0, 0, 0, 0);
    let mut first = None;
    for seed in arguments.from..arguments.from + arguments.seeds {
        let report = simulate(seed, &arguments.options);
        jobs += report.jobs;
        faults += report.faults;
        steps += report.steps;
        handled += report.handled;
        if arguments.log {
            report.log.iter().for_each(|line| println!("{line}"));
        }
        if let Some(what) = report.found {
            found += 1;
            eprintln!("seed {seed} ({:?}) at {:.3} s: {what}", report.profile, report.time as f64 / 1e6);
            first.get_or_insert((seed, what));
            if !arguments.keep_going {
                break;
            }
        }
        let done = seed - arguments.from + 1;
        if done.is_multiple_of(500) {
            eprintln!("{done} seeds, {:.0} s", start.elapsed().as_secs_f64());
        }
    }
    eprintln!("{steps} steps of the store, {handled} handlers, {:.2} s", start.elapsed().as_secs_f64());
    let line = serde_json::json!({
        "seeds": arguments.seeds, "jobs": jobs, "faults": faults, "found": found,
        "seed": first.as_ref().map(|(seed, _)| seed), "what": first.as_ref().map(|(_, what)| what),
    });
    println!("{line}");
    if found > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
