//! The nodes of a topic, and the node that holds a job.

use serde::Serialize;

use super::inspector::Inspector;
use super::serial::{millis, text};
use super::topic::InspectedNode;
use crate::job::{JobId, NodeId, TopicName};
use crate::provider::{QueryError, TopicProvider};
use crate::store::{MOST_NODES, NodesPage, NodesRequest};
use crate::time::Timestamp;

/// How many pages of nodes are searched for a job.
const MOST_PAGES: usize = 5;

/// A page of the nodes of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InspectedNodes {
    /// The topic.
    #[serde(serialize_with = "text")]
    pub topic: TopicName,
    /// The store's clock.
    #[serde(serialize_with = "millis")]
    pub clock: Timestamp,
    /// How many nodes hold jobs of the topic.
    pub holders: usize,
    /// Nodes that hold jobs, in the order of their names; at most 100.
    pub nodes: Vec<InspectedNode>,
    /// The nodes that wait for the next job, each with the time at which it comes at the latest. A time that has passed means that the
    /// node did not come.
    pub watchers: Vec<InspectedNode>,
    /// The node behind which the next page begins; `None` means that this was the last.
    pub next: Option<String>,
}

impl Inspector {
    /// Reads a page of the nodes that hold jobs of a topic, behind the node `after`, in the order of their names: up to 100, each with
    /// the version of dq, its start, the end of its lease and its number of jobs. It costs three commands of the store. The store's
    /// work grows with the number of nodes that hold jobs of the topic, not with the jobs.
    ///
    /// A node that has nothing to do is seen only while it waits for the next job: two nodes of a topic do that.
    ///
    /// # Errors
    /// [`QueryError`].
    pub async fn nodes(&self, topic: &str, after: Option<&str>) -> Result<InspectedNodes, QueryError> {
        let provider = self.of(topic)?;
        let seen = super::InspectedTopic::new(provider.name().clone(), provider.overview(0).await?);
        let after = after.map(NodeId::new);
        let page = provider.nodes(NodesRequest { after, limit: MOST_NODES, job: None }).await?;
        Ok(InspectedNodes {
            topic: seen.topic,
            clock: seen.clock,
            holders: seen.holders,
            nodes: page.nodes.into_iter().map(InspectedNode::holding).collect(),
            watchers: seen.watchers,
            next: page.next.map(|node| node.to_string()),
        })
    }
}

/// The node that holds a job, if it is among the first that hold any.
pub(super) async fn holder_of(provider: &TopicProvider, id: &JobId) -> Result<Option<InspectedNode>, QueryError> {
    let mut after = None;
    for _ in 0..MOST_PAGES {
        let request = NodesRequest { after, limit: MOST_NODES, job: Some(id.clone()) };
        let NodesPage { nodes, next } = provider.nodes(request).await?;
        if let Some(holder) = nodes.into_iter().next() {
            return Ok(Some(InspectedNode::holding(holder)));
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    Ok(None)
}
