//! Topics and the nodes that hold their jobs.

use std::time::Duration;

use serde::Serialize;

use super::rates::Rates;
use crate::job::{JobId, NodeId, TopicName};
use crate::provider::{CallError, TopicProvider};
use crate::store::{HolderPage, HolderSeen, MAX_NODES, NodesRequest, TopicOverview, TopicState};
use crate::time::{Timestamp, in_millis};

/// A topic as a whole, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Topic))]
#[non_exhaustive]
pub struct TopicSummary {
    /// Its name.
    pub topic: TopicName,
    /// The store's clock at that moment.
    pub store_time: Timestamp,
    /// DELAYED jobs, due or not.
    pub delayed: usize,
    /// DELAYED jobs that are due.
    pub ready: usize,
    /// RUNNING jobs.
    pub running: usize,
    /// UNACKED jobs.
    pub unacked: usize,
    /// DEAD jobs.
    pub dead: usize,
    /// DONE jobs.
    pub done: usize,
    /// Broadcasts that wait.
    pub broadcasts: usize,
    /// The earliest due time of a DELAYED job.
    pub next_due: Option<Timestamp>,
    /// How long the job that waits longest has been due; zero if none is due.
    #[serde(serialize_with = "in_millis::serialize")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub lateness: Duration,
    /// Whether the topic is paused or drains, and its default delay.
    pub state: TopicState,
    /// How many nodes hold jobs of the topic.
    pub nodes_holding: usize,
    /// The nodes that hold jobs, earliest end of a lease first, at most 100; empty in a page of topics.
    pub nodes: Vec<NodeSummary>,
    /// The nodes that wait for the next job, each with the time at which it comes at the latest. A time that has passed means that the
    /// node did not come.
    pub watchers: Vec<NodeSummary>,
    /// How much ran in the last five minutes, and how late it was claimed; `None` where the topic kept no statistics for a day.
    pub rates: Option<Rates>,
    /// How many jobs may be RUNNING on all nodes together, if due jobs waited for that when a node last asked for some.
    pub slot_limit_reached: Option<usize>,
    /// When the rate of the topic lets the next job start, if not yet.
    pub rate_opens_at: Option<Timestamp>,
    /// How many jobs are due, by priority.
    pub due: DueByPriority,
    /// How many due jobs wait for another job of their group, or for the turn of the group.
    pub blocked_by_group: usize,
    /// Nobody knows who listens: these are the files of another program, without leases.
    pub leases_hidden: bool,
    /// Why the store cannot show the topic, for example because one of its keys has the wrong type; then all else but the name is empty
    /// or zero. Only in a page of topics: reading the one topic fails with this error.
    pub error: Option<String>,
}

/// How many jobs of a topic are due, by priority. On Redis it leaves out what no node has brought near yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct DueByPriority {
    /// High jobs.
    pub high: usize,
    /// Normal jobs.
    pub normal: usize,
    /// Low jobs.
    pub low: usize,
}

/// A node that listens to a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Node))]
#[non_exhaustive]
pub struct NodeSummary {
    /// The node; the text begins with the name of its host and the id of its process.
    pub node: NodeId,
    /// When its lease ends, or when it comes at the latest.
    pub until: Timestamp,
    /// How many jobs of the topic it holds.
    pub jobs: usize,
    /// The version of dq that it runs; `None` if that is older than such reports.
    pub version: Option<String>,
    /// When it started, by its own clock; `None` like the version.
    pub started: Option<Timestamp>,
}

impl NodeSummary {
    fn new(node: NodeId, until: Timestamp, jobs: usize) -> Self {
        let (version, started) = (node.version().map(str::to_owned), node.started());
        Self { node, until, jobs, version, started }
    }

    pub(super) fn holding(HolderSeen { node, lease, jobs }: HolderSeen) -> Self {
        Self::new(node, lease, jobs)
    }
}

/// A page of topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Topics))]
#[non_exhaustive]
pub struct TopicsPage {
    /// The topics, in order of their names.
    pub topics: Vec<TopicSummary>,
    /// The name behind which the next page begins, also if this page is empty; `None` means that this was the last.
    pub next: Option<String>,
}

impl TopicSummary {
    pub(super) fn new(topic: TopicName, seen: TopicOverview) -> Self {
        let TopicOverview {
            counts,
            state,
            holders,
            nodes,
            watcher,
            standby,
            recent,
            shut,
            opens,
            due,
            blocked,
            hides_leases,
        } = seen;
        let watching = |(node, until)| NodeSummary::new(node, until, 0);
        Self {
            topic,
            store_time: counts.clock,
            delayed: counts.delayed,
            ready: counts.ready,
            running: counts.running,
            unacked: counts.unacked,
            dead: counts.dead,
            done: counts.done,
            broadcasts: counts.broadcasts,
            next_due: counts.head,
            lateness: counts.head.map_or(Duration::ZERO, |head| counts.clock.since(head)),
            state,
            nodes_holding: holders,
            nodes: nodes.into_iter().map(NodeSummary::holding).collect(),
            watchers: watcher.into_iter().chain(standby).map(watching).collect(),
            rates: recent.map(|recent| Rates::new(counts.clock, &recent)),
            slot_limit_reached: shut,
            rate_opens_at: opens,
            due: DueByPriority { high: due[0], normal: due[1], low: due[2] },
            blocked_by_group: blocked,
            leases_hidden: hides_leases,
            error: None,
        }
    }

    /// A topic that the store cannot show, and why.
    pub(super) fn unreadable(topic: TopicName, error: String) -> Self {
        Self { error: Some(error), ..Self::new(topic, TopicOverview::default()) }
    }

    /// Whether as many jobs wait as may by a limit in the store. The code of producers may name a lower one.
    pub fn at_capacity(&self) -> bool {
        self.state.waiting().is_some_and(|limit| self.delayed >= limit)
    }

    /// Whether jobs are due, no node holds any, and none is about to come. A page of topics can say this, too. False where nobody knows.
    pub fn needs_listener(&self) -> bool {
        !self.leases_hidden
            && self.ready > 0
            && self.nodes_holding == 0
            && !self.watchers.iter().any(|node| node.until > self.store_time)
    }

    /// Whether a node listens: its lease has not ended, or it is about to come. True where nobody knows.
    pub fn has_listener(&self) -> bool {
        self.leases_hidden || self.nodes.iter().chain(&self.watchers).any(|node| node.until > self.store_time)
    }
}

/// How many pages of nodes are searched for a job.
const MAX_PAGES: usize = 5;

/// The node that holds a job, if it is among the first that hold any.
pub(super) async fn holder_of(provider: &TopicProvider, id: &JobId) -> Result<Option<NodeSummary>, CallError> {
    let mut after = None;
    for _ in 0..MAX_PAGES {
        let request = NodesRequest { after, limit: MAX_NODES, job: Some(id.clone()) };
        let HolderPage { nodes, next } = provider.nodes(request).await?;
        if let Some(holder) = nodes.into_iter().next() {
            return Ok(Some(NodeSummary::holding(holder)));
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    Ok(None)
}
