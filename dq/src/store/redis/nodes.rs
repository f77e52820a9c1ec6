//! The queries about nodes and what they run, over the shared connection.

use std::collections::BTreeSet;

use super::RedisStore;
use super::keys::Keys;
use super::reply::{Reply, fence_of};
use super::scripts::Step;
use crate::job::{NodeId, Record, TopicKey};
use crate::store::{Cursor, HolderSeen, JobPlace, NodesPage, NodesRequest, Page, StoreError, Stored};
use crate::time::Timestamp;

/// The rows of how many nodes a page of RUNNING reads at most.
const NODES_A_PAGE: usize = 16;

impl RedisStore {
    /// One script names the nodes, and a second one counts their rows.
    pub(super) async fn nodes_of(&self, topic: &TopicKey, request: NodesRequest) -> Result<NodesPage, StoreError> {
        let (keys, limit) = (self.keyspace.of(topic), request.limit.max(1));
        let after = request.after.as_ref().map_or("", NodeId::as_str);
        let mut named = self.nodes_behind(&keys, after, limit + 1).await?;
        let is_cut = named.len() > limit;
        named.truncate(limit);
        let Some((last, _)) = named.last() else { return Ok(NodesPage::default()) };
        let next = is_cut.then(|| last.clone());
        let names: BTreeSet<_> = named.iter().map(|(node, _)| node.clone()).collect();
        let call = self.scripts.call_with_nodes(Step::Nodes, &keys, "", &names).arg(0).arg("");
        let mut call = call.arg(request.job.as_ref().map_or("", |id| id.as_str()));
        names.iter().for_each(|node| call.push(node.as_str()));
        let mut reply = self.queries.ask_list(call).await?;
        let (_, mut rows) = (reply.nested()?, reply.nested()?);
        let mut nodes = Vec::with_capacity(named.len());
        for (node, lease) in named {
            let (jobs, holds) = (rows.count()?, rows.is_set()?);
            nodes.extend((holds || request.job.is_none()).then_some(HolderSeen { node, lease, jobs }));
        }
        Ok(NodesPage { nodes, next })
    }

    /// The first nodes behind a name that have a lease, in the order of their names, and the ends of their leases.
    pub(super) async fn nodes_behind(
        &self,
        keys: &Keys,
        after: &str,
        most: usize,
    ) -> Result<Vec<(NodeId, Timestamp)>, StoreError> {
        let call = self.scripts.call_with_nodes(Step::Nodes, keys, "", &BTreeSet::new());
        let mut reply = self.queries.ask_list(call.arg(most).arg(after).arg("")).await?.nested()?;
        let mut named = Vec::with_capacity(reply.len() / 2);
        while reply.len() > 0 {
            named.push((reply.node()?, reply.time()?));
        }
        Ok(named)
    }

    /// A page of RUNNING, node after node, in two scripts. Nodes go on while it is read, so the pages do not show one moment.
    pub(super) async fn page_of_running(
        &self,
        keys: &Keys,
        after: Option<Cursor>,
        limit: usize,
        bytes: usize,
    ) -> Result<Page, StoreError> {
        let no_node = || StoreError::Other {
            operation: "page",
            source: "the cursor names no node, so another store gave it".into(),
        };
        let after = after.as_ref().map(|cursor| cursor.id.split_once('/').ok_or_else(no_node)).transpose()?;
        let (first, cursor) = after.unwrap_or_default();
        let behind = self.nodes_behind(keys, first, NODES_A_PAGE + 1).await?;
        let first = (!first.is_empty()).then(|| NodeId::new(first));
        let mut nodes: Vec<_> = first.into_iter().chain(behind.into_iter().map(|(node, _)| node)).collect();
        let following = nodes.get(NODES_A_PAGE).cloned();
        nodes.truncate(NODES_A_PAGE);
        let mut page = Page { jobs: Vec::new(), next: None };
        if nodes.is_empty() {
            return Ok(page);
        }
        let names: BTreeSet<_> = nodes.iter().cloned().collect();
        let call = self.scripts.call_with_nodes(Step::Rows, keys, "", &names).arg(limit).arg(cursor);
        let mut reply = self.queries.ask_list(call.arg(bytes).arg(nodes.len())).await?;
        rows_of(&mut reply, &nodes, &mut page.jobs)?;
        let (at, cursor) = (reply.count()?, reply.text()?);
        let next = at.checked_sub(1).map_or(following, |at| nodes.get(at).cloned());
        page.next = next.map(|node| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{cursor}") });
        Ok(page)
    }
}

/// Appends the rows of a page to `jobs`, node after node, those of each in order of their ids. Rows without a record, or whose ids are
/// not of dq, are left out.
fn rows_of(reply: &mut Reply, nodes: &[NodeId], jobs: &mut Vec<Stored>) -> Result<(), StoreError> {
    let (mut ids, mut tokens) = (reply.nested()?, reply.nested()?);
    let (mut records, mut overrides, mut rows) = (reply.nested()?, reply.nested()?, reply.nested()?);
    for node in nodes.iter().take(rows.len()) {
        let before = jobs.len();
        for _ in 0..rows.count()? {
            let (id, token, record) = (ids.id()?, tokens.text()?, records.record_or_nothing()?);
            let metadata = overrides.bytes_or_nothing()?;
            let place = JobPlace::Running { holder: Some((node.clone(), fence_of(&token))) };
            let job = |(id, record): (_, Record)| Stored { id, record: record.under(&metadata), place, crashes: 0 };
            jobs.extend(id.ok().zip(record).map(job));
        }
        jobs[before..].sort_by(|a, b| a.id.cmp(&b.id));
    }
    Ok(())
}
