//! The steps `transfer` and `sweep` (rules 4, 5, 6, 9 and 25).

use super::{Choice, Place, Run, Topic};
use dq::job::state::Event;
use dq::job::{Fence, JobId, NodeId, State, Token};
use dq::store::step::{Claim, Sequenced, Sweep, Swept, Transfer, Transferred};
use dq::time::Timestamp;

impl Topic {
    pub(in super::super) fn transfer(
        &mut self,
        node: &NodeId,
        request: &Transfer,
        choice: Choice<'_>,
    ) -> Sequenced<Transferred> {
        if !self.is_current(node, request.last_seen) {
            return Sequenced::Reconcile(self.lease_status(node));
        }
        let now = self.now();
        let mut due = self.by_time(State::Delayed, |id| (!choice.is(id, State::Running), id.clone()));
        due.retain(|(at, _)| *at <= now.after(request.lookahead) && self.may_take(*at));
        let more = due.len() > request.limit;
        due.truncate(request.limit);
        let claims = self.claim(node, &due, Event::Transferred);
        self.next_sequence(node, request.last_seen);
        self.extend_lease(node, request.last_seen.next(), request.lease);
        self.cut_leases();
        let (role, sleep) = self.assign_role(node, request.fallback, request.lookahead);
        let foreign = self.leases.iter().filter(|(other, _)| *other != node);
        let foreign_lease = foreign.min_by_key(|(_, end)| **end).map(|(other, end)| (other.clone(), *end));
        let lease_status = self.lease_status(node);
        Sequenced::Done(Transferred {
            lease_status,
            clock: now,
            micros: self.micros,
            role,
            sleep,
            more,
            foreign_lease,
            claims,
            dropped: Vec::new(),
            state: self.told(),
            left: self.left(),
        })
    }

    /// Claims these jobs under one fence.
    fn claim(&mut self, node: &NodeId, ids: &[(Timestamp, JobId)], event: Event) -> Vec<Claim> {
        if !ids.is_empty() {
            self.fence = (self.fence + 1).max(self.micros);
        }
        let mut claims = Vec::new();
        for (at, id) in ids {
            let token = Token { fence: Fence(self.fence), due: *at };
            let run = Run { node: node.clone(), token, isolation: None, end: None, replacement: None };
            let job = self.jobs.get_mut(id).expect("the job is in a place");
            job.go(event, Place::Running(run));
            claims.push(Claim { id: id.clone(), token, record: job.record.clone(), crashes: job.crashes });
        }
        claims
    }

    pub(in super::super) fn sweep(&mut self, node: &NodeId, request: &Sweep, choice: Choice<'_>) -> Sequenced<Swept> {
        if !self.is_current(node, request.last_seen) {
            return Sequenced::Reconcile(self.lease_status(node));
        }
        let now = self.now();
        let mut parked = self.by_time(State::Unacked, |id| (!choice.is(id, State::Running), id.clone()));
        parked.retain(|(since, _)| since.after(request.unacked_age) <= now && !self.is_held());
        let dead = self.by_time(State::Dead, |id| (choice.is(id, State::Dead), id.clone()));
        let over = dead.len().saturating_sub(request.dead_most);
        let dead = dead.into_iter().enumerate();
        let dead = dead.filter(|(n, (since, _))| *n < over || since.after(request.dead_kept) <= now);
        let mut dead: Vec<_> = dead.map(|(_, job)| job).collect();
        let mut done = self.by_time(State::Done, |id| (choice.is(id, State::Done), id.clone()));
        done.retain(|(until, _)| *until <= now);
        let more = [&parked, &dead, &done].iter().any(|ids| ids.len() > request.limit);
        for ids in [&mut parked, &mut dead, &mut done] {
            ids.truncate(request.limit);
        }
        let claims = self.claim(node, &parked, Event::Swept);
        for (_, id) in dead.iter().chain(&done) {
            self.remove_job(id, Event::Pruned);
        }
        self.next_sequence(node, request.last_seen);
        self.extend_lease(node, request.last_seen.next(), request.lease);
        let lease_status = self.lease_status(node);
        Sequenced::Done(Swept {
            lease_status,
            clock: now,
            claims,
            pruned_dead: dead.len(),
            pruned_done: done.len(),
            more,
            state: self.told(),
        })
    }
}
