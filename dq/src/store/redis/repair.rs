//! What the doctor repairs: one mismatch at a time, each in one atomic step that looks again before it changes anything.

use std::collections::BTreeSet;

use super::audit::{TRIES, nodes_of, too_many_nodes};
use super::examine::letter_of;
use super::keys::{Key, Keys};
use super::reply::Reply;
use super::scripts::{ScriptCall, Step};
use super::{RedisStore, metadata_bytes};
use crate::job::{AppName, Cause, NodeId, TopicKey};
use crate::store::step::USUAL_BYTES;
use crate::store::{GiveUp, Mismatch, MismatchKind, StoreError};

const SET_ASIDE: &str = include_str!("lua/set_aside.lua");

/// For how long a node that has rows and no lease gets one, ms: if it lives, it renews the lease by then.
const LEASE: u64 = 60_000;

impl RedisStore {
    pub(super) async fn repair_of(
        &self,
        app: &AppName,
        mismatch: &Mismatch,
        nodes: &[NodeId],
    ) -> Result<bool, StoreError> {
        let topic = TopicKey { app: app.clone(), topic: mismatch.topic.clone() };
        let keys = self.keyspace.of(&topic);
        match mismatch.kind {
            MismatchKind::BroadcastWithoutPlace => Ok(false),
            MismatchKind::WrongType => self.set_aside(mismatch).await,
            MismatchKind::NoExpiry => self.expire(&keys, mismatch).await,
            MismatchKind::TopicNotListed => {
                let mut cmd = redis::cmd("ZADD");
                cmd.arg(self.keyspace.directory(app.as_str())).arg(0).arg(mismatch.topic.as_str());
                self.changed(&cmd).await
            }
            MismatchKind::JobWithoutPlace => {
                let arguments = |call: ScriptCall, nodes: &BTreeSet<NodeId>| {
                    let mut call = call.arg(USUAL_BYTES).arg(nodes.len());
                    nodes.iter().for_each(|node| call.push(node.as_str()));
                    call.arg(&mismatch.id)
                };
                let mut reply = self.ask_with_nodes(Step::Recover, &keys, nodes, arguments).await?;
                reply.nested()?;
                Ok(!reply.ids()?.is_empty())
            }
            _ => {
                let arguments = |call: ScriptCall, nodes: &BTreeSet<NodeId>| {
                    let call = call.arg(letter_of(mismatch.kind)).arg(&mismatch.id).arg(&mismatch.detail);
                    let mut call = call.arg(LEASE);
                    nodes.iter().for_each(|node| call.push(node.as_str()));
                    call
                };
                let holder =
                    Some(NodeId::new(&mismatch.id)).filter(|_| mismatch.kind == MismatchKind::RowsWithoutLease);
                let holder = holder.or_else(|| {
                    Some(NodeId::new(&mismatch.detail)).filter(|_| mismatch.kind == MismatchKind::RowWithoutJob)
                });
                let nodes: Vec<_> = nodes.iter().cloned().chain(holder).collect();
                let mut reply = self.ask_with_nodes(Step::Repair, &keys, &nodes, arguments).await?;
                reply.is_set()
            }
        }
    }

    /// Sends a request until it names all nodes that have a lease. Behind the answer's first value is what the script says.
    async fn ask_with_nodes(
        &self,
        step: Step,
        keys: &Keys,
        nodes: &[NodeId],
        arguments: impl Fn(ScriptCall, &BTreeSet<NodeId>) -> ScriptCall,
    ) -> Result<Reply, StoreError> {
        let mut nodes: BTreeSet<_> = nodes.iter().cloned().collect();
        for _ in 0..TRIES {
            let call = arguments(self.scripts.call_with_nodes(step, keys, "", &nodes), &nodes);
            let mut reply = self.queries.ask_list(call).await?;
            if !reply.is_set()? {
                return Ok(reply);
            }
            nodes.extend(nodes_of(&mut reply)?);
        }
        Err(too_many_nodes(step.name()))
    }

    async fn set_aside(&self, mismatch: &Mismatch) -> Result<bool, StoreError> {
        let time = redis::cmd("TIME");
        let mut reply = Reply::list("repair", self.queries.command("repair", &time).await?)?;
        let at = crate::time::Timestamp::from_millis(reply.number()? * 1_000);
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(SET_ASIDE)
            .arg(2)
            .arg(&mismatch.id)
            .arg(self.keyspace.set_aside(&mismatch.id, at))
            .arg(&mismatch.detail);
        self.changed(&cmd).await
    }

    async fn expire(&self, keys: &Keys, mismatch: &Mismatch) -> Result<bool, StoreError> {
        // As the scripts set it: a day for a sequence number, an hour for the calls of a producer.
        let is_sequence = mismatch.id.starts_with(&keys.name(Key::Sequence, ""));
        let mut cmd = redis::cmd("EXPIRE");
        cmd.arg(&mismatch.id).arg(if is_sequence { 86_400 } else { 3_600 });
        self.changed(&cmd).await
    }

    async fn changed(&self, cmd: &redis::Cmd) -> Result<bool, StoreError> {
        Ok(self.queries.command("repair", cmd).await? == redis::Value::Int(1))
    }

    pub(super) async fn give_up_of(&self, topic: &TopicKey, job: &GiveUp) -> Result<bool, StoreError> {
        let call = self.call(Step::GiveUp, topic).arg(job.id.as_str()).arg(job.kept());
        let cause = Cause::ALL.iter().position(|cause| *cause == Cause::Decode).unwrap_or_default() + 1;
        let answer = self.queries.ask(call.arg(metadata_bytes(job.metadata())).arg(cause)).await?;
        Ok(answer == redis::Value::Int(1))
    }
}
