//! The progress of a long run, and how long the rest will take.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use dq_testing::simulation::Report;

/// What the seeds did so far.
pub struct Progress {
    start: Instant,
    shown: Instant,
    all: u64,
    pub seeds: u64,
    pub jobs: u64,
    pub faults: u64,
    lives: u64,
    steps: u64,
}

impl Progress {
    pub fn new(all: u64) -> Self {
        let now = Instant::now();
        Self { start: now, shown: now, all, seeds: 0, jobs: 0, faults: 0, lives: 0, steps: 0 }
    }

    /// Counts a seed that was run.
    pub fn count(&mut self, report: Option<&Report>) {
        self.seeds += 1;
        if let Some(report) = report {
            self.jobs += report.jobs;
            self.faults += report.faults;
            self.lives += report.lives;
            self.steps += report.steps;
        }
        let period = Duration::from_secs(if stderr().is_terminal() { 1 } else { 10 });
        if self.shown.elapsed() >= period {
            self.shown = Instant::now();
            let rest = self.all - self.seeds;
            let left = Duration::from_secs_f64(rest as f64 * self.start.elapsed().as_secs_f64() / self.seeds as f64);
            self.show(&format!("{left:.0?} to go"));
        }
    }

    /// The last line.
    pub fn end(&self) {
        self.show(&format!("{} steps of the store in {:.1?}", self.steps, self.start.elapsed()));
        if stderr().is_terminal() {
            eprintln!();
        }
    }

    fn show(&self, rest: &str) {
        let seconds = self.start.elapsed().as_secs_f64().max(0.001);
        let a_second = |count: u64| count as f64 / seconds;
        let line = format!(
            "{} of {} seeds, {:.0} seeds/s, {:.0} simulated job lives/s, {rest}",
            self.seeds,
            self.all,
            a_second(self.seeds),
            a_second(self.lives)
        );
        if stderr().is_terminal() {
            // A closed stderr must not fail the run.
            let _ = write!(stderr(), "\r{line}\x1b[K");
        } else {
            eprintln!("{line}");
        }
    }
}
