//! First contact with the store: checks that it answers and can serve the topics, and warns of waiting jobs that no listener of
//! this program runs.
//!
//! Each answer may take `call_total`. The first outage is reported and ends the contact. A topic with a key of a wrong type
//! does not keep the others from starting (rule 1), unless there are no others.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures_util::future::join_all;

use super::discover::Listeners;
use crate::context::problems::Problem;
use crate::environment::Environment;
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::{Store, StoreError};

/// How many topics without a listener are checked for waiting jobs.
const MOST_UNSERVED: usize = 100;

/// A store that the node has not asked anything yet.
#[derive(Debug)]
pub(crate) struct FirstContact<'a> {
    pub(crate) app: &'a AppName,
    pub(crate) store: &'a dyn Store,
    pub(crate) environment: &'a Environment,
    /// How long to wait for each answer.
    pub(crate) limit: Duration,
}

impl FirstContact<'_> {
    /// Asks for the existing topics, opens those of the listeners, and warns of jobs that no listener runs. Returns the topics
    /// that the store cannot serve for now.
    pub(crate) async fn make(
        &self,
        listeners: &Listeners,
        only_provides: bool,
        problems: &mut Vec<Problem>,
    ) -> BTreeMap<TopicKey, StoreError> {
        let stored = match self.within("topics", self.store.topics(self.app)).await {
            Ok(stored) => stored,
            Err(error) => {
                problems.push(Problem::StoreUnreachable { url: self.store.url(), error });
                return BTreeMap::new();
            }
        };
        let refused = self.open_all(listeners, problems).await;
        if problems.is_empty() && !only_provides {
            self.warn_of_unserved(listeners, stored).await;
        }
        refused
    }

    async fn open_all(&self, listeners: &Listeners, problems: &mut Vec<Problem>) -> BTreeMap<TopicKey, StoreError> {
        let channels = listeners.broadcast.iter().flat_map(|(channels, _)| channels);
        let mut topics: Vec<_> = listeners.delay.iter().map(|(topic, _)| topic).chain(channels).collect();
        topics.sort();
        topics.dedup();
        let open = async |topic: &TopicName| {
            let key = self.key(topic);
            let opened = self.within("open", self.store.open(&key)).await;
            (key, opened)
        };
        let (count, mut refused) = (topics.len(), BTreeMap::new());
        for (key, opened) in join_all(topics.into_iter().map(open)).await {
            match opened {
                Ok(()) => {}
                Err(error) if error.is_outage() => {
                    problems.push(Problem::StoreUnreachable { url: self.store.url(), error });
                    return BTreeMap::new();
                }
                Err(error @ StoreError::WrongType { .. }) => drop(refused.insert(key, error)),
                Err(error) => problems.push(self.refusal(&key, error)),
            }
        }
        if refused.len() == count || !problems.is_empty() {
            problems.extend(std::mem::take(&mut refused).into_iter().map(|(key, error)| self.refusal(&key, error)));
        }
        refused
    }

    fn refusal(&self, key: &TopicKey, error: StoreError) -> Problem {
        Problem::StoreTopic { url: self.store.url(), topic: key.topic.to_string(), error }
    }

    async fn warn_of_unserved(&self, listeners: &Listeners, stored: Vec<TopicName>) {
        let served = |topic: &TopicName| {
            listeners.topics.contains(&topic.as_str()) || listeners.channels.contains(topic.as_str())
        };
        for topic in stored.into_iter().filter(|topic| !served(topic)).take(MOST_UNSERVED) {
            let Ok(counts) = self.within("counts", self.store.counts(&self.key(&topic))).await else { return };
            if counts.delayed > 0 {
                tracing::warn!(
                    %topic,
                    waiting = counts.delayed,
                    "jobs wait in a topic that has no listener in this program; \
                     if the listener is in another crate, write `use that_crate as _;` here"
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
