//! The nodes of a topic.

use serde::Serialize;

use super::inspector::Inspector;
use super::topic::NodeSummary;
use crate::job::{NodeId, TopicName};
use crate::provider::CallError;
use crate::store::{MAX_NODES, NodesRequest};
use crate::time::Timestamp;

/// A page of the nodes of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Nodes))]
#[non_exhaustive]
pub struct NodesPage {
    /// The topic.
    pub topic: TopicName,
    /// The store's clock.
    pub store_time: Timestamp,
    /// How many nodes hold jobs of the topic.
    pub nodes_holding: usize,
    /// Nodes that hold jobs, in the order of their names; at most 100.
    pub nodes: Vec<NodeSummary>,
    /// The nodes that wait for the next job, each with the time at which it comes at the latest. A time that has passed means that the
    /// node did not come.
    pub watchers: Vec<NodeSummary>,
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
    /// [`CallError`].
    pub async fn nodes(&self, topic: &str, after: Option<&str>) -> Result<NodesPage, CallError> {
        let provider = self.of(topic)?;
        let seen = super::TopicSummary::new(provider.name().clone(), provider.overview(0).await?);
        let after = after.map(NodeId::new);
        let page = provider.nodes(NodesRequest { after, limit: MAX_NODES, job: None }).await?;
        Ok(NodesPage {
            topic: seen.topic,
            store_time: seen.store_time,
            nodes_holding: seen.nodes_holding,
            nodes: page.nodes.into_iter().map(NodeSummary::holding).collect(),
            watchers: seen.watchers,
            next: page.next.map(|node| node.to_string()),
        })
    }
}
