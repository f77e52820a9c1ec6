//! What waits for one broadcast listener, and what the log says of broadcasts that were missed: at most one warning a minute, with how
//! many there were, and a line when a listener that was behind has caught up.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::context::condition::Warned;
use crate::job::{JobId, Record, TopicName};

/// How many broadcasts may wait for a listener.
const MOST: usize = 1024;

/// A broadcast on its way to a listener.
pub(super) struct Delivered {
    pub(super) id: JobId,
    pub(super) record: Record,
}

/// Broadcasts that were missed.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// How many since the last warning.
    untold: u64,
    warned: Warned,
}

impl Missed {
    /// Counts these. Returns how many there were since the last warning, if there may be another one.
    pub(super) fn count(&mut self, more: u64, now: Duration) -> Option<u64> {
        self.untold += more;
        (self.untold > 0 && self.warned.is_due(now)).then(|| std::mem::take(&mut self.untold))
    }
}

/// The sending end of the queue of a listener.
#[derive(Debug)]
pub(super) struct ListenerQueue {
    listener: &'static str,
    deliveries: mpsc::Sender<Delivered>,
    missed: Missed,
    /// How many it has missed since it fell behind.
    behind: u64,
}

impl ListenerQueue {
    /// A queue, and the end from which the listener reads.
    pub(super) fn new(listener: &'static str) -> (Self, mpsc::Receiver<Delivered>) {
        let (deliveries, waiting) = mpsc::channel(MOST);
        (Self { listener, deliveries, missed: Missed::default(), behind: 0 }, waiting)
    }

    /// Lets a broadcast wait for the listener. Returns whether there was room.
    pub(super) fn push(&mut self, channel: &TopicName, delivery: Delivered, now: Duration) -> bool {
        let is_taken = self.deliveries.try_send(delivery).is_ok();
        let listener = self.listener;
        if !is_taken {
            self.behind += 1;
            if let Some(broadcasts) = self.missed.count(1, now) {
                tracing::warn!(%channel, listener, broadcasts, behind = MOST, "the listener is too far behind, so it misses broadcasts");
            }
        } else if let Some(broadcasts) = self.caught_up() {
            tracing::info!(%channel, listener, broadcasts, "the listener has caught up; it missed these broadcasts");
        }
        is_taken
    }

    /// Of a listener that was behind, once half of its queue is free: how many it missed, if there was a warning.
    fn caught_up(&mut self) -> Option<u64> {
        if self.behind == 0 || self.deliveries.capacity() < MOST / 2 {
            return None;
        }
        let missed = std::mem::take(&mut self.behind);
        if self.missed.untold >= missed {
            return None; // the next warning counts them
        }
        self.missed.untold = 0;
        Some(missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn missed_broadcasts_are_a_warning_a_minute_that_counts_those_since_the_last() {
        let mut missed = Missed::default();
        assert_eq!(missed.count(0, secs(1)), None);
        assert_eq!((missed.count(3, secs(1)), missed.count(2, secs(60))), (Some(3), None));
        assert_eq!((missed.count(0, secs(61)), missed.count(0, secs(200))), (Some(2), None));
    }

    #[test]
    fn a_listener_that_falls_behind_again_within_a_minute_is_counted_by_the_next_warning() {
        let (mut queue, mut waiting) = ListenerQueue::new("listener");
        let channel = TopicName::new("prices").unwrap();
        let push = |queue: &mut ListenerQueue, many: usize, at| {
            let id = || JobId::new("a").unwrap();
            let delivery = || Delivered { id: id(), record: Record::from_bytes(bytes::Bytes::new()) };
            (0..many).filter(|_| queue.push(&channel, delivery(), secs(at))).count()
        };
        assert_eq!(push(&mut queue, MOST + 5, 0), MOST);
        assert_eq!((queue.behind, queue.missed.untold), (5, 4), "the first was told at once");
        let mut drain = |many: usize| (0..many).filter(|_| waiting.try_recv().is_ok()).count();
        assert_eq!(drain(MOST / 2), MOST / 2);
        assert_eq!(push(&mut queue, 1, 1), 1);
        assert_eq!(queue.behind, 5, "it is still behind");
        assert_eq!(drain(MOST), MOST / 2 + 1);
        assert_eq!(push(&mut queue, 1, 2), 1);
        assert_eq!((queue.behind, queue.missed.untold), (0, 0), "it has caught up");
        assert_eq!(push(&mut queue, MOST + 1, 30), MOST - 1);
        assert_eq!(drain(MOST), MOST);
        assert_eq!(push(&mut queue, 1, 31), 1);
        assert_eq!((queue.behind, queue.missed.untold), (0, 2), "nothing was told of these");
        assert_eq!(push(&mut queue, MOST, 61), MOST - 1);
        assert_eq!((queue.behind, queue.missed.untold), (1, 0), "the warning has told of all three");
    }
}
