//! Which of the due jobs a claim takes first (rule 4).

use std::time::Duration;

use super::record::{Checker, Did};
use dq::job::{JobId, Priority, Record, State};
use dq::schedule::schedule_name;
use dq::store::step::Claim;
use dq::testing::seam::View;
use dq::time::Timestamp;

/// The ageing of the topics of dq's own workload.
pub(in crate::simulation) const AGEING: Duration = Duration::from_secs(3);

impl Checker {
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
        // A tick may go before all jobs.
        let is_ranked = |claim: &&Claim| claim.record.group().is_none() && schedule_name(&claim.id).is_none();
        for claim in claims.iter().filter(is_ranked) {
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
