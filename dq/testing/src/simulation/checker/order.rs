//! Which of the due jobs a claim takes first (rule 4).

use std::time::Duration;

use super::record::{Checker, Did};
use dq::job::{JobId, Priority, Record, State};
use dq::testing::seam::View;
use dq::time::Timestamp;

/// The ageing of the topics of dq's own workload.
pub(in crate::simulation) const AGEING: Duration = Duration::from_secs(3);

impl Checker {
    /// A job of a group was claimed, and its row is there.
    pub(super) fn check_group(&mut self, id: &JobId, name: &str, micros: u64) {
        // The pause is over for the store once a claim has seen its end, also if the clock jumps back then.
        let paused = self.expected.gate.groups.get(name).filter(|until| **until > Timestamp::floor_micros(micros));
        if let Some(until) = paused.filter(|_| !self.jumped) {
            let text = format!("[29] {id} is claimed, though its group {name} is paused until {until}");
            self.bad(text);
        }
        let is_of = |run: &&u64| self.runs[*run].group.as_deref() == Some(name) && !self.runs[*run].aged;
        let running = self.expected.rows.values().filter(is_of).count();
        if running > self.group_limit {
            let text = format!("[4] with {id} {running} jobs of {name} are RUNNING, and {} may be", self.group_limit);
            self.bad(text);
        }
    }

    /// A claim takes the jobs in the order of their due times as their priorities shift them, and leaves none that goes before. A job of a group may
    /// stand at the turn of that, which the checker does not know.
    pub(super) fn check_order(&mut self, did: &Did, before: &View, micros: u64) {
        let Did::Claim { claims, aged: false, .. } = did else { return };
        if !self.has_ageing {
            return;
        }
        let rank = |record: &Record, due: Timestamp| -> (Timestamp, Priority) {
            let priority = record.priority();
            (due.after(AGEING * priority as u32), priority)
        };
        let mut last: Option<((Timestamp, Priority), &JobId)> = None;
        let mut wrong = Vec::new();
        for claim in claims.iter().filter(|claim| claim.record.group().is_none()) {
            let at = rank(&claim.record, claim.token.due);
            wrong.extend(
                last.filter(|(before, _)| at < *before).map(|(was, id)| (was, id.clone(), at, claim.id.clone())),
            );
            last = Some((at, &claim.id));
        }
        let (clock, reach) = (Timestamp::floor_micros(micros), Timestamp::floor_micros(micros + self.lookahead));
        for (id, job) in before.jobs.iter().filter(|(_, job)| job.state == State::Delayed) {
            let Some(due) = job.at.filter(|due| *due <= reach) else { continue };
            // Of a group only the first job goes, and none of a full one.
            let is_left = job.record.group().is_none() && !claims.iter().any(|claim| claim.id == *id);
            if is_left && self.expected.gate.refuses(Some(due), clock).is_none() {
                let at = rank(&job.record, due);
                wrong.extend(
                    last.filter(|(was, _)| at < *was).map(|(was, claimed)| (was, claimed.clone(), at, id.clone())),
                );
            }
        }
        if let Some((was, claimed, at, first)) = wrong.first() {
            self.bad(format!("[4] {claimed} {was:?} is claimed before {first} {at:?}, which goes first"));
        }
    }
}
