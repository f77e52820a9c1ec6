//! What is going to fall due.

use std::time::Duration;

use serde::Serialize;

use super::inspector::Inspector;
use crate::provider::CallError;
use crate::store::DueCount;
use crate::time::Timestamp;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How many jobs fall due, from now on. The first bucket of each list begins now, the others with a whole minute, hour or day of UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Timeline {
    /// The store's clock.
    pub now: Timestamp,
    /// Jobs that are due already.
    pub ready: usize,
    /// The next 60 minutes.
    pub minutes: Vec<Bucket>,
    /// The next 24 hours.
    pub hours: Vec<Bucket>,
    /// The next 30 days.
    pub days: Vec<Bucket>,
}

/// How many jobs fall due in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Bucket {
    /// The first moment.
    pub from: Timestamp,
    /// The first moment behind it.
    pub to: Timestamp,
    /// The number of jobs.
    pub jobs: usize,
    /// `false`: counting them all would have cost too much, and the number is an estimate on Redis, and the least that it can be
    /// elsewhere.
    pub is_exact: bool,
}

/// The lists of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scale {
    /// The next 60 minutes.
    Minutes,
    /// The next 24 hours.
    Hours,
    /// The next 30 days.
    Days,
}

impl Scale {
    /// The bounds of the buckets that begin behind `now`. A job that is due at `now` is ready.
    fn bounds(self, now: Timestamp) -> Vec<Timestamp> {
        let (length, count) = match self {
            Self::Minutes => (MINUTE, 60),
            Self::Hours => (HOUR, 24),
            Self::Days => (DAY, 30),
        };
        let first = now.after(Duration::from_millis(1));
        let whole = first.as_millis() / length * length;
        let ends = (1..=count).map(|n| Timestamp::from_millis(whole.saturating_add(n * length)));
        std::iter::once(first).chain(ends).collect()
    }
}

impl Inspector {
    /// Reads how many jobs fall due in each minute of the next hour, each hour of the next day and each day of the next 30 days.
    /// It costs four queries, whatever waits.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn timeline(&self, topic: &str) -> Result<Timeline, CallError> {
        let counts = self.of(topic)?.overview(0).await?.counts;
        let (now, ready) = (counts.clock, counts.ready);
        let minutes = self.timeline_for(topic, Scale::Minutes, now).await?;
        let hours = self.timeline_for(topic, Scale::Hours, now).await?;
        let days = self.timeline_for(topic, Scale::Days, now).await?;
        Ok(Timeline { now, ready, minutes, hours, days })
    }

    /// Reads how many jobs of a topic fall due behind `now` on one scale of its [`timeline`](Self::timeline). It costs one query,
    /// whatever waits. [`TopicSummary::store_time`](super::TopicSummary::store_time) is a good `now`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn timeline_for(&self, topic: &str, scale: Scale, now: Timestamp) -> Result<Vec<Bucket>, CallError> {
        let bounds = scale.bounds(now);
        let counts = self.of(topic)?.due_counts(bounds.clone()).await?;
        let bucket = |(span, count): (&[Timestamp], DueCount)| Bucket {
            from: span[0],
            to: span[1],
            jobs: count.jobs,
            is_exact: count.is_exact,
        };
        Ok(bounds.windows(2).zip(counts).map(bucket).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_with_whole_minutes_hours_and_days() {
        let now = Timestamp::from_millis(DAY * 3 + HOUR + MINUTE + 5);
        for (scale, length, count) in [(Scale::Minutes, MINUTE, 60), (Scale::Hours, HOUR, 24), (Scale::Days, DAY, 30)] {
            let bounds = scale.bounds(now);
            assert_eq!((bounds.len(), bounds[0].as_millis()), (count + 1, now.as_millis() + 1));
            assert!(bounds[1..].iter().all(|end| end.as_millis() % length == 0), "{bounds:?}");
            assert!(bounds.windows(2).all(|span| span[0] < span[1]), "{bounds:?}");
        }
    }
}
