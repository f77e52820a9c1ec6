//! What holds the jobs of a group back, and which group a claim takes first (rules 4 and 29).

use std::collections::BTreeMap;

use super::super::version::version;
use super::order::AGEING;
use super::record::{Checker, Did};
use dq::job::{GroupName, JobId, Record, State};
use dq::store::step::Claim;
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

pub(super) fn group_of(record: &Record) -> Option<&str> {
    record.group().map(|(_, name)| name)
}

impl Checker {
    /// How many more jobs of a group may run while nothing else is due.
    fn burst(&self) -> usize {
        let burst = self.expected.gate.state.group_burst().unwrap_or(self.group_burst);
        if self.group_limit > 1 { burst } else { 0 }
    }

    fn running(&self, name: &str) -> usize {
        let is_of = |run: &&u64| self.runs[*run].group.as_deref() == Some(name) && !self.runs[*run].aged;
        self.expected.rows.values().filter(is_of).count()
    }

    /// The store has started again, and knows no turns.
    pub(in crate::simulation) fn forget_turns(&mut self) {
        self.expected.groups.served.clear();
    }

    /// A paused group with a due job, and until when it is.
    pub(in crate::simulation) fn held_group(&self, clock: Timestamp) -> Option<(GroupName, Timestamp)> {
        let mut paused = self.expected.groups.paused.iter();
        let (name, until) = paused.find(|(name, until)| **until > clock && self.has_due(name, clock))?;
        Some((GroupName::new(name.as_str()).ok()?, *until))
    }

    /// Whether a group that has spent its rate has a due job.
    pub(in crate::simulation) fn has_spent_group(&self, micros: u64) -> bool {
        let (clock, groups) = (Timestamp::floor_micros(micros), &self.expected.groups);
        let is_spent = |rate, name: &String| groups.is_spent(name, rate, micros) && self.has_due(name, clock);
        let rate = self.expected.gate.state.group_rate();
        rate.is_some_and(|rate| groups.claimed.keys().any(|name| is_spent(rate, name)))
    }

    fn has_due(&self, name: &str, clock: Timestamp) -> bool {
        let is_due = |job: &JobView| job.state == State::Delayed && job.at.is_some_and(|due| due <= clock);
        self.before.jobs.values().any(|job| group_of(&job.record) == Some(name) && is_due(job))
    }

    /// The group whose job has been due the longest.
    pub(in crate::simulation) fn first_group(&self, clock: Timestamp) -> Option<GroupName> {
        let jobs = self.before.jobs.values().filter(|job| job.state == State::Delayed);
        let due = jobs.filter_map(|job| Some((job.at.filter(|due| *due <= clock)?, group_of(&job.record)?)));
        let (_, name) = due.filter(|(_, name)| !self.expected.groups.is_paused(name, clock)).min()?;
        GroupName::new(name).ok()
    }

    /// A job has changed.
    pub(super) fn touch_groups(&mut self, id: &JobId, was: Option<&JobView>, is: Option<&JobView>, micros: u64) {
        if is.is_none() {
            self.expected.groups.known.remove(id);
        }
        for name in was.into_iter().chain(is).filter_map(|job| group_of(&job.record)) {
            self.expected.groups.touched.insert(name.into(), micros);
        }
    }

    /// A job of a group was claimed, and its row is there.
    pub(super) fn check_group(&mut self, claim: &Claim, name: &str, micros: u64) {
        let id = &claim.id;
        // The pause is over for the store once a claim has seen its end, also if the clock jumps back then.
        if !self.jumped && self.expected.groups.is_paused(name, Timestamp::floor_micros(micros)) {
            let until = self.expected.groups.paused[name];
            self.bad(format!("[29] {id} is claimed, though its group {name} is paused until {until}"));
        }
        let (running, burst) = (self.running(name), self.burst());
        let groups = &mut self.expected.groups;
        groups.most_burst = groups.most_burst.max(burst);
        let is_first = groups.known.insert(id.clone());
        // A job that kept its seat comes back, whatever the burst is now.
        let most = self.group_limit + if is_first { burst } else { groups.most_burst };
        if is_first {
            groups.served.insert(name.into(), micros);
        }
        if running > most {
            self.bad(format!("[4] with {id} {running} jobs of {name} are RUNNING, and {most} may be"));
        }
        self.check_rate_of_group(id, name, micros);
    }

    fn check_rate_of_group(&mut self, id: &JobId, name: &str, micros: u64) {
        let Some(rate) = self.expected.gate.state.group_rate() else { return };
        let claimed = self.expected.groups.claimed.entry(name.into()).or_default();
        let is_over = claimed.have_spent(rate, micros);
        claimed.add(rate, micros);
        // A clock that jumps back has some of its periods twice.
        if is_over && !self.jumped {
            self.bad(format!("[29] {id} is claimed over the rate {rate} of its group {name}"));
        }
    }

