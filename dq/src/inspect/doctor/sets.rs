//! Job sets that wait for members that do not exist.

use std::collections::{BTreeMap, VecDeque};

use super::Doctor;
use super::finding::{Finding, Remedy};
use super::listeners::LONG_WAIT;
use crate::job::{JobId, TopicName};
use crate::provider::{CallError, JobSetSummary, SetState, TopicProvider};
use crate::store::FindingCode;
use crate::store::step::MAX_JOBS;

/// How many sets of a topic are looked at, of each the members in so many topics, and of each of these so many members.
const MAX_SETS: usize = 20;
const MAX_TOPICS: usize = 4;
const MAX_MEMBERS: usize = 20;

impl Doctor {
    /// Of the first sets that live in the topic, those that have waited for long.
    pub(super) async fn waiting_sets(&self, topic: &TopicProvider) -> Result<VecDeque<JobId>, CallError> {
        let wall = self.provider.wall();
        let has_waited = |seen: &JobSetSummary| seen.state != SetState::Ended && wall.since(seen.since) >= LONG_WAIT;
        let sets = topic.job_sets(0, MAX_SETS).await?;
        Ok(sets.into_iter().filter(has_waited).map(|seen| seen.set).collect())
    }

    /// Looks whether a set waits for jobs that do not exist. It costs 17 commands at most.
    pub(super) async fn examine_set(&mut self, home: &TopicProvider, set: JobId) -> Result<(), CallError> {
        let Some(seen) = home.job_set(set.as_str()).await? else { return Ok(()) };
        let mut missing = Vec::new();
        for (of, mut ids) in by_topic(seen.waits_for).into_iter().take(MAX_TOPICS) {
            ids.truncate(MAX_MEMBERS);
            let ids = self.missing_of(home, &set, &of, ids).await?;
            missing.extend(ids.into_iter().map(|id| (of.clone(), id)));
        }
        let Some((of, id)) = missing.first() else { return Ok(()) };
        let text = match missing.len() {
            1 => format!("the job set waits for job `{id}` of topic {of}, which does not exist"),
            n => format!("the job set waits for {n} jobs that do not exist, such as `{id}` of topic {of}"),
        };
        let finding = Finding::new(FindingCode::MemberMissing, Some(home.name().clone()), text);
        self.found(Finding { id: Some(set.to_string()), remedy: Some(Remedy::Leave(set, missing)), ..finding });
        Ok(())
    }

    /// Counts these members of a set as left, if they are still missing; says whether some were.
    pub(super) async fn leave(
        &self,
        home: &TopicProvider,
        set: &JobId,
        members: Vec<(TopicName, JobId)>,
    ) -> Result<bool, CallError> {
        let mut done = false;
        for (of, ids) in by_topic(members) {
            let ids = self.missing_of(home, set, &of, ids).await?;
            if !ids.is_empty() {
                home.members_left(set, of, ids).await?;
                done = true;
            }
        }
        Ok(done)
    }

    /// Which of these members of one topic do not exist. A member goes from the outbox of home into its topic, and its end from the outbox of its
    /// topic to home; looked for in this order, none is missed on its way.
    async fn missing_of(
        &self,
        home: &TopicProvider,
        set: &JobId,
        of: &TopicName,
        ids: Vec<JobId>,
    ) -> Result<Vec<JobId>, CallError> {
        let topic = self.provider.topic(of.as_str())?;
        if sends(home, of).await? {
            return Ok(Vec::new());
        }
        let missing = topic.missing(ids).await?;
        if missing.is_empty() || sends(&topic, home.name()).await? {
            return Ok(Vec::new());
        }
        let seen = home.job_set(set.as_str()).await?;
        let waits_for = seen.map(|seen| seen.waits_for).unwrap_or_default();
        Ok(missing
            .into_iter()
            .filter(|id| waits_for.iter().any(|(topic, member)| topic == of && member == id))
            .collect())
    }
}

fn by_topic(members: Vec<(TopicName, JobId)>) -> BTreeMap<TopicName, Vec<JobId>> {
    let mut by_topic: BTreeMap<_, Vec<_>> = BTreeMap::new();
    members.into_iter().for_each(|(of, id)| by_topic.entry(of).or_default().push(id));
    by_topic
}

/// Whether something is on its way from one topic to another.
async fn sends(from: &TopicProvider, to: &TopicName) -> Result<bool, CallError> {
    Ok(from.outbox(MAX_JOBS).await?.iter().any(|seen| seen.target == *to))
}
