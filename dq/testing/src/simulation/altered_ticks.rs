//! Rule 30 taken away: the store gets other ticks than the checker knows of.

use std::sync::Arc;

use super::altered::answer_of;
use super::rules::without;
use super::sim::Sim;
use dq::job::{ProducerId, TopicKey};
use dq::store::step::{Change, Outcome, Settled, Tick, TickJob, Verdict};
use dq::store::{NewJob, Numbered, OnDuplicate};

impl Sim {
    /// Without `30` a tick is two steps, and its node dies between them: the jobs are there, and the schedule has its tick again.
    /// Without `moved` the node dies between two steps in the other order. Without `overlap` a tick never asks for the last job.
    pub(super) fn alter_ticks(self: &Arc<Self>, key: &TopicKey, outcomes: &mut [Outcome]) {
        for outcome in outcomes {
            let Change::Tick(tick) = &mut outcome.change else { continue };
            if without("moved") {
                tick.jobs.clear();
            }
            if without("overlap") {
                tick.unless = None;
            }
            if without("30") {
                self.add_unnoticed(key, tick);
                outcome.change = Change::Rollback;
            }
        }
    }

    /// Without `ticked` a tick adds its jobs, whatever token its schedule has.
    pub(super) fn tick_anyhow(self: &Arc<Self>, key: &TopicKey, outcomes: &[Outcome], settled: &Settled) {
        for (outcome, verdict) in outcomes.iter().zip(&settled.verdicts) {
            if let (Change::Tick(tick), Verdict::Stale, true) = (&outcome.change, verdict, without("ticked")) {
                self.add_unnoticed(key, tick);
            }
        }
    }

    /// Adds the jobs of a tick without the checker.
    fn add_unnoticed(self: &Arc<Self>, key: &TopicKey, tick: &Tick) {
        let new = |job: &TickJob| NewJob {
            on_duplicate: OnDuplicate::Keep,
            deliver: job.deliver,
            ..NewJob::new(job.id.clone(), job.record.clone())
        };
        let producer = self.producer(key, &ProducerId::new("away"));
        let items = tick.jobs.iter().map(new).collect();
        drop(answer_of(producer.add(Numbered { number: self.next_number(), items })));
    }
}
