//! The outcome of a schedule that had a tick (rule 30): one step adds the jobs of the tick and makes the schedule due again.

use super::now::Now;
use super::pending::AddedJob;
use super::places::TimedPlace;
use super::topic::Topic;
use crate::job::{JobId, State};
use crate::store::step::Tick;
use crate::time::Timestamp;

impl Topic {
    /// RUNNING → DELAYED at the next tick, or gone; the jobs of the tick → DELAYED, or the waiting broadcasts.
    pub(super) fn tick(&mut self, now: Now, id: &JobId, due: Timestamp, tick: &Tick) {
        let skipped = tick.unless.as_ref().filter(|(last, _)| self.has_not_ended(last)).map(|(_, record)| record);
        for job in tick.jobs.iter().filter(|_| skipped.is_none()) {
            if matches!(self.state(&job.id), None | Some(State::Done)) {
                let (record, due, deliver) = (job.record.clone(), job.due, job.deliver);
                self.put(now, &job.id, AddedJob { record, due, deliver });
            }
        }
        match tick.next {
            None => drop(self.jobs.remove(id)),
            Some(next) => {
                let due = next.max(Timestamp::from_millis(due.as_millis() + 1));
                self.jobs.remove(id);
                self.signal_earlier_head(now, due);
                self.jobs.insert(id.clone(), skipped.unwrap_or(&tick.schedule).clone(), TimedPlace::Delayed, due);
            }
        }
    }

    fn has_not_ended(&self, id: &JobId) -> bool {
        matches!(self.state(id), Some(State::Delayed | State::Running | State::Unacked))
    }
}
