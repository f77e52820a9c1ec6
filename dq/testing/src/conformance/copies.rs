//! Exports of the topic and imports into it.

use std::collections::HashSet;

use super::producer::{answered, with_metadata};
use super::topic::Topic;
use dq::job::{Fence, Metadata, State};
use dq::store::step::DEFAULT_BYTES;
use dq::store::{Exported, Import, ImportOutcome, JobCopy, NewJob, OnDuplicate, PageRequest, StoreError};
use dq::time::Timestamp;

/// A copy whose payload is its id, without crashes.
pub(super) fn copy(name: &str, state: State, at: Timestamp) -> JobCopy {
    copy_with(name, state, at, &Metadata::default())
}

/// A copy with these metadata.
pub(super) fn copy_with(name: &str, state: State, at: Timestamp, metadata: &Metadata) -> JobCopy {
    copy_of(&with_metadata(name, metadata), state, at)
}

/// A copy of this job.
pub(super) fn copy_of(job: &NewJob, state: State, at: Timestamp) -> JobCopy {
    JobCopy::new(job.id.clone(), job.record.clone(), state, at)
}

/// A copy of a broadcast whose payload is its id.
pub(super) fn copy_of_broadcast(name: &str, at: Timestamp) -> JobCopy {
    JobCopy { is_broadcast: true, ..copy(name, State::Delayed, at) }
}

/// An import of these copies, whose fence changes nothing.
pub(super) const fn import_of(copies: Vec<JobCopy>, on_duplicate: OnDuplicate) -> Import {
    Import { copies, on_duplicate, fence: Fence(0) }
}

impl Topic {
    /// A page of an export, which has no more jobs than it may. A job that runs may have two copies.
    pub async fn export_page(&self, request: PageRequest, broadcasts: bool) -> Exported {
        let limit = request.limit;
        let page = self.store.export(&self.key, request, broadcasts).await.expect("export is answered");
        let jobs: HashSet<_> = page.copies.iter().map(|copy| &copy.id).collect();
        assert!(jobs.len() <= limit, "a page of {} jobs over its limit of {limit}", jobs.len());
        page
    }

    /// All copies of a part, read in pages of `limit` jobs and `bytes`.
    pub async fn export_part(&self, part: (bool, State), limit: usize, bytes: usize) -> Vec<JobCopy> {
        let (broadcasts, state) = part;
        let mut request = PageRequest { state, after: None, limit, bytes };
        let mut all = Vec::new();
        loop {
            let page = self.export_page(request.clone(), broadcasts).await;
            all.extend(page.copies);
            assert!(page.next.is_none() || page.next != request.after, "a page of {part:?} leads to itself");
            request.after = page.next;
            if request.after.is_none() {
                return all;
            }
        }
    }

    /// The whole export, in the order of its parts.
    pub async fn export(&self) -> Vec<JobCopy> {
        let mut all = Vec::new();
        for part in JobCopy::parts() {
            all.extend(self.export_part(part, 2, DEFAULT_BYTES).await);
        }
        all
    }

    /// Sends an import under the next number of the topic's own producer.
    pub async fn try_import(&self, import: Import) -> Result<Vec<ImportOutcome>, StoreError> {
        let number = self.numbered::<()>(Vec::new()).number;
        let answer = self.producer.import(number, import).await;
        self.audit_step().await;
        answer.map(answered)
    }

    /// Sends an import, which must be done.
    pub async fn import(&self, import: Import) -> Vec<ImportOutcome> {
        self.try_import(import).await.expect("import is answered")
    }

    /// Imports a copy whose id must be unknown.
    pub async fn import_new(&self, copy: JobCopy) {
        let outcomes = self.import(import_of(vec![copy], OnDuplicate::Reject)).await;
        assert_eq!(outcomes, [ImportOutcome::Added]);
    }
}
