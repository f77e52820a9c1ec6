//! What a caller does to a group of jobs as a whole.

use std::fmt;

use super::call::Call;
use super::error::{CallError, Invalid};
use super::setting::ChangeTopic;
use super::topic::TopicProvider;
use crate::job::{GroupName, JobId, State};
use crate::store::{CommandKind, GroupsRequest, Pause, TopicChange};

/// What [`TopicProvider::resume_group`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResumedGroup {
    /// The pause that it ended.
    pub pause: Option<Pause>,
    /// The jobs that the group passes.
    pub passed: Vec<JobId>,
}

impl TopicProvider {
    /// Pauses a group on all nodes: no node claims its jobs, and those that run end as usual. Other groups, and jobs without one, run. It needs a
    /// [`reason`](Call::reason), and may have an [end](Call::for_duration); a second pause replaces both. The group need not have jobs.
    ///
    /// # Errors
    /// [`CallError::Invalid`]: this is not the name of a group.
    pub fn pause_group(&self, group: impl fmt::Display) -> Result<Call<ChangeTopic<Pause, true>>, CallError> {
        let group = GroupName::of(&group).map_err(Invalid::BadGroup)?;
        let pause = TopicChange::Pause { group: Some(group), reason: String::new(), until: None };
        Ok(self.set(pause, None))
    }

    /// Lets a group continue. If it is paused, its pause ends. Otherwise it passes the jobs for which it waits and which do not run: a DEAD or
    /// UNACKED one, or one that waits for its retry. Each gives its seat back, and the next jobs of the group pass it; the job itself stays as it
    /// is. To let the group wait until such a job has run, [`requeue`](Self::requeue) the job instead.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn resume_group(&self, group: impl fmt::Display) -> Result<ResumedGroup, CallError> {
        let group = GroupName::of(&group).map_err(Invalid::BadGroup)?;
        let request = GroupsRequest { after: None, only: Some(group.clone()), limit: 1 };
        let Some(seen) = self.groups(request).await?.groups.pop() else { return Ok(ResumedGroup::default()) };
        if seen.pause.is_some() {
            let resumed = self.set::<Pause, false>(TopicChange::Resume { group: Some(group) }, None).await?;
            return Ok(ResumedGroup { pause: resumed.before, ..ResumedGroup::default() });
        }
        let seats = seen.seats.into_iter();
        let ids: Vec<_> = seats.filter(|(_, place)| place.state() != State::Running).map(|(id, _)| id).collect();
        let mut passed = Vec::with_capacity(ids.len());
        for (id, outcome) in ids.clone().into_iter().zip(self.command_many(CommandKind::Pass, ids).await) {
            passed.extend(outcome?.changed.then_some(id));
        }
        Ok(ResumedGroup { passed, ..ResumedGroup::default() })
    }
}
