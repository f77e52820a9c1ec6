//! UNACKED jobs that `sweep` claims (rule 25): those whose group neither is paused nor has spent its rate (rule 29). The others stay where they are.

use std::time::Duration;

use super::{Claimed, Jobs};
use crate::job::{JobId, State};
use crate::store::Rate;
use crate::time::Timestamp;

/// How many of the oldest jobs a sweep looks at.
const MAX_PARKED: usize = 1_000;

impl Jobs {
    /// Takes out the oldest jobs that have been UNACKED until then and may be claimed. Each spends the rate of its group, even if it has no
    /// room in the claim.
    pub(super) fn pop_parked(&mut self, until: Timestamp, limit: usize, rate: Option<Rate>) -> Vec<Claimed> {
        let (mut taken, mut held) = (Vec::new(), Vec::new());
        while taken.len() < limit
            && taken.len() + held.len() < MAX_PARKED
            && let Some(aged) = self.timed[State::Unacked as usize].pop_due(until, Duration::ZERO)
        {
            let goes = !self.is_of_paused_group(&aged.2) && self.spend_of_group(&aged.2, rate);
            if goes { taken.push(aged) } else { held.push(aged) }
        }
        held.into_iter().for_each(|(part, at, id)| self.timed[State::Unacked as usize].insert(part, at, id));
        taken
    }

    /// Whether one of the oldest jobs that have been UNACKED until then waits for something else than the end of the pause of its group.
    pub(crate) fn have_parked(&self, until: Timestamp) -> bool {
        let aged = self.index(State::Unacked).after(None).take_while(|(at, _)| *at <= until);
        aged.take(MAX_PARKED).any(|(_, id)| !self.is_of_paused_group(id))
    }

    fn is_of_paused_group(&self, id: &JobId) -> bool {
        let name = self.slots.get(id).and_then(|slot| Some(&slot.member.as_ref()?.name));
        let clock = Timestamp::floor_micros(self.groups.now());
        name.and_then(|name| self.pause_of_group(name)).is_some_and(|pause| pause.is_at(clock))
    }

    /// Spends the rate of the group of the job, if it has both. Returns false if there is no room.
    fn spend_of_group(&mut self, id: &JobId, rate: Option<Rate>) -> bool {
        let Some((rate, slot)) = rate.zip(self.slots.get(id)) else { return true };
        let Some(member) = &slot.member else { return true };
        let (now, weight) = (self.groups.now(), u64::from(slot.record.weight().get()));
        let has_room = self.groups.rates.has_room(&member.name, rate, now, weight);
        if has_room {
            self.groups.rates.spend(&member.name, rate, now, weight);
        }
        has_room
    }
}
