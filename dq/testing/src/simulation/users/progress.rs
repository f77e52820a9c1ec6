//! Says how far a simulation is, where it takes long: past the output that a test keeps to itself until it fails.

use std::io::Write;
use std::time::{Duration, Instant};

/// How long nothing is said, and how long between two lines.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Progress {
    who: String,
    start: Instant,
    next: Duration,
}

impl Progress {
    /// Of the simulation in this test.
    pub(super) fn of(test: Option<&str>) -> Self {
        Self { who: test.unwrap_or("simulation").into(), start: Instant::now(), next: PAUSE }
    }

    /// Says this if it is time.
    pub(super) fn say(&mut self, how_far: impl FnOnce() -> String) {
        let elapsed = self.start.elapsed();
        if elapsed >= self.next {
            self.next = elapsed + PAUSE;
            // Nobody may be listening.
            let _ = writeln!(std::io::stderr(), "{}: {} ({} s)", self.who, how_far(), elapsed.as_secs());
        }
    }
}
