//! Snapshots: steps go on while one is taken, and the directory does not grow.

use std::io::ErrorKind;
use std::sync::Arc;

use dq::environment::StoreClock;
use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::file::{Commits, FileStore, check_on};
use dq::store::step::Change;
use dq::store::{Interest, Link, LinkOptions, Producer, Query, QueryReply, Signals, Store, StoreError};
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;
use dq_testing::disk::{Operation, SimulatedDisk};
use dq_testing::model;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::rig::{Rig, bytes, now, store_on};

/// A store whose thread takes snapshots all the time. Each time its jobs are counted, a second process opens a copy of the files,
/// and must find the same.
#[derive(Debug)]
struct Reopened {
    store: FileStore,
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
}

#[derive(Debug)]
struct Fixture {
    store: Arc<Reopened>,
}

impl Fixture {
    async fn empty() -> Self {
        let (disk, clock) = (SimulatedDisk::new(), Arc::new(ManualClock::at(0)));
        let store = store_on(&disk, &clock).with(|options| {
            (options.commits, options.segment_bytes, options.snapshot_bytes) = (Commits::OnOwnThread, 16 << 10, 1_024);
        });
        store.open().await.unwrap();
        Self { store: Arc::new(Reopened { store, disk, clock }) }
    }
}

impl StoreFixture for Fixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.store.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> BoxFuture<'_, ()> {
        self.store.clock.set(micros);
        Box::pin(async {})
    }
}

impl Reopened {
    fn compare(&self, topic: &TopicKey) {
        self.store.commit().unwrap();
        let other = store_on(&self.disk.copy(), &self.clock);
        now(other.open()).unwrap();
        let (ours, theirs) = (self.store.rows().unwrap().view(topic), other.rows().unwrap().view(topic));
        assert!(theirs.consistent);
        assert_eq!(
            (&ours.jobs, &ours.broadcasts),
            (&theirs.jobs, &theirs.broadcasts),
            "another process finds other rows"
        );
    }
}

impl Store for Reopened {
    fn url(&self) -> String {
        self.store.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        if let Query::Counts { topic } = query {
            self.compare(topic);
        }
        self.store.ask(query)
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.store.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.store.producer(topic, producer)
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.store.signals(topic, interest)
    }
}

#[test]
fn random_steps_beside_snapshots_leave_files_that_another_process_reads_as_the_same_state() {
    if let Err(difference) = model::check(0..60, || Fixture::empty().boxed()) {
        panic!("{difference}");
    }
}

#[test]
fn steady_load_does_not_grow_the_directory() {
    let disk = SimulatedDisk::new();
    let with = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes) = (16 << 10, 32 << 10);
    };
    let mut rig = Rig::try_open(&disk, with).unwrap();
    let waiting: Vec<_> = (0..20).map(|n| format!("waiting {n}")).collect();
    let later = |id: &String| dq::store::NewJob {
        due: dq::store::Due::After(std::time::Duration::from_secs(3_600)),
        ..crate::rig::job(id, "1")
    };
    drop(rig.add_all(waiting.iter().map(later).collect()));
    let mut most = 0;
    for round in 0..400 {
        let ids: Vec<_> = (0..10).map(|n| format!("{round}.{n}")).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        rig.added(&ids);
        let claims = rig.transfer(10);
        rig.store.commit().unwrap();
        let claims = rig.claimed(claims).unwrap();
        let settled = rig.settle(claims.iter().map(|claim| (claim, Change::Ack, None)).collect());
        rig.store.commit().unwrap();
        now(settled).unwrap();
        rig.clock.advance(std::time::Duration::from_millis(10));
        most = most.max(bytes(&disk));
    }
    assert!(disk.written() > 20 * most, "{} bytes were written, {most} were there", disk.written());
    // The frames, eight times that of padding, a segment that is older in part, and two snapshots.
    assert!(most < 12 * (32 << 10), "{most} bytes");
    let checked = check_on(&disk.copy()).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, 20);
}

#[test]
fn a_snapshot_that_fails_is_tried_again_only_once_the_journal_has_grown() {
    let disk = SimulatedDisk::new();
    let with = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes) = (4 << 20, 128 << 10);
    };
    let mut rig = Rig::try_open(&disk, with).unwrap();
    // From here on only snapshots are renamed.
    disk.fail(Operation::Rename, 0, ErrorKind::Other);
    let mut adds = 0;
    let mut tries_at = [1, 2].map(|tries| {
        while disk.count(Operation::Rename) < tries {
            rig.added(&[&adds.to_string()]);
            adds += 1;
        }
        adds
    });
    tries_at[1] -= tries_at[0];
    // A commit takes a unit: the first try comes after 1 MiB of them, the second after an eighth of 128 KiB, which is four.
    assert!(tries_at[0] > 250 && tries_at[1] == 4, "{tries_at:?}");
    drop(rig);
    let checked = check_on(&disk.copy()).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, adds);
    let files = dq::store::file::disk::Disk::list(&disk).unwrap();
    assert!(files.iter().any(|file| file.name.starts_with("snapshot-") && file.name.ends_with(".dq")), "{files:?}");
}

#[test]
fn a_directory_does_not_grow_with_the_number_of_starts() {
    let usual = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes, options.commits) = (64 << 20, 64 << 20, Commits::AtOnce);
    };
    for closes in [false, true] {
        let mut disk = SimulatedDisk::new();
        let mut most = 0;
        for start in 0..40 {
            let mut rig = Rig::try_open(&disk, usual).unwrap();
            assert_eq!(rig.has("waiting"), start > 0);
            now(rig.add("waiting")).unwrap();
            let killed = disk.copy();
            drop(rig);
            disk = if closes { disk.copy() } else { killed };
            most = most.max(bytes(&disk));
        }
        // Each start writes a mebibyte of zeros ahead.
        assert!(most < 20 << 20, "{most} bytes, closes: {closes}");
        assert_eq!(check_on(&disk).unwrap().topics[0].counts.delayed, 1);
    }
}
