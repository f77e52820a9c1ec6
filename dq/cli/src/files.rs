//! `dq check` and `dq compact`: the directory of a `file:` store.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dq::store::file::{CheckError, Checked, check, compact};

use crate::failure::Failure;

/// The directory of a `file:` URL; `None` for another URL.
pub(crate) fn directory_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("file:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// An export reads a directory, so it makes none.
pub(crate) fn must_exist(url: &str) -> Result<(), Failure> {
    match directory_of(url) {
        Some(path) if !path.is_dir() => Err(CheckError::NoDirectory { path: path.display().to_string() }.into()),
        _ => Ok(()),
    }
}

/// Checks a directory, and says on stdout what it holds.
pub(crate) fn run_check(path: &Path) -> Result<(), Failure> {
    let checked = check(path)?;
    let mut out = io::stdout().lock();
    report(path, &checked, &mut out).map_err(Failure::Write)
}

fn report(path: &Path, checked: &Checked, out: &mut impl Write) -> io::Result<()> {
    let (path, bytes, topics) = (path.display(), checked.bytes, checked.topics.len());
    writeln!(out, "the files of {path} are sound: {bytes} bytes, {topics} topics")?;
    for topic in &checked.topics {
        let is = &topic.counts;
        let (name, broadcasts) = (&topic.topic, is.broadcasts);
        let states = format!(
            "{} delayed, {} running, {} unacked, {} dead, {} done",
            is.delayed, is.running, is.unacked, is.dead, is.done
        );
        writeln!(out, "  {name}: {states}, {broadcasts} broadcasts")?;
    }
    if let Some(torn) = &checked.torn {
        let (file, bytes) = (&torn.file, torn.bytes);
        writeln!(
            out,
            "{file}: the last {bytes} bytes are half-written and were never confirmed; the next start cuts them off"
        )?;
    }
    for snapshot in &checked.passed_over {
        writeln!(out, "not needed, but damaged: {snapshot}")?;
    }
    if !checked.is_sealed {
        writeln!(out, "it was not closed cleanly, or a program uses it now")?;
    }
    out.flush()
}

/// Makes a directory small, and says on stderr by how much.
pub(crate) fn run_compact(path: &Path) -> Result<(), Failure> {
    let (before, after) = compact(path)?;
    crate::say(format_args!("{} had {before} bytes and has {after} now", path.display()))
}
