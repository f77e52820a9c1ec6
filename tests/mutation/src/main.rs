//! Changes one expression of dq at a time and tells which changes no test notices.
//!
//! A copy of the tree, under `mutants` in the folder where cargo builds, contains all drawn changes at once, each behind a number that an environment variable
//! chooses. So the tests are built once, and run once for each change.

mod build;
mod change;
mod copy;
mod draw;
mod rust;
mod script;
mod suite;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use change::{Change, LeftOut};
use suite::{Bench, Outcome, Suite};

/// Changes one expression of dq at a time and tells which changes no test notices.
///
/// The places are drawn by the seed from `dq/src`, `dq-macros/src` and the Lua scripts. The unit tests of dq and the
/// conformance suite on the memory store test changes of dq, its unit tests those of dq-macros, and the conformance suite
/// on Redis those of scripts. A change that makes a test fail or hang is caught.
#[derive(Debug, Parser)]
struct Arguments {
    /// Decides which places are drawn. Edits of other places leave the draw as it is.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many places.
    #[arg(long, default_value_t = 150)]
    places: usize,
    /// A part of them, such as 2/5.
    #[arg(long, conflicts_with_all = ["from", "count"])]
    slice: Option<String>,
    /// The first of them, from 1.
    #[arg(long, default_value_t = 1)]
    from: usize,
    /// How many of them.
    #[arg(long)]
    count: Option<usize>,
    /// Only these of them, such as 3,17.
    #[arg(long, value_delimiter = ',')]
    numbers: Vec<usize>,
    /// Draws only from files whose path begins so.
    #[arg(long, default_value = "")]
    only: String,
    /// Asks these test programs of `tests/` instead, such as framework or "conformance file::".
    #[arg(long, value_delimiter = ',')]
    tests: Vec<String>,
    /// Tries the copy of the last run, with its places and its tests, whatever has changed in the tree.
    #[arg(long)]
    kept: bool,
    /// Where the copy and its build are, from the top of the repository. Without it, `mutants` in the folder where cargo builds.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Lists the places and runs nothing.
    #[arg(long)]
    list: bool,
    /// How many seconds a test program may take at least, before the change counts as caught. Eight times what it takes
    /// without a change, if that is more.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether every change was caught.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().map_err(|error| error.to_string())?;
    let work = match &arguments.folder {
        Some(folder) => top.join(folder),
        None => build::target(&top)?.join("mutants"),
    };
    let (folder, list) = (work.join("tree"), work.join("drawn"));
    if !arguments.kept {
        let change::Found { changes, left_out } = draw::all(&top)?;
        let changes: Vec<_> = changes.into_iter().filter(|change| change.path.starts_with(&arguments.only)).collect();
        describe(&changes, left_out);
        let lines: Vec<String> = compiling(&top, &work, draw::drawn(changes, arguments.seed), arguments.places)?;
        std::fs::write(&list, lines.join("\n")).map_err(|error| error.to_string())?;
    }
    let lines = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let changes: Vec<&str> = lines.lines().collect();
    let chosen = chosen(arguments, changes.len())?;
    if arguments.list {
        chosen.iter().for_each(|number| println!("{number:4} {}", changes[number - 1]));
        return Ok(true);
    }
    let suites: BTreeSet<Suite> =
        chosen.iter().flat_map(|number| suites(changes[number - 1], &arguments.tests)).collect();
    let target = work.join("build");
    println!("building the tests");
    let programs = build::tests(&folder, &target, &suite::programs(&suites))?;
    let (temporary, least) = (suite::temporary(&work), Duration::from_secs(arguments.timeout));
    let mut bench = Bench { copy: folder, temporary, target, programs, limits: BTreeMap::new(), least };
    tried(&mut bench, &changes, &chosen, &arguments.tests)
}

fn describe(changes: &[Change], left_out: LeftOut) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    changes.iter().for_each(|change| *kinds.entry(change.kind).or_default() += 1);
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    println!("{} possible changes: {}", changes.len(), kinds.join(", "));
    let LeftOut { const_functions, constants, macros } = left_out;
    println!(
        "left out: {const_functions} const functions, {constants} constants (their uses are places), {macros} calls of macros"
    );
}

