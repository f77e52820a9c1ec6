//! Crashes: how a job that may have killed its node runs next, and what the next crash does to it (rule 19).
//!
//! A process dies as a whole, so a crash says which jobs ran, and not which one killed. It is a group test: jobs that were
//! in too many crashes run in groups, the members of a group that died run in a smaller one, and then one by one. Only a
//! job that ran alone is convicted.

use serde::{Deserialize, Serialize};

/// How a quarantined job was started, as the store notes it for the length of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Beside other handlers.
    Grouped,
    /// Alone in its process.
    Alone,
}

/// How a job must run, by the number of its crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Like any other job.
    Ordinary,
    /// Quarantined: in a group, beside ordinary work.
    Group,
    /// Quarantined, and its last group died: in a small group, beside ordinary work.
    SmallGroup,
    /// Quarantined, and its small group died: alone in its process. A convicted job too, for its `on_exhausted`.
    Alone,
}

impl Suspicion {
    /// How a job with this many crashes must run under this cap.
    pub const fn of(crashes: u32, cap: u32) -> Self {
        let cap = at_least_one(cap);
        if crashes < threshold(cap) {
            Self::Ordinary
        } else if crashes < cap {
            Self::Group
        } else if crashes == cap {
            Self::SmallGroup
        } else {
            Self::Alone
        }
    }
}

/// What a crash of its node does to a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// The job waits again, with this many crashes.
    Counted(u32),
    /// The job is exhausted by crashes, with this many. It waits once more, for its `on_exhausted`.
    Convicted(u32),
    /// The job is DEAD.
    Dead,
}

impl Charge {
    /// What the crash of the node does to a job with this many crashes whose run was started like this.
    pub const fn of(crashes: u32, isolation: Option<Isolation>, exhausted: bool, cap: u32) -> Self {
        let cap = at_least_one(cap);
        let convicted = cap.saturating_add(2);
        match isolation {
            Some(Isolation::Alone) if exhausted && crashes >= convicted => Self::Dead,
            Some(Isolation::Alone) => Self::Convicted(convicted),
            Some(Isolation::Grouped) if crashes <= cap => Self::Counted(crashes + 1),
            None if crashes < threshold(cap) => Self::Counted(crashes + 1),
            Some(Isolation::Grouped) | None => Self::Counted(crashes),
        }
    }
}

/// How many crashes quarantine a job.
const fn threshold(cap: u32) -> u32 {
    if cap > 2 { cap - 1 } else { 1 }
}

const fn at_least_one(cap: u32) -> u32 {
    if cap == 0 { 1 } else { cap }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a job kill its node each time it runs, in company whenever it may. Returns how often it did before it was
    /// convicted.
    fn crashes_until_convicted(cap: u32) -> u32 {
        let (mut crashes, mut caused) = (0, 0);
        loop {
            let isolation = match Suspicion::of(crashes, cap) {
                Suspicion::Ordinary => None,
                Suspicion::Group | Suspicion::SmallGroup => Some(Isolation::Grouped),
                Suspicion::Alone => Some(Isolation::Alone),
            };
            caused += 1;
            match Charge::of(crashes, isolation, false, cap) {
                Charge::Counted(more) => crashes = more,
                Charge::Convicted(count) => {
                    assert_eq!(Suspicion::of(count, cap), Suspicion::Alone, "its `on_exhausted` runs alone");
                    assert_eq!(Charge::of(count - 1, Some(Isolation::Alone), true, cap), Charge::Convicted(count));
                    assert_eq!(Charge::of(count, Some(Isolation::Alone), true, cap), Charge::Dead);
                    return caused;
                }
                Charge::Dead => unreachable!("a job is convicted before it is DEAD"),
            }
        }
    }

    #[test]
    fn a_job_that_kills_each_time_is_convicted_within_two_crashes_of_its_cap() {
        for cap in 1..=1_000 {
            assert_eq!(crashes_until_convicted(cap), cap + 2);
        }
        assert_eq!(crashes_until_convicted(0), 3, "a cap of zero counts as one");
    }

    #[test]
    fn a_job_without_a_crash_is_never_quarantined() {
        for cap in 0..10 {
            assert_eq!(Suspicion::of(0, cap), Suspicion::Ordinary);
        }
    }

    #[test]
    fn only_a_job_that_ran_alone_is_convicted() {
        for (cap, crashes) in (0..6).flat_map(|cap| (0..9).map(move |crashes| (cap, crashes))) {
            for isolation in [None, Some(Isolation::Grouped)] {
                let Charge::Counted(count) = Charge::of(crashes, isolation, false, cap) else { panic!("convicted") };
                assert!(count - crashes <= 1);
            }
            assert_eq!(Charge::of(crashes, Some(Isolation::Alone), false, cap), Charge::Convicted(cap.max(1) + 2));
        }
    }

    #[test]
    fn a_quarantined_job_that_had_not_started_is_not_charged() {
        for crashes in 2..9 {
            assert_eq!(Charge::of(crashes, None, false, 3), Charge::Counted(crashes));
        }
    }
}
