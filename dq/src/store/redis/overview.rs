//! The queries about a topic as a whole, over the shared connection.

use std::collections::BTreeSet;

use super::inspect::counted;
use super::keys::Key;
use super::reply::{Reply, malformed};
use super::scripts::Step;
use super::topic_state::state_of;
use super::{RedisStore, millis_of};
use crate::job::{NodeId, TopicKey};
use crate::store::{DueCount, HolderSeen, MAX_MINUTES, MinuteCounts, StoreError, TopicOverview};
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
        let counts = counted(&mut reply.nested()?)?;
        let holders = reply.count()?;
        // A node that came between the two calls has taken its first jobs just now.
        let nodes = reply
            .nested()?
            .each(|held| Ok(Some(HolderSeen { node: held.node()?, lease: held.time()?, jobs: held.count()? })))?;
        let (recent, mut by_shift) = (recent(&mut reply, counts.clock)?, reply.nested()?);
        let (watcher, standby) = (role(&mut reply)?, role(&mut reply)?);
        let state = state_of(&mut reply, counts.clock)?;
        let shut = reply.text()?.parse().ok();
        let opens = reply.text()?.parse().ok().map(|micros: u64| Timestamp::from_millis(micros.div_ceil(1_000)));
        let opens = opens.filter(|at| *at > counts.clock);
        // As the script adds to due times: normal, high, low; then the same of blocked jobs.
        let mut count = || if by_shift.len() > 0 { by_shift.count() } else { Ok(0) };
        let [normal, high, low] = [count()?, count()?, count()?];
        let blocked = [count()?, count()?, count()?];
        let due = [high + blocked[1], normal + blocked[0], low + blocked[2]];
        Ok(TopicOverview {
            counts,
            state,
            holders,
            nodes,
            watcher,
            standby,
            recent,
            shut,
            opens,
            due,
            blocked: blocked.iter().sum(),
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
        let mut reply = self.shards.ask_list(call).await?;
        let is_exact = reply.is_set()?;
        if reply.len() + 1 != times.len().max(1) {
            return Err(malformed("due_counts", "it has another number of counts"));
        }
        (0..reply.len()).map(|_| Ok(DueCount { jobs: reply.count()?, is_exact })).collect()
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
        let mut minutes = minutes_in(Reply::list("statistics", found)?)?;
        // In the place of a minute may be that of another day.
        minutes.retain(|counts| (from..=to).contains(&counts.minute));
        Ok(minutes)
    }
}

/// A role: the node and when it lapses; nothing where nobody has it.
fn role(reply: &mut Reply) -> Result<Option<(NodeId, Timestamp)>, StoreError> {
    let (node, until) = (reply.text()?, reply.text()?);
    let until = Timestamp::from_millis(until.parse().unwrap_or_default());
    Ok((!node.is_empty()).then(|| (NodeId::new(&node), until)))
}

/// The minutes of an answer.
fn minutes_in(reply: Reply) -> Result<Vec<MinuteCounts>, StoreError> {
    // Only another program writes what is no minute.
    reply.each(|reply| Ok(MinuteCounts::from_bytes(&reply.bytes_or_nothing()?)))
}

/// Reads what an overview has of the present minute and those before it.
fn recent(reply: &mut Reply, clock: Timestamp) -> Result<Option<MinuteCounts>, StoreError> {
    let Some(minutes) = reply.nested_or_nothing()? else { return Ok(None) };
    Ok(Some(MinuteCounts::recent(&minutes_in(minutes)?, clock)))
}