    /// No group that was served goes before one that was due by then, and none borrows while anything else is due. Judged are jobs that have not run
    /// before, because the checker does not know who has kept a seat.
    pub(super) fn check_turns(&mut self, did: &Did, before: &View, micros: u64) {
        let Did::Claim { claims, aged: false, .. } = did else { return };
        if !self.has_ageing || self.jumped || self.fell || self.group_limit == 0 || claims.is_empty() {
            return;
        }
        let waiting = self.waiting(claims, before, micros);
        let mut wrong = None;
        for claim in claims.iter().filter(|claim| !self.expected.groups.known.contains(&claim.id)) {
            let Some(name) = group_of(&claim.record) else { continue };
            let own = before.jobs.get(&claim.id);
            let (borrows, turn) = (self.running(name) >= self.group_limit, self.earliest_turn(claim, own, name));
            let at = turn + shift(&claim.record);
            let is_passed = |&&(_, other, latest): &&(_, Option<&str>, u64)| {
                other != Some(name) && (borrows || other.is_some() && latest < at)
            };
            if let Some((id, ..)) = waiting.iter().find(is_passed) {
                let how = if borrows { "borrows" } else { "is served again" };
                wrong.get_or_insert(format!("[4] {name} {how} with {}, though {id} was due before", claim.id));
            }
        }
        if let Some(wrong) = wrong {
            self.bad(wrong);
        }
    }

    /// A claim in a topic that drains may meet jobs that are due too late for it. They go back to their due times, and their groups lose the turn.
    pub(super) fn note_lost_turns(&mut self, before: &View, micros: u64) {
        let Self { expected, .. } = self;
        let Some(drain) = expected.gate.state.drain.as_ref() else { return };
        if expected.gate.pause(Timestamp::floor_micros(micros)).is_some() {
            return;
        }
        let is_late = |job: &&JobView| job.state == State::Delayed && job.at.is_some_and(|at| at > drain.since);
        for name in before.jobs.values().filter(is_late).filter_map(|job| group_of(&job.record)) {
            expected.groups.served.remove(name);
        }
    }

    /// Where the job of the claim stood at the earliest, in µs.
    fn earliest_turn(&self, claim: &Claim, job: Option<&JobView>, name: &str) -> u64 {
        let due = claim.token.due.as_millis() * 1_000;
        let put =
            job.and_then(|job| self.expected.put.get(&version(&job.record))).map_or(u64::MAX, |put| put * 1_000 + 999);
        let served = self.expected.groups.served.get(name).copied();
        served.filter(|served| put < *served).map_or(due, |served| due.max(served))
    }

    /// The due jobs that this claim has left and that nothing holds back, each with its group and where it stands at the latest, with its
    /// priority. Of a group it is the first job, and only of one no job of which has run.
    fn waiting<'a>(&self, claims: &[Claim], before: &'a View, micros: u64) -> Vec<(&'a JobId, Option<&'a str>, u64)> {
        let (clock, groups, gate) = (Timestamp::floor_micros(micros), &self.expected.groups, &self.expected.gate);
        let mut waiting = Vec::new();
        let mut by_name: BTreeMap<&str, Option<(Timestamp, u64, &JobId)>> = BTreeMap::new();
        for (id, job) in &before.jobs {
            let entry = job.at.filter(|_| job.state == State::Delayed && !groups.known.contains(id));
            let is_open = |due: &Timestamp| *due <= clock && gate.refuses(Some(*due), clock).is_none();
            match (job.record.group(), job.state) {
                (Some((order, name)), State::Delayed | State::Running | State::Unacked | State::Dead) => {
                    let entry = entry.map(|due| (due, order, id));
                    let first = by_name.entry(name).or_insert(entry);
                    *first = first.zip(entry).map(|(first, entry)| first.min(entry));
                }
                (None, State::Delayed) if job.at.as_ref().is_some_and(is_open) => waiting.push((id, None, u64::MAX)),
                _ => {}
            }
        }
        waiting.retain(|(id, ..)| !claims.iter().any(|claim| claim.id == **id));
        for (name, first) in by_name {
            let Some((due, _, id)) = first else { continue };
            let is_claimed = claims.iter().any(|claim| group_of(&claim.record) == Some(name));
            let is_open = due <= clock && gate.refuses(Some(due), clock).is_none() && !groups.is_paused(name, clock);
            if is_claimed || !is_open || gate.state.group_rate().is_some() {
                continue;
            }
            let paused = groups.paused.get(name).map_or(0, |until| until.as_millis() * 1_000);
            let touched = groups.touched.get(name).copied().unwrap_or_default().max(groups.all_touched).max(paused);
            waiting.push((id, Some(name), (due.as_millis() * 1_000).max(touched) + shift(&before.jobs[id].record)));
        }
        waiting
    }
}

/// By how much later the priority of a job lets it stand, in µs.
fn shift(record: &Record) -> u64 {
    AGEING.as_micros() as u64 * record.priority() as u64
}
