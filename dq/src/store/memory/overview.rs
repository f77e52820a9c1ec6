//! The queries about a topic as a whole: `overview`, `nodes` and `due_counts`. They change nothing.

use std::ops::Bound;

use super::now::Now;
use super::places::{Holder, TimedPlace};
use super::topic::Topic;
use crate::job::NodeId;
use crate::store::error::limited;
use crate::store::statistics::check_minutes;
use crate::store::{
    DueCount, HolderSeen, MOST_BUCKETS, MOST_NODES, MinuteCounts, NodesPage, NodesRequest, StoreError, TopicOverview,
};
use crate::time::Timestamp;

impl Topic {
    /// The topic as a whole. O(nodes log nodes + leaves with due jobs).
    pub(crate) fn overview(&self, now: Now, nodes: usize) -> Result<TopicOverview, StoreError> {
        limited("the number of nodes", nodes, MOST_NODES)?;
        let mut holders: Vec<_> = self.jobs.holders().iter().collect();
        let count = holders.len();
        holders.sort_unstable_by_key(|(node, holder)| (holder.lease, *node));
        let holders = holders.into_iter().take(nodes).map(seen).collect();
        let [watcher, standby] = self.roles.watchers();
        Ok(TopicOverview {
            counts: self.counts(now),
            state: self.topic_state(now),
            holders: count,
            nodes: holders,
            watcher,
            standby,
            recent: self.statistics.recent(now),
        })
    }

    /// A page of the nodes that hold jobs, in order of their names; of those that hold this job, if the request names one.
    pub(crate) fn nodes(&self, request: &NodesRequest) -> Result<NodesPage, StoreError> {
        limited("the number of nodes", request.limit, MOST_NODES)?;
        let after = request.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut holders = self.jobs.holders().range::<NodeId, _>((after, Bound::Unbounded));
        let page: Vec<_> = holders.by_ref().take(request.limit.max(1)).collect();
        let next = page.last().map(|(node, _)| (*node).clone()).filter(|_| holders.next().is_some());
        let asked = |holder: &Holder| request.job.as_ref().is_none_or(|id| holder.rows.contains(id));
        let nodes = page.into_iter().filter(|(_, holder)| asked(holder)).map(seen).collect();
        Ok(NodesPage { nodes, next })
    }

    /// What the topic counted in these minutes. O(1): there are no more than those of a day.
    pub(crate) fn statistics(&self, from: u64, to: u64) -> Result<Vec<MinuteCounts>, StoreError> {
        check_minutes(from, to)?;
        Ok(self.statistics.between(from, to))
    }

    /// The number of DELAYED jobs between each two times. O(leaves between the first and the last).
    pub(crate) fn due_counts(&self, times: &[Timestamp]) -> Result<Vec<DueCount>, StoreError> {
        limited("the number of times", times.len(), MOST_BUCKETS + 1)?;
        let index = self.jobs.index(TimedPlace::Delayed);
        let count = |span: &[Timestamp]| DueCount { jobs: index.count_between(span[0], span[1]), is_exact: true };
        Ok(times.windows(2).map(count).collect())
    }
}

fn seen((node, holder): (&NodeId, &Holder)) -> HolderSeen {
    HolderSeen { node: node.clone(), lease: holder.lease, jobs: holder.rows.len() }
}
