//! The step `reclaim`, and how it charges crashes (rules 8, 15, 19 and 20).

use super::{Choice, Place, Topic};
use dq::job::state::Event;
use dq::job::{Cause, Isolation, JobId, Metadata};
use dq::store::step::{Reclaim, Reclaimed};
use dq::time::Timestamp;

impl Topic {
    pub(in super::super) fn reclaim(&mut self, request: &Reclaim, choice: Choice<'_>) -> Reclaimed {
        let rows = self.rows(&request.node);
        let expired = request.seen <= self.now();
        if self.leases.get(&request.node) != Some(&request.seen) || !expired {
            return Reclaimed { moved: 0, left: 0 };
        }
        let mut taken = rows.clone();
        taken.sort_by_key(|(id, token)| (choice.still_runs(id, *token), id.clone()));
        taken.truncate(request.limit);
        for (id, _) in &taken {
            self.reclaim_one(id, (request.seen != Timestamp::EPOCH).then_some(request.max_crashes));
        }
        self.drop_empty_lease(&request.node);
        Reclaimed { moved: taken.len(), left: rows.len() - taken.len() }
    }

    /// Takes one job. `cap` is the crash cap; `None`: the node released it, so nothing is charged.
    fn reclaim_one(&mut self, id: &JobId, cap: Option<u32>) {
        let Some(run) = self.obey(id) else { return };
        let now = self.now();
        let job = self.jobs.get_mut(id).expect("the job is RUNNING");
        let parked = job.metadata().parked_by.is_some();
        let back = Event::Reclaimed { parked, final_isolated: false };
        let Some(cap) = cap else { return self.give_back(id, &run, None, back) };
        let (cap, exhausted) = (cap.max(1), job.metadata().exhausted);
        match run.isolation {
            Some(Isolation::Alone) if exhausted && job.crashes >= cap + 2 => {
                let metadata = job.metadata();
                job.write(Some(&metadata), None);
                job.crashes = 0;
                job.go(Event::Reclaimed { parked, final_isolated: true }, Place::Dead(now));
            }
            Some(Isolation::Alone) => {
                job.crashes = cap + 2;
                let convicted = Metadata { exhausted: true, cause: Some(Cause::Crashes), ..job.metadata() };
                self.give_back(id, &run, Some(&convicted), back);
            }
            isolation => {
                let quarantined_from = if cap > 2 { cap - 1 } else { 1 };
                let had_started = isolation.is_some() && job.crashes <= cap;
                job.crashes += u32::from(had_started || job.crashes < quarantined_from);
                self.give_back(id, &run, None, back);
            }
        }
    }
}
