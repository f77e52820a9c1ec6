//! Exports of the topic and imports into it.

use std::collections::HashSet;

use super::producer::answered;
use super::topic::{Topic, id};
use dq::job::{Codec, Fence, Metadata, Record};
use dq::store::step::USUAL_BYTES;
use dq::store::{CopyPlace, ExportPart, ExportRequest, Exported, Import, ImportOutcome, JobCopy, OnDuplicate};
use dq::time::Timestamp;

/// A copy whose payload is its id, without crashes.
pub(super) fn copy(name: &str, place: CopyPlace, at: Timestamp) -> JobCopy {
    copy_with(name, place, at, &Metadata::default())
}

/// A copy with these metadata.
pub(super) fn copy_with(name: &str, place: CopyPlace, at: Timestamp, metadata: &Metadata) -> JobCopy {
    let record = Record::new(metadata, Codec::Json, name.as_bytes());
    JobCopy { id: id(name), record, crashes: 0, place, at, taken_until: None }
}

/// An import of these copies, whose fence changes nothing.
pub(super) const fn import_of(copies: Vec<JobCopy>, on_duplicate: OnDuplicate) -> Import {
    Import { copies, on_duplicate, fence: Fence(0) }
}

impl Topic {
    /// A page of an export, which has no more jobs than it may. A job that runs may have two copies.
    pub async fn export_page(&self, request: ExportRequest) -> Exported {
        let limit = request.limit;
        let page = self.store.export(&self.key, request).await.expect("export is answered");
        let jobs: HashSet<_> = page.copies.iter().map(|copy| &copy.id).collect();
        assert!(jobs.len() <= limit, "a page of {} jobs over its limit of {limit}", jobs.len());
        page
    }

    /// All copies of a part, read in pages of `limit` jobs and `bytes`.
    pub async fn export_part(&self, part: ExportPart, limit: usize, bytes: usize) -> Vec<JobCopy> {
        let mut request = ExportRequest { part, after: None, limit, bytes };
        let mut all = Vec::new();
        loop {
            let page = self.export_page(request.clone()).await;
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
        for part in ExportPart::ALL {
            all.extend(self.export_part(part, 2, USUAL_BYTES).await);
        }
        all
    }

    /// Imports these copies under the next number of the topic's own producer.
    pub async fn import(&self, import: Import) -> Vec<ImportOutcome> {
        let number = self.numbered::<()>(Vec::new()).number;
        let answer = self.producer.import(number, import).await.expect("import is answered");
        self.audit().await;
        answered(answer)
    }

    /// Imports a copy whose id must be unknown.
    pub async fn import_new(&self, copy: JobCopy) {
        let outcomes = self.import(import_of(vec![copy], OnDuplicate::Reject)).await;
        assert_eq!(outcomes, [ImportOutcome::Added]);
    }
}
