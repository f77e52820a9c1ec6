//! The command `tests/fuzz`: gives dq inputs that grammars generate, runs nodes on them, and counts what comes of it.

mod answers;
mod batches;
mod buffer;
mod changes;
mod draw;
mod grammar;
mod journal;
mod keys;
mod lines;
mod node;
mod parsers;
mod queries;
mod resp;
mod routes;
mod settings;
mod signals;
mod target;
mod targets;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use target::Found;
use targets::TARGETS;

/// Inputs that once found something, or that are as hard as it gets: a target and a seed on each line.
const CORPUS: &str = include_str!("corpus.txt");

/// The most findings that are printed of a target.
const MAX_PRINTED: usize = 5;

struct Arguments {
    executions: Option<u64>,
    from: u64,
    target: Option<String>,
    most: Duration,
}

fn usage() -> String {
    let names = TARGETS.iter().map(|target| format!("  {:<12} {}\n", target.name, target.about)).collect::<String>();
    format!(
        "tests/fuzz [OPTION ...]\n\
         generates inputs, gives them to dq, and prints a table of what came of it; exits with 1 after a finding\n\n\
         \x20 --executions N   inputs of each target (as many as in the short run)\n\
         \x20 --target NAME    only this one\n\
         \x20 --from SEED      the first seed (0); a seed generates the same inputs each time\n\
         \x20 --seconds N      end each target after this time\n\n\
         targets:\n{names}"
    )
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { executions: None, from: 0, target: None, most: Duration::MAX };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{word}` needs a number, not `{value}`"));
        match word.as_str() {
            "--executions" => arguments.executions = Some(number()?),
            "--from" => arguments.from = number()?,
            "--seconds" => arguments.most = Duration::from_secs(number()?),
            "--target" if TARGETS.iter().any(|target| target.name == value) => arguments.target = Some(value),
            "--target" => return Err(format!("there is no target `{value}`")),
            other => return Err(format!("there is no option `{other}`")),
        }
    }
    Ok(arguments)
}

/// The seeds of a target in the corpus.
fn kept(name: &str) -> impl Iterator<Item = u64> {
    let lines = CORPUS.lines().filter_map(|line| line.split_once(' '));
    lines.filter(move |(target, _)| *target == name).filter_map(|(_, seed)| seed.split(' ').next()?.parse().ok())
}

/// Runs the inputs of the corpus, and then those of the seeds from the first one on.
fn fuzz(target: &target::Target, arguments: &Arguments, mut report: impl FnMut(u64, &str)) -> Found {
    let (mut found, start) = (Found::default(), Instant::now());
    let mut run = |seed, found: &mut Found| target.run(seed, found).iter().for_each(|what| report(seed, what));
    kept(target.name).for_each(|seed| run(seed, &mut found));
    // Those of the corpus do not count, or a run of one seed would end before it.
    let most = found.executions + arguments.executions.unwrap_or(target.short);
    for seed in arguments.from.. {
        if found.executions >= most || start.elapsed() > arguments.most {
            break;
        }
        run(seed, &mut found);
    }
    answers::stop();
    found
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            eprintln!("{wrong}\n\n{}", usage());
            return ExitCode::from(2);
        }
    };
    target::count_panics();
    let mut is_sound = true;
    println!(
        "| target | executions | accepted | panics | jobs lost | let in | slowest run |\n|---|---|---|---|---|---|---|"
    );
    for target in TARGETS.iter().filter(|target| arguments.target.as_ref().is_none_or(|name| target.name == name)) {
        let mut printed = 0;
        let found = fuzz(target, &arguments, |seed, what| {
            printed += 1;
            is_sound = false;
            if printed <= MAX_PRINTED {
                eprintln!("{} --from {seed}: {what}", target.name);
            }
        });
        let Found { executions, accepted, panics, lost, let_in, slowest, .. } = found;
        let (time, seed) = (slowest.0.as_micros() as f64 / 1e3, slowest.1);
        println!(
            "| {} | {executions} | {accepted} | {panics} | {lost} | {let_in} | {time:.1} ms, seed {seed} |",
            target.name
        );
    }
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One after the other, because panics are counted for the whole process. `tests/fuzz` runs many more.
    #[test]
    fn generated_input_panics_nothing_loses_nothing_and_gets_in_nowhere() -> Result<(), String> {
        target::count_panics();
        let mut all = String::new();
        for target in &TARGETS {
            let arguments = Arguments { executions: None, from: 0, target: None, most: Duration::MAX };
            let found =
                fuzz(target, &arguments, |seed, what| all += &format!("{} --from {seed}: {what}\n", target.name));
            if found.accepted == 0 || found.executions < target.short {
                all += &format!("{}: {found:?}\n", target.name);
            }
        }
        if all.is_empty() { Ok(()) } else { Err(all) }
    }

    #[test]
    fn each_line_of_the_corpus_names_a_target_and_a_seed() {
        let lines = CORPUS.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(TARGETS.iter().map(|target| kept(target.name).count()).sum::<usize>(), lines);
    }
}
