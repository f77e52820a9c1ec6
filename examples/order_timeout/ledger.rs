//! The database of the shop: an append-only file of JSON lines, and what follows from them in memory.
//!
//! Every change is one conditional write under one lock, so that of a payment and a closing at the same moment one comes
//! first and the other sees it. A line is in the file before it counts. Lines are written and not synced: they survive the
//! death of the program, not that of the machine. One program at a time may use a ledger.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::books::{Books, Counts, Entry, Order};
use crate::orders::Happening;

/// What became of a payment or cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// In time: the order must not be closed any more.
    InTime,
    /// The order was closed before.
    TooLate,
    /// It is on record already, or there is no such order.
    Known,
}

/// A run of a job, as its handler saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) fence: u64,
    pub(crate) due: SystemTime,
    pub(crate) started: SystemTime,
}

struct Inner {
    file: File,
    books: Books,
}

/// The ledger.
pub(crate) struct Ledger {
    inner: Mutex<Inner>,
    counts: watch::Sender<Counts>,
}

impl Ledger {
    /// Opens the ledger and reads it; `fresh` empties it first. A last line that was cut is dropped.
    pub(crate) fn open(path: &Path, fresh: bool) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        if fresh {
            file.set_len(0)?;
        }
        let text = fs::read_to_string(path)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
        }
        let books = read(&text[..whole])?;
        let ledger = Self { counts: watch::Sender::new(books.counts), inner: Mutex::new(Inner { file, books }) };
        let at_ms = micros(SystemTime::now()) / 1_000;
        ledger.write(&mut ledger.lock(), Entry::Started { at_ms })?;
        Ok(ledger)
    }

    /// Writes down a new order; false when it is on record already.
    pub(crate) fn place(&self, order: u64, at_ms: u64, due_ms: u64) -> io::Result<bool> {
        let mut inner = self.lock();
        if inner.books.orders.contains_key(&order) {
            return Ok(false);
        }
        self.write(&mut inner, Entry::Placed { order, at_ms, due_ms }).map(|()| true)
    }

    /// Writes down that the job of an order is added again; false when the order is no longer open.
    pub(crate) fn resume(&self, order: u64) -> io::Result<bool> {
        let mut inner = self.lock();
        if !inner.books.orders.get(&order).is_some_and(Order::is_open) {
            return Ok(false);
        }
        self.write(&mut inner, Entry::Resumed { order }).map(|()| true)
    }

    /// Writes down that an order was paid or cancelled, if it is still open.
    pub(crate) fn end(&self, order: u64, event: Happening) -> io::Result<Ending> {
        let mut inner = self.lock();
        match inner.books.orders.get(&order) {
            Some(known) if known.is_open() => {
                self.write(&mut inner, Entry::Ended { order, event }).map(|()| Ending::InTime)
            }
            Some(known) if !known.knows(event) => {
                self.write(&mut inner, Entry::TooLate { order }).map(|()| Ending::TooLate)
            }
            _ => Ok(Ending::Known),
        }
    }

    /// Writes down that the job of an order was taken back.
    pub(crate) fn job_deleted(&self, order: u64, found: Option<String>) -> io::Result<()> {
        self.write(&mut self.lock(), Entry::JobDeleted { order, found })
    }

    /// Closes the order that was placed at `placed_ms`, if it is still open. If it is not, this is no order of this ledger,
    /// it was paid or cancelled, or an earlier run of its job closed it: then nothing is left to do.
    pub(crate) fn close_if_open(&self, order: u64, placed_ms: u64, run: Run) -> io::Result<()> {
        let (fence, due_ms, at_us) = (run.fence, micros(run.due) / 1_000, micros(run.started));
        let mut inner = self.lock();
        let entry = match inner.books.orders.get(&order) {
            Some(known) if known.placed_ms != placed_ms || known.ended.is_some() => return Ok(()),
            Some(known) if known.closed => Entry::RanAgain { order, fence },
            Some(_) => Entry::Closed { order, fence, due_ms, at_us },
            None => return Ok(()),
        };
        self.write(&mut inner, entry)
    }

    /// The orders for which `wanted` says so.
    pub(crate) fn orders(&self, wanted: impl Fn(&Order) -> bool) -> Vec<(u64, Order)> {
        let inner = self.lock();
        let orders = inner.books.orders.iter().filter(|(_, order)| wanted(order));
        orders.map(|(number, order)| (*number, order.clone())).collect()
    }

    /// The counts, from now on.
    pub(crate) fn counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, inner: &mut Inner, entry: Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        inner.file.write_all(&line)?;
        inner.books.apply(&entry);
        self.counts.send_replace(inner.books.counts);
        Ok(())
    }
}

/// Reads the books again, from the file alone.
pub(crate) fn audit(path: &Path) -> io::Result<Books> {
    read(&fs::read_to_string(path)?)
}

fn read(text: &str) -> io::Result<Books> {
    let mut books = Books::default();
    for (number, line) in text.lines().enumerate() {
        let entry = serde_json::from_str(line)
            .map_err(|error| io::Error::other(format!("line {} of the ledger: {error}", number + 1)))?;
        books.apply(&entry);
    }
    Ok(books)
}

/// Microseconds since the Unix epoch.
pub(crate) fn micros(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
