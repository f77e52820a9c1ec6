//! The stores of the framework tests in directories, each with one of its own.

use std::sync::Arc;

use dq::context::IntoStore;
use dq::environment::{StoreClock, WallClock};
use dq::store::Store;
use dq::store::file::FileStore;
use dq_tests::PacedStore;
use dq_tests::file::Folder;
use futures_executor::block_on;

/// How many seeds a test draws that tries many. Each syncs some dozen times here.
pub const SEEDS: u32 = 20;

/// Returns a new store under `clock`, which stands still while an answer waits for the disk.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    let folder = Folder::unmade();
    Arc::new(PacedStore::of(opened(&folder, clock), folder))
}

/// Opens a store where no factory does.
fn opened(folder: &Folder, clock: Arc<dyn StoreClock>) -> FileStore {
    let store = FileStore::new(folder.path()).with(|options| options.clock = clock);
    block_on(store.open()).expect("a folder of the test opens");
    store
}

/// A store under the real clock that the nodes of this process share by its URL.
#[derive(Debug)]
pub struct Shared(Folder);

impl Shared {
    pub fn named(_name: &str) -> Self {
        Self(Folder::unmade())
    }

    /// Returns the URL of the store. Another process can open it while this one does not.
    pub fn address(&self) -> String {
        self.0.url()
    }

    /// Returns what a node, in this or another process, takes as its store.
    pub fn at(address: &str) -> impl IntoStore + use<> {
        address.to_owned()
    }

    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(opened(&self.0, Arc::new(WallClock)))
    }
}
