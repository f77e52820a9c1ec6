//! The step `job_set`: changes a job set that lives here (rule 18).

use std::collections::BTreeMap;

use super::job_sets::{JobSet, NewMembers};
use super::now::Now;
use super::places::bytes_of_row;
use super::signals::Recipient;
use super::topic::Topic;
use crate::job::{JobId, ProducerId, TopicName};
use crate::store::{
    FollowUpBatch, FollowUpBatches, MAX_SETS, Membership, NewJob, OnDead, SetChange, SetOutcome, SetRefusal, SetState,
    SetVerb, Signal, StoreError, is_relay,
};

impl Topic {
    /// Changes a set that lives here.
    pub(super) fn job_set(
        &mut self,
        now: Now,
        producer: &ProducerId,
        change: SetChange,
    ) -> Result<SetOutcome, StoreError> {
        let size = |(topic, job): &(TopicName, NewJob)| {
            bytes_of_row(&job.id, topic.as_str().len()) + job.record.as_bytes().len() as u64
        };
        if let SetVerb::Add(_, jobs) = &change.what {
            self.memory.take("job_set", jobs.iter().map(size).sum())?;
        }
        self.job_sets.forget(now);
        let name = change.set.clone();
        Ok(match self.change_set(now, is_relay(producer.as_str()), change) {
            Err(refusal) => SetOutcome::Refused(refusal),
            Ok(()) => SetOutcome::Done(self.job_sets.get(&name).map_or_else(
                || {
                    let mut gone = JobSet::default();
                    gone.row.state = SetState::Ended;
                    gone.seen(&name, 0)
                },
                |set| set.seen(&name, 0),
            )),
        })
    }

    fn change_set(&mut self, now: Now, is_relayed: bool, change: SetChange) -> Result<(), SetRefusal> {
        let (SetChange { set: name, what }, home) = (change, self.name().clone());
        let sets = &mut self.job_sets;
        let state = sets.get(&name).map(|set| set.row.state);
        let mut entries = FollowUpBatches::default();
        match (what, state) {
            (SetVerb::Add(..) | SetVerb::Close(_), None) if sets.waiting() >= MAX_SETS => {
                return Err(SetRefusal::TooManySets);
            }
            (SetVerb::Add(..), Some(SetState::Closed)) if !is_relayed => return Err(SetRefusal::Closed),
            (SetVerb::Add(..), Some(SetState::Ended)) => return Err(SetRefusal::Ended),
            (SetVerb::Add(on_dead, jobs), _) => {
                let new = sets.register(now, &name, jobs)?;
                add_members(&mut entries, &home, &name, on_dead, new);
            }
            (SetVerb::Close(then), _) => sets.close(now, &name, &then),
            (SetVerb::End(topic, ends), _) => sets.end(&name, &topic, ends),
        }
        let mut deletes: BTreeMap<TopicName, Vec<JobId>> = BTreeMap::new();
        for (topic, id) in sets.cancel(&name) {
            deletes.entry(topic).or_default().push(id);
        }
        deletes.into_iter().for_each(|(topic, ids)| entries.push(topic, &FollowUpBatch::Delete(ids)));
        if let Some(then) = sets.complete(now, &name) {
            entries.push_packed(home, then);
        }
        self.tell(now, &entries);
        Ok(())
    }

    /// Writes entries into the outbox that no outcome has, and wakes who relays them.
    pub(super) fn tell(&mut self, now: Now, entries: &FollowUpBatches) {
        if !entries.is_empty() {
            self.outbox.write(now, entries);
            self.notices.push(Recipient::Nodes, Signal::Outbox);
        }
    }
}

/// Writes the adds of new members, topic by topic.
fn add_members(entries: &mut FollowUpBatches, home: &TopicName, set: &JobId, on_dead: OnDead, new: NewMembers) {
    let mut by_topic: BTreeMap<TopicName, Vec<NewJob>> = BTreeMap::new();
    for ((topic, _), job) in new {
        by_topic.entry(topic).or_default().push(job);
    }
    for (topic, jobs) in by_topic {
        let membership = Membership { home: home.clone(), set: set.clone(), on_dead };
        entries.push(topic, &FollowUpBatch::Members(membership, jobs));
    }
}
