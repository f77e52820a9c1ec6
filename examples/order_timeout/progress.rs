//! Shows progress on stderr: one line that changes in place on a terminal, otherwise a line per second.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, interval};

use crate::books::Counts;

/// Shows the counts until the future is dropped.
pub(crate) async fn show(counts: watch::Receiver<Counts>) {
    let live = io::stderr().is_terminal();
    let mut ticks = interval(if live { Duration::from_millis(100) } else { Duration::from_secs(1) });
    let start = Instant::now();
    loop {
        ticks.tick().await;
        let Counts { placed, open, closed, deleted, .. } = *counts.borrow();
        let line = format!(
            "{:5.1} s   placed {placed}   open {open}   closed {closed}   paid or cancelled {deleted}",
            start.elapsed().as_secs_f64()
        );
        // A closed stderr is no reason to end the program.
        let _ = if live { write!(io::stderr(), "\r{line}\x1b[K") } else { writeln!(io::stderr(), "{line}") };
    }
}

/// Ends the line that changes in place.
pub(crate) fn end_line() {
    if io::stderr().is_terminal() {
        eprintln!();
    }
}
