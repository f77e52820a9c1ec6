//! The depths of topics as metrics.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::Provider;
use super::error::QueryError;
use crate::store::TopicCounts;
use crate::telemetry::{gauge, label, table};

/// How many topics are counted at a time.
const TOGETHER: usize = 8;

impl Provider {
    /// Asks the store how many jobs each of these topics has in each state, and reports that as the metric `dq_jobs`. Call it before
    /// you render the metrics; nothing else sets that metric, and every process that asks gets the same numbers.
    ///
    /// It asks once a topic, for eight topics at a time; `health().topics` has the topics of a node. Cancel safe.
    ///
    /// # Errors
    /// The first error of the store; topics that were counted before are reported.
    pub async fn measure_depths(&self, topics: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), QueryError> {
        let topics: Vec<_> = topics.into_iter().map(|topic| topic.as_ref().to_owned()).collect();
        stream::iter(topics)
            .map(async |topic: String| {
                depth(&topic, &self.topic(&topic)?.counts().await?);
                Ok(())
            })
            .buffer_unordered(TOGETHER)
            .try_collect()
            .await
    }
}

/// Reports how many jobs a topic has in each state.
fn depth(topic: &str, counts: &TopicCounts) {
    let topic = label(topic);
    let of_states = [
        ("delayed", counts.delayed),
        ("ready", counts.ready),
        ("running", counts.running),
        ("unacked", counts.unacked),
        ("dead", counts.dead),
        ("done", counts.done),
    ];
    for (state, jobs) in of_states {
        gauge(&table::DEPTH, &[topic, state]).set(jobs as f64);
    }
}
