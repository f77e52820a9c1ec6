//! The groups of a topic.

use std::fmt;

use serde::Serialize;

use super::inspector::Inspector;
use super::reason::Reason;
use crate::job::{GroupName, JobId, NodeId, State, TopicName};
use crate::provider::CallError;
use crate::store::{GroupSeen, GroupsRequest, JobPlace, MOST_GROUPS};
use crate::time::Timestamp;

/// A page of the groups of a topic that have jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Groups))]
#[non_exhaustive]
pub struct InspectedGroups {
    /// The topic.
    pub topic: TopicName,
    /// The groups, in the order of their names; at most 100.
    pub groups: Vec<InspectedGroup>,
    /// The group after which the next page begins; `None` means that this was the last.
    pub next: Option<GroupName>,
}

/// A group, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Group))]
#[non_exhaustive]
pub struct InspectedGroup {
    /// Its name.
    pub group: GroupName,
    /// How many of its jobs wait for a seat. A job that is due much later joins two or three minutes before it is due.
    pub waiting: usize,
    /// The jobs that have a seat: they run, or the group waits for them. In the order of their ids; at most 100.
    pub seats: Vec<GroupSeat>,
    /// The job for which the others of the group wait, and which does not run by itself: it is DEAD or UNACKED. Requeue it, ack or delete it, or
    /// [resume](crate::provider::TopicProvider::resume_group) the group.
    pub stopped_by: Option<JobId>,
}

/// A job that has a seat in its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct GroupSeat {
    /// Its id.
    pub id: JobId,
    /// Its state. A DELAYED job waits for its retry, or was given back.
    pub state: State,
    /// When it is due (DELAYED), or since when it is there (UNACKED, DEAD); `None` while it is RUNNING.
    pub at: Option<Timestamp>,
    /// The node that runs it, if that is among the first 100 that hold jobs.
    pub node: Option<NodeId>,
}

impl GroupSeat {
    fn new((id, place): (JobId, JobPlace)) -> Self {
        let state = place.state();
        let (at, node) = match place {
            JobPlace::Delayed { due: at }
            | JobPlace::Unacked { since: at }
            | JobPlace::Dead { since: at }
            | JobPlace::Done { until: at } => (Some(at), None),
            JobPlace::Running { holder } => (None, holder.map(|(node, _)| node)),
        };
        Self { id, state, at, node }
    }

    pub(super) const fn stops(&self) -> bool {
        matches!(self.state, State::Unacked | State::Dead)
    }
}

impl fmt::Display for GroupSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, &self.node, self.at) {
            (State::Running, Some(node), _) => write!(f, "runs on {node}"),
            (State::Running, None, _) => f.write_str("runs"),
            (State::Delayed, _, Some(due)) => write!(f, "runs again at {due}"),
            (state, ..) => write!(f, "is {}", state.word()),
        }
    }
}

/// Why a job of a group that is due does not run yet, as far as its group says it.
pub(super) fn reason(seen: GroupSeen, id: &JobId) -> Option<Reason> {
    let is_full = seen.is_full;
    let InspectedGroup { group, seats, stopped_by, .. } = InspectedGroup::new(seen);
    match stopped_by {
        _ if !is_full || seats.iter().any(|seat| seat.id == *id) => None,
        Some(by) => Some(Reason::GroupStopped { group, by }),
        None => Some(Reason::GroupFull { group, seats }),
    }
}

impl InspectedGroup {
    fn new(GroupSeen { name, waiting, seats, is_full }: GroupSeen) -> Self {
        let seats: Vec<_> = seats.into_iter().map(GroupSeat::new).collect();
        let stopped_by =
            seats.iter().find(|_| is_full && seats.iter().all(GroupSeat::stops)).map(|seat| seat.id.clone());
        Self { group: name, waiting, seats, stopped_by }
    }
}

impl Inspector {
    /// Reads a page of the groups of a topic that have jobs, after the group `after`, in the order of their names: up to 100, each with the
    /// jobs that have a seat. It costs two commands of the store.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn groups(&self, topic: &str, after: Option<&str>) -> Result<InspectedGroups, CallError> {
        let (provider, after) = (self.of(topic)?, after.map(GroupName::new).transpose()?);
        let request = GroupsRequest { after, only: None, limit: MOST_GROUPS };
        let page = provider.groups(request).await?;
        let next = page.groups.last().map(|last| last.name.clone()).filter(|_| page.more);
        let groups = page.groups.into_iter().map(InspectedGroup::new).collect();
        Ok(InspectedGroups { topic: provider.name().clone(), groups, next })
    }
}
