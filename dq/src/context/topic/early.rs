//! Jobs that were claimed before they are due, so that their handlers start on time (`lookahead`), by the time at which they are due.
//! One that has moved on since is skipped.
//!
//! They wait for their due time, in its order, and then go where other claimed jobs wait for a permit. Until then they count as
//! jobs that need a permit, so the topic claims no more than it can start. The node takes the store's clock from the answer that
//! brought a job, and counts from the receipt of that answer: the store executed the claim before, so a job starts late by the way
//! of the answer and never early (rule 4).

use std::collections::BTreeSet;
use std::time::Duration;

use super::slab::HeldId;

/// The jobs, each with the time at which it is due.
#[derive(Debug, Default)]
pub(super) struct Early(BTreeSet<(Duration, HeldId)>);

impl Early {
    pub(super) fn insert(&mut self, at: Duration, id: HeldId) {
        self.0.insert((at, id));
    }

    /// When the first job is due.
    pub(super) fn first(&self) -> Option<Duration> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Removes the first job if it is due, and returns it with the time since when it is.
    pub(super) fn next_due(&mut self, now: Duration) -> Option<(Duration, HeldId)> {
        self.first().filter(|at| *at <= now)?;
        self.0.pop_first()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::{OfHeld, Slab};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn jobs_come_in_the_order_they_are_due_and_not_before() {
        let (mut early, mut slab) = (Early::default(), Slab::<OfHeld, _>::default());
        for (name, at) in [(1, 3), (2, 1), (3, 3), (4, 2)] {
            early.insert(at * MS, slab.insert(name));
        }
        assert_eq!(early.first(), Some(MS));
        assert!(early.next_due(MS - Duration::from_nanos(1)).is_none());
        let due = |early: &mut Early| early.next_due(3 * MS).map(|(at, id)| (at, *slab.get(id).unwrap()));
        let all: Vec<_> = std::iter::from_fn(|| due(&mut early)).collect();
        assert_eq!(all, [(MS, 2), (2 * MS, 4), (3 * MS, 1), (3 * MS, 3)]);
        assert_eq!(early.first(), None);
    }
}
