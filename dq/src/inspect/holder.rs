//! The node that holds a job.

use super::topic::InspectedNode;
use crate::job::JobId;
use crate::provider::{CallError, TopicProvider};
use crate::store::{MOST_NODES, NodesPage, NodesRequest};

/// How many pages of nodes are searched for a job.
const MOST_PAGES: usize = 5;

/// The node that holds a job, if it is among the first that hold any.
pub(super) async fn holder_of(provider: &TopicProvider, id: &JobId) -> Result<Option<InspectedNode>, CallError> {
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
