//! What the doctor repairs: one mismatch at a time, each in one atomic step that looks again before it changes anything.

use std::collections::BTreeSet;

use super::all_nodes::{Undecodable, recover_call, with_all_nodes};
use super::directory::enter;
use super::keys::Key;
use super::rows::{is_id, key_of};
use super::scripts::{Step, body};
use super::{RedisStore, metadata_bytes};
use crate::job::limits::FENCE;
use crate::job::{NodeId, TopicKey};
use crate::store::step::DEFAULT_BYTES;
use crate::store::{FindingCode, ForeignRow, GiveUp, Mismatch, StoreError};
use crate::time::MAX_UNIQUE;

const SET_ASIDE: &str = include_str!("lua/set_aside.lua");
const SET_ROW_ASIDE: &str = include_str!("lua/set_row_aside.lua");
const CORRECT: &str = include_str!("lua/correct.lua");

impl RedisStore {
    /// `known` are nodes that hold jobs and have no lease.
    pub(super) async fn repair_of(
        &self,
        topic: &TopicKey,
        mismatch: &Mismatch,
        known: &[NodeId],
    ) -> Result<bool, StoreError> {
        let Mismatch { code, id, detail, .. } = mismatch;
        let keys = self.keyspace.of(topic);
        let mut cmd = redis::Cmd::new();
        match code {
            FindingCode::WrongType => {
                let at = self.shards.clock("repair").await?;
                cmd.arg("EVAL").arg(SET_ASIDE).arg(2).arg(id).arg(self.keyspace.set_aside(id, at)).arg(detail);
            }
            FindingCode::NotesBehind | FindingCode::FenceTooLarge => {
                cmd.arg("EVAL").arg(CORRECT).arg(1).arg(keys.name(Key::Meta, "")).arg(id).arg(detail).arg(FENCE.last());
            }
            FindingCode::NoExpiry => {
                // As the scripts set it: a day for a sequence number, an hour for the calls of a producer, and for taken ids an hour after
                // the last one at the latest.
                let (sequence, taken) = (keys.name(Key::Sequence, ""), keys.name(Key::Taken, ""));
                let longest = if *id == taken { MAX_UNIQUE.as_secs() } else { 0 };
                let seconds = if id.starts_with(&sequence) { 86_400 } else { longest + 3_600 };
                cmd.arg("EXPIRE").arg(id).arg(seconds);
            }
            FindingCode::TopicNotListed => {
                cmd = enter(&self.keyspace, topic);
            }
            _ => {
                let is_of_node = matches!(code, FindingCode::RowsWithoutLease | FindingCode::LeaseWithoutRows);
                let nodes = known.iter().cloned().chain(is_of_node.then(|| NodeId::new(id))).collect();
                let ids = (!is_of_node).then_some(id.as_str());
                let (jobs, leases) = self.recovered(topic, nodes, Undecodable::default(), ids).await?;
                return Ok(if is_of_node { leases } else { jobs } > 0);
            }
        }
        Ok(self.shards.command("repair", &cmd).await? == redis::Value::Int(1))
    }

    /// Moves a row into a hash whose name says when, beside the key that had it.
    pub(super) async fn set_row_aside(&self, topic: &TopicKey, row: &ForeignRow) -> Result<bool, StoreError> {
        let Some((key, owner)) = key_of(&row.key) else { return Ok(false) };
        let name = self.keyspace.of(topic).name(key, owner);
        let at = self.shards.clock("repair").await?;
        // One of the two records of a job goes only while the job has the other one, with a due time if that is far.
        let other = match key {
            Key::Jobs => Some((Key::FarJobs, 6)),
            Key::FarJobs if row.value.len() >= 6 => Some((Key::Jobs, 0)),
            _ => None,
        };
        let other =
            other.filter(|_| is_id(&row.name)).map(|(key, least)| (self.keyspace.of(topic).name(key, ""), least));
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(body(SET_ROW_ASIDE)).arg(2 + usize::from(other.is_some()));
        cmd.arg(&name).arg(self.keyspace.set_aside(&name, at)).arg(other.as_ref().map(|(name, _)| name));
        cmd.arg(key.redis_type()).arg(&row.name[..]).arg(&row.value[..]).arg(other.as_ref().map(|(_, least)| least));
        Ok(self.shards.command("repair", &cmd).await? == redis::Value::Int(1))
    }

    pub(super) async fn give_up_of(&self, topic: &TopicKey, job: &GiveUp) -> Result<bool, StoreError> {
        let metadata = metadata_bytes(job.metadata());
        let undecodable = Undecodable { metadata: &metadata, payload: job.kept() };
        let (jobs, _) = self.recovered(topic, BTreeSet::new(), undecodable, Some(job.id.as_str())).await?;
        Ok(jobs > 0)
    }

    /// With how many jobs, and with how many leases, something was wrong.
    async fn recovered(
        &self,
        topic: &TopicKey,
        nodes: BTreeSet<NodeId>,
        undecodable: Undecodable<'_>,
        id: Option<&str>,
    ) -> Result<(usize, usize), StoreError> {
        let scripts = self.scripts_of(topic);
        let ask = |nodes: &BTreeSet<NodeId>| {
            let call = recover_call(&scripts, nodes, DEFAULT_BYTES, "", undecodable, id);
            self.shards.ask_list(call)
        };
        let mut reply = with_all_nodes(Step::Recover, nodes, ask).await?;
        let (jobs, _, leases) = (reply.nested()?.len(), reply.count()?, reply.count()?);
        Ok((jobs, leases))
    }
}
