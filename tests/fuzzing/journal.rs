//! Journals: changes of steps by the grammar of `docs/internals/journal-changes.md`, a store that opens on them, and a node that runs
//! what they left.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq::environment::TokioClock;
use dq::job::JobId;
use dq::store::file::disk::Disk;
use dq::store::file::journal::{Frame, Holder, Journal, Options, Position};
use dq::store::file::{Commits, FileStore, check_on};
use dq::store::memory::CHANGES_VERSION;
use dq_testing::disk::SimulatedDisk;

use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::node::{Node, key, lasting, paused};
use crate::target::Found;

/// The most frames of a journal.
const FRAMES: u64 = 8;

/// Writes changes, and knows the rows that they make: whether each is RUNNING.
struct Changes<'a> {
    draw: &'a Draw,
    rows: BTreeMap<String, bool>,
    bytes: Vec<u8>,
    /// The last time in the group.
    time: u64,
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

    fn time(&mut self) {
        let time = self.draw.number();
        let difference = time.wrapping_sub(self.time) as i64;
        self.time = time;
        self.number((difference << 1 ^ difference >> 63) as u64);
    }

    fn fence(&mut self) {
        let fence = if self.draw.one_in(8) { self.draw.number() } else { self.draw.below(1 << 51) };
        self.number(fence & u64::MAX >> 1);
    }

    fn node(&mut self) {
        let node = self.draw.pick(&["n1", "n2", "node é", "x"]);
        self.put(node.as_bytes());
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

    fn row(&mut self) {
        let id = self.new_id();
        self.put(id.as_bytes());
        let place = self.draw.below(5) as u8;
        let crashes = self.draw.one_in(4);
        let notes = if place == 0 { [0, 1 << 4, 1 << 5, 1 << 6][self.draw.below(4) as usize] } else { 0 };
        let released = if place == 0 { (self.draw.below(2) as u8) << 7 } else { 0 };
        self.bytes.push(place | u8::from(crashes) << 3 | notes | released);
        if place == 0 {
            self.node();
            self.fence();
            self.time();
            if notes == 1 << 6 {
                self.pending();
            }
        } else {
            self.time();
        }
        if crashes {
            self.number(self.draw.number() & u64::from(u32::MAX));
        }
        self.record();
        self.rows.insert(id, place == 0);
    }

    fn pending(&mut self) {
        let end = self.draw.below(4) as u8;
        let fenced = end == 1 && self.draw.one_in(2);
        let replaces = self.draw.one_in(2);
        let deliver = if replaces { [0, 1 << 5, 1 << 6][self.draw.below(3) as usize] } else { 0 };
        let conditional = if replaces { (self.draw.below(2) as u8) << 4 } else { 0 };
        self.bytes.push(end | u8::from(fenced) << 2 | u8::from(replaces) << 3 | conditional | deliver);
        if fenced {
            self.fence();
        }
        if replaces {
            self.number(self.draw.number());
            self.record();
        }
    }

    fn parts(&mut self, id: &str) {
        let is_running = self.rows.get(id).copied().unwrap_or_default();
        let mut flags = self.draw.below(8) as u8;
        let notes = is_running && flags & 1 == 0 && self.draw.one_in(2);
        flags |= u8::from(notes) << 3;
        self.put(id.as_bytes());
        self.bytes.push(flags);
        if flags & 1 != 0 {
            self.bytes.push(1 + self.draw.below(4) as u8);
            self.time();
            self.rows.insert(id.to_owned(), false);
        }
        if flags & 2 != 0 {
            self.number(self.draw.number() & u64::from(u32::MAX));
        }
        if flags & 4 != 0 {
            let record = grammar::record(self.draw);
            self.put(&record[..record.len().min(40)]);
            self.number(self.draw.below(if self.draw.one_in(20) { 1_000 } else { 3 }));
        }
        if notes {
            let bits = [0, 1 << 4, 1 << 5, 1 << 6][self.draw.below(4) as usize];
            self.bytes.push(bits);
            if bits == 1 << 6 {
                self.pending();
            }
        }
    }

    fn entry(&mut self) {
        let flags = if self.draw.one_in(5) { 0 } else { 1 | (self.draw.below(2) as u8) << 1 };
        self.bytes.push(flags);
        if flags & 1 == 0 {
            return;
        }
        self.number(self.draw.number());
        if flags & 2 != 0 {
            self.number(self.draw.number());
        }
        let (by, reason) = (self.draw.word(), self.draw.text());
        self.put(by.as_bytes());
        self.put(reason.as_bytes().get(..1_024).unwrap_or(reason.as_bytes()));
    }

    /// A group of a kind, with its items.
    fn group(&mut self) {
        let kind = if self.rows.is_empty() {
            1
        } else {
            [1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11][self.draw.below(14) as usize]
        };
        let kind = if self.draw.one_in(200) { self.draw.below(256) as u8 } else { kind };
        self.bytes.push(kind);
        self.time = 0;
        if kind == 3 {
            self.node();
            self.fence();
        }
        if kind == 11 {
            self.number(self.draw.below(200));
            return self.number(self.draw.number());
        }
        for _ in 0..=self.draw.below(3) {
            self.item(kind);
        }
        self.bytes.push(0);
    }

    fn item(&mut self, kind: u8) {
        match kind {
            1 => self.row(),
            5 => {
                let id = self.new_id();
                self.put(id.as_bytes());
                self.time();
                self.record();
            }
            7 => {
                self.node();
                self.bytes.push(self.draw.below(2) as u8);
            }
            8 => {
                let setting = self.draw.pick(&["pause", "drain", "delay"]);
                self.put(setting.as_bytes());
                self.entry();
            }
            9 | 10 => {
                let id = self.new_id();
                self.put(id.as_bytes());
                if kind == 9 {
                    self.number(self.draw.number());
                    let text = self.draw.text();
                    self.put(text.as_bytes());
                }
            }
            _ => {
                let Some(id) = self.known() else { return };
                match kind {
                    2 => self.parts(&id),
                    3 => {
                        self.put(id.as_bytes());
                        self.time();
                        self.rows.insert(id, true);
                    }
                    _ => {
                        self.put(id.as_bytes());
                        self.rows.remove(&id);
                    }
                }
            }
        }
    }
}

/// Writes a journal of generated changes. Returns the rows that it leaves.
fn write(draw: &Draw, disk: &SimulatedDisk) -> Vec<JobId> {
    let holder = Holder { pid: None, host: None, process: None, since: None };
    let options = Options::new(7, holder, u32::from(CHANGES_VERSION));
    let nothing = |_: Position, _: Frame<'_>| Ok::<_, std::io::Error>(());
    let (journal, _) = Journal::open(Arc::new(disk.clone()), &options, nothing).expect("an empty disk opens");
    let topic = journal.topic(&key().to_string()).expect("it is a name");
    let reserved = if draw.one_in(8) { draw.number() } else { NOW * 1_000 };
    journal.reserve(reserved).expect("the disk is sound");
    let mut changes = Changes { draw, rows: BTreeMap::new(), bytes: Vec::new(), time: 0 };
    for _ in 0..=draw.below(FRAMES) {
        changes.bytes.clear();
        (0..=draw.below(3)).for_each(|_| changes.group());
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
