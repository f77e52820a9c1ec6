//! Decide: what the end of a run means for its job, which goes on to its next [`Stage`], mostly an outcome to send.

use std::time::Duration;

use super::Outcomes;
use crate::context::topic::run::{Ended, Failed, RunJobs, change, paced, wanted_retry};
use crate::context::topic::stage::{Mode, Stage};
use crate::job::{Cause, JobId};
use crate::listener::erased::Returned;
use crate::listener::{Decision, Failure, RetryDelay, UnackedDecision};
use crate::store::step::Change;

impl Outcomes {
    /// A run has ended, or is given up: decides for each of its jobs that is still held. `failed` is what its task has reported
    /// before.
    pub(crate) fn decide_run(&mut self, jobs: RunJobs, failed: Option<Failed>, ended: Ended) {
        let batch = match jobs {
            RunJobs::One(job) => {
                if self.held.under(&job.id, job.token).is_some() {
                    self.decide(&job.id, failed, ended);
                }
                return;
            }
            RunJobs::Batch(_) => jobs.into_list(),
        };
        self.report_together(batch.len(), |outcomes| {
            for (place, job) in batch {
                if outcomes.held.under(&job.id, job.token).is_some() {
                    outcomes.decide(&job.id, failed.clone(), ended.for_job(place));
                }
            }
        });
    }

    /// What follows from the end of a run whose job is still held. `failed` is what its task has reported before.
    fn decide(&mut self, id: &JobId, failed: Option<Failed>, ended: Ended) {
        let delay = match &ended {
            Ended::Asked(Some(delay)) => delay.clone(),
            Ended::Asked(None) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %id, "`retry_delay` of the listener panicked; the retry policy of the settings is used instead");
                RetryDelay::BySettings
            }
            _ => RetryDelay::BySettings,
        };
        let failure = match (failed, ended) {
            (Some(failed), _) if failed.is_wanted => {
                self.spend_attempt(id, failed.failure, delay);
                return;
            }
            (Some(failed), _) => failed.failure,
            (None, Ended::Dropped | Ended::GivenBack | Ended::Asked(_) | Ended::AskedEach(_)) => {
                return self.held.roll_back(id);
            }
            (None, Ended::Panicked(message)) => Failure::new(Cause::Panic, message),
            (None, Ended::Returned(Returned::Failed(failure))) => failure,
            (None, Ended::Returned(Returned::Decided(decision))) => return self.on_decision(id, &decision),
            (None, Ended::Returned(Returned::Unacked(decision))) => return self.on_unacked_decision(id, decision),
            (None, Ended::Returned(Returned::FinalRetried)) => return self.held.set(id, Stage::settling(Change::Dead)),
        };
        let Some(job) = self.held.get(id) else { return };
        let (is_final, token) = (job.metadata.exhausted, job.token);
        if !is_final && job.mode == Mode::Due {
            return self.on_failed(id, failure, delay);
        }
        self.report_other_failure(id, token, &failure, is_final);
        self.parts.stats.failed(Some(failure.cause));
        self.held.set(id, Stage::settling(if is_final { Change::Dead } else { Change::Park }));
    }

    fn on_decision(&mut self, id: &JobId, decision: &Decision) {
        let environment = &self.parts.environment;
        match change(decision, environment) {
            Ok(change) => {
                let as_added = self.held.get(id).map_or(Duration::ZERO, |job| job.metadata.delay);
                let change = paced(change, as_added, environment);
                self.held.set(id, Stage::settling(change));
            }
            Err(failure) => {
                self.on_failed(id, failure, RetryDelay::BySettings);
            }
        }
    }

    fn on_unacked_decision(&mut self, id: &JobId, decision: UnackedDecision) {
        match decision {
            UnackedDecision::Drop => self.held.set(id, Stage::settling(Change::Drop)),
            UnackedDecision::Keep => self.held.set(id, Stage::settling(Change::Park)),
            UnackedDecision::Retry => drop(self.spend_attempt(id, wanted_retry(), RetryDelay::BySettings)),
        }
    }
}
