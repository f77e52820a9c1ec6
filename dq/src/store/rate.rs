//! How many jobs of a topic, or of each of its groups, may be claimed within a period (rule 29).
//!
//! The algorithm is GCRA, the generic cell rate algorithm (ITU-T I.371, 1993), on the store's clock in microseconds. A topic keeps one number, and so does a group:
//! when its next claim may come. Each claimed job moves that by the interval `(period + slack) / jobs`, from its old place or, after a quiet time,
//! from `slack + burst × interval` ago. So any half-open window of one period has at most `jobs + burst` claims: with `t` from the
//! first of `k` claims to the last, `(k - 1) × interval ≤ t + slack + burst × interval`, and `t < period`. The slack, half a percent of
//! the period, is what a node may come late without a loss, and what it costs of the rate.
//!
//! The script part `pace.lua` computes the same.

pub use dq_grammar::Rate;

/// What a claim moves the next one by, times the jobs of a period, in µs for each ms of the period: the period and half a percent.
const PER_MS: u64 = 1_005;
/// The slack in µs for each ms of the period.
const SLACK_PER_MS: u64 = 5;

/// A rate, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    jobs: u64,
    per: u64,
    /// From when on the next claim may come, in µs, not after one interval.
    last: u64,
    /// The same, but not before the slack and the burst.
    opens: u64,
    now: u64,
}

impl Pace {
    /// `next` is when the next claim may come, as the topic has kept it.
    pub(crate) fn new(rate: Rate, next: u64, now: u64) -> Self {
        let (jobs, period) = (u64::from(rate.jobs()), rate.period().as_millis() as u64);
        let per = period * PER_MS;
        let last = next.min(now + per.div_ceil(jobs));
        Self { jobs, per, last, opens: last.max(now.saturating_sub(Self::most(rate))), now }
    }

    /// How far in the past the next claim may lie, in µs: the slack and the burst.
    pub(crate) fn most(rate: Rate) -> u64 {
        let period = rate.period().as_millis() as u64;
        period * SLACK_PER_MS + u64::from(rate.burst()) * period * PER_MS / u64::from(rate.jobs())
    }

    /// From when on, in µs after its next claim could come, no claim of a group depends on its past any more, unless a job is heavier than all
    /// that a period allows.
    pub(crate) fn forgets(rate: Rate) -> u64 {
        Self::most(rate) + rate.period().as_millis() as u64 * PER_MS
    }

    /// When the next claim may come after the last one, of which only the time is known: one interval later.
    pub(crate) fn after(rate: Rate, last: u64) -> u64 {
        let pace = Self::new(rate, 0, last);
        last.saturating_add(pace.per.div_ceil(pace.jobs))
    }

    /// How many jobs of weight 1 may be claimed now.
    pub(crate) fn room(self) -> usize {
        match self.now.checked_sub(self.opens) {
            Some(open_for) => usize::try_from(open_for * self.jobs / self.per + 1).unwrap_or(usize::MAX),
            None => 0,
        }
    }

    /// How many of the jobs with these weights may be claimed now: the first ones.
    pub(crate) fn fits(self, weights: impl IntoIterator<Item = u64>) -> usize {
        let (room, mut spent) = (self.room() as u64, 0);
        let may_start = |weight: &u64| {
            let has_waited = spent == 0 && self.now >= self.last + self.time_of(weight.saturating_sub(1));
            let may_start = spent + weight <= room || has_waited;
            spent += weight;
            may_start
        };
        weights.into_iter().take_while(may_start).count()
    }

    /// When a job of weight 1 may be claimed once so much is spent now, in µs, and when the next one may, if that has a weight for which there is no
    /// room.
    pub(crate) fn next(self, spent: u64, refused: Option<u64>) -> (u64, u64) {
        let begin = match spent {
            0 => self.last,
            _ if spent > self.room() as u64 => self.last.max(self.now - self.time_of(spent - 1)),
            _ => self.opens,
        };
        let next = begin + self.time_of(spent);
        (next, next + refused.map_or(0, |weight| self.time_of(weight.saturating_sub(1))))
    }

