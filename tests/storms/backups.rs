//! Copies of the directory, one each second while its process works and is killed, and what each copy must have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use dq::store::file::{CheckError, Parts, backup, check};
use dq::store::{JobCopy, PageRequest, Store};
use futures_util::FutureExt;

use crate::ledger::{Answer, Entry, Log, now};

/// How often a copy is taken.
const EVERY: Duration = Duration::from_secs(1);

/// A copy: when it began and ended, and the ids of its jobs.
#[derive(Debug)]
struct Copied {
    from: u64,
    to: u64,
    ids: BTreeSet<String>,
}

/// The thread that copies.
#[derive(Debug)]
pub struct Backups {
    over: Sender<()>,
    thread: JoinHandle<(Vec<Copied>, Vec<String>)>,
}

impl Backups {
    /// Begins to copy the directory into folders below `to`.
    pub fn start(directory: PathBuf, to: PathBuf) -> Self {
        let (over, is_over) = channel();
        let thread = std::thread::spawn(move || {
            let (mut copies, mut wrong) = (Vec::new(), Vec::new());
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(EVERY) {
                match copy(&directory, &to) {
                    Ok(copied) => copies.push(copied),
                    // The first process has not made it yet.
                    Err(CheckError::NoDirectory { .. } | CheckError::NoStore { .. }) if copies.is_empty() => {}
                    Err(error) => wrong.push(format!("copy {}: {error}", copies.len())),
                }
            }
            (copies, wrong)
        });
        Self { over, thread }
    }

    /// Ends the copies. Returns what was wrong with them, and with what the files of the storm know.
    ///
    /// # Panics
    /// If the thread has.
    pub fn stop(self, logs: &[Log]) -> Vec<String> {
        drop(self.over);
        let (copies, mut wrong) = self.thread.join().expect("a copy that fails is a finding");
        let known = Known::of(logs);
        for (number, copied) in copies.iter().enumerate() {
            let missing: Vec<_> = known.must_have(copied).filter(|id| !copied.ids.contains(*id)).collect();
            if let Some(first) = missing.first() {
                wrong.push(format!("copy {number} lacks {} confirmed jobs, {first} among them", missing.len()));
            }
        }
        let must = copies.iter().map(|copied| known.must_have(copied).count()).sum::<usize>();
        println!("{:9} copies, which had {must} jobs that they must have", copies.len());
        if copies.is_empty() {
            wrong.push("no copy was taken".to_owned());
        }
        wrong
    }
}

fn copy(directory: &Path, to: &Path) -> Result<Copied, CheckError> {
    let (from, copy) = (now(), to.join("copy"));
    _ = std::fs::remove_dir_all(&copy);
    backup(directory, &copy)?;
    let to = now();
    check(&copy)?;
    let mut ids = BTreeSet::new();
    for part in Parts::of(&copy)?.read() {
        let store = part?;
        for topic in store.known_topics() {
            for (broadcasts, state) in JobCopy::parts() {
                let mut after = None;
                loop {
                    let request = PageRequest { state, after, limit: 1_000, bytes: 1 << 20 };
                    let page =
                        store.export(&topic, request, broadcasts).now_or_never().expect("nothing waits in memory")?;
                    ids.extend(page.copies.iter().map(|copy| copy.id.to_string()));
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
            }
        }
    }
    Ok(Copied { from, to, ids })
}

/// When each job was confirmed, and when anything else was first done to it.
#[derive(Debug, Default)]
struct Known {
    confirmed: BTreeMap<String, u64>,
    touched: BTreeMap<String, u64>,
}

impl Known {
    fn of(logs: &[Log]) -> Self {
        let mut known = Self::default();
        for line in logs.iter().flat_map(|log| &log.lines) {
            let (times, id) = match &line.entry {
                Entry::Added { id, answer: Answer::Done { .. } } => (&mut known.confirmed, id),
                Entry::Sending { id, .. }
                | Entry::Start { id, .. }
                | Entry::Final { id, .. }
                | Entry::Settled { id, .. } => (&mut known.touched, id),
                _ => continue,
            };
            let first = times.entry(id.clone()).or_insert(line.at);
            *first = line.at.min(*first);
        }
        known
    }

    /// The jobs that were confirmed before this copy began, and to which nothing was done until it was complete.
    fn must_have(&self, copied: &Copied) -> impl Iterator<Item = &String> {
        let (from, to) = (copied.from, copied.to);
        let is_untouched = move |id: &String| self.touched.get(id).is_none_or(|at| *at > to);
        self.confirmed.iter().filter(move |(id, at)| **at < from && is_untouched(id)).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Line;

    #[test]
    fn a_copy_must_have_what_was_confirmed_before_and_touched_after_it() {
        let line = |at, entry| Line { at, entry };
        let added = |id: &str| Entry::Added { id: id.into(), answer: Answer::Done { found: None, changed: true } };
        let start = |id: &str| Entry::Start { id: id.into(), fence: 1, due: 1, attempt: 1 };
        let lines = vec![
            line(1, added("waits")),
            line(2, added("runs meanwhile")),
            line(3, added("runs later")),
            line(12, added("too late")),
            line(15, start("runs meanwhile")),
            line(21, start("runs later")),
        ];
        let known = Known::of(&[Log { process: "owner-0.1".into(), lines }]);
        let copied = Copied { from: 10, to: 20, ids: BTreeSet::new() };
        assert_eq!(known.must_have(&copied).collect::<Vec<_>>(), ["runs later", "waits"]);
    }
}
