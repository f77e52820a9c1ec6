//! Queries about a topic as a whole, for people who look at it.

use super::inspect::TopicCounts;
use super::statistics::MinuteCounts;
use super::topic_state::TopicState;
use crate::job::{JobId, NodeId, Priority};
use crate::time::Timestamp;

/// How many nodes an overview names at most.
pub const MAX_NODES: usize = 100;

/// How many buckets one `due_counts` counts at most.
pub const MAX_BUCKETS: usize = 64;

/// A topic as a whole, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicOverview {
    /// How many jobs are in each state, and the clock of the store.
    pub counts: TopicCounts,
    /// Whether the topic is paused or drains, and its default delay.
    pub state: TopicState,
    /// How many nodes hold jobs.
    pub holders: usize,
    /// The nodes that hold jobs, earliest end of a lease first; no more than were asked for.
    pub nodes: Vec<HolderSeen>,
    /// The node that comes when the head is due, and when that role lapses. It may have lapsed: then the node may have died.
    pub watcher: Option<(NodeId, Timestamp)>,
    /// The node that comes a little later, in case the watcher does not.
    pub standby: Option<(NodeId, Timestamp)>,
    /// What the topic counted in the present minute and the [`RECENT_MINUTES`](super::RECENT_MINUTES) before it, in sum; `None`: it
    /// counted nothing for a day.
    pub recent: Option<MinuteCounts>,
    /// How many jobs may be RUNNING on all nodes together, if due jobs waited for that when a node last asked for some (rule 29).
    pub shut: Option<usize>,
    /// When the rate of the topic lets the next job be claimed, if not yet (rule 29).
    pub opens: Option<Timestamp>,
    /// How many DELAYED jobs are due, by priority, the highest first. On Redis without far jobs that nodes have not brought near.
    pub due: [usize; Priority::ALL.len()],
    /// How many of these wait for another job of their group, or stand at its turn (rule 4).
    pub blocked: usize,
    /// Nobody knows who listens, because the store shows the files of another program, and leases and roles are not in them.
    pub hides_leases: bool,
}

/// A node that holds jobs of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderSeen {
    /// The node.
    pub node: NodeId,
    /// When its lease ends.
    pub lease: Timestamp,
    /// How many jobs it holds.
    pub jobs: usize,
}

/// A request for a page of the nodes that hold jobs of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodesRequest {
    /// The node behind which the page begins; it need not be there any more.
    pub after: Option<NodeId>,
    /// How many nodes to look at, 1 to [`MAX_NODES`].
    pub limit: usize,
    /// The page has only the node that holds this job.
    pub job: Option<JobId>,
}

/// A page of the nodes that hold jobs, in order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HolderPage {
    /// The nodes.
    pub nodes: Vec<HolderSeen>,
    /// The last node that the query looked at, if others follow. A page without a node may have one.
    pub next: Option<NodeId>,
}

/// How many DELAYED jobs are due in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DueCount {
    /// The number.
    pub jobs: usize,
    /// `false`: counting them all would have cost too much, and the number is near the true one.
    pub is_exact: bool,
}
