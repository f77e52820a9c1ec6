//! The one way to lock a mutex in a simulation.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Nothing a simulation runs panics under a lock; if it does, the run has failed already.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
