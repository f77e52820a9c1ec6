//! Whether the jobs of a topic start within its `lateness_objective`.
//!
//! Two windows of half a minute each count the jobs that started and those that were late; the older one goes when the newer one is
//! full. So what is told covers the last half to whole minute, and takes 100 bytes however many jobs there are.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use humantime::format_duration;

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(30);

/// The objective is missed when more than one job in this many is late.
const ONE_IN: u64 = 100;

#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// When it began, on the node's clock.
    began: Duration,
    started: u64,
    late: u64,
    most: Duration,
}

#[derive(Debug)]
pub(super) struct Punctuality {
    objective: Option<Duration>,
    /// The older window and the newer one. Locked for a few additions at most.
    windows: Mutex<[Window; 2]>,
}

impl Punctuality {
    pub(super) fn new(objective: Option<Duration>) -> Self {
        Self { objective, windows: Mutex::default() }
    }

    /// A job could start this long after it was due.
    pub(super) fn started(&self, late: Duration, now: impl FnOnce() -> Duration) {
        let Some(objective) = self.objective else { return };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        advance(&mut windows, now());
        let newer = &mut windows[1];
        newer.started += 1;
        if late > objective {
            newer.late += 1;
            newer.most = newer.most.max(late);
        }
    }

    /// How the objective is missed; `None`: it is not, or there is none.
    pub(super) fn missed(&self, now: Duration) -> Option<String> {
        let objective = self.objective?;
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        advance(&mut windows, now);
        let [older, newer] = *windows;
        let (started, late, most) =
            (older.started + newer.started, older.late + newer.late, older.most.max(newer.most));
        let most = format_duration(Duration::from_millis(most.as_millis() as u64));
        let objective = format_duration(objective);
        (late * ONE_IN > started).then(|| {
            format!(
                "{late} of the {started} jobs of the last minute started more than {objective} late (`lateness_objective`), the latest {most}: \
                 if jobs wait for permits, add nodes or raise `concurrency`"
            )
        })
    }
}

/// Begins the windows that are due.
fn advance(windows: &mut [Window; 2], now: Duration) {
    let age = now.saturating_sub(windows[1].began);
    if age >= WINDOW {
        let older = if age < 2 * WINDOW { windows[1] } else { Window::default() };
        *windows = [older, Window { began: now, ..Window::default() }];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_late_job_in_a_hundred_is_within_the_objective_and_two_are_not() {
        let punctuality = Punctuality::new(Some(SECOND));
        for n in 0..100 {
            punctuality.started(if n == 0 { 3 * SECOND } else { SECOND }, || 40 * SECOND);
        }
        assert_eq!(punctuality.missed(41 * SECOND), None);
        punctuality.started(2 * SECOND, || 42 * SECOND);
        let told = punctuality.missed(43 * SECOND).unwrap();
        assert!(told.starts_with("2 of the 101 jobs of the last minute started more than 1s late"), "{told}");
        assert!(told.contains("the latest 3s"), "{told}");
    }

    #[test]
    fn what_was_late_is_forgotten_after_a_minute() {
        let punctuality = Punctuality::new(Some(SECOND));
        punctuality.started(2 * SECOND, || 40 * SECOND);
        assert!(punctuality.missed(69 * SECOND).is_some() && punctuality.missed(75 * SECOND).is_some());
        assert_eq!(punctuality.missed(106 * SECOND), None);
        punctuality.started(2 * SECOND, || 107 * SECOND);
        assert_eq!(punctuality.missed(500 * SECOND), None, "nothing started since");
    }

    #[test]
    fn without_an_objective_nothing_is_missed() {
        let punctuality = Punctuality::new(None);
        punctuality.started(1_000 * SECOND, || unreachable!("the clock is not read"));
        assert_eq!(punctuality.missed(SECOND), None);
    }
}
