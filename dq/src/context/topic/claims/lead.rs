//! How much earlier than a job is due a transfer leaves its node, so that the store executes it just when the job is due.
//!
//! A node counts the time to the head from the receipt of the answer that named it, which is late by the way of that answer. Then
//! its timer, the transfer and its way take their time. The clock in the answer to the transfer says by how much all that was too
//! late. A transfer that comes early claims nothing and costs another one. So the lead is the second shortest of the last 64 ways: one transfer
//! in thirty comes early, and a clock that is set once shortens nothing. At 1,000 jobs a second they start 0.26 ms late (p50), and without a
//! lead 0.36 and 0.57 (`docs/internals/performance.md`).

use std::time::Duration;

/// How many ways count.
const KNOWN: usize = 64;
/// With fewer there is no lead.
const FEWEST: usize = 4;

/// The lead of the next transfer.
#[derive(Debug)]
pub(super) struct Lead {
    /// How long the last transfers took from when they meant to leave, in µs; each takes the place of the oldest.
    ways: [u64; KNOWN],
    /// How many there were.
    count: usize,
    lead: Duration,
}

impl Default for Lead {
    fn default() -> Self {
        Self { ways: [0; KNOWN], count: 0, lead: Duration::ZERO }
    }
}

impl Lead {
    /// How much earlier the next transfer leaves.
    pub(super) const fn get(&self) -> Duration {
        self.lead
    }

    /// A transfer that left with this lead was executed at `clock` of the store, and its job was due at `due`, both in µs.
    pub(super) fn arrived(&mut self, lead: Duration, due: u64, clock: u64) {
        self.ways[self.count % KNOWN] = clock.saturating_add(lead.as_micros() as u64).saturating_sub(due);
        self.count += 1;
        let mut ways = self.ways;
        let ways = &mut ways[..self.count.min(KNOWN)];
        if ways.len() >= FEWEST {
            self.lead = Duration::from_micros(*ways.select_nth_unstable(1).1);
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
            lead.arrived(lead.get(), 1_000_000, (1_000_000 + late[late.len() - 1]) as u64);
        }
        (late.iter().filter(|late| **late < 0).count(), late)
    }

    #[test]
    fn transfers_come_close_to_the_due_time_after_four_and_few_come_early() {
        let mut lead = Lead::default();
        let took = || (0..1_000_u64).map(|n| 250 + n * 7_919 % 101);
        let (early, late) = transfers(&mut lead, took());
        assert_eq!(late[..4], [250, 291, 332, 272], "too little is known yet");
        let mean = late[4..].iter().sum::<i64>() / 996;
        let is_close = (10..=40).contains(&early) && (1..=60).contains(&mean);
        assert!(is_close, "{early} of 1,000 were early, all were {mean} µs late");
    }

    #[test]
    fn being_held_up_or_a_clock_that_is_set_does_not_change_the_lead() {
        let mut lead = Lead::default();
        transfers(&mut lead, [300; 100]);
        for clock in [60_000_000, 0] {
            lead.arrived(lead.get(), 1_000_000, clock);
            assert_eq!(lead.get(), Duration::from_micros(300));
        }
    }

    #[test]
    fn the_lead_follows_a_way_that_becomes_shorter_at_the_second_transfer_and_one_that_becomes_longer_after_sixty_four()
    {
        let mut lead = Lead::default();
        transfers(&mut lead, [300; 100]);
        let (early, late) = transfers(&mut lead, [100; 100]);
        assert_eq!((early, late[3]), (2, 0));
        let (early, late) = transfers(&mut lead, [300; 100]);
        assert_eq!((early, late[0], late[63]), (0, 200, 0));
    }
}
