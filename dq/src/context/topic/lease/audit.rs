//! Audit: jobs whose place another program removed go back (rule 2).
//!
//! When a scan of the watcher counts more records than places, the node looks for the jobs that have a record and no place, page
//! by page. It puts back those that are still lost a minute later: by then a living node whose lease was removed has renewed
//! it, so its rows count again.

use std::time::Duration;

use super::Lease;
use crate::context::topic::moment::Moment;
use crate::job::JobId;
use crate::provider::MAX_SHOWN;
use crate::store::RequestKind;
use crate::store::step::{Audit, Audited, Recover, Recovered, RowCursor};

/// For how long a job must be lost before it is put back.
const GRACE: Duration = Duration::from_secs(60);
/// How many lost jobs one round of the audit remembers. The next round finds the others.
const MAX_LOST: usize = 100_000;
/// For how long an audit that put nothing back is the last one, unless a scan counts a larger difference.
const LEFT_FOR: Duration = Duration::from_secs(3_600);

/// What the audit does next.
#[derive(Debug, Default)]
pub(super) enum Audits {
    /// Nothing: as many records as places were counted.
    #[default]
    Idle,
    /// Look for lost jobs from here on.
    Looking { after: Option<RowCursor>, lost: Vec<JobId> },
    /// Put these back from this time on, if the next scan still counts a difference.
    Found { lost: Vec<JobId>, from: Duration },
    /// Put these back. `difference` was counted; `puts_back` says whether any went back.
    Recovering { lost: Vec<JobId>, difference: usize, puts_back: bool },
    /// Nothing until then, unless more is counted: the store put none of these back, as a job with two records.
    Left { difference: usize, until: Duration },
}

impl Audits {
    /// The kind of the next request of the audit.
    pub(super) const fn next(&self) -> Option<RequestKind> {
        match self {
            Self::Looking { .. } => Some(RequestKind::Audit),
            Self::Recovering { .. } => Some(RequestKind::Recover),
            Self::Idle | Self::Found { .. } | Self::Left { .. } => None,
        }
    }

    /// A scan has counted these.
    pub(super) fn counted(&mut self, records: usize, places: usize, now: Duration) {
        let counted = records.saturating_sub(places);
        *self = match std::mem::take(self) {
            _ if counted == 0 => Self::Idle,
            Self::Left { difference, until } if counted <= difference && now < until => {
                Self::Left { difference: counted, until }
            }
            Self::Idle | Self::Left { .. } => Self::Looking { after: None, lost: Vec::new() },
            Self::Found { lost, from } if now >= from => {
                Self::Recovering { lost, difference: counted, puts_back: false }
            }
            other => other,
        };
    }

    /// A page was read.
    fn found(&mut self, page: Audited, now: Duration) {
        let Self::Looking { after, lost } = self else { return };
        lost.extend(page.lost);
        *after = page.next;
        if after.is_none() || lost.len() >= MAX_LOST {
            let lost = std::mem::take(lost);
            *self = if lost.is_empty() { Self::Idle } else { Self::Found { lost, from: now + GRACE } };
        }
    }

    /// The first of these jobs were looked at.
    fn examined(&mut self, answer: &Recovered, now: Duration) {
        let Self::Recovering { lost, difference, puts_back } = self else { return };
        *puts_back |= !answer.recovered.is_empty();
        lost.drain(..answer.examined.min(lost.len()));
        if lost.is_empty() || answer.examined == 0 {
            let left = Self::Left { difference: *difference, until: now + LEFT_FOR };
            *self = if *puts_back { Self::Idle } else { left };
        }
    }
}

impl Lease {
    /// Looks for lost jobs, or puts back those that were found, one bounded step at a time.
    pub(crate) fn audit(&mut self, moment: &mut Moment) -> Option<Duration> {
        let kind = self.audits.next().filter(|_| self.agrees())?;
        if !moment.can_send(kind) {
            return moment.pause_end(kind);
        }
        let (limit, bytes) = moment.flight.limits(kind);
        match &self.audits {
            Audits::Recovering { lost, .. } => {
                moment.send(Recover { ids: lost.iter().take(limit).cloned().collect(), bytes });
            }
            Audits::Looking { after, .. } => moment.send(Audit { after: after.clone(), limit, bytes }),
            Audits::Idle | Audits::Found { .. } | Audits::Left { .. } => {}
        }
        None
    }

