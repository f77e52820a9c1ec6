//! The outcome of a schedule that had a tick (rule 30): one step adds the jobs of the tick and makes the schedule due again.

use super::now::Now;
use super::pending::AddedJob;
use super::places::TimedPlace;
use super::topic::Topic;
use crate::job::{JobId, NodeId, Record, State};
use crate::store::JobMove;
use crate::store::step::Tick;
use crate::time::Timestamp;

impl Topic {
    /// RUNNING → DELAYED at the next tick, or gone; the jobs of the tick → DELAYED, or the waiting broadcasts.
    pub(super) fn tick(&mut self, now: Now, id: &JobId, due: Timestamp, node: &NodeId, tick: &Tick) {
        let schedule = self.add_jobs_of(now, tick);
        self.jobs.remove(id);
        if let Some(next) = tick.next {
            let due = next.max(Timestamp::from_millis(due.as_millis() + 1));
            self.signal_earlier_head(now, due);
            self.jobs.insert(id.clone(), schedule.clone(), TimedPlace::Delayed, due);
            self.moves.note(id, || JobMove::Rejoined { due, node: node.to_string() });
        } else {
            self.moves.note(id, || JobMove::Done { by: node.to_string() });
        }
    }

    /// Adds the jobs of a tick, unless the last one has not ended. Returns the record of the schedule from now on.
    pub(super) fn add_jobs_of<'a>(&mut self, now: Now, tick: &'a Tick) -> &'a Record {
        if let Some((_, skipped)) = tick.unless.as_ref().filter(|(last, _)| self.has_not_ended(last)) {
            return skipped;
        }
        for job in &tick.jobs {
            if matches!(self.state(&job.id), None | Some(State::Done)) {
                let (record, due, deliver) = (job.record.clone(), job.due, job.deliver);
                self.put(now, &job.id, AddedJob { record, due, deliver });
            }
        }
        &tick.schedule
    }

    fn has_not_ended(&self, id: &JobId) -> bool {
        matches!(self.state(id), Some(State::Delayed | State::Running | State::Unacked))
    }
}