/// Writes a copy of the tree with the first changes of the draw that compile, and returns a line for each.
fn compiling(top: &Path, work: &Path, mut drawn: Vec<Change>, wanted: usize) -> Result<Vec<String>, String> {
    std::fs::create_dir_all(work).map_err(|error| error.to_string())?;
    let list = work.join("refused");
    let known = std::fs::read_to_string(&list).unwrap_or_default();
    let mut refused: BTreeSet<String> = known.lines().map(str::to_owned).collect();
    let mut extra = wanted / 2;
    loop {
        drawn.retain(|change| !refused.contains(&change.key()));
        let first = &drawn[..drawn.len().min(wanted + extra)];
        let copy = copy::write(top, &work.join("tree"), first)?;
        let numbers = build::refused(&copy, &work.join("build"))?;
        if numbers.is_empty() && extra == 0 {
            println!("{} changes compile, {} that were drawn do not", first.len(), refused.len());
            return Ok(first.iter().map(Change::line).collect());
        }
        // Once the first ones compile, the others were only to find more errors at a time.
        if !numbers.iter().any(|number| *number <= wanted) {
            extra = 0;
        }
        println!("checked: {} of {} changes do not compile", numbers.len(), first.len());
        refused.extend(numbers.iter().map(|number| first[number - 1].key()));
        let lines: Vec<_> = refused.iter().map(String::as_str).collect();
        std::fs::write(&list, lines.join("\n")).map_err(|error| error.to_string())?;
    }
}

fn chosen(arguments: &Arguments, places: usize) -> Result<Vec<usize>, String> {
    if !arguments.numbers.is_empty() {
        return Ok(arguments.numbers.iter().copied().filter(|number| (1..=places).contains(number)).collect());
    }
    let Some(slice) = &arguments.slice else {
        let from = arguments.from.max(1);
        return Ok((from..=places).take(arguments.count.unwrap_or(places)).collect());
    };
    let parts =
        slice.split_once('/').and_then(|(part, of)| Some((part.parse::<usize>().ok()?, of.parse::<usize>().ok()?)));
    match parts {
        Some((part, of)) if (1..=of).contains(&part) => {
            Ok((places * (part - 1) / of + 1..=places * part / of).collect())
        }
        _ => Err(format!("`--slice {slice}` is none: write 2/5 for the second of five parts")),
    }
}

/// The tests that a change with this line meets: the line begins with the path.
fn suites(line: &str, tests: &[String]) -> Vec<Suite> {
    match tests {
        [] => suite::near(line.split(':').next().unwrap_or(line)),
        tests => tests.iter().map(|text| suite::of_tests(text)).collect(),
    }
}

fn tried(bench: &mut Bench, changes: &[&str], chosen: &[usize], tests: &[String]) -> Result<bool, String> {
    let mut caught: BTreeMap<String, usize> = BTreeMap::new();
    let mut survived = Vec::new();
    let begin = Instant::now();
    for (at, number) in chosen.iter().enumerate() {
        let change = changes[number - 1];
        let mut verdict = None;
        for suite in suites(change, tests) {
            verdict = match bench.ask(&suite, *number)? {
                Outcome::Passed => continue,
                Outcome::Failed(test) => Some((suite::name(&suite), test)),
                Outcome::TimedOut => Some((suite::name(&suite) + ", by a time-out", "a time-out".to_owned())),
            };
            break;
        }
        let (word, by) = match &verdict {
            Some((suite, test)) => ("caught", format!(" by {suite}: {test}")),
            None => ("SURVIVED", String::new()),
        };
        println!("[{}/{}] {number}: {word} {change}{by}", at + 1, chosen.len());
        match verdict {
            Some((suite, _)) => *caught.entry(suite).or_default() += 1,
            None => survived.push(*number),
        }
    }
    let seconds = begin.elapsed().as_secs();
    println!(
        "\n{} changes in {seconds} s: {} caught, {} survived",
        chosen.len(),
        caught.values().sum::<usize>(),
        survived.len()
    );
    caught.iter().for_each(|(suite, count)| println!("  {count:4} caught by {suite}"));
    survived.iter().for_each(|number| println!("  survived: {number} {}", changes[number - 1]));
    Ok(survived.is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::draw;

    /// The tree itself is the best test: every change of it has a text, a place and a name of its own.
    #[test]
    fn every_change_of_the_tree_has_a_name_of_its_own() {
        let top = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let changes = draw::all(&top).unwrap().changes;
        let keys: std::collections::BTreeSet<_> = changes.iter().map(super::Change::key).collect();
        assert_eq!(keys.len(), changes.len());
        assert!(changes.iter().all(|change| !change.path.contains("/tests")));
        let (scripts, sources): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.path.ends_with(".lua"));
        assert!(scripts.len() > 100 && sources.len() > 1000, "{} and {}", scripts.len(), sources.len());
    }
}
