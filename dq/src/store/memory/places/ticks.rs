//! The schedules that are due go before all jobs where gates may hold jobs back (rule 30).

use super::{ClaimTerms, Claimed, Jobs, fitting};
use crate::job::{NodeId, State};
use crate::store::step::Claim;
use crate::time::Timestamp;

impl Jobs {
    /// When the next tick of a schedule is.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        self.index(State::Delayed).first_tick().map(|(at, _)| *at)
    }

    /// Whether jobs are claimed in another order than that of their due times.
    pub(crate) fn are_ranked(&self) -> bool {
        self.have_groups() || self.index(State::Delayed).has_priorities()
    }

    /// Gives `node` up to `limit` schedules that are due at `until` or earlier, with up to `bytes` of records, and no other job.
    pub(crate) fn claim_ticks(
        &mut self,
        until: Timestamp,
        limit: usize,
        bytes: usize,
        node: &NodeId,
        terms: ClaimTerms,
    ) -> Vec<Claim> {
        let mut due: Vec<_> = std::iter::from_fn(|| self.pop_tick(until)).take(limit).collect();
        let size = |(_, _, id): &Claimed| self.get(id).map_or(0, |slot| slot.record.as_bytes().len());
        let count = fitting(due.iter().map(size), bytes);
        due.drain(count..).for_each(|claimed| self.put_back(claimed));
        self.run(due, node, terms)
    }

    fn pop_tick(&mut self, until: Timestamp) -> Option<Claimed> {
        let (at, id) = self.index(State::Delayed).first_tick().filter(|(at, _)| *at <= until)?.clone();
        let part = self.slots.get(&id).expect("an indexed job has a slot").part();
        self.timed[State::Delayed as usize].remove(part, at, &id);
        Some((part, at, id))
    }
}
