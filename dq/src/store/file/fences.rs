//! Fences never fall, whatever is lost: the journal has a reservation, and no fence above a *synced* one leaves the store.
//!
//! Claims are not waited for, so the journal may lack the last of them after a crash. The next process begins above the
//! reservation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::journal::Position;
use crate::job::Fence;

/// How far a reservation goes beyond the fence that needs it. Fences follow the clock, in microseconds: 20 s.
const AHEAD: u64 = 20_000_000;

/// A new reservation is made once the fences are this close to it, so that a busy store never waits for one: 10 s.
const CLOSE: u64 = 10_000_000;

/// A reservation, and where the journal has it.
#[derive(Debug, Clone, Copy, Default)]
struct Reservation {
    upto: u64,
    position: Position,
}

/// The reservations of a store.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// Synced.
    durable: AtomicU64,
    newest: Mutex<Reservation>,
}

impl Fences {
    /// Reserves more if `fence` is close to the end of what is reserved. `reserve` appends the number to the journal.
    pub(super) fn provide<E>(&self, fence: Fence, reserve: impl FnOnce(u64) -> Result<Position, E>) -> Result<(), E> {
        let mut newest = self.newest();
        if fence.0.saturating_add(CLOSE) > newest.upto {
            let upto = fence.0.saturating_add(AHEAD).min(Fence::LAST.0.max(fence.0));
            *newest = Reservation { upto, position: reserve(upto)? };
        }
        Ok(())
    }

    /// Up to where the journal must be synced before `fence` may leave the store; `None` if it may now.
    pub(super) fn needs(&self, fence: Fence, synced: Position) -> Option<Position> {
        if fence.0 <= self.durable.load(Ordering::Acquire) {
            return None;
        }
        let newest = *self.newest();
        if synced < newest.position {
            return Some(newest.position);
        }
        self.durable.fetch_max(newest.upto, Ordering::AcqRel);
        None
    }

    /// Two numbers are always valid, so a panic in another thread does not matter.
    fn newest(&self) -> MutexGuard<'_, Reservation> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_leaves_once_its_reservation_is_synced() {
        let fences = Fences::default();
        let at = |position| move |_| Ok::<_, ()>(Position(position));
        fences.provide(Fence(5), at(100)).unwrap();
        assert_eq!(fences.needs(Fence(5), Position(99)), Some(Position(100)));
        assert_eq!(fences.needs(Fence(5), Position(100)), None);
        // What is reserved ends at AHEAD + 5.
        let last = Fence(AHEAD + 5 - CLOSE);
        fences.provide(last, |_| -> Result<_, ()> { panic!("no new reservation is needed") }).unwrap();
        assert_eq!(fences.needs(last, Position(100)), None);
        fences.provide(Fence(last.0 + 1), at(300)).unwrap();
        assert_eq!(fences.needs(Fence(AHEAD), Position(100)), None, "the old one still covers it");
        assert_eq!(fences.needs(Fence(AHEAD + 10), Position(100)), Some(Position(300)));
    }
}
