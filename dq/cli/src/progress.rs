//! How far a command is, on stderr, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How far a command is. Where stderr is no terminal it shows nothing.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    counts_bytes: bool,
}

impl Progress {
    /// Shows nothing.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), counts_bytes: false }
    }

    /// Counts jobs, of which nobody knows yet how many there are.
    pub fn of_jobs() -> Self {
        Self::with(ProgressBar::new_spinner(), "{spinner} {human_pos} jobs, {elapsed}", false)
    }

    /// Counts what a doctor has looked at.
    pub fn of_entries() -> Self {
        Self::with(ProgressBar::new_spinner(), "{spinner} {human_pos} entries examined, {elapsed}", false)
    }

    /// Counts the bytes of the input.
    pub fn of_bytes(bytes: u64) -> Self {
        Self::with(ProgressBar::new(bytes), "{bar:30} {bytes} of {total_bytes}, {eta} left", true)
    }

    fn with(bar: ProgressBar, template: &str, counts_bytes: bool) -> Self {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, counts_bytes }
    }

    /// There are so many jobs.
    pub fn expect_jobs(&self, jobs: u64) {
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} jobs, {eta} left") {
            self.bar.set_style(style);
        }
        self.bar.set_length(jobs);
    }

    /// So many more jobs are done.
    pub fn jobs(&self, jobs: u64) {
        if !self.counts_bytes {
            self.bar.inc(jobs);
        }
    }

    /// So many more bytes were read.
    pub fn bytes(&self, bytes: u64) {
        if self.counts_bytes {
            self.bar.inc(bytes);
        }
    }

    /// Removes it from the terminal.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
