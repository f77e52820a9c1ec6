//! Wakes the thread that commits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Many threads ring, one waits. A ring while nobody waits is kept, and many are one.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<BellState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BellState {
    rang: bool,
    hurried: bool,
    is_closing: bool,
}

impl Bell {
    /// Wakes the waiter.
    pub(super) fn ring(&self) {
        self.change(|state| &mut state.rang);
    }

    /// Ends a pause of the waiter, because somebody cannot wait for its end.
    pub(super) fn hurry(&self) {
        self.change(|state| &mut state.hurried);
    }

    /// Tells the waiter to end.
    pub(super) fn close(&self) {
        self.change(|state| &mut state.is_closing);
    }

    fn change(&self, flag: impl FnOnce(&mut BellState) -> &mut bool) {
        if !std::mem::replace(flag(&mut self.lock()), true) {
            self.changed.notify_one();
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().is_closing
    }

    /// Waits until somebody has rung since the last call, or the store closes.
    pub(super) fn wait(&self) {
        let quiet = |state: &mut BellState| !state.rang && !state.is_closing;
        let mut state = self.changed.wait_while(self.lock(), quiet).unwrap_or_else(PoisonError::into_inner);
        state.rang = false;
    }

    /// Waits for this long, or until somebody hurries or the store closes.
    pub(super) fn pause(&self, time: Duration) {
        let calm = |state: &mut BellState| !state.hurried && !state.is_closing;
        let waited = self.changed.wait_timeout_while(self.lock(), time, calm);
        waited.unwrap_or_else(PoisonError::into_inner).0.hurried = false;
    }

    /// Three flags are always valid, so a panic in another thread does not matter.
    fn lock(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