    pub(crate) fn on_audited(&mut self, page: Audited, now: Duration) {
        if let Some(first) = page.lost.first() {
            tracing::warn!(topic = %self.parts.key.topic, jobs = page.lost.len(), %first, "jobs have lost their place: another program removed or evicted keys of dq; the audit puts them back");
        }
        self.audits.found(page, now);
    }

    pub(crate) fn on_recovered(&mut self, answer: &Recovered, now: Duration) {
        if !answer.recovered.is_empty() {
            let jobs = answer.recovered.len();
            let ids: Vec<_> = answer.recovered.iter().take(MAX_SHOWN).map(JobId::as_str).collect();
            tracing::error!(topic = %self.parts.key.topic, jobs, ?ids, "put back jobs that had lost their place: parked ones are UNACKED, others DEAD with the cause `place lost`; requeue those that should run");
            self.parts.stats.count.place_lost.add(jobs);
        }
        self.audits.examined(answer, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[&str], next: Option<&str>) -> Audited {
        let id = |text: &&str| JobId::new(*text).unwrap();
        Audited { lost: ids.iter().map(id).collect(), next: next.map(|text| RowCursor::behind(&id(&text))) }
    }

    /// The store looked at one job, and put these back.
    fn recovered(ids: &[&str]) -> Recovered {
        Recovered { recovered: page(ids, None).lost, examined: 1 }
    }

    #[test]
    fn only_jobs_that_stay_lost_for_the_grace_are_put_back() {
        let mut audits = Audits::default();
        audits.counted(5, 5, Duration::ZERO);
        assert!(matches!(audits, Audits::Idle));
        audits.counted(5, 3, Duration::ZERO);
        audits.found(page(&["a"], Some("x")), Duration::ZERO);
        assert!(matches!(&audits, Audits::Looking { after: Some(_), .. }), "the pages go on: {audits:?}");
        audits.found(page(&["b"], None), Duration::ZERO);
        audits.counted(5, 3, GRACE / 2);
        assert!(matches!(&audits, Audits::Found { lost, .. } if lost.len() == 2), "{audits:?}");
        audits.counted(5, 3, GRACE);
        audits.examined(&recovered(&["a"]), GRACE);
        assert!(matches!(&audits, Audits::Recovering { lost, .. } if lost.len() == 1), "{audits:?}");
        audits.examined(&recovered(&[]), GRACE);
        assert!(matches!(audits, Audits::Idle));
    }

    #[test]
    fn a_difference_that_the_store_leaves_starts_no_other_audit_for_an_hour_unless_it_grows() {
        let left = || {
            let mut audits = Audits::default();
            audits.counted(5, 3, Duration::ZERO);
            audits.found(page(&["a"], None), Duration::ZERO);
            audits.counted(5, 3, GRACE);
            audits.examined(&recovered(&[]), GRACE);
            audits
        };
        let looks_after = |counts: &[(usize, Duration)]| {
            let mut audits = left();
            counts.iter().for_each(|(records, now)| audits.counted(*records, 3, *now));
            matches!(audits, Audits::Looking { .. })
        };
        assert!(!looks_after(&[(5, GRACE), (5, LEFT_FOR)]));
        assert!(looks_after(&[(5, GRACE + LEFT_FOR)]));
        assert!(looks_after(&[(6, GRACE)]));
        assert!(looks_after(&[(4, GRACE), (5, GRACE)]), "one has gone, and another one came");
        assert!(looks_after(&[(3, GRACE), (4, GRACE)]));
    }

    #[test]
    fn a_difference_that_goes_by_itself_is_forgotten() {
        let mut audits = Audits::default();
        audits.counted(5, 4, Duration::ZERO);
        audits.found(page(&["a"], None), Duration::ZERO);
        audits.counted(5, 5, GRACE);
        audits.counted(6, 5, GRACE);
        assert!(matches!(&audits, Audits::Looking { lost, .. } if lost.is_empty()), "it looks again: {audits:?}");
    }
}
