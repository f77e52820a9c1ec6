//! How much earlier than a job is due a transfer leaves its node, so that the store executes it just when the job is due.
//!
//! A node counts the time to the head from the receipt of the answer that named it, which is late by the way of that answer. Then
//! its timer, the transfer and its way take their time. The clock in the answer to the transfer says by how much all that was too
//! late. A transfer that comes early claims nothing and costs another one, so the lead grows in small steps and shrinks in large
//! ones: in the long run one transfer in fifty comes early.

use std::time::Duration;

/// The largest step by which the lead grows: what holds a node up for once says nothing about the next transfer.
const LARGEST_STEP: Duration = Duration::from_micros(2);
/// The part of what a transfer was late by that the lead grows by.
const PART: u32 = 64;

/// The lead of the next transfer.
#[derive(Debug, Default)]
pub(super) struct Lead(Duration);

impl Lead {
    /// How much earlier the next transfer leaves.
    pub(super) const fn get(&self) -> Duration {
        self.0
    }

    /// A transfer that left with a lead was executed at `clock` of the store, and its job was due at `due`, both in µs.
    pub(super) fn arrived(&mut self, due: u64, clock: u64) {
        match clock.checked_sub(due) {
            Some(late) => self.0 += (Duration::from_micros(late) / PART).min(LARGEST_STEP),
            None => self.0 -= self.0 / 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transfers that arrive so many µs after they would without a lead; returns how many came early, and how late all came.
    fn transfers(lead: &mut Lead, took: impl IntoIterator<Item = u64>) -> (usize, Vec<i64>) {
        let mut late = Vec::new();
        for took in took {
            late.push(took as i64 - lead.get().as_micros() as i64);
            lead.arrived(1_000_000, (1_000_000 + late[late.len() - 1]) as u64);
        }
        (late.iter().filter(|late| **late < 0).count(), late)
    }

    #[test]
    fn transfers_come_close_to_the_due_time_and_few_come_early() {
        let mut lead = Lead::default();
        let took = || (0..1_000_u64).map(|n| 250 + n * 7_919 % 101);
        let (_, late) = transfers(&mut lead, took());
        assert_eq!(late[0], 250, "nothing is known yet");
        let (early, late) = transfers(&mut lead, took());
        let mean = late.iter().sum::<i64>() / 1_000;
        assert!(early <= 20 && mean <= 100, "{early} of 1,000 were early, all were {mean} µs late");
    }

    #[test]
    fn being_held_up_or_a_clock_that_is_set_hardly_changes_the_lead() {
        let mut lead = Lead::default();
        transfers(&mut lead, [300; 1_000]);
        let before = lead.get();
        for clock in [60_000_000, 0] {
            lead.arrived(1_000_000, clock);
            assert!(lead.get() <= before + LARGEST_STEP && lead.get() >= before / 2, "{lead:?}");
        }
    }
}
