//! Pages of RUNNING jobs.
//!
//! A store leads on from where its page ends, not from any job in it. So a page of the store with more jobs than there is room for is
//! read again, with a limit that fits.

use super::filter::{JobFilter, JobsPage, MAX_JOBS};
use super::job::JobSummary;
use crate::job::State;
use crate::provider::{CallError, TopicProvider};
use crate::store::step::{DEFAULT_BYTES, MAX_JOBS as MAX_RECORDS};
use crate::store::{Cursor, PageRequest};

/// How many pages of the store one read takes at most. Each costs two commands, and a bulk change needs some beside them.
const MAX_READS: usize = 8;

pub(super) async fn running(
    provider: &TopicProvider,
    filter: &JobFilter,
    after: Option<Cursor>,
) -> Result<JobsPage, CallError> {
    let mut page = JobsPage { jobs: Vec::new(), looked_at: 0, looked_until: None, next: after };
    let mut must_fit = *filter == JobFilter::default();
    for _ in 0..MAX_READS {
        let room = MAX_JOBS - page.jobs.len();
        let limit = if must_fit { room } else { MAX_RECORDS };
        let request = PageRequest { state: State::Running, after: page.next.clone(), limit, bytes: DEFAULT_BYTES };
        let read = provider.page(request).await?;
        let looked_at = read.jobs.len();
        let taken: Vec<_> = read.jobs.into_iter().map(JobSummary::new).filter(|job| filter.matches(job)).collect();
        if taken.len() > room {
            must_fit = true;
            continue;
        }
        page.looked_at += looked_at;
        page.jobs.extend(taken);
        page.next = read.next;
        if page.next.is_none() || page.jobs.len() == MAX_JOBS {
            break;
        }
    }
    Ok(page)
}
