//! The queries about a topic as a whole: `overview` and `due_counts`. They change nothing.

use super::now::Now;
use super::places::TimedPlace;
use super::topic::Topic;
use crate::store::{
    DueCount, HolderSeen, MOST_BUCKETS, MOST_MINUTES, MOST_NODES, MinuteCounts, StoreError, TopicOverview,
};
use crate::time::Timestamp;

/// How many jobs one `due_counts` counts at most.
const MOST_COUNTED: usize = 2_000_000;

impl Topic {
    /// The topic as a whole. O(nodes log nodes + jobs that are due).
    pub(crate) fn overview(&self, now: Now, nodes: usize) -> Result<TopicOverview, StoreError> {
        limited("the number of nodes", nodes, MOST_NODES)?;
        let seen = self.jobs.holders().iter().map(|(node, holder)| {
            let jobs = holder.rows.len();
            HolderSeen { node: node.clone(), lease: holder.lease, jobs }
        });
        let mut holders: Vec<_> = seen.collect();
        holders.sort_by(|a, b| (a.lease, &a.node).cmp(&(b.lease, &b.node)));
        let count = holders.len();
        holders.truncate(nodes);
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

    /// What the topic counted in these minutes. O(1): there are no more than those of a day.
    pub(crate) fn statistics(&self, from: u64, to: u64) -> Result<Vec<MinuteCounts>, StoreError> {
        let minutes = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        limited("the number of minutes", minutes.saturating_add(1), MOST_MINUTES as usize)?;
        Ok(self.statistics.between(from, to))
    }

    /// The number of DELAYED jobs between each two times. O(that number), of [`MOST_COUNTED`] at most.
    pub(crate) fn due_counts(&self, times: &[Timestamp]) -> Result<Vec<DueCount>, StoreError> {
        limited("the number of times", times.len(), MOST_BUCKETS + 1)?;
        let (index, mut left) = (self.jobs.index(TimedPlace::Delayed), MOST_COUNTED);
        let count = |span: &[Timestamp]| {
            let jobs = index.between(span[0], span[1]).take(left).count();
            left -= jobs;
            DueCount { jobs, is_exact: left > 0 }
        };
        Ok(times.windows(2).map(count).collect())
    }
}

/// Rejects a request over its limit.
const fn limited(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit { Err(StoreError::OverLimit { what, size, limit }) } else { Ok(()) }
}
