//! The queries about nodes, over the shared connection.

use std::collections::BTreeSet;

use redis::Value;

use super::RedisStore;
use super::scripts::{Step, TopicScripts};
use crate::job::{NodeId, TopicKey};
use crate::store::{HolderPage, HolderSeen, NodesRequest, StoreError};
use crate::time::Timestamp;

impl RedisStore {
    /// One script names the nodes, and a second one counts their rows.
    pub(super) async fn nodes_of(&self, topic: &TopicKey, request: NodesRequest) -> Result<HolderPage, StoreError> {
        let (scripts, limit) = (self.scripts_of(topic), request.limit.max(1));
        let after = request.after.as_ref().map_or("", NodeId::as_str);
        let mut named = self.nodes_behind(&scripts, after, limit + 1).await?;
        let is_cut = named.len() > limit;
        named.truncate(limit);
        let Some((last, _)) = named.last() else { return Ok(HolderPage::default()) };
        let next = is_cut.then(|| last.clone());
        let names: BTreeSet<_> = named.iter().map(|(node, _)| node.clone()).collect();
        let call = scripts.call_with_nodes(Step::Nodes, &names);
        let call = call.arg((0, "", request.job.as_ref().map_or("", |id| id.as_str()))).nodes(&names);
        let (_, rows): (Value, Vec<_>) = self.shards.ask(call).await?;
        let seen = |((node, lease), (jobs, holds))| {
            (holds || request.job.is_none()).then_some(HolderSeen { node, lease, jobs })
        };
        Ok(HolderPage { nodes: named.into_iter().zip(rows).filter_map(seen).collect(), next })
    }

    /// The first nodes behind a name that have a lease, in the order of their names, and the ends of their leases.
    pub(super) async fn nodes_behind(
        &self,
        scripts: &TopicScripts,
        after: &str,
        most: usize,
    ) -> Result<Vec<(NodeId, Timestamp)>, StoreError> {
        let call = scripts.call_with_nodes(Step::Nodes, &BTreeSet::new());
        let (named, _): (_, Value) = self.shards.ask(call.arg((most, after, ""))).await?;
        Ok(named)
    }
}
