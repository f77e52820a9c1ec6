//! A shrunk finding as text, and the command line that runs it again.

use std::collections::BTreeSet;
use std::fmt::Write;

use dq_testing::simulation::{Options, Report, Shrunk, shrink_by};

use crate::seeds;

/// How many lines of the log are printed.
const LINES: usize = 30;

/// The longest line that is printed whole.
const LONGEST: usize = 240;

/// Shrinks the run of a seed and prints what is left on stderr.
pub fn print(seed: u64, options: &Options) {
    eprintln!("\nshrinking seed {seed} ..");
    match shrink_by(options, |options| run(seed, options)) {
        Some(shrunk) => eprint!("{}", account(seed, &shrunk)),
        None => eprintln!("this run cannot be shrunk: run it with --log"),
    }
}

fn run(seed: u64, options: &Options) -> Option<Report> {
    let ran = seeds::run(seed, options);
    let mut report = ran.report?;
    report.found = ran.found;
    Some(report)
}

fn account(seed: u64, shrunk: &Shrunk) -> String {
    let Shrunk { report, options, tried, .. } = shrunk;
    let mut text = String::new();
    let seconds = |micros: u64| format!("{:.6} s", micros as f64 / 1e6);
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "after {tried} runs: {} nodes, {} ids, {} acts of callers, {} faults, {} of simulated time\n  found: {}",
        report.nodes,
        report.ids,
        report.acts.len(),
        report.injected.len(),
        seconds(report.time),
        report.found.as_deref().map_or_else(String::new, cut)
    );
    for injected in &report.injected {
        let _ = writeln!(text, "  fault {} at {}: {}", injected.name, seconds(injected.at), injected.what);
    }
    let skipped = report.log.len().saturating_sub(LINES);
    let _ = writeln!(text, "  the last {} lines of its log, of {}:", report.log.len() - skipped, report.log.len());
    for line in &report.log[skipped..] {
        let _ = writeln!(text, "  | {}", cut(line));
    }
    let _ = writeln!(text, "  again, with its whole log:\n  tests/simulate {}", words(seed, options));
    text
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{} ..", &line[..at]),
        None => line.into(),
    }
}

/// The options of the command that run exactly this.
pub fn words(seed: u64, options: &Options) -> String {
    let mut words = format!("--seeds 1 --from {seed} --no-shrink --log");
    let mut add = |option: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(words, " --{option} {value}");
        }
    };
    add("without", options.without.map(Into::into));
    add("profile", options.profile.map(|profile| profile.name().into()));
    add("nodes", options.nodes.map(|nodes| nodes.to_string()));
    add("ids", options.ids.map(|ids| ids.to_string()));
    add("busy", options.busy.map(|busy| format!("{}.{:06}", busy / 1_000_000, busy % 1_000_000)));
    let list = |names: Vec<String>| if names.is_empty() { "none".into() } else { names.join(",") };
    add("faults", options.faults.as_ref().map(|faults| list(faults.iter().cloned().collect())));
    add("acts", options.acts.as_ref().map(|acts| list(ranges(acts))));
    words
}

/// `1-3,7` for 1, 2, 3 and 7.
fn ranges(numbers: &BTreeSet<u64>) -> Vec<String> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = |(first, last): (u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.into_iter().map(text).collect()
}

/// Reads seconds, to the µs.
///
/// # Errors
/// It is none.
pub fn micros(option: &str, word: Option<String>) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs seconds"))?;
    let (whole, part) = word.split_once('.').unwrap_or((&word, ""));
    let digits = part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit());
    let part = format!("{part:0<6}").parse::<u64>().ok().filter(|_| digits);
    let micros =
        whole.parse::<u64>().ok().zip(part).and_then(|(whole, part)| whole.checked_mul(1_000_000)?.checked_add(part));
    micros.ok_or_else(|| format!("`{option}` needs seconds, not `{word}`"))
}

/// Reads names with commas between them; `none` is none.
///
/// # Errors
/// There is nothing to read.
pub fn names(option: &str, word: Option<String>) -> Result<BTreeSet<String>, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs names"))?;
    Ok(word.split(',').filter(|name| *name != "none").map(Into::into).collect())
}

/// Reads numbers and ranges of them with commas between them; `none` is none.
///
/// # Errors
/// One of them is none.
pub fn numbers(option: &str, word: Option<String>) -> Result<BTreeSet<u64>, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs numbers"))?;
    let mut numbers = BTreeSet::new();
    for part in word.split(',').filter(|part| *part != "none") {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => numbers.extend::<std::ops::RangeInclusive<u64>>(first..=last),
            _ => return Err(format!("`{option}` needs numbers like 1,4-7, not `{part}`")),
        }
    }
    Ok(numbers)
}
