//! What a topic counted, over the shared connection.

use super::RedisStore;
use super::keys::Key;
use super::reply::Reply;
use crate::job::TopicKey;
use crate::store::{MOST_MINUTES, MinuteCounts, RECENT_MINUTES, StoreError};
use crate::time::Timestamp;

impl RedisStore {
    /// One HMGET of the places that these minutes have in the ring.
    pub(super) async fn statistics_of(
        &self,
        topic: &TopicKey,
        from: u64,
        to: u64,
    ) -> Result<Vec<MinuteCounts>, StoreError> {
        let minutes = to.saturating_sub(from).saturating_add(1);
        if minutes > MOST_MINUTES {
            let (size, limit) = (usize::try_from(minutes).unwrap_or(usize::MAX), MOST_MINUTES as usize);
            return Err(StoreError::OverLimit { what: "the number of minutes", size, limit });
        }
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(self.keyspace.of(topic).name(Key::Statistics, ""));
        (from..=to).for_each(|minute| {
            cmd.arg(minute % MOST_MINUTES);
        });
        let mut reply = Reply::list("statistics", self.queries.command("statistics", &cmd).await?)?;
        minutes_in(&mut reply, from, to)
    }
}

/// The minutes of an answer that lie between these two.
fn minutes_in(reply: &mut Reply, from: u64, to: u64) -> Result<Vec<MinuteCounts>, StoreError> {
    let mut minutes = Vec::with_capacity(reply.len());
    while reply.len() > 0 {
        // Only another program writes what is no minute, and in the place of one may be that of another day.
        let counts = MinuteCounts::from_bytes(&reply.bytes_or_nothing()?);
        minutes.extend(counts.filter(|counts| (from..=to).contains(&counts.minute)));
    }
    Ok(minutes)
}

/// Reads what an overview has of the present minute and those before it.
pub(super) fn recent(reply: &mut Reply, clock: Timestamp) -> Result<Option<MinuteCounts>, StoreError> {
    let Some(mut minutes) = reply.nested_or_nothing()? else { return Ok(None) };
    let to = clock.as_millis() / 60_000;
    let from = to.saturating_sub(RECENT_MINUTES);
    let mut sum = MinuteCounts { minute: from, ..MinuteCounts::default() };
    minutes_in(&mut minutes, from, to)?.iter().for_each(|counts| sum.add(counts));
    Ok(Some(sum))
}
