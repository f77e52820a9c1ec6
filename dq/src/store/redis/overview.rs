//! The queries about a topic as a whole, over the shared connection.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::keys::Key;
use super::reply::{Readable, malformed};
use super::scripts::Step;
use super::topic_state::state_of;
use super::{RedisStore, millis_of};
use crate::job::{NodeId, TopicKey};
use crate::store::{DueCount, MAX_MINUTES, MinuteCounts, StoreError, TopicCounts, TopicOverview};
use crate::time::Timestamp;

impl RedisStore {
    /// One script, and a second one if nodes hold jobs: it counts those.
    pub(super) async fn overview_of(&self, topic: &TopicKey, nodes: usize) -> Result<TopicOverview, StoreError> {
        let overview = self.overview_with(topic, nodes, &BTreeSet::new()).await?;
        if overview.nodes.is_empty() {
            return Ok(overview);
        }
        let named = overview.nodes.into_iter().map(|seen| seen.node).collect();
        self.overview_with(topic, nodes, &named).await
    }

    async fn overview_with(
        &self,
        topic: &TopicKey,
        nodes: usize,
        named: &BTreeSet<NodeId>,
    ) -> Result<TopicOverview, StoreError> {
        let call = self.scripts_of(topic).call_with_nodes(Step::Overview, named);
        let call = call.arg(nodes).nodes(named);
        let mut reply = self.shards.ask_list(call).await?;
        let counts: TopicCounts = reply.read()?;
        // A node that came between the two calls has taken its first jobs just now.
        let (holders, nodes, recent) = (reply.read()?, reply.read()?, reply.read::<Option<_>>()?);
        let (by_shift, watcher, standby) = (reply.read::<[usize; 6]>()?, role(reply.read()?), role(reply.read()?));
        let (settings, Readable(shut), Readable(opens)) = (reply.read()?, reply.read()?, reply.read()?);
        let opens = opens.map(Timestamp::ceil_micros).filter(|at| *at > counts.clock);
        // As the script adds to due times: normal, high, low; then the same of blocked jobs.
        let [normal, high, low, blocked @ ..] = by_shift;
        let due = [high.saturating_add(blocked[1]), normal.saturating_add(blocked[0]), low.saturating_add(blocked[2])];
        Ok(TopicOverview {
            counts,
            state: state_of(settings, counts.clock),
            holders,
            nodes,
            watcher,
            standby,
            recent: recent.map(|minutes| MinuteCounts::recent(&minutes_in(minutes), counts.clock)),
            shut,
            opens,
            due,
            blocked: blocked.into_iter().fold(0, usize::saturating_add),
            hides_leases: false,
        })
    }

    pub(super) async fn due_counts_of(
        &self,
        topic: &TopicKey,
        times: &[Timestamp],
    ) -> Result<Vec<DueCount>, StoreError> {
        let mut call = self.scripts_of(topic).call(Step::DueCounts);
        times.iter().for_each(|at| call.push(millis_of(*at)));
        let (is_exact, counts): (_, Vec<_>) = self.shards.ask(call).await?;
        if counts.len() + 1 != times.len().max(1) {
            return Err(malformed("due_counts", "it has another number of counts"));
        }
        Ok(counts.into_iter().map(|jobs| DueCount { jobs, is_exact }).collect())
    }

    /// One HMGET of the places that these minutes have in the ring.
    pub(super) async fn statistics_of(
        &self,
        topic: &TopicKey,
        from: u64,
        to: u64,
    ) -> Result<Vec<MinuteCounts>, StoreError> {
        let keys = self.keyspace.of(topic);
        let places: Vec<_> = (from..=to).map(|minute| minute % MAX_MINUTES).collect();
        let found = self.shards.read_key("statistics", &keys, Key::Statistics, "HMGET", places).await?;
        let mut minutes = minutes_in(found);
        // In the place of a minute may be that of another day.
        minutes.retain(|counts| (from..=to).contains(&counts.minute));
        Ok(minutes)
    }
}

/// A role: the node and when it lapses; nothing where nobody has it.
fn role((node, Readable(until)): (NodeId, Readable<u64>)) -> Option<(NodeId, Timestamp)> {
    (!node.as_str().is_empty()).then(|| (node, Timestamp::from_millis(until.unwrap_or_default())))
}

/// The minutes of an answer. Only another program writes what is no minute.
fn minutes_in(found: Vec<Option<Bytes>>) -> Vec<MinuteCounts> {
    found.into_iter().flatten().filter_map(|minute| MinuteCounts::from_bytes(&minute)).collect()
}
