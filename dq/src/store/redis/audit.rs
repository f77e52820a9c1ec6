//! The steps that look at the rows of all nodes: `scan`, `audit` and `recover` (rule 2).
//!
//! Every key that a script touches is in its KEYS, so a request names the nodes whose rows it reads. Where another node has a
//! lease by then, the script does nothing and answers *again*, with all nodes, and the request goes out once more.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::link::RedisLink;
use super::reply::Reply;
use super::scripts::{ScriptCall, Step};
use super::topic_state::told;
use crate::job::NodeId;
use crate::store::step::{Audit, Audited, Recover, Recovered, RowCursor, Scanned};
use crate::store::{Answer, Pending, StoreError};

/// How often a request is sent at most, while nodes come and go.
pub(super) const TRIES: usize = 16;

/// The error of a request that was sent [`TRIES`] times: nothing was done.
pub(super) fn too_many_nodes(operation: &'static str) -> StoreError {
    StoreError::Refused { operation, reason: "nodes come and go too fast to be counted".into() }
}

/// Reads the nodes of an answer that asks for another try.
pub(super) fn nodes_of(reply: &mut Reply) -> Result<BTreeSet<NodeId>, StoreError> {
    let mut nodes = BTreeSet::new();
    let mut names = reply.nested()?;
    while names.len() > 0 {
        nodes.insert(names.node()?);
    }
    Ok(nodes)
}

impl RedisLink {
    /// Sends a request until it names all nodes. `arguments` adds its arguments to a call that has its keys.
    fn ask_with_nodes(
        &self,
        step: Step,
        arguments: impl Fn(ScriptCall, &BTreeSet<NodeId>) -> ScriptCall + Send + 'static,
    ) -> Pending<Reply> {
        let (connection, scripts, keys) = (self.connection.clone(), Arc::clone(&self.scripts), self.keys.clone());
        let call = move |nodes: &BTreeSet<NodeId>| arguments(scripts.call_with_nodes(step, &keys, "", nodes), nodes);
        let mut answer = Box::pin(connection.ask_list(call(&BTreeSet::new())));
        Box::pin(async move {
            for _ in 1..TRIES {
                let mut reply = answer.await?;
                if !reply.is_set()? {
                    return Ok(reply);
                }
                let nodes = nodes_of(&mut reply)?;
                answer = Box::pin(connection.ask_list(call(&nodes)));
            }
            let mut reply = answer.await?;
            if reply.is_set()? { Err(too_many_nodes(step.name())) } else { Ok(reply) }
        })
    }

    pub(super) fn scan(&self) -> Pending<Answer> {
        let answer = self.ask_with_nodes(Step::Scan, with_nodes);
        Box::pin(async move {
            let mut reply = answer.await?;
            let (clock, mut ends) = (reply.time()?, reply.nested()?);
            let mut leases = Vec::with_capacity(ends.len() / 2);
            while ends.len() > 0 {
                leases.push((ends.node()?, ends.time()?));
            }
            leases.sort();
            let (records, places) = (reply.count()?, reply.count()?);
            let (state, left) = told(&mut reply, clock)?;
            Ok(Answer::Scan(Scanned { clock, leases, records, places, state, left }))
        })
    }

    pub(super) fn audit(&self, request: &Audit) -> Pending<Answer> {
        let after = request.after.as_ref().map_or(String::new(), |cursor| cursor.as_str().to_owned());
        let (limit, bytes) = (request.limit.max(1), request.bytes);
        let arguments =
            move |call: ScriptCall, nodes: &BTreeSet<NodeId>| with_nodes(call.arg(&after).arg(limit).arg(bytes), nodes);
        let answer = self.ask_with_nodes(Step::Audit, arguments);
        let topic = self.keys.topic().clone();
        Box::pin(async move {
            let mut reply = answer.await?;
            let near = reply.ids()?;
            if let Some(first) = near.first() {
                tracing::warn!(topic = %topic.topic, count = near.len(), %first, "jobs whose place another program removed wait again");
            }
            let lost = reply.ids()?;
            let next = Some(reply.text()?).filter(|cursor| !cursor.is_empty()).map(RowCursor::new);
            Ok(Answer::Audit(Audited { lost, next }))
        })
    }

    pub(super) fn recover(&self, request: &Recover) -> Pending<Answer> {
        let (ids, bytes) = (request.ids.clone(), request.bytes);
        let arguments = move |call: ScriptCall, nodes: &BTreeSet<NodeId>| {
            let mut call = with_nodes(call.arg(bytes).arg(nodes.len()), nodes);
            ids.iter().for_each(|id| call.push(id.as_str()));
            call
        };
        let answer = self.ask_with_nodes(Step::Recover, arguments);
        Box::pin(async move {
            let mut reply = answer.await?;
            reply.nested()?;
            let (recovered, examined) = (reply.ids()?, reply.nested()?.len());
            Ok(Answer::Recover(Recovered { recovered, examined }))
        })
    }
}

fn with_nodes(mut call: ScriptCall, nodes: &BTreeSet<NodeId>) -> ScriptCall {
    nodes.iter().for_each(|node| call.push(node.as_str()));
    call
}
