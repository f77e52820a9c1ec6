//! The limits of what is asked (rule 5), and those of the format for each record that comes in. A store checks them before it does
//! anything.

use super::error::limited;
use super::step::MOST_JOBS;
use super::{
    Batch, ChangeKind, FOLLOW_UP_BYTES, JobCopy, MOST_BUCKETS, MOST_ENTRIES, MOST_FOLLOW_UPS, MOST_GROUPS,
    MOST_MEMBERS_AT_ONCE, MOST_MINUTES, MOST_NODES, MOST_READ, MOST_WAITED_FOR, Query, Request, SetVerb, SetsRequest,
    StoreError,
};
use crate::job::limits::{FENCE, OverLimit, SCHEDULE_NAME, TIME};
use crate::job::{JobId, Metadata, Record};

impl Request {
    /// Refuses a step over its limit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let (what, size) = match self {
            Self::Settle(request) if request.outcomes.iter().any(|outcome| outcome.change.follow_ups().is_some()) => {
                for follow_ups in request.outcomes.iter().filter_map(|outcome| outcome.change.follow_ups()) {
                    limited("the number of follow-ups of an outcome", follow_ups.len(), MOST_FOLLOW_UPS)?;
                    limited("the size of the follow-ups of an outcome in bytes", follow_ups.size(), FOLLOW_UP_BYTES)?;
                }
                ("the number of outcomes and of the jobs of ticks", request.jobs())
            }
            Self::Transfer(request) => ("the limit of a transfer", request.limit),
            Self::Settle(request) => ("the number of outcomes and of the jobs of ticks", request.jobs()),
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
        limited(what, size, MOST_JOBS)
    }
}

/// Checks a job that comes in, by the limits of the format.
fn check_job(id: &JobId, record: &Record) -> Result<(), OverLimit> {
    if let Some(name) = id.schedule_name() {
        SCHEDULE_NAME.check(name.len() as u64)?;
    }
    record.check_new()
}

impl JobCopy {
    /// Checks a copy by the limits of the format.
    ///
    /// # Errors
    /// [`OverLimit`].
    pub fn check(&self) -> Result<(), OverLimit> {
        check_job(&self.id, &self.record)?;
        TIME.check(self.at.as_millis())?;
        self.taken_until.map_or(Ok(()), |until| TIME.check(until.as_millis()))
    }
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
                limited("the number of members", change.what.len(), MOST_MEMBERS_AT_ONCE)?;
                ("the number of members", change.what.len())
            }
            // The step that wrote it has checked it.
            Self::Relay { .. } => return Ok(()),
        };
        limited(what, size, MOST_JOBS)?;
        match self {
            Self::Add { batch } => batch.items.iter().try_for_each(|job| check_job(&job.id, &job.record))?,
            Self::Change { batch } => batch.items.iter().try_for_each(|change| match &change.what {
                ChangeKind::Update(record) => check_job(&change.id, record),
                ChangeKind::Options(options) => options.of(Metadata::default()).check_new(),
                ChangeKind::Reschedule(_) | ChangeKind::ExtendBy(_) | ChangeKind::RunNow => Ok(()),
            })?,
            Self::Import { import, .. } => {
                FENCE.check(import.fence.0)?;
                import.copies.iter().try_for_each(JobCopy::check)?;
            }
            Self::JobSet { change, .. } => match &change.what {
                SetVerb::Add(_, jobs) => jobs.iter().try_for_each(|(_, job)| check_job(&job.id, &job.record))?,
                SetVerb::Close(then) => check_job(&then.id, &then.record)?,
                SetVerb::End(..) => {}
            },
            Self::Command { .. } | Self::Set { .. } | Self::Relay { .. } => {}
        }
        Ok(())
    }
}

impl Query<'_> {
    /// Refuses a query over its limit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let (what, size, limit) = match self {
            Self::Get { ids, .. } => ("the number of ids", ids.len(), MOST_JOBS),
            Self::Page { request, .. } => ("the limit of a page", request.limit, MOST_JOBS),
            Self::Relay { request, .. } => ("the number of entries", request.limit, MOST_ENTRIES),
            Self::FollowUps { limit, .. } => ("the number of entries", *limit, MOST_READ),
            Self::Outbox { limit, .. } | Self::Schedules { limit, .. } => ("the limit of a page", *limit, MOST_JOBS),
            Self::JobSets { request: SetsRequest::One(_, most), .. } => {
                ("the number of members", *most, MOST_WAITED_FOR)
            }
            Self::JobSets { request: SetsRequest::Page { limit, .. }, .. } => {
                ("the limit of a page", *limit, MOST_JOBS)
            }
            Self::Export { request, .. } => ("the limit of an export", request.limit, MOST_JOBS),
            Self::Overview { nodes, .. } => ("the number of nodes", *nodes, MOST_NODES),
            Self::Nodes { request, .. } => ("the number of nodes", request.limit, MOST_NODES),
            Self::Groups { request, .. } => ("the number of groups", request.limit, MOST_GROUPS),
            Self::DueCounts { times, .. } => ("the number of times", times.len(), MOST_BUCKETS + 1),
            Self::Statistics { from, to, .. } => {
                let minutes = usize::try_from(to.saturating_sub(*from)).unwrap_or(usize::MAX).saturating_add(1);
                ("the number of minutes", minutes, MOST_MINUTES as usize)
            }
            _ => return Ok(()),
        };
        limited(what, size, limit)
    }
}
