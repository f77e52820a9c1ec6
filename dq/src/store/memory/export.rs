//! The query `export` (rule 27): pages of everything that the topic keeps of its jobs.

use super::inspect::{job_id, row};
use super::now::Now;
use super::pending::{End, Ended, PendingCommand};
use super::places::{Place, Slot, TimedPlace, fitting};
use super::topic::{Topic, within};
use crate::job::{JobId, State};
use crate::store::{
    CopyPlace, Cursor, ExportPart, ExportRequest, Exported, HeldJob, JobCopy, PendingEnd, PendingReplacement,
    StoreError,
};
use crate::time::Timestamp;

impl Topic {
    /// A page of an export. O(limit log n).
    pub(crate) fn export(&self, now: Now, request: &ExportRequest) -> Result<Exported, StoreError> {
        within("the limit of an export", request.limit)?;
        let (places, place) = match request.part {
            ExportPart::State(State::Running) => return self.export_runs(now, request),
            ExportPart::State(State::Delayed) => (self.jobs.index(TimedPlace::Delayed), CopyPlace::Delayed),
            ExportPart::State(State::Unacked) => (self.jobs.index(TimedPlace::Unacked), CopyPlace::Unacked),
            ExportPart::State(State::Dead) => (self.jobs.index(TimedPlace::Dead), CopyPlace::Dead),
            ExportPart::State(State::Done) => (self.jobs.index(TimedPlace::Done), CopyPlace::Done),
            ExportPart::Broadcasts => (self.broadcasts.by_due(), CopyPlace::Broadcast),
        };
        let after = request.after.as_ref().map(|cursor| Ok((cursor.at, job_id(&cursor.id)?))).transpose()?;
        let mut ids = places.after(after);
        let mut copies: Vec<_> =
            ids.by_ref().take(request.limit.max(1)).filter_map(|(at, id)| self.copy_of(place, *at, id)).collect();
        let count = fitting(copies.iter().map(|copy| copy.record.as_bytes().len()), request.bytes);
        let more = ids.next().is_some() || count < copies.len();
        copies.truncate(count);
        let next = copies.last().filter(|_| more).map(|copy| Cursor { at: copy.at, id: copy.id.to_string() });
        Ok(Exported { jobs: copies.len(), copies, next, fence: self.fence })
    }

    fn copy_of(&self, place: CopyPlace, at: Timestamp, id: &JobId) -> Option<JobCopy> {
        let (record, crashes) = match place {
            CopyPlace::Broadcast => (self.broadcasts.get(id)?.1.clone(), 0),
            _ => {
                let slot = self.jobs.get(id)?;
                (slot.record.clone(), slot.crashes)
            }
        };
        Some(JobCopy { id: id.clone(), record, crashes, place, at })
    }

    /// A page of RUNNING jobs, as they would be if their nodes gave them back now.
    fn export_runs(&self, now: Now, request: &ExportRequest) -> Result<Exported, StoreError> {
        let after = request.after.as_ref().map(row).transpose()?;
        let mut rows = self.jobs.rows_after(after.as_ref());
        let page: Vec<_> = rows.by_ref().take(request.limit.max(1)).collect();
        let sizes = page.iter().map(|(_, id)| {
            let record = self.jobs.get(id).map_or(0, |slot| slot.record.as_bytes().len());
            record + self.jobs.replacement_size(id)
        });
        let count = fitting(sizes, request.bytes);
        let more = rows.next().is_some() || count < page.len();
        let held = page[..count].iter().filter_map(|(_, id)| held_job(id, self.jobs.get(id)?));
        let copies = held.flat_map(|job| job.given_back(now.floor())).collect();
        let next = page[..count].last().filter(|_| more);
        let next = next.map(|(node, id)| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{id}") });
        Ok(Exported { copies, jobs: count, next, fence: self.fence })
    }
}

fn held_job(id: &JobId, slot: &Slot) -> Option<HeldJob> {
    let Place::Running(run) = &slot.place else { return None };
    let PendingCommand { end, replacement } = run.pending.as_deref().cloned().unwrap_or_default();
    Some(HeldJob {
        id: id.clone(),
        record: slot.record.clone(),
        crashes: slot.crashes,
        token: Some(run.token),
        end: end.map(|End { how, fence }| PendingEnd { is_ack: how == Ended::Acked, fence }),
        replacement: replacement.map(|new| PendingReplacement {
            record: new.job.record,
            due: new.job.due,
            deliver: new.job.deliver,
            conditional: new.conditional,
        }),
    })
}
