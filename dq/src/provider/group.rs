//! What a caller does to a group of jobs as a whole.

use super::error::CallError;
use super::topic::TopicProvider;
use crate::job::{BadGroup, JobId, State, ToGroup};
use crate::store::{CommandKind, GroupsRequest};

impl From<BadGroup> for CallError {
    fn from(error: BadGroup) -> Self {
        Self::Invalid(error.into())
    }
}

impl TopicProvider {
    /// Lets a group continue that waits for jobs which do not run: a DEAD or UNACKED one, or one that waits for its retry. Each gives its seat
    /// back, and the next jobs of the group pass it; the job itself stays as it is. Returns these jobs. To let the group wait until such a
    /// job has run, [`requeue`](Self::requeue) the job instead.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn resume_group(&self, group: impl ToGroup) -> Result<Vec<JobId>, CallError> {
        let request = GroupsRequest { after: None, only: Some(group.to_group()?), limit: 1 };
        let seen = self.groups(request).await?.groups.into_iter().flat_map(|group| group.seats);
        let ids: Vec<_> = seen.filter(|(_, place)| place.state() != State::Running).map(|(id, _)| id).collect();
        let mut passed = Vec::with_capacity(ids.len());
        for (id, outcome) in ids.clone().into_iter().zip(self.command_many(CommandKind::Pass, ids).await) {
            passed.extend(outcome?.changed.then_some(id));
        }
        Ok(passed)
    }
}
