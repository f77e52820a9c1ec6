//! The groups of a topic.

use std::fmt;

use serde::Serialize;

use crate::job::{GroupName, JobId, JobState, NodeId, State, TopicName};
use crate::store::{GroupSeen, Pause};
use crate::time::Timestamp;

/// A page of the groups of a topic that have jobs or are paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Groups))]
#[non_exhaustive]
pub struct GroupsPage {
    /// The topic.
    pub topic: TopicName,
    /// The groups, in the order of their names; at most 100.
    pub groups: Vec<GroupSummary>,
    /// The group after which the next page begins; `None` means that this was the last.
    pub next: Option<GroupName>,
}

/// A group, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Group))]
#[non_exhaustive]
pub struct GroupSummary {
    /// Its name.
    pub group: GroupName,
    /// How many of its jobs wait for a seat. A job that is due much later joins two or three minutes before it is due.
    pub waiting: usize,
    /// The jobs that have a seat: they run, or the group waits for them. In the order of their ids; at most 100.
    pub seats: Vec<GroupSeat>,
    /// The job for which the others of the group wait, and which does not run by itself: it is DEAD or UNACKED. Requeue it, ack or delete it, or
    /// [resume](crate::provider::TopicProvider::resume_group) the group.
    pub stopped_by: Option<JobId>,
    /// It is paused: no node takes its jobs.
    pub pause: Option<Pause>,
    /// When its rate lets the next job start, if it has spent it.
    pub rate_opens_at: Option<Timestamp>,
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
    fn new((id, place): (JobId, JobState)) -> Self {
        Self { id, state: place.state(), at: place.at(), node: place.node().cloned() }
    }

    const fn stops(&self) -> bool {
        matches!(self.state, State::Unacked | State::Dead)
    }
}

impl fmt::Display for GroupSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, &self.node, self.at) {
            (State::Running, Some(node), _) => write!(f, "runs on {node}"),
            (State::Running, None, _) => f.write_str("runs"),
            (State::Delayed, _, Some(due)) => write!(f, "runs again at {due}"),
            (state, ..) => write!(f, "is {}", state.as_str()),
        }
    }
}

impl GroupSummary {
    pub(super) fn new(GroupSeen { name, waiting, seats, is_full, pause, opens }: GroupSeen) -> Self {
        let seats: Vec<_> = seats.into_iter().map(GroupSeat::new).collect();
        let stopped_by = seats
            .iter()
            .find(|_| is_full && pause.is_none() && opens.is_none() && seats.iter().all(GroupSeat::stops))
            .map(|seat| seat.id.clone());
        Self { group: name, waiting, seats, stopped_by, pause, rate_opens_at: opens }
    }
}
