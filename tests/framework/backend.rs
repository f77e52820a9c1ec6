//! The store that a test runs on.
//!
//! A plain test runs in memory. [`stores!`] makes a test of a function once on each store that it names:
//! `stores!(a_job_runs: memory, file, redis);` above `async fn a_job_runs()` makes `a_job_runs::memory`, `a_job_runs::file` and
//! `a_job_runs::redis`.
//!
//! All tests run in memory. On `file:` and Redis run those in which what a node and its store do together depends on time, outages,
//! restarts or signals: leases, roles and crashes; the clock of the store, and when a node asks it; answers that are lost or late; what
//! other nodes and callers are told; what a node or a program leaves to the next one (claims, follow-ups, sets, schedules, states,
//! results). What a node decides by itself, how a provider reads its arguments and words its errors, and the effect of a single request
//! are the same on every store that passes the conformance suite (`dq/testing/src/conformance/`).
//!
//! Nodes share tokio's paused clock with a Redis server, and the clock stands still while an answer waits for the server or for the disk
//! ([`dq_tests::PacedStore`]). So a test expects the same of all stores, to the millisecond, and an hour takes no time.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use dq::context::{IntoStore, StoreChoice};
use dq::environment::{StoreClock, WallClock};
use dq::store::Store;
#[cfg(unix)]
use dq::store::file::FileStore;
use dq::store::memory::MemoryStore;
use dq::store::redis::RedisStore;
use dq_tests::PacedStore;
#[cfg(unix)]
use dq_tests::file::Folder;
use dq_tests::redis::Keyspace;
#[cfg(unix)]
use futures_executor::block_on;

/// Makes tests of a function, one on each of these stores, under a paused clock. `on the real clock` and `without a runtime` come after
/// the name of the function, before the colon.
macro_rules! stores {
    (@test paused $test:ident $name:ident $store:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let _store = crate::backend::On::$store.enter();
            super::$test().await;
        }
    };
    (@test real $test:ident $name:ident $store:ident) => {
        #[tokio::test]
        async fn $name() {
            let _store = crate::backend::On::$store.enter();
            super::$test().await;
        }
    };
    (@test plain $test:ident $name:ident $store:ident) => {
        #[test]
        fn $name() {
            let _store = crate::backend::On::$store.enter();
            super::$test();
        }
    };
    (@on memory $kind:ident $test:ident) => {
        stores!(@test $kind $test memory Memory);
    };
    (@on file $kind:ident $test:ident) => {
        #[cfg(unix)]
        stores!(@test $kind $test file File);
    };
    (@on redis $kind:ident $test:ident) => {
        stores!(@test $kind $test redis Redis);
    };
    (@each $kind:ident $test:ident $($store:ident)+) => {
        mod $test {
            $(stores!(@on $store $kind $test);)+
        }
    };
    ($test:ident: $($store:ident),+) => {
        stores!(@each paused $test $($store)+);
    };
    ($test:ident on the real clock: $($store:ident),+) => {
        stores!(@each real $test $($store)+);
    };
    ($test:ident without a runtime: $($store:ident),+) => {
        stores!(@each plain $test $($store)+);
    };
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Memory,
    #[cfg(unix)]
    File,
    Redis,
}

thread_local! {
    static STORE: Cell<Option<On>> = const { Cell::new(None) };
}

/// The thread has the store of its test until this is dropped.
#[derive(Debug)]
pub struct Scope(());

impl Drop for Scope {
    fn drop(&mut self) {
        STORE.set(None);
    }
}

impl On {
    /// Gives the thread of a test this store.
    pub fn enter(self) -> Scope {
        STORE.set(Some(self));
        Scope(())
    }

    /// Returns the store of the test whose thread this is.
    pub fn of_this_test() -> Self {
        STORE.get().unwrap_or_else(|| {
            // The test harness names a thread after its test, unless it runs one test after the other.
            let is_of_a_test = thread::current().name().is_some_and(|name| name == "main" || name.contains("::"));
            assert!(
                is_of_a_test,
                "only the thread of a test knows its store: make the store there, before a thread starts"
            );
            Self::Memory
        })
    }
}

