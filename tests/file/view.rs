//! A view of a directory that another process uses.

use std::io;
use std::sync::{Arc, Mutex, mpsc};

use dq::ContextFactory;
use dq::inspect::NotRunReason;
use dq::job::{JobId, NodeId, ProducerId};
use dq::store::file::FileView;
use dq::store::file::disk::{Access, DirectoryFile, Disk, DiskFile, Locked};
use dq::store::step::Wake;
use dq::store::{Interest, Numbered, Query, Store, StoreError, TopicCounts};
use dq_testing::disk::SimulatedDisk;

use crate::power_cuts::view_of;
use crate::rig::{Rig, awaited, job, key, now};

fn counts(view: &FileView) -> TopicCounts {
    awaited(view.counts(&key())).unwrap()
}

#[test]
fn a_view_reads_what_is_new_and_not_all_again() {
    let disk = SimulatedDisk::new();
    let mut rig = Rig::try_open(&disk, |options| {
        (options.segment_bytes, options.snapshot_bytes) = (64 << 20, 1 << 40);
    })
    .unwrap();
    let payload = "1".repeat(100_000);
    let added = rig.add_all((0..40).map(|n| job(&n.to_string(), &payload)).collect());
    rig.confirmed(added);
    let view = view_of(&disk);
    assert_eq!(counts(&view).delayed, 40);
    // What was read is damaged: whoever reads it again is refused.
    let name = disk.list().unwrap().into_iter().find(|entry| entry.name.starts_with("journal-")).unwrap().name;
    let mut bytes = disk.file(&name);
    bytes[5_000] ^= 1;
    disk.put(&name, &bytes);
    for round in 0..10 {
        rig.added(&[&format!("new {round}")]);
        assert_eq!(counts(&view).delayed, 41 + round);
    }
    let seen = awaited(view.get(&key(), &[JobId::new("new 9").unwrap()])).unwrap();
    assert!(seen[0].is_some());
    let refused = awaited(view_of(&disk).counts(&key())).unwrap_err();
    assert!(refused.to_string().contains("is damaged at offset"), "{refused}");
}

#[tokio::test]
async fn nothing_is_said_of_listeners_and_leases_that_a_view_does_not_know() {
    let (disk, mut rig) = Rig::new();
    rig.added(&["a", "b"]);
    let running = rig.claims(1)[0].id.clone();
    let factory = ContextFactory::new(key().app.as_str()).store(Arc::new(view_of(&disk)) as Arc<dyn Store>);
    let dq = factory.without_inventory().without_listeners().variables([("", ""); 0]).start().await.unwrap();
    let inspector = dq.provider().inspect();
    let seen = inspector.topic(key().topic.as_str()).await.unwrap();
    assert!(seen.ready > 0 && seen.has_listener() && !seen.needs_listener(), "{seen:?}");
    let why = inspector.why(key().topic.as_str(), running.as_str()).await.unwrap();
    assert!(matches!(why.reasons[..], [NotRunReason::Running { lease: None, .. }]), "{why:?}");
}

#[test]
fn a_view_that_needs_too_much_memory_ends_and_says_what_needs_little() {
    let (disk, mut rig) = Rig::new();
    rig.added(&["a", "b", "c"]);
    let refused = awaited(view_of(&disk).with_memory(500).counts(&key())).unwrap_err();
    assert!(matches!(&refused, StoreError::Full { .. }), "{refused}");
    assert!(refused.to_string().contains("`dq export` and `dq check` need little memory"), "{refused}");
    assert_eq!(awaited(view_of(&disk).with_memory(5_000).counts(&key())).unwrap().delayed, 3);
}

#[test]
fn a_view_changes_nothing_and_names_who_uses_the_directory() {
    let (disk, mut rig) = Rig::new();
    rig.added(&["a"]);
    let (view, before) = (view_of(&disk), disk.written());
    let held = |error: StoreError| {
        assert!(matches!(&error, StoreError::Held { holder, .. } if holder == "process 7"), "{error}");
        assert!(error.nothing_done() && !error.is_outage(), "nobody repeats it");
    };
    let producer = view.producer(&key(), &ProducerId::new("p"));
    held(now(producer.add(Numbered { number: 1, items: vec![job("b", "1")] })).unwrap_err());
    held(now(view.link(&key(), &NodeId::new("n")).step(Wake)).unwrap_err());
    held(now(view.signals(&key(), Interest { node: None, broadcasts: false, moves: true })).map(drop).unwrap_err());
    held(now(view.ask(Query::Listen { topic: &key() })).unwrap_err());
    assert_eq!((counts(&view).delayed, disk.written()), (1, before));
}

/// A disk that lists its files only once it is told to.
#[derive(Debug)]
struct Slow {
    disk: SimulatedDisk,
    asked: tokio::sync::mpsc::UnboundedSender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
    never_on: std::thread::ThreadId,
}

impl Disk for Slow {
    fn path(&self) -> String {
        self.disk.path()
    }

    fn list(&self) -> io::Result<Vec<DirectoryFile>> {
        assert_ne!(std::thread::current().id(), self.never_on, "the thread of the runtime reads files");
        if self.asked.send(()).is_ok() {
            _ = self.go_on.lock().unwrap().recv();
        }
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name, access)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn room(&self) -> io::Result<Option<u64>> {
        self.disk.room()
    }

    fn lock(&self, name: &str, holder: &str) -> io::Result<Locked> {
        self.disk.lock(name, holder)
    }
}

#[tokio::test]
async fn a_view_that_waits_for_a_slow_disk_holds_up_nobody_else() {
    let disk = SimulatedDisk::new();
    Rig::open(&disk).added(&["a", "b"]);
    let ((asked, mut is_asked), (go_on, told)) = (tokio::sync::mpsc::unbounded_channel(), mpsc::channel());
    let slow = Slow { disk, asked, go_on: Mutex::new(told), never_on: std::thread::current().id() };
    let view = FileView::on(Arc::new(slow), "process 7");
    let answer = tokio::spawn(async move { view.counts(&key()).await });
    is_asked.recv().await.unwrap();
    // The disk waits, and this runtime, which has one thread, does not.
    assert!(!answer.is_finished());
    drop((go_on, is_asked));
    assert_eq!(answer.await.unwrap().unwrap().delayed, 2);
}
