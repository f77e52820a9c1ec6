//! Requests that look at the rows of all nodes.
//!
//! Every key that a script touches is in its KEYS, so a request names the nodes whose rows it reads. Where another node has a
//! lease by then, the script does nothing and answers *again*, with all nodes, and the request goes out once more.

use std::collections::BTreeSet;

use super::reply::Reply;
use super::scripts::{ScriptCall, Step, TopicScripts};
use crate::job::NodeId;
use crate::store::StoreError;

/// How often a request is sent at most, while nodes come and go.
pub(super) const TRIES: usize = 16;

/// The error of a request that was sent [`TRIES`] times: nothing was done.
pub(super) fn too_many_nodes(operation: &'static str) -> StoreError {
    StoreError::Refused { operation, reason: "nodes come and go too fast to be counted".into() }
}

/// Reads the nodes of an answer that asks for another try.
pub(super) fn nodes_of(reply: &mut Reply) -> Result<BTreeSet<NodeId>, StoreError> {
    reply.read::<Vec<_>>().map(BTreeSet::from_iter)
}

/// Sends a request until it names all nodes that have a lease. Returns the answer after its first value.
pub(super) async fn with_all_nodes<A: Future<Output = Result<Reply, StoreError>>>(
    step: Step,
    mut nodes: BTreeSet<NodeId>,
    mut ask: impl FnMut(&BTreeSet<NodeId>) -> A,
) -> Result<Reply, StoreError> {
    for _ in 0..TRIES {
        let mut reply = ask(&nodes).await?;
        if !reply.read::<bool>()? {
            return Ok(reply);
        }
        nodes.extend(nodes_of(&mut reply)?);
    }
    Err(too_many_nodes(step.name()))
}

/// The new metadata and the payload of a job that no node can decode; both empty: of none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Undecodable<'a> {
    pub(super) metadata: &'a [u8],
    pub(super) payload: &'a [u8],
}

/// A call of `recover`. `far_lost` is empty, unless all far jobs were looked at; `undecodable` is the one job, if no node can decode it.
pub(super) fn recover_call<'a>(
    scripts: &TopicScripts,
    nodes: &BTreeSet<NodeId>,
    bytes: usize,
    far_lost: &str,
    undecodable: Undecodable<'_>,
    ids: impl IntoIterator<Item = &'a str>,
) -> ScriptCall {
    let call = scripts.call_with_nodes(Step::Recover, nodes).arg(bytes).arg(far_lost);
    let mut call = call.arg(undecodable.metadata).arg(undecodable.payload).arg(nodes.len()).nodes(nodes);
    ids.into_iter().for_each(|id| call.push(id));
    call
}
