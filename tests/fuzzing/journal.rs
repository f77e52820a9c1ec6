//! Journals: changes of steps as `docs/internals/journal-changes.md` describes them, a store that opens on them, and a node that runs
//! what they left.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq::environment::TokioClock;
use dq::job::JobId;
use dq::store::file::disk::Disk;
use dq::store::file::journal::{Frame, Holder, Journal, Options, Position};
use dq::store::file::{Commits, FileStore, check_on};
use dq_testing::disk::SimulatedDisk;

use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::node::{Node, key, lasting, paused};
use crate::target::Found;

/// The most frames of a journal.
const FRAMES: u64 = 8;

/// Writes changes as `postcard` encodes the variants of `Change`, and knows the rows that they make: whether each is RUNNING.
struct Changes<'a> {
    draw: &'a Draw,
    rows: BTreeMap<String, bool>,
    bytes: Vec<u8>,
}

impl Changes<'_> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.put(text.as_bytes());
    }

    /// A flag, or what comes before an optional value.
    fn flag(&mut self, is_set: bool) -> bool {
        self.bytes.push(is_set.into());
        is_set
    }

    /// The variant of an enum.
    fn one_of(&mut self, variants: u64) -> u64 {
        let variant = self.draw.below(variants);
        self.number(variant);
        variant
    }

    /// A time after the origin.
    fn time(&mut self) {
        let time =
            if self.draw.one_in(4) { self.draw.number() as i64 } else { self.draw.below(200_000) as i64 - 100_000 };
        self.number((time << 1 ^ time >> 63) as u64);
    }

    fn fence(&mut self) {
        let fence = if self.draw.one_in(8) { self.draw.number() } else { self.draw.below(1 << 51) };
        self.number(fence & u64::MAX >> 1);
    }

    fn node(&mut self) {
        self.text(self.draw.pick(&["n1", "n2", "node é", "x"]));
    }

    fn record(&mut self) {
        let record = grammar::record(self.draw);
        self.put(&record);
    }

    fn new_id(&self) -> String {
        let id = grammar::id(self.draw);
        if JobId::new(&id).is_ok() { id } else { self.draw.word() }
    }

    /// A row that is there, mostly.
    fn known(&self) -> Option<String> {
        if self.draw.one_in(60) {
            return Some(self.new_id());
        }
        self.rows.keys().nth(self.draw.below(self.rows.len().max(1) as u64) as usize).cloned()
    }

    fn timed(&mut self) {
        self.one_of(4);
        self.time();
        self.flag(self.draw.one_in(8));
    }

    fn row(&mut self) {
        let id = self.new_id();
        self.text(&id);
        let is_running = self.one_of(2) == 1;
        if is_running {
            self.node();
            self.flag(self.draw.one_in(2));
            self.fence();
            self.time();
            self.notes();
        } else {
            self.timed();
        }
        self.number(if self.draw.one_in(4) { self.draw.number() & u64::from(u32::MAX) } else { 0 });
        self.record();
        self.rows.insert(id, is_running);
    }

    fn notes(&mut self) {
        if self.flag(self.draw.one_in(3)) {
            self.one_of(2);
        }
        if self.flag(self.draw.one_in(4)) {
            self.pending();
        }
    }

    fn pending(&mut self) {
        if self.flag(self.draw.one_in(2)) {
            self.one_of(3);
            if self.flag(self.draw.one_in(2)) {
                self.fence();
            }
        }
        if self.flag(self.draw.one_in(2)) {
            self.record();
            self.number(self.draw.number());
            self.one_of(3);
            self.flag(self.draw.one_in(2));
        }
    }

    fn parts(&mut self, id: &str) {
        let is_running = self.rows.get(id).copied().unwrap_or_default();
        self.text(id);
        let moves = self.flag(self.draw.one_in(2));
        if moves {
            self.timed();
            self.rows.insert(id.to_owned(), false);
        }
        if self.flag(self.draw.one_in(2)) {
            self.number(self.draw.number() & u64::from(u32::MAX));
        }
        if self.flag(self.draw.one_in(2)) {
            let record = grammar::record(self.draw);
            self.put(&record[..record.len().min(40)]);
            self.number(self.draw.below(if self.draw.one_in(20) { 1_000 } else { 3 }));
        }
        if self.flag(is_running && !moves && self.draw.one_in(2)) {
            self.notes();
        }
    }

    fn reason(&mut self) {
        let reason = self.draw.text();
        self.text(reason.get(..1_024).unwrap_or(&reason));
    }

    fn pause(&mut self) {
        self.reason();
        if self.flag(self.draw.one_in(2)) {
            self.number(self.draw.number());
        }
        self.text(&self.draw.word());
        self.number(self.draw.number());
    }

    fn state(&mut self) {
        if self.flag(self.draw.one_in(2)) {
            self.pause();
        }
        if self.flag(self.draw.one_in(3)) {
            self.reason();
            self.text(&self.draw.word());
            self.number(self.draw.number());
        }
        if self.flag(self.draw.one_in(3)) {
            self.number(self.draw.number());
            self.text(&self.draw.word());
            self.number(self.draw.number());
        }
        if self.flag(self.draw.one_in(30)) {
            self.one_of(7);
            self.text("no limit");
            self.reason();
            self.text(&self.draw.word());
            self.number(self.draw.number());
        }
    }

    /// A change: mostly of the rows.
    fn change(&mut self) {
        let kind = if self.rows.is_empty() {
            1
        } else {
            [0, 1, 1, 1, 2, 2, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12][self.draw.below(16) as usize]
        };
        let kind = if self.draw.one_in(600) { self.draw.below(256) } else { kind };
        self.number(kind);
        match kind {
            0 => self.number(NOW),
            1 => self.row(),
            2 | 3 => {
                let Some(id) = self.known() else { return };
                if kind == 2 {
                    return self.parts(&id);
                }
                self.text(&id);
                self.rows.remove(&id);
            }
            4 => self.claim(),
            7 => {
                self.node();
                self.flag(self.draw.one_in(2));
            }
            8 => self.state(),
            11 => {
                self.number(self.draw.below(200));
                self.number(self.draw.below(1 << 22));
                self.number(self.draw.below(1_000_000_000));
            }
            _ => self.beside(kind),
        }
    }

    /// A claim of some rows that are there.
    fn claim(&mut self) {
        self.node();
        self.fence();
        for _ in 0..=self.draw.below(3) {
            let Some(id) = self.known() else { return };
            self.number(5);
            self.text(&id);
            self.time();
            self.rows.insert(id, true);
        }
    }

    /// What is kept under a name beside the rows, or nothing.
    fn beside(&mut self, kind: u64) {
        self.text(&self.new_id());
        if !self.flag(!self.draw.one_in(4)) {
            return;
        }
        match kind {
            6 => {
                self.time();
                self.record();
            }
            9 => self.pause(),
            10 => {
                self.text(&self.draw.text());
                if self.flag(self.draw.one_in(2)) {
                    self.number(self.draw.number());
                }
            }
            _ => {
                self.number(self.draw.number());
                self.flag(self.draw.one_in(2));
            }
        }
    }
}

