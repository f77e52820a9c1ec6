//! The database of the shop: an append-only file of JSON lines, and the state in memory that follows from them.
//!
//! Every change is a conditional write under one lock. Of a payment and a closing at the same moment, one therefore comes first
//! and the other sees it. A line is in the file before it takes effect. Lines are not synced to disk: they survive a crash of
//! the program, but perhaps not of the machine. Only one program at a time may use a ledger.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::books::{Books, Counts, Entry, Order};
use crate::orders::EventKind;

/// The result of recording a payment or cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was in time: the order must no longer be closed.
    InTime,
    /// The order was already closed.
    TooLate,
    /// The ledger already has it, or has no such order.
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
    /// Opens and reads the ledger; `fresh` empties it first. An incomplete last line is dropped.
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

    /// Records a new order. Returns false if the ledger already has it.
    pub(crate) fn place(&self, order: u64, at_ms: u64, due_ms: u64) -> io::Result<bool> {
        let mut inner = self.lock();
        if inner.books.orders.contains_key(&order) {
            return Ok(false);
        }
        self.write(&mut inner, Entry::Placed { order, at_ms, due_ms }).map(|()| true)
    }

    /// Records that the job of an order is added again. Returns false if the order is no longer open.
    pub(crate) fn resume(&self, order: u64) -> io::Result<bool> {
        let mut inner = self.lock();
        if !inner.books.orders.get(&order).is_some_and(Order::is_open) {
            return Ok(false);
        }
        self.write(&mut inner, Entry::Resumed { order }).map(|()| true)
    }

    /// Records that an order was paid or cancelled, if it is still open.
    pub(crate) fn end(&self, order: u64, event: EventKind) -> io::Result<Ending> {
        let mut inner = self.lock();
        match inner.books.orders.get(&order) {
            Some(known) if known.is_open() => {
                self.write(&mut inner, Entry::Ended { order, event }).map(|()| Ending::InTime)
            }
            Some(known) if !known.has_recorded(event) => {
                self.write(&mut inner, Entry::TooLate { order }).map(|()| Ending::TooLate)
            }
            _ => Ok(Ending::Known),
        }
    }

    /// Records that the job of an order was deleted.
    pub(crate) fn job_deleted(&self, order: u64, found: Option<String>) -> io::Result<()> {
        self.write(&mut self.lock(), Entry::JobDeleted { order, found })
    }

    /// Closes the order that was placed at `placed_ms`, if it is still open. Otherwise it does nothing: the order belongs to
    /// another ledger, was paid or cancelled, or was closed by an earlier run of its job.
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

    /// Returns the orders for which `wanted` is true.
    pub(crate) fn orders(&self, wanted: impl Fn(&Order) -> bool) -> Vec<(u64, Order)> {
        let inner = self.lock();
        let orders = inner.books.orders.iter().filter(|(_, order)| wanted(order));
        orders.map(|(number, order)| (*number, order.clone())).collect()
    }

    /// Subscribes to the counts.
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

/// Reads the ledger again from the file alone.
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
