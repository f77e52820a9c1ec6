//! What a run on a `file:` store keeps: its disk, the answers that wait for a commit, and the steps that a crash may take.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;

use super::checker::Expected;
use super::cluster::JumpyClock;
use crate::disk::SimulatedDisk;
use dq::job::TopicKey;
use dq::store::file::{Commits, FileStore};
use dq::store::memory::{MemoryStore, PageSize};
use dq::store::{Pending, StoreError};

/// An answer that waits for a commit.
pub(super) type Waiting = (Pending<()>, Box<dyn FnOnce(Result<(), StoreError>) + Send>);

/// What the rows of a topic were after a step.
#[derive(Debug)]
pub(super) struct After {
    pub(super) step: u64,
    pub(super) expected: Expected,
    pub(super) rows: Vec<u8>,
}

/// The steps of a topic that a crash may take, and the one before them.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) steps: Vec<After>,
    pub(super) last: u64,
    /// Somebody has seen the answer of this step.
    pub(super) confirmed: u64,
}

/// The files of a run, and what waits for them.
pub(super) struct Files {
    pub(super) disk: SimulatedDisk,
    pub(super) store: FileStore,
    /// How often the process has crashed.
    pub(super) life: u64,
    pub(super) commits: u64,
    pub(super) is_commit_planned: bool,
    /// What the step waits for that is being executed, and in which topic it is.
    pub(super) confirm: Option<Pending<()>>,
    pub(super) stepped: Option<(TopicKey, u64)>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) histories: BTreeMap<TopicKey, History>,
}

pub(super) fn open(disk: &SimulatedDisk, clock: &Arc<JumpyClock>) -> Result<(FileStore, MemoryStore), StoreError> {
    let store = FileStore::on(Arc::new(disk.clone()), clock.clone()).with(|options| {
        (options.commits, options.segment_bytes, options.snapshot_bytes) = (Commits::ByHand, 8 << 10, 16 << 10);
    });
    store.open().now_or_never().expect("by hand, it opens at once")?;
    let rows = store.rows()?;
    Ok((store, rows))
}

/// Everything that the journal keeps of a topic.
pub(super) fn rows_of(store: &MemoryStore, key: &TopicKey) -> Result<Vec<u8>, StoreError> {
    let mut rows = Vec::new();
    let mut cursor = store.begin_dump(key)?;
    while !store.dump(key, &mut cursor, PageSize { rows: 1_000, bytes: usize::MAX }, &mut rows)? {}
    Ok(rows)
}

impl Files {
    /// An empty directory, and the store in it.
    pub(super) fn new(clock: &Arc<JumpyClock>) -> (Self, MemoryStore) {
        let disk = SimulatedDisk::new();
        let (store, rows) = open(&disk, clock).expect("an empty disk opens");
        let files = Self {
            disk,
            store,
            life: 0,
            commits: 0,
            is_commit_planned: false,
            confirm: None,
            stepped: None,
            waiting: Vec::new(),
            histories: BTreeMap::new(),
        };
        (files, rows)
    }

    pub(super) fn history(&mut self, key: &TopicKey) -> &mut History {
        self.histories.entry(key.clone()).or_insert_with(|| {
            let before = After { step: 0, expected: Expected::default(), rows: Vec::new() };
            History { steps: vec![before], ..History::default() }
        })
    }
}
