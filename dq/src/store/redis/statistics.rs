//! What a topic counted, over the shared connection.

use super::RedisStore;
use super::keys::Key;
use super::reply::Reply;
use crate::job::TopicKey;
use crate::store::{MOST_MINUTES, MinuteCounts, StoreError};
use crate::time::Timestamp;

impl RedisStore {
    /// One HMGET of the places that these minutes have in the ring.
    pub(super) async fn statistics_of(
        &self,
        topic: &TopicKey,
        from: u64,
        to: u64,
    ) -> Result<Vec<MinuteCounts>, StoreError> {
        let key = (&self.keyspace.of(topic), Key::Statistics);
        let places: Vec<_> = (from..=to).map(|minute| minute % MOST_MINUTES).collect();
        let found = self.shards.read_key("statistics", key, "HMGET", places).await?;
        let mut minutes = minutes_in(Reply::list("statistics", found)?)?;
        // In the place of a minute may be that of another day.
        minutes.retain(|counts| (from..=to).contains(&counts.minute));
        Ok(minutes)
    }
}

/// The minutes of an answer.
fn minutes_in(reply: Reply) -> Result<Vec<MinuteCounts>, StoreError> {
    // Only another program writes what is no minute.
    reply.each(|reply| Ok(MinuteCounts::from_bytes(&reply.bytes_or_nothing()?)))
}

/// Reads what an overview has of the present minute and those before it.
pub(super) fn recent(reply: &mut Reply, clock: Timestamp) -> Result<Option<MinuteCounts>, StoreError> {
    let Some(minutes) = reply.nested_or_nothing()? else { return Ok(None) };
    Ok(Some(MinuteCounts::recent(&minutes_in(minutes)?, clock)))
}
