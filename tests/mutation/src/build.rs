//! Builds the copy, and finds the places that the compiler refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::copy::Copy;

/// The features with which the tests link dq.
const FEATURES: [&str; 2] = ["--features", "dq/cron,dq/metrics,dq/testing,dq/tls"];

/// The folder in which cargo builds the tree: `CARGO_TARGET_DIR` and `build.target-dir` move it.
pub(crate) fn target(top: &Path) -> Result<PathBuf, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let asked = Command::new(program).args(["metadata", "--no-deps", "--format-version=1"]).current_dir(top).output();
    let asked = asked.map_err(|error| format!("cargo: {error}"))?;
    let said: Value = serde_json::from_slice(&asked.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    said["target_directory"].as_str().map(PathBuf::from).ok_or_else(|| "cargo does not say where it builds".to_owned())
}

/// Runs cargo in the copy and returns its messages, and whether it succeeded.
fn cargo(copy: &Path, target: &Path, arguments: &[&str]) -> Result<(Vec<Value>, bool), String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).args(FEATURES).args(["--message-format=json", "--quiet"]).current_dir(copy);
    // What `cargo run` sets for this program would be taken for that of the copy.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST") {
            command.env_remove(name);
        }
    }
    command.env("CARGO_TARGET_DIR", target).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok((messages, output.status.success()))
}

/// Which changes, by number, do not compile. Those that the compiler did not come to are found by the next check.
pub(crate) fn refused(copy: &Copy, target: &Path) -> Result<BTreeSet<usize>, String> {
    let (messages, is_fine) = cargo(&copy.folder, target, &["check", "-p", "dq", "-p", "dq-macros", "--lib"])?;
    let errors = messages.iter().map(|line| &line["message"]).filter(|message| message["level"] == "error");
    let mut refused = BTreeSet::new();
    let mut unknown = Vec::new();
    for error in errors.filter(|error| error["spans"].as_array().is_some_and(|spans| !spans.is_empty())) {
        match blamed(error, &copy.places) {
            Some(number) => drop(refused.insert(number)),
            None => unknown.push(error["rendered"].as_str().unwrap_or_default().to_owned()),
        }
    }
    match is_fine || !refused.is_empty() {
        true => Ok(refused),
        false => Err(format!("the copy does not compile, and no change is to blame:\n{}", unknown.join("\n"))),
    }
}

/// The change that an error is about: the smallest place around one of its spans, the primary ones first, or else the
/// nearest place in its file.
fn blamed(error: &Value, places: &[(String, std::ops::Range<usize>, usize)]) -> Option<usize> {
    let mut spans: Vec<&Value> = error["spans"].as_array().into_iter().flatten().collect();
    spans.sort_by_key(|span| span["is_primary"] != true);
    let part = |span: &Value, name: &str| span[name].as_u64().and_then(|byte| usize::try_from(byte).ok());
    for span in &spans {
        let file = span["file_name"].as_str().unwrap_or_default();
        let (Some(start), Some(end)) = (part(span, "byte_start"), part(span, "byte_end")) else { continue };
        let around = places.iter().filter(|(path, range, _)| path == file && range.start <= start && end <= range.end);
        if let Some((.., number)) = around.min_by_key(|(_, range, _)| range.len()) {
            return Some(*number);
        }
    }
    let (file, start) = (spans.first()?["file_name"].as_str()?, part(spans.first()?, "byte_start")?);
    let of_file = places.iter().filter(|(path, ..)| path == file);
    of_file.min_by_key(|(_, range, _)| range.start.abs_diff(start)).map(|(.., number)| *number)
}

/// Builds test programs of the copy: the unit tests of the crates, and these of `tests/`. By name, such as `dq` and `framework`.
pub(crate) fn tests(copy: &Path, target: &Path, names: &BTreeSet<&str>) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut arguments = vec!["test", "--no-run", "-p", "dq", "-p", "dq-macros", "-p", "dq-tests", "--lib", "--bins"];
    names.iter().for_each(|name| arguments.extend(["--test", name]));
    let (messages, is_fine) = cargo(copy, target, &arguments)?;
    if !is_fine {
        let errors = messages.iter().map(|line| &line["message"]).filter(|message| message["level"] == "error");
        let texts: Vec<_> = errors.filter_map(|error| error["rendered"].as_str()).collect();
        return Err(format!("the tests of the copy do not compile:\n{}", texts.join("\n")));
    }
    let built = messages.iter().filter(|line| line["reason"] == "compiler-artifact" && line["profile"]["test"] == true);
    let program =
        |line: &Value| Some((line["target"]["name"].as_str()?.to_owned(), line["executable"].as_str()?.into()));
    Ok(built.filter_map(program).collect())
}
