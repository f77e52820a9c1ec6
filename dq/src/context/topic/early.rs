//! Jobs that were claimed before they are due, so that their handlers start on time (`lookahead`).
//!
//! They wait for their due time, in its order, and then go where other claimed jobs wait for a permit. Until then they count as
//! jobs that need a permit, so the topic claims no more than it can start. The node takes the store's clock from the answer that
//! brought a job, and counts from the receipt of that answer: the store executed the claim before, so a job starts late by the way
//! of the answer and never early (rule 4).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::{JobId, Token};

/// The jobs by the time at which they are due. One that has moved on since is skipped.
#[derive(Debug, Default)]
pub(super) struct Early {
    waiting: BTreeMap<(Duration, u64), (JobId, Token)>,
    inserted: u64,
}

impl Early {
    pub(super) fn insert(&mut self, at: Duration, id: JobId, token: Token) {
        self.inserted += 1;
        self.waiting.insert((at, self.inserted), (id, token));
    }

    /// When the first job is due.
    pub(super) fn first(&self) -> Option<Duration> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    /// Removes the first job if it is due, and returns it with the time since when it is.
    pub(super) fn next_due(&mut self, now: Duration) -> Option<(Duration, JobId, Token)> {
        let first = self.waiting.first_entry().filter(|first| first.key().0 <= now)?;
        let ((at, _), (id, token)) = first.remove_entry();
        Some((at, id, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Fence;
    use crate::time::Timestamp;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn jobs_come_in_the_order_they_are_due_and_not_before() {
        let mut early = Early::default();
        let token = |fence| Token { fence: Fence(fence), due: Timestamp::EPOCH };
        for (fence, at) in [(1, 3), (2, 1), (3, 3), (4, 2)] {
            early.insert(at * MS, JobId::new("a").unwrap(), token(fence));
        }
        assert_eq!(early.first(), Some(MS));
        assert!(early.next_due(MS - Duration::from_nanos(1)).is_none());
        let due = |early: &mut Early| early.next_due(3 * MS).map(|(at, _, token)| (at, token.fence.0));
        let all: Vec<_> = std::iter::from_fn(|| due(&mut early)).collect();
        assert_eq!(all, [(MS, 2), (2 * MS, 4), (3 * MS, 1), (3 * MS, 3)]);
        assert_eq!(early.first(), None);
    }
}
