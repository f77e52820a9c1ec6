//! First contact with the store, unless the program leaves that for later: checks that it answers and can serve the topics, and
//! warns of waiting jobs that no listener of this program runs.
//!
//! Each answer may take `call_deadline`. The first outage is reported and ends the contact. A topic with a key of a wrong type
//! does not keep the others from starting (rule 1), unless there are no others. The warning needs the directory of topics, which
//! can be long: it gets one second, and whatever happens there keeps nothing from starting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};

use super::discover::Listeners;
use crate::config::Source;
use crate::context::problems::Problem;
use crate::environment::Environment;
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::answered_within;
use crate::store::{Store, StoreError};

/// How long the directory of topics may keep a start waiting.
const DIRECTORY_WITHIN: Duration = Duration::from_secs(1);

/// How many topics are opened at a time.
const MAX_AT_ONCE: usize = 256;

/// How many topics without a listener are checked for waiting jobs.
const MAX_UNSERVED: usize = 100;

/// What a start does if the store cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Unreachable {
    /// It fails.
    #[default]
    Fails,
    /// Its topics wait until the store can be reached.
    Waits,
    /// Nothing: it does not ask.
    Ignored,
}

/// A store that the node has not asked anything yet.
#[derive(Debug)]
pub(crate) struct FirstContact<'a> {
    pub(crate) app: &'a AppName,
    pub(crate) store: &'a dyn Store,
    /// Where its URL comes from.
    pub(crate) store_at: Option<&'a Source>,
    pub(crate) environment: &'a Environment,
    /// How long to wait for each answer.
    pub(crate) limit: Duration,
    pub(crate) unreachable: Unreachable,
}

/// The topics that wait, each for its reason.
pub(crate) type Refused = BTreeMap<TopicKey, Arc<StoreError>>;

/// Every topic and broadcast channel of these listeners, once.
fn topics(listeners: &Listeners) -> Vec<&TopicName> {
    let channels = listeners.broadcast.iter().flat_map(|(channels, _)| channels);
    let mut topics: Vec<_> = listeners.delay.iter().map(|(topic, _)| topic).chain(channels).collect();
    topics.sort();
    topics.dedup();
    topics
}

impl FirstContact<'_> {
    /// Asks whether the store answers, opens the topics of the listeners, and warns of jobs that no listener runs. Returns the topics
    /// that the store cannot serve for now.
    pub(crate) async fn make(&self, listeners: &Listeners, is_provider: bool, problems: &mut Vec<Problem>) -> Refused {
        if let Err(error) = self.store.prepare().await {
            problems.push(Problem::StoreNotOpen { url: self.store.url(), at: self.store_at.cloned(), error });
            return BTreeMap::new();
        }
        if self.unreachable == Unreachable::Ignored {
            return BTreeMap::new();
        }
        if let Err(error) = answered_within(self.environment, self.limit, None, "ping", self.store.contact()).await {
            return self.unreachable(error, listeners, problems);
        }
        let refused = self.open_all(listeners, problems).await;
        let waits = refused.values().any(|error| error.is_outage());
        if problems.is_empty() && !is_provider && !waits {
            let warned = self.warn_of_unserved(listeners);
            if let Err(error) = answered_within(self.environment, DIRECTORY_WITHIN, None, "topics", warned).await {
                tracing::info!(%error, "cannot check whether jobs wait in topics that have no listener in this program");
            }
        }
        refused
    }

    /// The store cannot be reached: a problem, or the reason for which every topic waits.
    fn unreachable(&self, error: StoreError, listeners: &Listeners, problems: &mut Vec<Problem>) -> Refused {
        if self.unreachable != Unreachable::Waits || !error.is_outage() {
            problems.push(Problem::StoreUnreachable { url: self.store.url(), at: self.store_at.cloned(), error });
            return BTreeMap::new();
        }
        let url = self.store.url();
        tracing::info!(store = url, %error, "the store cannot be reached yet: the node waits for it, and starts its topics then");
        let error = Arc::new(error);
        topics(listeners).into_iter().map(|topic| (self.key(topic), Arc::clone(&error))).collect()
    }

    async fn open_all(&self, listeners: &Listeners, problems: &mut Vec<Problem>) -> Refused {
        let topics = topics(listeners);
        let open = async |topic: &TopicName| {
            let key = self.key(topic);
            let opened = answered_within(self.environment, self.limit, None, "open", self.store.open(&key)).await;
            (key, opened)
        };
        let (count, mut refused) = (topics.len(), BTreeMap::new());
        let opened: Vec<_> = stream::iter(topics).map(open).buffered(MAX_AT_ONCE).collect().await;
        for (key, opened) in opened {
            match opened {
                Ok(()) => {}
                Err(error) if error.is_outage() => return self.unreachable(error, listeners, problems),
                Err(error @ StoreError::WrongType { .. }) => drop(refused.insert(key, error)),
                Err(error) => problems.push(self.refusal(&key, error)),
            }
        }
        if refused.len() == count || !problems.is_empty() {
            problems.extend(std::mem::take(&mut refused).into_iter().map(|(key, error)| self.refusal(&key, error)));
        }
        refused.into_iter().map(|(key, error)| (key, Arc::new(error))).collect()
    }

    fn refusal(&self, key: &TopicKey, error: StoreError) -> Problem {
        Problem::StoreTopic { url: self.store.url(), at: self.store_at.cloned(), topic: key.topic.to_string(), error }
    }

    async fn warn_of_unserved(&self, listeners: &Listeners) -> Result<(), StoreError> {
        let stored = self.store.topics(self.app).await?;
        let served = |topic: &TopicName| {
            listeners.topics.contains(&topic.as_str()) || listeners.channels.contains(topic.as_str())
        };
        let unserved = stored.into_iter().filter(|topic| !served(topic)).take(MAX_UNSERVED);
        let counted = join_all(unserved.map(async |topic| {
            let counts = self.store.counts(&self.key(&topic)).await;
            (topic, counts)
        }));
        for (topic, counts) in counted.await {
            let counts = counts?;
            if counts.delayed > 0 {
                tracing::warn!(
                    %topic,
                    waiting = counts.delayed,
                    "jobs wait in a topic that has no listener in this program; \
                     if the listener is in another crate, write `use that_crate as _;` here"
                );
            }
        }
        Ok(())
    }

    fn key(&self, topic: &TopicName) -> TopicKey {
        TopicKey { app: self.app.clone(), topic: topic.clone() }
    }
}
