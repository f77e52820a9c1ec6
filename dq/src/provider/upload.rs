//! How many bytes a batch may have: what the connection to the store carries in time.
//!
//! A batch that takes longer than `call_timeout` to leave is given up, sent again, and never arrives. So batches begin
//! small, grow while their answers come quickly, and shrink after a time-out. One job is always a batch, whatever its size.

use std::time::Duration;

/// The most bytes of a batch, unless one job alone has more.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// The most bytes of the first batches.
const FIRST_BYTES: usize = 1 << 18;
/// The fewest bytes to which the bound shrinks.
const FEWEST_BYTES: usize = 1 << 14;

/// The bound on the bytes of a batch.
#[derive(Debug)]
pub(super) struct Upload {
    bytes: usize,
    /// An answer within this time lets the bound grow.
    quick: Duration,
}

impl Upload {
    pub(super) fn new(call_timeout: Duration) -> Self {
        Self { bytes: FIRST_BYTES, quick: call_timeout / 8 }
    }

    /// The most bytes of the next batch.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// An answer came this long after its batch was sent.
    pub(super) fn answered_after(&mut self, time: Duration) {
        if time <= self.quick {
            self.bytes = (self.bytes * 2).min(MOST_BYTES);
        }
    }

    /// No answer came in time.
    pub(super) fn timed_out(&mut self) {
        self.bytes = (self.bytes / 2).max(FEWEST_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_with_quick_answers_and_shrink_with_time_outs() {
        let mut upload = Upload::new(Duration::from_secs(2));
        assert_eq!(upload.bytes(), FIRST_BYTES);
        upload.answered_after(Duration::from_millis(251));
        assert_eq!(upload.bytes(), FIRST_BYTES, "the link is no faster than this");
        for _ in 0..9 {
            upload.answered_after(Duration::from_millis(250));
        }
        assert_eq!(upload.bytes(), MOST_BYTES);
        for _ in 0..30 {
            upload.timed_out();
        }
        assert_eq!(upload.bytes(), FEWEST_BYTES);
    }
}
