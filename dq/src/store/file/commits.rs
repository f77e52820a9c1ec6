//! The thread that writes and syncs the journal. Whoever comes during a sync shares the next one.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::options::Commits;
use super::sink::JournalSink;
use super::snapshots::Snapshots;
use crate::environment::start_thread;
use crate::store::{Durability, StoreError};

/// How long a full disk is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(500);

/// Starts the thread, if the store has one.
pub(super) fn start(sink: &Arc<JournalSink>, snapshots: Snapshots) -> io::Result<Option<JoinHandle<()>>> {
    if sink.commits != Commits::OnOwnThread {
        return Ok(None);
    }
    let sink = Arc::clone(sink);
    start_thread("dq-file", move || run(&sink, &snapshots)).map(Some)
}

fn run(sink: &JournalSink, snapshots: &Snapshots) {
    loop {
        sink.bell.wait();
        if sink.bell.is_closing() {
            return;
        }
        if let Durability::Interval(interval) = sink.durability {
            sink.bell.pause(interval);
        }
        while let Err(StoreError::Full { .. }) = sink.commit() {
            sink.bell.pause(FULL_PAUSE);
            if sink.bell.is_closing() {
                return;
            }
        }
        snapshots.take_if_due();
    }
}
