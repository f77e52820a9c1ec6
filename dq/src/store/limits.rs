//! The limits of requests (rule 5), and the limits of the format for all that comes in. A store checks them before it does anything.
//!
//! Every door asks the same functions: `NewJob::check` where any caller adds a job, [`JobCopy::check`] where one is imported, and
//! `check_job` for what both have. What is over a limit is refused. Only the target of an outbox passes over such a job and takes the others
//! (rule 18): refused as a whole, the entry would hold up all that come after it.

use super::error::limited;
use super::follow_up::counted;
use super::step::{Change, MAX_JOBS, Outcome, Settle};
use super::{
    Batch, ChangeKind, Due, FOLLOW_UP_BYTES, Import, JobCopy, MAX_BUCKETS, MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_GROUPS,
    MAX_MEMBERS, MAX_MEMBERS_AT_ONCE, MAX_MINUTES, MAX_NODES, MAX_READ, MAX_WAITED_FOR, NewJob, OnDuplicate, Query,
    Request, SetChange, SetVerb, SetsRequest, StoreError,
};
use crate::job::limits::{DELAY, DUE, FENCE, Limit, ORDER, OverLimit, POSITION, TIME, UNIQUE, WAITING};
use crate::job::{InvalidRecord, JobId, Metadata, Record, State};
use crate::schedule::checked;
use crate::time::{Timestamp, millis_ceil};

impl Request {
    /// Refuses a step over its limit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let (what, size) = match self {
            Self::Transfer(request) => ("the limit of a transfer", request.limit),
            Self::Settle(request) => {
                request.check_new_jobs()?;
                ("the number of outcomes and of the jobs of ticks", request.jobs())
            }
            Self::Isolate(request) => ("the number of runs to isolate", request.runs.len()),
            Self::Reconcile(request) => ("the limit of a reconcile", request.limit),
            Self::Reclaim(request) => ("the limit of a reclaim", request.limit),
            Self::Sweep(request) => ("the limit of a sweep", request.limit),
            Self::Publish(request) => ("the limit of a publish", request.limit),
            Self::Audit(request) => ("the limit of an audit", request.limit),
            Self::Recover(request) => ("the number of jobs to recover", request.ids.len()),
            Self::Renew(_) | Self::Exhaust(_) | Self::Note(_) | Self::Release(_) | Self::Wake(_) | Self::Scan(_) => {
                return Ok(());
            }
        };
        limited(what, size, MAX_JOBS)
    }
}

impl Settle {
    /// Checks the jobs that come with outcomes: follow-ups, and the jobs of ticks.
    fn check_new_jobs(&self) -> Result<(), StoreError> {
        for Outcome { change, .. } in &self.outcomes {
            if let Change::Tick(tick) = change {
                tick.jobs.iter().try_for_each(|job| check_job(&job.id, &job.record))?;
            }
            let Some(follow_ups) = change.follow_ups() else { continue };
            limited("the number of follow-ups of an outcome", follow_ups.len(), MAX_FOLLOW_UPS)?;
            limited("the size of the follow-ups of an outcome in bytes", follow_ups.size(), FOLLOW_UP_BYTES)?;
            follow_ups.batches().try_for_each(|batch| batch.check())?;
        }
        Ok(())
    }
}

/// Checks a job that comes in, by the limits of the format. One that this version of dq cannot read may come.
fn check_job(id: &JobId, record: &Record) -> Result<(), OverLimit> {
    if id.schedule_name().is_some()
        && let Err(InvalidRecord::OverLimit(over)) = checked(id, record)
    {
        return Err(over);
    }
    record.check_new()
}

impl NewJob {
    /// Checks a new job by the limits of the format.
    ///
    /// # Errors
    /// [`OverLimit`].
    pub fn check(&self) -> Result<(), OverLimit> {
        check_job(&self.id, &self.record)?;
        match self.due {
            Due::After(delay) | Due::Usual(delay) => DELAY.check(millis_ceil(delay))?,
            Due::At(at) => DUE.check(at.as_millis())?,
        }
        let at_most = match self.on_duplicate {
            OnDuplicate::Extend { at_most } => at_most,
            OnDuplicate::Reject | OnDuplicate::Keep | OnDuplicate::Replace => None,
        };
        let most = self.max_waiting.map(|most| [most.topic, most.group]).unwrap_or_default();
        most.into_iter().flatten().try_for_each(|most| WAITING.check(most as u64))?;
        let periods = [(DELAY, self.expires_after), (DELAY, at_most), (UNIQUE, self.unique_for)];
        let mut periods = periods.into_iter().filter_map(|(limit, period)| Some((limit, period?)));
        periods.try_for_each(|(limit, period)| limit.check(millis_ceil(period)))
    }
}

impl SetChange {
    /// Checks the jobs of a change by the limits of the format. The last job of a set gets headers with the counts.
    pub(super) fn check(&self) -> Result<(), OverLimit> {
        match &self.what {
            SetVerb::Add(_, jobs) => jobs.iter().try_for_each(|(_, job)| job.check()),
            SetVerb::Close(then) => {
                let metadata = then.record.metadata().unwrap_or_default();
                then.check()?;
                counted(metadata, [MAX_MEMBERS; 3]).check_new()
            }
            SetVerb::End(..) => Ok(()),
        }
    }
}

