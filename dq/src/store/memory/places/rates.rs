//! The rate of each group (rules 4 and 29): when its next job may be claimed. A group that has spent its rate is blocked by the claim that meets its
//! first job, and that comes again when the rate opens.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;
use smol_str::SmolStr;

use super::Jobs;
use crate::job::Fence;
use crate::store::{Pace, Rate};
use crate::time::Timestamp;

/// What groups have spent of their rate.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupRates {
    /// When the next job of a group may be claimed, in µs.
    next: HashMap<SmolStr, u64, FixedState>,
    by_time: BTreeSet<(u64, SmolStr)>,
    /// Those of which a job waits, each until its time, which may have been another one since.
    waiting: BTreeSet<(u64, SmolStr)>,
    /// When the last claim was, in µs, of which a replay does not know the group's share.
    last: u64,
}

impl GroupRates {
    fn pace(&self, name: &SmolStr, rate: Rate, now: u64) -> Pace {
        Pace::new(rate, self.next.get(name).copied().unwrap_or_else(|| Pace::after(rate, self.last)), now)
    }

    fn put(&mut self, name: &SmolStr, next: u64) {
        if let Some(old) = self.next.insert(name.clone(), next) {
            self.by_time.remove(&(old, name.clone()));
        }
        self.by_time.insert((next, name.clone()));
    }

    /// Whether a job of the group may be claimed; if not, its first job waits until one may.
    pub(super) fn has_room(&mut self, name: &SmolStr, rate: Rate, now: u64) -> bool {
        let pace = self.pace(name, rate, now);
        if pace.room() > 0 {
            return true;
        }
        let opens = pace.next(0, None).0;
        self.put(name, opens);
        self.waiting.insert((opens, name.clone()));
        false
    }

    /// A job of the group is claimed.
    pub(super) fn spend(&mut self, name: &SmolStr, rate: Rate, now: u64) {
        let next = self.pace(name, rate, now).next(1, None).0;
        self.put(name, next);
    }

    /// Whether a job of the group waits for the rate. O(groups).
    pub(super) fn is_waiting(&self, name: &SmolStr) -> bool {
        self.waiting.iter().any(|(_, waiting)| waiting == name)
    }

    /// When the group opens, if its rate is spent.
    pub(super) fn opens(&self, name: &SmolStr, now: u64) -> Option<u64> {
        self.next.get(name).copied().filter(|next| *next > now)
    }

    /// When the rate of the next group opens of whose jobs one waits for that.
    pub(super) fn next_opening(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(opens, _)| Timestamp::from_millis(opens.div_ceil(1_000)))
    }

    /// Forgets what no claim depends on any more.
    fn forget(&mut self, rate: Option<Rate>, now: u64) {
        let before = now.saturating_sub(rate.map_or(0, Pace::most));
        while let Some((next, name)) = self.by_time.first().filter(|(next, _)| *next <= before).cloned() {
            self.by_time.remove(&(next, name.clone()));
            self.next.remove(&name);
        }
    }
}

impl Jobs {
    /// The groups continue whose rates have opened by now.
    pub(crate) fn open_rates(&mut self, rate: Option<Rate>, now: u64) {
        while let Some((opens, name)) = self.groups.rates.waiting.first().filter(|(opens, _)| *opens <= now).cloned() {
            self.groups.rates.waiting.remove(&(opens, name.clone()));
            self.open_group(&name, opens);
        }
        self.groups.rates.forget(rate, now);
    }

    /// A replay knows of claims up to this fence.
    pub(crate) fn set_last_claim(&mut self, fence: Fence) {
        self.groups.rates.last = self.groups.rates.last.max(fence.0);
    }
}
