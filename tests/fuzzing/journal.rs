//! Journals: a store that opens on generated changes, and a node that runs what they left.

use std::sync::Arc;

use dq::environment::TokioClock;
use dq::job::JobId;
use dq::store::file::disk::Disk;
use dq::store::file::journal::{Frame, Holder, Journal, Options, Position};
use dq::store::file::{Commits, FileStore, check_on};
use dq_testing::disk::SimulatedDisk;

use crate::changes::Changes;
use crate::draw::{Draw, NOW};
use crate::node::{Node, key, lasting, paused};
use crate::target::Found;

/// The most frames of a journal.
const FRAMES: u64 = 8;

/// Writes a journal of generated changes. Returns the rows that it leaves.
fn write(draw: &Draw, disk: &SimulatedDisk) -> Vec<JobId> {
    let options = Options::new(7, Holder::default());
    let nothing = |_: Position, _: Frame<'_>| Ok::<_, std::io::Error>(());
    let (journal, _) = Journal::open(Arc::new(disk.clone()), &options, nothing).expect("an empty disk opens");
    let topic = journal.topic(&key().to_string()).expect("it is a name");
    let reserved = if draw.one_in(8) { draw.number() } else { NOW * 1_000 };
    journal.reserve(reserved).expect("the disk is sound");
    let mut changes = Changes::new(draw);
    for _ in 0..=draw.below(FRAMES) {
        journal.append(topic, 1, changes.step()).expect("the disk is sound");
        journal.commit().expect("the disk is sound");
    }
    if draw.one_in(2) {
        journal.seal().expect("the disk is sound");
    }
    changes.into_rows().filter_map(|id| JobId::new(id).ok()).collect()
}

/// A store on a disk, which is not open yet.
pub fn on(disk: &SimulatedDisk) -> Arc<FileStore> {
    let store = FileStore::on(Arc::new(disk.clone()), Arc::new(TokioClock::at(NOW * 1_000)));
    Arc::new(store.with(|options| options.commits = Commits::AtOnce))
}

/// The store of the next process, which opens what the one before has left on a disk.
pub async fn reopened(disk: &SimulatedDisk) -> Result<Arc<FileStore>, String> {
    let next = SimulatedDisk::default();
    for entry in disk.list().expect("the disk is sound").into_iter().filter(|entry| entry.name.ends_with(".dq")) {
        next.put(&entry.name, &disk.file(&entry.name));
    }
    let store = on(&next);
    match store.open().await {
        Ok(_) => Ok(store),
        Err(error) => Err(format!("the journal does not open again: {error}")),
    }
}

/// A journal is checked and opened; a node runs what it has, and the next process opens what the node left.
pub fn journal(draw: &Draw, found: &mut Found) {
    paused(async {
        let disk = SimulatedDisk::default();
        let rows = write(draw, &disk);
        let checked = check_on(&disk);
        let store = on(&disk);
        let is_opened = store.open().await.is_ok();
        found.input(is_opened);
        // A check also names what a repair mends, such as a fence above those that the journal reserved.
        assert!(is_opened || checked.is_err(), "a journal that the check takes does not open");
        if !is_opened {
            return;
        }
        let rows = lasting(&*store, rows, draw).await;
        let node = Node::start(store).await;
        node.runs_innocent_jobs(found).await;
        node.looks(found).await;
        node.still_has(&rows, found).await;
        if let Err(what) = reopened(&disk).await {
            found.lost(what);
        }
    });
}
