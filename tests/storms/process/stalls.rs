//! A process that stands still because the machine is busy looks like one that was stopped, and a store that waits for a busy disk like one
//! that hangs. The processes notice the one by themselves, and the storm the other, and write it down.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::ledger::{Entry, Ledger, now};

/// How often the process looks at the clock.
const TICK: Duration = Duration::from_millis(50);
/// A longer gap, in µs, is a stall.
const MAX_GAP: u64 = 500_000;

/// Watches this process, which `target` names, from a thread of its own.
pub fn watch(ledger: Arc<Ledger>, target: String) {
    watch_with(ledger, target, || ());
}

/// Watches this process and the disk of `folder`, which the store syncs as well, for all others.
pub fn watch_machine(ledger: Arc<Ledger>, folder: &Path) {
    let mut file = File::create(folder.join("synced")).expect("the folder can be written");
    watch_with(ledger, "all".into(), move || {
        // The file grows, as those of stores do, so that the sync waits for the file system, too.
        file.write_all(b".").and_then(|()| file.sync_data()).expect("the disk has room for the files of the storm");
    });
}

/// Notes each time in which a tick of the clock and `act` take too long together.
fn watch_with(ledger: Arc<Ledger>, target: String, mut act: impl FnMut() + Send + 'static) {
    std::thread::spawn(move || {
        let (_never, tick) = channel::<()>();
        let mut last = now();
        while tick.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            act();
            let at = now();
            if at - last > MAX_GAP {
                ledger.note(Entry::Event { target: target.clone(), what: "stood still".into(), from: last, to: at });
            }
            last = at;
        }
    });
}
