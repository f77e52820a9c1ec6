//! Runs an example as a process.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};

/// The longest that any wait may take, even on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The names of the examples.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap().map(|entry| entry.unwrap().path());
    let programs = entries.filter(|path| path.join("main.rs").exists() && !path.ends_with("tests"));
    let mut names: Vec<_> = programs.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

/// The folder of the built examples, which cargo builds before their test.
static BUILT: LazyLock<&Path> =
    LazyLock::new(|| Path::new(env!("CARGO_BIN_EXE_order_timeout")).parent().expect("a program is in a folder"));

/// Returns the text of a file in the folder of the examples.
pub(crate) fn shipped(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A running example. Dropping the value kills it.
pub(crate) struct Program {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Program {
    /// Starts an example on a memory store, in the folder of temporary files.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_on("memory:", name, arguments)
    }

    /// Starts an example on `store`.
    pub(crate) fn start_on(store: &str, name: &str, arguments: &[&str]) -> Self {
        let mut command = tokio::process::Command::new(BUILT.join(name));
        command.args(arguments).current_dir(env!("CARGO_TARGET_TMPDIR")).env("DQ_STORE", store);
        Self::spawn(command)
    }

    /// Starts an example on the store that it takes by itself, in this folder.
    pub(crate) fn start_in(folder: &Path, name: &str) -> Self {
        let mut command = tokio::process::Command::new(BUILT.join(name));
        command.current_dir(folder).env_remove("DQ_STORE");
        Self::spawn(command)
    }

    fn spawn(mut command: tokio::process::Command) -> Self {
        let mut child = command
            .env_remove("DQ_REDIS_SERVER")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stdout, stderr }
    }

    /// Returns the next line of stdout.
    pub(crate) async fn line(&mut self) -> String {
        let line = tokio::time::timeout(LIMIT, self.stdout.next_line()).await.expect("no line in time");
        line.unwrap().expect("the program ended")
    }

    /// Returns the next line of stderr for which `wanted` is true.
    pub(crate) async fn line_of_stderr(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            let line = tokio::time::timeout(LIMIT, self.stderr.next_line()).await.expect("no line in time");
            let line = line.unwrap().expect("the program ended");
            if wanted(&line) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("the program runs");
        kill_process(Pid::from_raw(id.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the program to end. Returns its exit status and the output not read yet.
    pub(crate) async fn end(mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let (mut out, mut err) = (self.stdout.into_inner(), self.stderr.into_inner());
        let end =
            async { tokio::join!(out.read_to_string(&mut stdout), err.read_to_string(&mut stderr), self.child.wait()) };
        let (_, _, status) = tokio::time::timeout(LIMIT, end).await.expect("the program does not end");
        Ended { status: status.unwrap(), stdout, stderr }
    }
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs an example to its end.
pub(crate) async fn run(name: &str, arguments: &[&str]) -> Ended {
    Program::start(name, arguments).end().await
}
