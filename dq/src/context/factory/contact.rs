//! First contact with the store: is it there, can it serve the topics, and does anything wait that nobody here runs.
//!
//! Every question is bounded by `call_total`. An outage is told once and ends the questions.

use std::future::Future;
use std::time::Duration;

use super::discover::Listeners;
use crate::context::problems::Problem;
use crate::environment::Environment;
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::{Store, StoreError};

/// Topics without a listener that are looked into.
const MOST_LOOKED_INTO: usize = 100;

/// A store that was not asked anything yet.
#[derive(Debug)]
pub(crate) struct FirstContact<'a> {
    pub(crate) app: &'a AppName,
    pub(crate) store: &'a dyn Store,
    pub(crate) environment: &'a Environment,
    /// How long to wait for each answer.
    pub(crate) limit: Duration,
}

impl FirstContact<'_> {
    /// Asks for the topics there are, and opens those of the listeners; warns of jobs that wait for none of them.
    pub(crate) async fn make(&self, listeners: &Listeners, only_provides: bool, problems: &mut Vec<Problem>) {
        let stored = match self.within("topics", self.store.topics(self.app)).await {
            Ok(stored) => stored,
            Err(error) => {
                problems.push(Problem::StoreUnreachable { url: self.store.url(), error });
                return;
            }
        };
        let channels = listeners.broadcast.iter().flat_map(|(channels, _)| channels);
        let mut topics: Vec<_> = listeners.delay.iter().map(|(topic, _)| topic).chain(channels).collect();
        topics.sort();
        topics.dedup();
        for topic in topics {
            match self.within("open", self.store.open(&self.key(topic))).await {
                Ok(()) => {}
                Err(error) if error.is_outage() => {
                    problems.push(Problem::StoreUnreachable { url: self.store.url(), error });
                    return;
                }
                Err(error) => {
                    let (url, topic) = (self.store.url(), topic.to_string());
                    problems.push(Problem::StoreTopic { url, topic, error });
                }
            }
        }
        if problems.is_empty() && !only_provides {
            self.warn_of_unserved(listeners, stored).await;
        }
    }

    async fn warn_of_unserved(&self, listeners: &Listeners, stored: Vec<TopicName>) {
        let served = |topic: &TopicName| {
            listeners.topics.contains(&topic.as_str()) || listeners.channels.contains(topic.as_str())
        };
        for topic in stored.into_iter().filter(|topic| !served(topic)).take(MOST_LOOKED_INTO) {
            let Ok(counts) = self.within("counts", self.store.counts(&self.key(&topic))).await else { return };
            if counts.delayed > 0 {
                tracing::warn!(
                    %topic,
                    waiting = counts.delayed,
                    "jobs wait in a topic that has no listener in this program; \
                     a listener in another crate needs a `use that_crate as _;`"
                );
            }
        }
    }

    fn key(&self, topic: &TopicName) -> TopicKey {
        TopicKey { app: self.app.clone(), topic: topic.clone() }
    }

    async fn within<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.environment.sleep_until(self.environment.now() + self.limit) => {
                let reason = format!("no answer within {}", humantime::format_duration(self.limit));
                Err(StoreError::Unavailable { operation, reason })
            }
        }
    }
}
