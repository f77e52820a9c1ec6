//! One scale of a timeline, for whoever looks at many topics.

use super::inspector::Inspector;
use super::timeline::{Bucket, Scale, buckets};
use crate::provider::CallError;
use crate::time::Timestamp;

impl Inspector {
    /// Reads how many jobs of a topic fall due behind `now` on one scale of its [`timeline`](Self::timeline). It costs one query,
    /// whatever waits. [`InspectedTopic::clock`](super::InspectedTopic::clock) is a good `now`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn outlook(&self, topic: &str, scale: Scale, now: Timestamp) -> Result<Vec<Bucket>, CallError> {
        let bounds = scale.bounds(now);
        let counts = self.of(topic)?.due_counts(bounds.clone()).await?;
        Ok(buckets(&bounds, &counts))
    }
}
