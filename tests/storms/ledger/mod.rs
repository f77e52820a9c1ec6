//! The files of the storm: what each process did and was told, one line for each fact, in order.
//!
//! A process appends to a file of its own and writes each line with one call, so what it wrote before a `kill -9` can be read; a
//! line that was cut is ignored. The checker knows nothing but these files.

mod entry;
mod reader;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

pub use entry::{Answer, End, Entry, Line, Verb};
pub use reader::{Log, read};

/// Returns the machine's clock, in microseconds since 1970.
pub fn now() -> u64 {
    micros(SystemTime::now())
}

/// Returns a time in microseconds since 1970.
pub fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    u64::try_from(since.as_micros()).expect("it is before the year 500000")
}

/// The file of one process.
#[derive(Debug)]
pub struct Ledger(Mutex<File>);

impl Ledger {
    /// Creates the file `PROCESS.jsonl` in `folder`.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub fn create(folder: &Path, process: &str) -> io::Result<Self> {
        Ok(Self(Mutex::new(File::create_new(folder.join(format!("{process}.jsonl")))?)))
    }

    /// Writes a fact of this moment.
    pub fn note(&self, entry: Entry) {
        self.note_all(std::iter::once(entry));
    }

    /// Writes facts of this moment, in one call.
    ///
    /// # Panics
    /// If the file cannot be written: what the checker cannot learn, it cannot judge.
    pub fn note_all(&self, entries: impl IntoIterator<Item = Entry>) {
        let at = now();
        let mut text = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut text, &Line { at, entry }).expect("every entry is JSON");
            text.push(b'\n');
        }
        let mut file = self.0.lock().expect("no writer panics but at the end of the storm");
        file.write_all(&text).expect("the disk has room for the files of the storm");
    }
}
