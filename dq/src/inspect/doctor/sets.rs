//! Job sets that wait for a member that does not exist.

use super::Doctor;
use super::finding::Finding;
use super::listeners::{LONG_WAIT, MOST_TARGETS};
use crate::job::{JobId, TopicName};
use crate::provider::{CallError, SetSeen, SetState, TopicProvider};
use crate::store::FindingCode;

/// How many sets of a topic are looked at, and how many members of each.
const MOST_SETS: usize = 20;
const MOST_MEMBERS: usize = 20;

impl Doctor {
    /// Looks whether the sets that live in the topic wait for jobs that are not there, nor on their way.
    pub(super) async fn examine_sets(&mut self, topic: &TopicProvider) -> Result<(), CallError> {
        let sets = topic.job_sets(0, MOST_SETS).await?;
        for seen in sets {
            if !self.has_waited(&seen) {
                continue;
            }
            let set = seen.set;
            let Some(seen) = topic.job_set(set.as_str()).await? else { continue };
            for (of, id) in seen.waits_for.into_iter().take(MOST_MEMBERS) {
                if self.is_missing(topic, &set, &of, &id).await? {
                    let text = format!("the job set waits for job `{id}` of topic {of}, which does not exist");
                    let finding = Finding::new(FindingCode::MemberMissing, Some(topic.name().clone()), text);
                    self.found(Finding { id: Some(set.to_string()), ..finding });
                }
            }
        }
        Ok(())
    }

    fn has_waited(&self, seen: &SetSeen) -> bool {
        seen.state != SetState::Ended && self.provider.wall().since(seen.since) >= LONG_WAIT
    }

    /// Looks for the job, then for what may be on its way in either direction, and then whether the set still waits.
    async fn is_missing(
        &self,
        home: &TopicProvider,
        set: &JobId,
        of: &TopicName,
        id: &JobId,
    ) -> Result<bool, CallError> {
        let topic = self.provider.topic(of.as_str())?;
        if topic.stored(id.clone()).await?.is_some() {
            return Ok(false);
        }
        for (from, to) in [(home, of), (&topic, home.name())] {
            if from.outbox(MOST_TARGETS).await?.iter().any(|seen| seen.target == *to) {
                return Ok(false);
            }
        }
        let seen = home.job_set(set.as_str()).await?;
        Ok(seen.is_some_and(|seen| seen.waits_for.iter().any(|(topic, member)| topic == of && member == id)))
    }
}
