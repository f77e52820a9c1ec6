//! Filters and pages of jobs.

use serde::Serialize;

use super::job::JobSummary;
use crate::job::State;
use crate::store::Cursor;
use crate::time::Timestamp;

/// The most jobs in a page.
pub const MAX_JOBS: usize = 100;

/// Which jobs of one state a page shows. A condition that is `None` holds for every job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// The id begins with this text.
    pub id_prefix: Option<String>,
    /// A header has this name and this value.
    pub header: Option<(String, String)>,
    /// The last error has this text in it.
    pub error: Option<String>,
    /// It has failed this often at least.
    pub attempts: Option<u16>,
    /// Its [time](JobSummary::at) is this or later. The read begins there, so it is cheap. It says nothing of RUNNING jobs.
    pub from: Option<Timestamp>,
    /// Its [time](JobSummary::at) is earlier. The read ends there. It says nothing of RUNNING jobs.
    pub until: Option<Timestamp>,
}

/// A page of jobs that a filter lets through. It may be empty and not the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Jobs))]
#[non_exhaustive]
pub struct JobsPage {
    /// The jobs, in order of their time, then of their id.
    pub jobs: Vec<JobSummary>,
    /// How many jobs were looked at.
    pub looked_at: usize,
    /// The time of the last job that was looked at, in ms: how far the page goes.
    pub looked_until: Option<u64>,
    /// Where the next page begins; `None` means that this was the last. [`Cursor`] has the form in which it is kept.
    #[serde(serialize_with = "cursor")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<(u64, String)>))]
    pub next: Option<Cursor>,
}

#[expect(clippy::ref_option, reason = "the form that serde needs")]
fn cursor<S: serde::Serializer>(next: &Option<Cursor>, to: S) -> Result<S::Ok, S::Error> {
    next.as_ref().map(|next| (next.at.as_millis(), &next.id)).serialize(to)
}

impl JobFilter {
    /// Whether it lets a job through.
    pub fn matches(&self, job: &JobSummary) -> bool {
        let Self { id_prefix, header, error, attempts, from, until } = self;
        id_prefix.as_ref().is_none_or(|prefix| job.id.as_str().starts_with(prefix.as_str()))
            && header.as_ref().is_none_or(|header| job.headers.contains(header))
            && error.as_ref().is_none_or(|text| job.error.as_ref().is_some_and(|error| error.contains(text.as_str())))
            && attempts.is_none_or(|attempts| attempts <= job.attempts)
            && from.is_none_or(|from| job.at.is_none_or(|at| from <= at))
            && until.is_none_or(|until| job.at.is_none_or(|at| at < until))
    }

    /// Where the first page begins.
    pub(super) fn start(&self, state: State) -> Option<Cursor> {
        let at = self.from.filter(|_| state != State::Running)?.as_millis().checked_sub(1)?;
        // No id sorts behind this one, except those that begin with it; the filter leaves them out.
        Some(Cursor { at: Timestamp::from_millis(at), id: "\u{10ffff}".into() })
    }

    /// Whether no later job of the list can be let through.
    pub(super) fn is_past(&self, job: &JobSummary) -> bool {
        matches!((self.until, job.at), (Some(until), Some(at)) if until <= at)
    }
}