    /// For how long so much of the rate lasts.
    fn time_of(self, weights: u64) -> u64 {
        (weights * self.per).div_ceil(self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000_000_000;

    /// Claims as many of `wanted` as may be, after each pause; returns when, one entry a job.
    fn claims(rate: Rate, steps: &[(u64, usize)]) -> Vec<u64> {
        let (mut now, mut next, mut taken) = (NOW, 0, Vec::new());
        for (pause, wanted) in steps {
            now += pause;
            let pace = Pace::new(rate, next, now);
            let claimed = pace.room().min(*wanted);
            next = pace.next(claimed as u64, None).0;
            taken.extend(std::iter::repeat_n(now, claimed));
        }
        taken
    }

    proptest! {
        #[test]
        fn no_window_of_a_period_has_more_claims_than_the_rate_and_its_burst(
            jobs in 1_u32..50,
            period in 1_u64..5_000,
            burst in 0_u32..20,
            steps in prop::collection::vec((0_u64..2_000_000, 0_usize..30), 1..300),
            scale in 1_u64..1_000,
        ) {
            let rate = Rate::new(jobs, Duration::from_millis(period), burst).unwrap();
            let steps: Vec<_> = steps.into_iter().map(|(pause, wanted)| (pause / scale, wanted)).collect();
            let taken = claims(rate, &steps);
            let most = (jobs + burst) as usize;
            for window in taken.windows(most + 1) {
                prop_assert!(window[most] - window[0] >= period * 1_000, "{most} and one more in {} µs", window[most] - window[0]);
            }
        }
    }

    proptest! {
        #[test]
        fn no_window_of_a_period_has_more_weight_than_the_rate_and_its_burst(
            jobs in 1_u32..50,
            period in 1_u64..5_000,
            burst in 0_u32..20,
            heaviest in 1_u64..40,
            steps in prop::collection::vec((0_u64..2_000_000, prop::collection::vec(0_u64..40, 0..8)), 1..300),
            scale in 1_u64..1_000,
        ) {
            let rate = Rate::new(jobs, Duration::from_millis(period), burst).unwrap();
            let (mut now, mut next, mut taken, mut waiting) = (NOW, NOW, Vec::new(), std::collections::VecDeque::new());
            for (pause, weights) in steps {
                now += pause / scale;
                waiting.extend(weights.into_iter().map(|weight| 1 + weight % heaviest));
                let pace = Pace::new(rate, next, now);
                let claimed: Vec<_> = waiting.drain(..pace.fits(waiting.iter().copied())).collect();
                let refused = waiting.front().copied();
                let (at, starts) = pace.next(claimed.iter().sum(), refused);
                prop_assert!(at <= now + pace.time_of(1), "the next one waits for an interval at most");
                if let Some(weight) = refused {
                    let then = Pace::new(rate, if claimed.is_empty() { next } else { at }, starts.max(now + 1));
                    prop_assert!(then.fits([weight]) == 1, "it starts when it was said to");
                }
                if !claimed.is_empty() {
                    next = at;
                }
                taken.extend(claimed.into_iter().map(|weight| (now, weight)));
            }
            let over = heaviest.saturating_sub(u64::from(burst) + 1);
            for from in 0..taken.len() {
                let (begin, first) = taken[from];
                let within = taken[from..].iter().take_while(|(at, _)| *at < begin + period * 1_000);
                let weight: u64 = within.map(|(_, weight)| weight).sum();
                let most = u64::from(jobs + burst) + over.min(first.saturating_sub(u64::from(burst) + 1));
                prop_assert!(weight <= most, "{weight} of {most} in a period");
            }
        }
    }

    #[test]
    fn a_node_that_comes_within_the_slack_loses_nothing() {
        let rate: Rate = "100/s".parse().unwrap();
        // Every 10 ms, half a millisecond late at most.
        let steps: Vec<_> = (0..6_000).map(|n| (9_800 + n % 5 * 100, 10)).collect();
        let taken = claims(rate, &steps);
        let seconds = (taken.last().unwrap() - NOW) as f64 / 1e6;
        let share = taken.len() as f64 / (100.0 * seconds);
        assert!((0.99..=1.0).contains(&share), "{share} of what the rate allows");
    }

    #[test]
    fn the_largest_numbers_are_exact_in_a_script() {
        let rate: Rate = "1000000/d, burst 10000".parse().unwrap();
        let pace = Pace::new(rate, 0, NOW);
        let exact = 1_u64 << 53;
        assert!(pace.per * 10_000 < exact && (NOW - pace.opens) * pace.jobs < exact);
        assert_eq!(pace.room(), 14_976, "the burst, one, and what the slack allows");
    }
}
