//! The calendar of one day whose minutes are short.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

const MINUTE: Duration = Duration::from_millis(30);

/// How long until the day begins.
const NIGHT: Duration = Duration::from_secs(1);

/// When each meeting begins, in minutes of the day, and the reminders so far.
#[derive(Default)]
pub(crate) struct Calendar {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    day: SystemTime,
    begins: BTreeMap<String, u32>,
    reminded: usize,
    early: usize,
}

impl Default for State {
    fn default() -> Self {
        Self { day: UNIX_EPOCH, begins: BTreeMap::new(), reminded: 0, early: 0 }
    }
}

impl State {
    fn time(&self, minute: u32) -> SystemTime {
        self.day + MINUTE * minute
    }
}

impl Calendar {
    /// Turns to the next day, which begins soon.
    pub(crate) fn begin_tomorrow(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.state().day = UNIX_EPOCH + NIGHT + Duration::from_millis(now.as_millis() as u64); // due times have whole milliseconds
    }

    /// Whether the day has not begun yet.
    pub(crate) fn is_night(&self) -> bool {
        SystemTime::now() < self.time(0)
    }

    /// Returns the time at which a minute of the day begins.
    pub(crate) fn time(&self, minute: u32) -> SystemTime {
        self.state().time(minute)
    }

    pub(crate) fn plan(&self, meeting: &str, begins: u32) {
        self.state().begins.insert(meeting.into(), begins);
    }

    pub(crate) fn cancel(&self, meeting: &str) {
        self.state().begins.remove(meeting);
    }

    /// Counts a reminder for this time and returns its minute; `None` if the calendar has no reminder for that time.
    pub(crate) fn remind(&self, meeting: &str, minutes_before: u32, at: SystemTime) -> Option<u32> {
        let now = SystemTime::now();
        let mut state = self.state();
        let minute = state.begins.get(meeting)?.saturating_sub(minutes_before);
        if state.time(minute) != at {
            return None;
        }
        state.reminded += 1;
        state.early += usize::from(now < at);
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
