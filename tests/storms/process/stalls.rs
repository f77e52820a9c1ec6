//! A process that stands still because the machine is busy looks like one that was stopped. It notices by itself, and says so.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::ledger::{Entry, Ledger, now};

/// How often the process looks at the clock.
const TICK: Duration = Duration::from_millis(50);
/// A longer gap, in µs, is a stall.
const LONGEST_GAP: u64 = 500_000;

/// Watches this process, which `target` names, from a thread of its own.
pub fn watch(ledger: Arc<Ledger>, target: String) {
    std::thread::spawn(move || {
        let (_never, tick) = channel::<()>();
        let mut last = now();
        while tick.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let at = now();
            if at - last > LONGEST_GAP {
                ledger.note(Entry::Event { target: target.clone(), what: "stood still".into(), from: last, to: at });
            }
            last = at;
        }
    });
}
