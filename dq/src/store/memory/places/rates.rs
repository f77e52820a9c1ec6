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
    next: HashMap<SmolStr, Next, FixedState>,
    by_time: BTreeSet<(u64, SmolStr)>,
    /// Those of which a job waits, each until its time, which may have been another one since.
    waiting: BTreeSet<(u64, SmolStr)>,
    /// When the last claim was, in µs, of which a replay does not know the group's share.
    last: u64,
}

/// When jobs of a group may be claimed, in µs.
#[derive(Debug, Clone, Copy)]
struct Next {
    /// Its next job, which may be heavy.
    starts: u64,
    /// One of weight 1.
    at: u64,
}

impl GroupRates {
    fn pace(&self, name: &SmolStr, rate: Rate, now: u64) -> Pace {
        Pace::new(rate, self.next.get(name).map_or_else(|| Pace::after(rate, self.last), |next| next.at), now)
    }

    fn put(&mut self, name: &SmolStr, next: Next) {
        if let Some(old) = self.next.insert(name.clone(), next) {
            self.by_time.remove(&(old.starts, name.clone()));
        }
        self.by_time.insert((next.starts, name.clone()));
    }

    /// Whether a job of this weight of the group may be claimed.
    pub(super) fn has_room(&self, name: &SmolStr, rate: Rate, now: u64, weight: u64) -> bool {
        self.pace(name, rate, now).fits([weight]) == 1
    }

    /// A job of the group has no room: it waits until it has.
    pub(super) fn wait(&mut self, name: &SmolStr, rate: Rate, now: u64, weight: u64) {
        let (at, starts) = self.pace(name, rate, now).next(0, Some(weight));
        self.put(name, Next { starts, at });
        self.waiting.insert((starts, name.clone()));
    }

    /// A job of the group is claimed.
    pub(super) fn spend(&mut self, name: &SmolStr, rate: Rate, now: u64, weight: u64) {
        let (at, _) = self.pace(name, rate, now).next(weight, None);
        self.put(name, Next { starts: at, at });
    }

    /// Whether a job of the group waits for the rate. O(groups).
    pub(super) fn is_waiting(&self, name: &SmolStr) -> bool {
        self.waiting.iter().any(|(_, waiting)| waiting == name)
    }

    /// When the group opens, if its rate is spent.
    pub(super) fn opens(&self, name: &SmolStr, now: u64) -> Option<u64> {
        self.next.get(name).map(|next| next.starts).filter(|starts| *starts > now)
    }

    /// When the rate of the next group opens of whose jobs one waits for that.
    pub(super) fn next_opening(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(opens, _)| Timestamp::from_millis(opens.div_ceil(1_000)))
    }

    /// Forgets what no claim depends on any more.
    fn forget(&mut self, rate: Option<Rate>, now: u64) {
        let before = now.saturating_sub(rate.map_or(0, Pace::forgets));
        while let Some((starts, name)) = self.by_time.first().filter(|(starts, _)| *starts <= before).cloned() {
            self.by_time.remove(&(starts, name.clone()));
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
        self.open_rates_after_a_fall(rate, now);
        self.groups.rates.forget(rate, now);
    }

    /// Lets groups continue that wait for a time from before the clock fell back. Their first claim finds out when they may.
    fn open_rates_after_a_fall(&mut self, rate: Option<Rate>, now: u64) {
        let Some(latest) = rate.map(|rate| Pace::after(rate, now)) else { return };
        while let Some((opens, name)) = self.groups.rates.waiting.last().cloned() {
            if self.groups.rates.next.get(&name).is_some_and(|next| next.at <= latest) {
                break;
            }
            self.groups.rates.waiting.remove(&(opens, name.clone()));
            self.open_group(&name, now);
        }
    }

    /// The rate of groups has changed: the next claim finds out when those open that wait.
    pub(crate) fn try_rates_now(&mut self) {
        let now = self.groups.now();
        let waiting = std::mem::take(&mut self.groups.rates.waiting);
        self.groups.rates.waiting = waiting.into_iter().map(|(_, name)| (now, name)).collect();
    }

    /// A replay knows of claims up to this fence.
    pub(crate) fn set_last_claim(&mut self, fence: Fence) {
        self.groups.rates.last = self.groups.rates.last.max(fence.0);
    }
}
