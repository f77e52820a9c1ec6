//! `dq check`, `dq compact` and `dq backup`: the directory of a `file:` store.

use std::io::{self, Write};
use std::path::Path;

use dq::context::directory_of;
use dq::store::file::{CheckError, Checked, FileView, NewDirectory, Saved, backup, check, compact, salvage};

use crate::failure::Failure;
use crate::safe::safe;

/// The new directory that a URL names, to be filled; `None` for another URL, and for a directory that has a store.
pub(crate) fn new_directory(url: &str) -> Result<Option<NewDirectory>, Failure> {
    Ok(directory_of(url)?.map(NewDirectory::at).transpose()?.flatten())
}

/// A view of the directory of this URL, which `holder` uses. It tells the user on stderr.
pub(crate) fn view(url: &str, holder: &str) -> Result<FileView, Failure> {
    let path = directory_of(url)?.unwrap_or_default();
    crate::say(format_args!(
        "{holder} uses {}: this is what its files have now. They have no leases, statistics and signals, and changes are refused",
        path.display()
    ))?;
    Ok(FileView::of(path, holder)?)
}

/// A verb that looks at a directory does not make one.
pub(crate) fn must_exist(url: &str) -> Result<(), Failure> {
    match directory_of(url)? {
        Some(path) if !path.is_dir() => Err(CheckError::NoDirectory { path: path.display().to_string() }.into()),
        _ => Ok(()),
    }
}

/// Checks a directory, or saves what is sound of it, and says on stdout what it holds.
pub(crate) fn run_check(path: &Path, to: Option<&Path>) -> Result<(), Failure> {
    if let Some(to) = to {
        return run_salvage(path, to);
    }
    let checked = check(path)?;
    let mut out = io::stdout().lock();
    report(path, &checked, &mut out).map_err(Failure::Write)
}

fn run_salvage(path: &Path, to: &Path) -> Result<(), Failure> {
    let saved = salvage(path, to)?;
    let mut out = io::stdout().lock();
    report_saved(to, &saved, &mut out).map_err(Failure::Write)?;
    let (ranges, jobs) = (saved.unsound.len(), saved.lost.len());
    if ranges + jobs == 0 {
        return Ok(());
    }
    Err(Failure::Problems(format!(
        "{ranges} ranges of {} are not sound, and {jobs} jobs are known to be lost",
        path.display()
    )))
}

fn report_saved(to: &Path, saved: &Saved, out: &mut impl Write) -> io::Result<()> {
    report(to, &saved.checked, out)?;
    for range in &saved.unsound {
        writeln!(
            out,
            "not sound: {} from offset {} on, {} bytes: {}",
            range.file,
            range.offset,
            range.bytes,
            safe(&range.what)
        )?;
    }
    for (topic, id) in &saved.lost {
        writeln!(out, "lost: job {} of {topic}", safe(id.as_str()))?;
    }
    out.flush()
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
    for (topic, id, over) in &checked.over_limit {
        // Other programs choose ids and headers.
        let (id, over) = (safe(id.as_str()), safe(&over.to_string()));
        writeln!(out, "job {id} of {topic} will be DEAD with the cause `decode`: {over}")?;
    }
    if let Some(fence) = checked.large_fence {
        writeln!(out, "the fence {fence} is above the limit: run `dq doctor --repair` on the store")?;
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

/// Copies a directory, and says on stderr how large the copy is.
pub(crate) fn run_backup(path: &Path, to: &Path) -> Result<(), Failure> {
    let bytes = backup(path, to)?;
    crate::say(format_args!("copied {} to {}: {bytes} bytes", path.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use dq::context::open_store;
    use dq::job::{AppName, JobId, TopicKey, TopicName, limits};

    use super::*;

    #[tokio::test]
    async fn what_a_check_prints_has_no_character_that_a_terminal_obeys() {
        let path = std::env::temp_dir().join(format!("dq-check-{}", std::process::id()));
        let store = open_store(&format!("file:{}", path.display())).unwrap();
        store.prepare().await.unwrap();
        drop(store);
        let mut checked = check(&path).unwrap();
        let topic = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("t").unwrap() };
        let over = limits::ID.check(1_000).unwrap_err();
        checked.over_limit.push((topic, JobId::new("a\u{202e}b").unwrap(), over));
        let mut out = Vec::new();
        report(&path, &checked, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r"job a\u{202e}b of shop:t will be DEAD") && !text.contains('\u{202e}'), "{text}");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_url_that_a_shell_has_not_expanded_names_no_directory() {
        for url in ["file:$HOME/x", "file:~/x", "file:///a/my%20shop"] {
            assert!(matches!(must_exist(url), Err(Failure::Url(_))), "{url}");
            assert!(matches!(new_directory(url), Err(Failure::Url(_))), "{url}");
        }
    }
}
