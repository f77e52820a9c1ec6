//! Reports the progress of a long simulation on stderr, past the output that a test harness captures.

use std::io::Write;
use std::time::{Duration, Instant};

/// How long to stay silent at first, and between two lines.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Progress {
    who: String,
    start: Instant,
    next: Duration,
}

impl Progress {
    /// The progress of the simulation in this test.
    pub(super) fn of(test: Option<&str>) -> Self {
        Self { who: test.unwrap_or("simulation").into(), start: Instant::now(), next: PAUSE }
    }

    /// Reports if it is time.
    pub(super) fn report(&mut self, how_far: impl FnOnce() -> String) {
        let elapsed = self.start.elapsed();
        if elapsed >= self.next {
            self.next = elapsed + PAUSE;
            // A closed stderr must not fail the simulation.
            let _ = writeln!(std::io::stderr(), "{}: {} ({} s)", self.who, how_far(), elapsed.as_secs());
        }
    }
}
