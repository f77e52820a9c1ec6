//! The calendar of one day whose minutes are short.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

const MINUTE: Duration = Duration::from_millis(30);

/// How long until the day begins: long enough for a slow machine to add all reminders before.
const NIGHT: Duration = Duration::from_secs(2);

/// When each meeting begins, in minutes of the day, and the reminders so far.
pub(crate) struct Calendar {
    day: SystemTime,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    begins: BTreeMap<String, u32>,
    reminded: usize,
    early: usize,
}

impl Calendar {
    /// Returns an empty calendar whose day begins soon.
    pub(crate) fn of_tomorrow() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let day = UNIX_EPOCH + NIGHT + Duration::from_millis(now.as_millis() as u64); // due times have whole milliseconds
        Self { day, state: Mutex::default(), changed: Notify::new() }
    }

    /// Returns the time at which a minute of the day begins.
    pub(crate) fn time(&self, minute: u32) -> SystemTime {
        self.day + MINUTE * minute
    }

    pub(crate) fn plan(&self, meeting: &str, begins: u32) {
        self.state().begins.insert(meeting.into(), begins);
    }

    pub(crate) fn cancel(&self, meeting: &str) {
        self.state().begins.remove(meeting);
    }

    /// Counts a reminder and returns the minute it is for; `None` if the calendar has no such meeting.
    pub(crate) fn remind(&self, meeting: &str, minutes_before: u32) -> Option<u32> {
        let now = SystemTime::now();
        let mut state = self.state();
        let minute = state.begins.get(meeting)?.saturating_sub(minutes_before);
        state.reminded += 1;
        state.early += usize::from(now < self.time(minute));
        self.changed.notify_one();
        Some(minute)
    }

    /// Returns the number of reminders that came before their minute.
    pub(crate) fn early(&self) -> usize {
        self.state().early
    }

    /// Waits until there were this many reminders.
    pub(crate) async fn all_reminded(&self, reminders: usize) {
        while self.state().reminded < reminders {
            self.changed.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
