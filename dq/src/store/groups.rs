//! The query about the groups of a topic, for people who look at it.

use super::topic_state::Pause;
use crate::job::{GroupName, JobId, JobState};
use crate::time::Timestamp;

/// How many groups one page has at most.
pub const MAX_GROUPS: usize = 100;

/// How many seats of a group a page names at most.
pub(crate) const MAX_SEATS: usize = 100;

/// A request for a page of the groups of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupsRequest {
    /// The name behind which the page begins; it need not be there any more.
    pub after: Option<GroupName>,
    /// Only this group.
    pub only: Option<GroupName>,
    /// How many groups, 1 to [`MAX_GROUPS`].
    pub limit: usize,
}

/// A page of the groups of a topic that have jobs or are paused, in order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupPage {
    /// The groups.
    pub groups: Vec<GroupSeen>,
    /// Whether others follow.
    pub more: bool,
}

/// A group, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSeen {
    /// Its name.
    pub name: GroupName,
    /// How many of its jobs wait without a seat. Jobs that are due much later have not joined it yet.
    pub waiting: usize,
    /// The jobs that have a seat, in order of their ids, 100 at most. A RUNNING one has its holder, if that is among the first 100 nodes.
    pub seats: Vec<(JobId, JobState)>,
    /// Whether its first waiting job may not start, because no seat is left, the group is paused or has spent its rate.
    pub is_full: bool,
    /// The group is paused: no node claims its jobs.
    pub pause: Option<Pause>,
    /// When its rate lets the next job start, if it has spent it.
    pub opens: Option<Timestamp>,
}
