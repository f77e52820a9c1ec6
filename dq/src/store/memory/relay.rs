//! What a topic does with the outbox of its own, and with the follow-ups of others (rule 18).

use super::now::Now;
use super::topic::Topic;
use crate::job::{JobId, ProducerId};
use crate::store::{
    Command, CommandKind, FollowUpBatch, FollowUpOutcome, Membership, NewJob, OUT_OF_ORDER, OutboxEntry, Sifted,
    StoreError, with_those_over,
};

impl Topic {
    /// Executes an entry of the outbox of another topic, which has not arrived before.
    pub(super) fn take_follow_ups(
        &mut self,
        now: Now,
        relay: &ProducerId,
        entry: &OutboxEntry,
    ) -> Result<Vec<FollowUpOutcome>, StoreError> {
        if entry.after.at != 0 && self.calls.highest(relay) != entry.after {
            // After a failover an earlier follow-up may not have come, or one of which the source knows nothing.
            return Err(StoreError::Refused { operation: "relay", reason: OUT_OF_ORDER.to_owned() });
        }
        let Sifted { batch, over } = entry.sifted()?;
        let outcomes = match batch {
            FollowUpBatch::Add(jobs) => self.take_adds(now, relay, jobs, None)?,
            FollowUpBatch::Members(of, jobs) => {
                let over = over.iter().map(|(_, id, _)| id.clone()).collect();
                self.take_adds(now, relay, jobs, Some((of, over)))?
            }
            FollowUpBatch::Set(change) => {
                let outcome = self.job_set(now, relay, change.clone())?;
                FollowUpOutcome::of_set(&change, &[outcome])
            }
            FollowUpBatch::Delete(ids) => {
                let deletes: Vec<_> = ids.into_iter().map(|id| Command::new(CommandKind::Delete, id)).collect();
                FollowUpOutcome::of_deletes(&self.command(now, relay, &deletes))
            }
        };
        Ok(with_those_over(over, outcomes))
    }

    /// Adds the jobs of an entry, perhaps as members of a set, which is told of those that are refused and of these, which are over a limit.
    fn take_adds(
        &mut self,
        now: Now,
        relay: &ProducerId,
        jobs: Vec<NewJob>,
        membership: Option<(Membership, Vec<JobId>)>,
    ) -> Result<Vec<FollowUpOutcome>, StoreError> {
        if let Some(full) = jobs.iter().find_map(|job| self.is_full_for(job)) {
            return Err(StoreError::TopicFull(full));
        }
        let known: Vec<_> = jobs.iter().map(|job| (job.id.clone(), job.on_duplicate)).collect();
        self.passes_limit = true;
        let outcomes = self.add(now, relay, jobs);
        self.passes_limit = false;
        let outcomes = outcomes?;
        if let Some((membership, over)) = membership {
            let taken = known.iter().zip(&outcomes).map(|((id, _), outcome)| (id.clone(), outcome.is_taken()));
            let jobs = taken.chain(over.into_iter().map(|id| (id, false)));
            let ends = self.members.joined(&self.name().clone(), &membership, jobs);
            self.tell(now, &ends);
        }
        Ok(FollowUpOutcome::of_adds(known, outcomes))
    }
}
