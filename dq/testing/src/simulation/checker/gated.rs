//! While a topic is paused nothing of it is claimed or published, and while it drains only what was due when the drain began (rule
//! 29).

use std::collections::HashMap;
use std::time::Duration;

use super::record::Checker;
use super::turns::group_of;
use dq::job::{Delivery, JobId, NodeId, State};
use dq::schedule::schedule_name;
use dq::store::step::Claim;
use dq::store::{AddOutcome, NewJob, SetTopic, TopicChange, TopicState};
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

/// How long after the signal of a pause a handler may begin without a fault, in ms: signals take less than one.
const LEARNS: u64 = 5;

impl Checker {
    /// Records a change of the state.
    pub(super) fn note_set(&mut self, set: &SetTopic, now: &TopicState, micros: u64) {
        let (gate, now) = (&mut self.expected.gate, now.clone());
        if let TopicChange::Pause { group: Some(name), .. } | TopicChange::Resume { group: Some(name) } = &set.change {
            let until = now.pause.map(|pause| pause.until.unwrap_or(Timestamp::from_millis(u64::MAX / 1_000)));
            return self.expected.groups.set_pause(name.as_str(), until, micros);
        }
        match &set.change {
            TopicChange::Delay(_) => return gate.state.delay = now.delay,
            TopicChange::Pause { .. } | TopicChange::Resume { .. } => gate.state.pause = now.pause,
            TopicChange::Drain { .. } | TopicChange::Undrain => gate.state.drain = now.drain,
            TopicChange::Limit { limit, .. } => gate.set_limit(limit.kind(), now.limits),
            TopicChange::ClearLimit(kind) => gate.set_limit(*kind, now.limits),
        }
        if matches!(set.change, TopicChange::Limit { .. } | TopicChange::ClearLimit(_)) {
            self.expected.groups.set_limit(micros);
        }
        let gate = &mut self.expected.gate;
        gate.set_at = micros / 1000 + gate.interval();
    }

    /// The delay of a job that has only the usual one.
    pub(super) fn usual(&self, usual: Duration) -> Duration {
        self.expected.gate.state.delay.as_ref().map_or(usual, |set| set.delay)
    }

    /// A job is claimed: `due` is the due time, or `None` for one that was parked.
    pub(super) fn check_may_take(&mut self, id: &JobId, due: Option<Timestamp>, micros: u64) {
        if let Some(why) = self.expected.gate.refuses(due, Timestamp::floor_micros(micros)) {
            self.bad(format!("[29] {id} is claimed {why}"));
        }
        // A clock that jumps back has some of its periods twice.
        if !self.jumped && schedule_name(id).is_none() && self.expected.gate.is_spent(micros) {
            let rate = self.expected.gate.state.rate();
            self.bad(format!("[29] {id} is claimed over the rate {rate:?}"));
        }
        self.expected.gate.claims(micros, schedule_name(id).is_some());
    }

    /// Whether the rate lets nothing be claimed.
    pub(in crate::simulation) fn is_spent(&self, micros: u64) -> bool {
        self.expected.gate.is_spent(micros)
    }

    /// A handler of this job backs off.
    pub(super) fn note_back_off(
        &mut self,
        node: &NodeId,
        id: &JobId,
        group: Option<&str>,
        delay: Duration,
        micros: u64,
    ) {
        let until = Timestamp::from_millis((micros + delay.as_micros() as u64).div_ceil(1_000));
        match group {
            Some(name) => {
                let paused = self.expected.groups.paused.entry(name.to_owned()).or_default();
                *paused = until.max(*paused);
            }
            None => self.expected.gate.backs_off(id, node, until, Timestamp::floor_micros(micros)),
        }
    }

    /// A transfer has claimed these jobs: where jobs may wait for a limit, it does so only after all ticks that are due.
    pub(super) fn check_no_tick_waits(&mut self, claims: &[Claim], before: &View, micros: u64) {
        let (gate, clock) = (&self.expected.gate, Timestamp::floor_micros(micros));
        let is_limited = gate.state.concurrency().is_some() || gate.state.rate().is_some();
        let is_tick = |id: &JobId| schedule_name(id).is_some();
        if !is_limited || claims.iter().any(|claim| is_tick(&claim.id)) {
            return;
        }
        let waits = |job: &JobView| {
            let is_due = job.state == State::Delayed && job.at.is_some_and(|at| at <= clock);
            is_due && gate.refuses(job.at, clock).is_none()
        };
        if let Some((id, _)) = before.jobs.iter().find(|(id, job)| is_tick(id) && waits(job)) {
            let text = format!("[30] the tick of {id} waits for a limit");
            self.bad(text);
        }
    }