impl JobCopy {
    /// Checks a copy by the limits of the format.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn check(&self) -> Result<(), StoreError> {
        if self.state == State::Running || self.is_broadcast && self.state != State::Delayed {
            let reason = "a copy is DELAYED, UNACKED, DEAD or DONE, and a copy of a broadcast is DELAYED".into();
            return Err(StoreError::Unsupported { operation: "import", reason });
        }
        check_job(&self.id, &self.record)?;
        let times = [self.at].into_iter().chain(self.taken_until);
        Ok(times.map(Timestamp::as_millis).try_for_each(|at| TIME.check(at))?)
    }
}

/// How far a number that follows the clock may be ahead of the store's clock when it comes in, in µs. What follows it would not follow the
/// clock for as long.
pub const MAX_AHEAD: u64 = 24 * 3_600 * 1_000_000;

/// Refuses a number that is further ahead of a store's clock, in µs.
///
/// # Errors
/// [`StoreError::AheadOfClock`].
pub fn check_ahead(limit: Limit, number: u64, clock: u64) -> Result<(), StoreError> {
    if number > clock.saturating_add(MAX_AHEAD) {
        return Err(StoreError::AheadOfClock { what: limit.what, number, clock });
    }
    Ok(())
}

impl Import {
    /// Checks the numbers that follow the clock by the store's clock, in µs. A repeat is none, so a store does this behind that.
    pub(super) fn check_ahead(&self, clock: u64) -> Result<(), StoreError> {
        check_ahead(FENCE, self.fence.0, clock)?;
        check_ahead(ORDER, highest_order(&self.copies), clock)
    }
}

/// The highest order in a group that a record of these copies names. A schedule is in no group.
pub(super) fn highest_order(copies: &[JobCopy]) -> u64 {
    let of_groups = copies.iter().filter(|copy| copy.id.schedule_name().is_none());
    of_groups.filter_map(|copy| copy.record.group()).map(|(order, _)| order).max().unwrap_or_default()
}

impl Batch {
    /// Refuses a batch over its limit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let (what, size) = match self {
            Self::Add { batch } => ("the number of jobs to add", batch.items.len()),
            Self::Command { batch } => ("the number of commands", batch.items.len()),
            Self::Change { batch } => ("the number of changes", batch.items.len()),
            Self::Import { import, .. } => ("the number of copies to import", import.copies.len()),
            Self::Set { set, .. } => return set.check(),
            Self::JobSet { change, .. } => {
                limited("the number of members", change.what.len(), MAX_MEMBERS_AT_ONCE)?;
                ("the number of members", change.what.len())
            }
            // The step passes over a job that is over a limit.
            Self::Relay { entry } => return Ok(POSITION.check_kept(entry.position.at)?),
        };
        limited(what, size, MAX_JOBS)?;
        match self {
            Self::Add { batch } => batch.items.iter().try_for_each(NewJob::check)?,
            Self::Change { batch } => batch.items.iter().try_for_each(|change| match &change.what {
                ChangeKind::Update(record) => check_job(&change.id, record),
                ChangeKind::Options(options) => options.of(Metadata::default()).check_new(),
                ChangeKind::Reschedule(_) | ChangeKind::ExtendBy(_) | ChangeKind::RunNow => Ok(()),
            })?,
            Self::Import { import, .. } => {
                FENCE.check(import.fence.0)?;
                import.copies.iter().try_for_each(JobCopy::check)?;
            }
            Self::JobSet { change, .. } => change.check()?,
            Self::Command { .. } | Self::Set { .. } | Self::Relay { .. } => {}
        }
        Ok(())
    }
}

impl Query<'_> {
    /// Refuses a query over its limit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let (what, size, limit) = match self {
            Self::Get { ids, .. } => ("the number of ids", ids.len(), MAX_JOBS),
            Self::Page { request, .. } => ("the limit of a page", request.limit, MAX_JOBS),
            Self::Relay { request, .. } => ("the number of entries", request.limit, MAX_ENTRIES),
            Self::FollowUps { limit, .. } => ("the number of entries", *limit, MAX_READ),
            Self::Outbox { limit, .. } | Self::Schedules { limit, .. } => ("the limit of a page", *limit, MAX_JOBS),
            Self::JobSets { request: SetsRequest::One(_, most), .. } => {
                ("the number of members", *most, MAX_WAITED_FOR)
            }
            Self::JobSets { request: SetsRequest::Page { limit, .. }, .. } => ("the limit of a page", *limit, MAX_JOBS),
            Self::Export { request, .. } => ("the limit of an export", request.limit, MAX_JOBS),
            Self::Overview { nodes, .. } => ("the number of nodes", *nodes, MAX_NODES),
            Self::Nodes { request, .. } => ("the number of nodes", request.limit, MAX_NODES),
            Self::Groups { request, .. } => ("the number of groups", request.limit, MAX_GROUPS),
            Self::DueCounts { times, .. } => ("the number of times", times.len(), MAX_BUCKETS + 1),
            Self::Statistics { from, to, .. } => {
                let minutes = usize::try_from(to.saturating_sub(*from)).unwrap_or(usize::MAX).saturating_add(1);
                ("the number of minutes", minutes, MAX_MINUTES as usize)
            }
            _ => return Ok(()),
        };
        limited(what, size, limit)
    }
}