/// How many seeds a test draws that tries many. Each costs some hundred round trips on Redis, and some dozen syncs on `file:`.
pub fn seeds() -> u32 {
    match On::of_this_test() {
        On::Memory => 300,
        #[cfg(unix)]
        On::File => 20,
        On::Redis => 5,
    }
}

/// Returns a new store under `clock`, which stands still while an answer is on its way.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    match On::of_this_test() {
        On::Memory => Arc::new(MemoryStore::new(clock)),
        #[cfg(unix)]
        On::File => {
            let folder = Folder::unmade();
            Arc::new(PacedStore::of(opened(&folder, clock), folder))
        }
        On::Redis => PacedStore::start(clock),
    }
}

/// Opens a store where no factory does.
#[cfg(unix)]
fn opened(folder: &Folder, clock: Arc<dyn StoreClock>) -> FileStore {
    let store = FileStore::new(folder.path()).with(|options| options.clock = clock);
    block_on(store.open()).expect("a folder of the test opens");
    store
}

/// A store under the real clock that several nodes share.
#[derive(Debug)]
pub enum Shared {
    Memory {
        url: String,
    },
    #[cfg(unix)]
    File(Folder),
    Redis {
        store: Arc<RedisStore>,
        keyspace: Keyspace,
    },
}

impl Shared {
    pub fn named(name: &str) -> Self {
        match On::of_this_test() {
            On::Memory => Self::Memory { url: format!("memory:{name}") },
            #[cfg(unix)]
            On::File => Self::File(Folder::unmade()),
            On::Redis => {
                let keyspace = Keyspace::create();
                Self::Redis { store: Arc::new(keyspace.store()), keyspace }
            }
        }
    }

    /// Returns the text with which a node, in this or another process, [finds the store](Self::at). With that of a memory store
    /// another process opens one of its own; that of a `file:` store it can open while this process does not.
    pub fn address(&self) -> String {
        match self {
            Self::Memory { url } => url.clone(),
            #[cfg(unix)]
            Self::File(folder) => folder.url(),
            Self::Redis { keyspace, .. } => keyspace.address(),
        }
    }

    /// Returns what a node, in this or another process, takes as its store.
    pub fn at(address: &str) -> impl IntoStore + use<> {
        At(address.to_owned())
    }

    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory { .. } => Arc::new(MemoryStore::new(Arc::new(WallClock))),
            #[cfg(unix)]
            Self::File(folder) => Arc::new(opened(folder, Arc::new(WallClock))),
            Self::Redis { store, .. } => store.clone(),
        }
    }
}

/// The address of a [`Shared`] store.
struct At(String);

impl IntoStore for At {
    fn into_store(self) -> StoreChoice {
        if self.0.starts_with("memory:") || self.0.starts_with("file:") {
            return self.0.into_store();
        }
        Arc::new(Keyspace::store_at(&self.0)).into_store()
    }
}

stores!(a_test_has_the_store_that_its_name_says: memory, file, redis);
async fn a_test_has_the_store_that_its_name_says() {
    let url = store_under(Arc::new(WallClock)).url();
    let name = thread::current().name().expect("a test has a name").to_owned();
    let said = name.rsplit("::").next().expect("it ends with the store");
    assert!(name == "main" || url.starts_with(said), "{name}: {url}");
}

/// It would be that of a plain test, silently.
#[test]
fn a_thread_that_a_test_starts_has_no_store() {
    assert_eq!(On::of_this_test(), On::Memory, "this is a plain test");
    let panic = thread::spawn(On::of_this_test).join().unwrap_err();
    let text = panic.downcast_ref::<&str>().expect("it is a text");
    assert!(text.contains("only the thread of a test knows its store"), "{text}");
}
