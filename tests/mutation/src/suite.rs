//! Runs the tests on one change at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::copy::VARIABLE;

/// A test program, and which of its tests run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suite {
    /// The test program: of a crate its name in Rust, otherwise a file or folder of `tests/`.
    pub(crate) program: String,
    /// The folder that cargo would start it in.
    pub(crate) folder: String,
    /// Part of the names of the tests; empty for all.
    pub(crate) filter: String,
}

/// Tests that read the text of the scripts, whose places have marks in the copy.
const READ_SCRIPTS: [&str; 1] = ["store::redis::scripts::tests::scripts_name_their_keys_in_order"];

/// The tests that a change of this file meets.
pub(crate) fn near(path: &str) -> Vec<Suite> {
    match path {
        _ if path.ends_with(".lua") => vec![of_tests("conformance redis::")],
        _ if path.starts_with("dq-macros/") => vec![of_crate("dq-macros")],
        _ if NOT_IN_MEMORY.iter().any(|folder| path.starts_with(folder)) => vec![of_crate("dq")],
        _ => vec![of_crate("dq"), of_tests("conformance memory::")],
    }
}

/// What the conformance suite on the memory store does not run.
const NOT_IN_MEMORY: [&str; 9] = [
    "dq/src/broadcast/",
    "dq/src/config/",
    "dq/src/context/",
    "dq/src/listener/",
    "dq/src/private/",
    "dq/src/provider/",
    "dq/src/store/file/",
    "dq/src/store/redis/",
    "dq/src/testing/",
];

/// A test program of `tests/`, and behind a blank a part of the names of its tests.
pub(crate) fn of_tests(text: &str) -> Suite {
    let (program, filter) = text.split_once(' ').unwrap_or((text, ""));
    Suite { program: program.to_owned(), folder: "tests".to_owned(), filter: filter.to_owned() }
}

/// The unit tests of a crate.
fn of_crate(folder: &str) -> Suite {
    Suite { program: folder.replace('-', "_"), folder: folder.to_owned(), filter: String::new() }
}

/// The names of test programs that these suites need, as cargo has them.
pub(crate) fn programs(suites: &BTreeSet<Suite>) -> BTreeSet<&str> {
    suites.iter().filter(|suite| suite.folder == "tests").map(|suite| suite.program.as_str()).collect()
}

/// What a test program said of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// The first test that failed, or how the program ended.
    Failed(String),
    TimedOut,
}

/// The built test programs.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) copy: PathBuf,
    pub(crate) temporary: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// How long each suite may take.
    pub(crate) limits: BTreeMap<Suite, Duration>,
    /// The shortest limit.
    pub(crate) least: Duration,
}

impl Bench {
    /// Asks one suite about one change; 0 is none.
    pub(crate) fn ask(&mut self, suite: &Suite, number: usize) -> Result<Outcome, String> {
        if !self.limits.contains_key(suite) {
            let begin = Instant::now();
            let outcome = self.run(suite, 0, Duration::from_secs(1800), None)?;
            if outcome != Outcome::Passed {
                return Err(format!("`{}` {} fails without a change: {outcome:?}", suite.program, suite.filter));
            }
            self.limits.insert(suite.clone(), (begin.elapsed() * 8).max(self.least));
        }
        let limit = self.limits[suite];
        let outcome = self.run(suite, number, limit, None)?;
        let Outcome::Failed(test) = &outcome else { return Ok(outcome) };
        // On a busy machine a test may fail by itself. One that fails again fails because of the change.
        match self.run(suite, number, limit, Some(test))? {
            Outcome::Passed => self.run(suite, number, limit, None),
            _ => Ok(outcome),
        }
    }

    /// Runs all tests of a suite, or one.
    fn run(&self, suite: &Suite, number: usize, limit: Duration, test: Option<&str>) -> Result<Outcome, String> {
        let program = self.programs.get(&suite.program).ok_or_else(|| format!("`{}` was not built", suite.program))?;
        let folder = self.copy.join(&suite.folder);
        let mut command = Command::new(program);
        match test {
            // A program that ended by itself has no such test: then all of them run.
            Some(test) if test.contains("::") => command.args(["--exact", test]),
            _ => command.args(Some(&suite.filter).filter(|filter| !filter.is_empty())),
        };
        command.args(READ_SCRIPTS.iter().flat_map(|test| ["--skip", test]));
        command.env(VARIABLE, number.to_string()).env("CARGO_MANIFEST_DIR", &folder).env("TMPDIR", &self.temporary);
        command
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_FAILURE_PERSISTENCE", "off");
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        std::fs::create_dir_all(&self.temporary).map_err(|error| error.to_string())?;
        group(&mut command);
        let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let outcome = watch(child, limit);
        // What a killed test left behind.
        let _ = std::fs::remove_dir_all(&self.temporary);
        outcome
    }
}

/// Reads what a test program prints, until its first failure, its end or the limit.
fn watch(mut child: Child, limit: Duration) -> Result<Outcome, String> {
    let output = child.stdout.take().ok_or("the test program has no output")?;
    let (lines, read) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + limit;
    let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    let early = loop {
        match read.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(test) = failed(&line) {
                    break Some(Outcome::Failed(test));
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break Some(Outcome::TimedOut),
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        }
    };
    if early.is_some() {
        kill(&mut child);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    kill_group(child.id());
    drop(read);
    // It ends with the output: the whole group is dead.
    let _ = reader.join();
    Ok(early.unwrap_or(if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) }))
}

/// Puts a test program into a group of its own, so that the servers and processes it starts end with it.
#[cfg(unix)]
fn group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(unix)]
fn kill(child: &mut Child) {
    kill_group(child.id());
    // Or it has ended by itself.
    let _ = child.kill();
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    let leader = i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(leader) = leader {
        // A group without processes is the usual case.
        let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn group(_: &mut Command) {}

#[cfg(not(unix))]
fn kill(child: &mut Child) {
    let _ = child.kill();
}

#[cfg(not(unix))]
fn kill_group(_: u32) {}

/// How a suite is named in reports.
pub(crate) fn name(suite: &Suite) -> String {
    let Suite { program, filter, .. } = suite;
    format!("{program} {}", filter.trim_end_matches("::")).trim_end().to_owned()
}

/// The folder for what tests write while they run.
pub(crate) fn temporary(work: &Path) -> PathBuf {
    work.join(format!("temporary-{}", std::process::id()))
}