    /// A job was claimed, and its row is there. A tick needs no slot.
    pub(super) fn check_slots(&mut self, id: &JobId) {
        if schedule_name(id).is_some() {
            return;
        }
        let running = self.expected.rows.keys().filter(|(_, id)| schedule_name(id).is_none()).count();
        if let Some(limit) = self.expected.gate.state.concurrency().filter(|limit| running > *limit) {
            let text = format!("[29] with {id} {running} jobs are RUNNING on all nodes, and {limit} may be");
            self.bad(text);
        }
    }

    /// Whether a tick is due that only a limit could hold back.
    pub(in crate::simulation) fn holds_a_tick_up(&self, micros: u64) -> bool {
        let clock = Timestamp::floor_micros(micros);
        let is_due = |job: &JobView| job.state == State::Delayed && job.at.is_some_and(|at| at <= clock);
        let has_tick = self.before.jobs.iter().any(|(id, job)| schedule_name(id).is_some() && is_due(job));
        has_tick && self.expected.gate.state.pause.is_none() && (self.is_full() || self.is_spent(micros))
    }

    /// Whether as many jobs are RUNNING as may be.
    pub(in crate::simulation) fn is_full(&self) -> bool {
        self.expected.gate.is_full(self.expected.rows.len())
    }

    /// A run is over.
    pub(super) fn note_slot(&mut self, running_before: usize, micros: u64) {
        if self.expected.gate.is_full(running_before) {
            self.expected.gate.slot_at = micros / 1000;
        }
    }

    /// A broadcast is published.
    pub(super) fn check_may_publish(&mut self, id: &JobId, due: Timestamp, micros: u64) {
        if let Some(why) = self.expected.gate.refuses(Some(due), Timestamp::floor_micros(micros)) {
            self.bad(format!("[29] the broadcast {id} is published {why}"));
        }
    }

    /// An add was refused because the topic drains, or took effect.
    pub(super) fn check_drains(&mut self, refused: bool) {
        match (refused, &self.expected.gate.state.drain) {
            (true, None) => self.bad("[29] an add is refused, though the topic does not drain".into()),
            (false, Some(drain)) => {
                let text = format!("[29] an add takes effect in a topic that drains since {}", drain.since);
                self.bad(text);
            }
            _ => {}
        }
    }

    /// New jobs are added while fewer wait than may in the topic and in their group, and refused otherwise.
    pub(super) fn check_waiting(&mut self, jobs: &[(NewJob, AddOutcome)], before: &View) {
        let state = &self.expected.gate.state;
        let limit = state.waiting().filter(|_| !self.passes_limit);
        let of_groups = state.group_waiting();
        let delayed = before.jobs.iter().filter(|(_, job)| job.state == State::Delayed);
        let mut waiting: HashMap<_, _> = delayed.map(|(id, job)| (id, group_of(&job.record))).collect();
        for (job, outcome) in jobs {
            let group = group_of(&job.record);
            // A job that was claimed may have kept its seat, and then it does not count.
            let of_group = |counts: fn(bool) -> bool| {
                let is_counted = |id: &JobId| counts(self.expected.groups.known.contains(id));
                waiting.iter().filter(|(id, of)| **of == group && is_counted(id)).count()
            };
            let (fewest, most) = (of_group(|is_known| !is_known), of_group(|_| true));
            let is_free = limit.is_none_or(|limit| waiting.len() < limit);
            let is_full = |count| group.is_some() && of_groups.is_some_and(|limit| count >= limit);
            let passes = job.deliver == Delivery::Broadcast || schedule_name(&job.id).is_some();
            let is_wrong = match outcome {
                AddOutcome::Added => !passes && (!is_free || is_full(fewest)),
                AddOutcome::TopicFull(_) => passes || is_free,
                AddOutcome::GroupFull { .. } => passes || !is_full(most),
                _ => false,
            };
            if is_wrong {
                let answer = if matches!(outcome, AddOutcome::Added) { "added" } else { "refused" };
                self.bad(format!(
                    "[29] {} is {answer}, though {} jobs wait and {limit:?} may, and {fewest} to {most} of {group:?} and {of_groups:?} may",
                    job.id,
                    waiting.len(),
                ));
            }
            if matches!(outcome, AddOutcome::Added | AddOutcome::Replaced(_)) {
                match job.deliver {
                    Delivery::Broadcast => waiting.remove(&job.id),
                    _ => waiting.insert(&job.id, group),
                };
            }
        }
    }

    /// A handler starts. Without faults its node knows of a pause.
    pub(super) fn check_starts_under(&mut self, id: &JobId, micros: u64) {
        let Some(pause) = self.expected.gate.pause(Timestamp::floor_micros(micros)).filter(|_| self.is_calm) else {
            return;
        };
        if pause.since.as_millis() + LEARNS < micros / 1000 {
            let text = format!("[29] a handler of {id} starts, though its topic is paused since {}", pause.since);
            self.bad(text);
        }
    }

    /// The state of the topic; empty if nobody has set anything.
    pub(in crate::simulation) const fn state(&self) -> &TopicState {
        &self.expected.gate.state
    }
}
