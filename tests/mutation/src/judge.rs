//! Runs the tests on one change at a time.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::copy::VARIABLE;

/// A test program, and which of its tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Judge {
    /// The test program: of a crate its name in Rust, otherwise a file or folder of `tests/`.
    pub(crate) program: &'static str,
    /// The folder that cargo would start it in.
    pub(crate) folder: &'static str,
    /// Part of the names of the tests; empty for all.
    pub(crate) filter: &'static str,
}

const fn judge(program: &'static str, folder: &'static str, filter: &'static str) -> Judge {
    Judge { program, folder, filter }
}

const UNIT: Judge = judge("dq", "dq", "");
const MACROS: Judge = judge("dq_macros", "dq-macros", "");
const MEMORY: Judge = judge("conformance", "tests", "memory::");
const FILE: Judge = judge("conformance", "tests", "file::");
const REDIS: Judge = judge("conformance", "tests", "redis::");

const fn of_tests(program: &'static str) -> Judge {
    judge(program, "tests", "")
}

/// The tests that every change of this file meets.
pub(crate) fn near(path: &str) -> &'static [Judge] {
    match path {
        _ if path.ends_with(".lua") => &[REDIS],
        _ if path.starts_with("dq-macros/") => &[MACROS],
        _ => &[UNIT, MEMORY],
    }
}

/// The tests that a change meets with `--wider` if it survives the near ones.
pub(crate) fn wider(path: &str) -> &'static [Judge] {
    const MACROS: &[Judge] = &[of_tests("ui")];
    const SCRIPTS: &[Judge] = &[of_tests("redis"), of_tests("framework-on-redis")];
    const ON_REDIS: &[Judge] = &[REDIS, of_tests("redis"), of_tests("framework-on-redis")];
    const ON_DISK: &[Judge] = &[FILE, of_tests("journal"), of_tests("file"), of_tests("reopened")];
    const IN_MEMORY: &[Judge] =
        &[of_tests("framework"), FILE, of_tests("model"), of_tests("reopened"), of_tests("file")];
    const OF_NODES: &[Judge] = &[of_tests("framework"), of_tests("redis"), of_tests("costs"), of_tests("file"), REDIS];
    match path {
        _ if path.ends_with(".lua") => SCRIPTS,
        _ if path.starts_with("dq-macros/") => MACROS,
        _ if path.starts_with("dq/src/store/redis/") => ON_REDIS,
        _ if path.starts_with("dq/src/store/file/") => ON_DISK,
        _ if path.starts_with("dq/src/store/memory/") => IN_MEMORY,
        _ => OF_NODES,
    }
}

/// The names of test programs that these judges need, as cargo has them.
pub(crate) fn programs(judges: &[Judge]) -> Vec<&'static str> {
    let mut names: Vec<_> = judges.iter().filter(|judge| judge.folder == "tests").map(|judge| judge.program).collect();
    names.sort_unstable();
    names.dedup();
    names
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
    /// How long each judge may take.
    pub(crate) limits: BTreeMap<Judge, Duration>,
    /// The shortest limit.
    pub(crate) least: Duration,
}

impl Bench {
    /// Asks one judge about one change; 0 is none.
    pub(crate) fn ask(&mut self, judge: Judge, number: usize) -> Result<Outcome, String> {
        if !self.limits.contains_key(&judge) {
            let begin = Instant::now();
            let outcome = self.run(judge, 0, Duration::from_secs(1800))?;
            if outcome != Outcome::Passed {
                return Err(format!("`{}` {} fails without a change: {outcome:?}", judge.program, judge.filter));
            }
            self.limits.insert(judge, (begin.elapsed() * 8).max(self.least));
        }
        self.run(judge, number, self.limits[&judge])
    }

    fn run(&self, judge: Judge, number: usize, limit: Duration) -> Result<Outcome, String> {
        let program = self.programs.get(judge.program).ok_or_else(|| format!("`{}` was not built", judge.program))?;
        let folder = self.copy.join(judge.folder);
        let mut command = Command::new(program);
        command.args(["--format", "pretty"]).args(Some(judge.filter).filter(|filter| !filter.is_empty()));
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

/// How a judge is named in reports.
pub(crate) fn name(judge: Judge) -> String {
    let Judge { program, filter, .. } = judge;
    format!("{program} {}", filter.trim_end_matches("::")).trim_end().to_owned()
}

/// The folder for what tests write while they run.
pub(crate) fn temporary(work: &Path) -> PathBuf {
    work.join("temporary")
}
