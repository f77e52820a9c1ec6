//! Runs the program.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

/// What the program printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Starts the program with all its streams as pipes.
pub(crate) fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs the program with this input.
pub(crate) fn run(arguments: &[&str], input: &str) -> Ended {
    let mut child = start(arguments);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that refuses a line does not read the rest.
        let _ = stdin.write_all(input.as_bytes());
    });
    let ended = child.wait_with_output().unwrap().into();
    writer.join().unwrap();
    ended
}

/// Runs the program, which must succeed.
pub(crate) fn done(arguments: &[&str], input: &str) -> Ended {
    let ended = run(arguments, input);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    ended
}

/// Runs the program, which must fail with this code and these words. Nothing may be left of it on stdout but lines of an export.
pub(crate) fn fails(code: i32, arguments: &[&str], input: &str, words: &[&str]) -> Ended {
    let ended = run(arguments, input);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "`{word}` is not in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

/// An export of app `shop` with these lines between the first and the last.
pub(crate) fn export_of(lines: &[String]) -> String {
    let jobs = lines.iter().filter(|line| line.starts_with("{\"job\"")).count();
    let first = r#"{"export":{"format":1,"app":"shop"}}"#.to_owned();
    let last = format!(r#"{{"end":{{"jobs":{jobs}}}}}"#);
    [&[first][..], lines, &[last]].concat().join("\n") + "\n"
}

/// The line of a topic.
pub(crate) fn topic(name: &str) -> String {
    format!(r#"{{"topic":{{"topic":"{name}","fence":1763000000000001}}}}"#)
}

/// The line of a job of topic `orders`.
pub(crate) fn job(id: &str, state: &str) -> String {
    format!(
        r#"{{"job":{{"topic":"orders","id":"{id}","state":"{state}","at":4000000000000,"payload":{{"order":1}}}}}}"#
    )
}