/// Writes a journal of generated changes. Returns the rows that it leaves.
fn write(draw: &Draw, disk: &SimulatedDisk) -> Vec<JobId> {
    let options = Options::new(7, Holder::default());
    let nothing = |_: Position, _: Frame<'_>| Ok::<_, std::io::Error>(());
    let (journal, _) = Journal::open(Arc::new(disk.clone()), &options, nothing).expect("an empty disk opens");
    let topic = journal.topic(&key().to_string()).expect("it is a name");
    let reserved = if draw.one_in(8) { draw.number() } else { NOW * 1_000 };
    journal.reserve(reserved).expect("the disk is sound");
    let mut changes = Changes { draw, rows: BTreeMap::new(), bytes: Vec::new() };
    for _ in 0..=draw.below(FRAMES) {
        changes.bytes.clear();
        changes.bytes.push(0);
        changes.number(NOW);
        (0..=draw.below(8)).for_each(|_| changes.change());
        journal.append(topic, 1, &changes.bytes).expect("the disk is sound");
        journal.commit().expect("the disk is sound");
    }
    if draw.one_in(2) {
        journal.seal().expect("the disk is sound");
    }
    changes.rows.into_keys().filter_map(|id| JobId::new(id).ok()).collect()
}

fn opened(disk: &SimulatedDisk) -> Arc<FileStore> {
    let store = FileStore::on(Arc::new(disk.clone()), Arc::new(TokioClock::at(NOW * 1_000)));
    Arc::new(store.with(|options| options.commits = Commits::AtOnce))
}

/// A journal is checked and opened; a node runs what it has, and the next process opens what the node left.
pub fn journal(draw: &Draw, found: &mut Found) {
    paused(async {
        let disk = SimulatedDisk::default();
        let rows = write(draw, &disk);
        let checked = check_on(&disk);
        let store = opened(&disk);
        let is_opened = store.open().await.is_ok();
        found.input(is_opened);
        // A check also names what a repair mends, such as a fence above those that the journal reserved.
        assert!(is_opened || checked.is_err(), "a journal that the check takes does not open");
        if !is_opened {
            return;
        }
        let rows = lasting(&*store, rows).await;
        let node = Node::start(store).await;
        node.runs_innocent_jobs(found).await;
        node.looks(found).await;
        node.still_has(&rows, found).await;
        let next = SimulatedDisk::default();
        for entry in disk.list().expect("the disk is sound").into_iter().filter(|entry| entry.name.ends_with(".dq")) {
            next.put(&entry.name, &disk.file(&entry.name));
        }
        if let Err(error) = opened(&next).open().await {
            found.lost(format!("the journal does not open again: {error}"));
        }
    });
}
