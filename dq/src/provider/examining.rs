//! What the doctor asks, with the repeats and the time of a query.

use std::sync::Arc;

use super::error::QueryError;
use super::query::query;
use super::topic::TopicProvider;
use super::typed::Provider;
use crate::job::{NodeId, TopicKey, TopicName};
use crate::store::{Danger, Examine, Examined, GiveUp, Mismatch};
use crate::time::Timestamp;

impl TopicProvider {
    /// Checks the version of the topic and the types of its keys.
    pub(crate) async fn check(&self) -> Result<(), QueryError> {
        query(&self.root, &self.inbox.key, None, |store, key, _| Box::pin(async move { store.open(&key).await })).await
    }

    /// Where the keys of the topic do not agree.
    pub(crate) async fn examine(&self, request: Examine) -> Result<Examined, QueryError> {
        query(&self.root, &self.inbox.key, None, move |store, key, _| {
            let request = request.clone();
            Box::pin(async move { store.examine(&key, request).await })
        })
        .await
    }

    /// Makes a job DEAD that no node can decode.
    pub(crate) async fn give_up(&self, job: GiveUp) -> Result<bool, QueryError> {
        let job = Arc::new(job);
        query(&self.root, &self.inbox.key, None, move |store, key, _| {
            let job = Arc::clone(&job);
            Box::pin(async move { store.give_up(&key, &job).await })
        })
        .await
    }
}

impl Provider {
    /// Where the names of keys do not agree with what topics know of them.
    pub(crate) async fn examine_keys(
        &self,
        topic: Option<&TopicName>,
        after: Option<String>,
    ) -> Result<Examined, QueryError> {
        let (app, only) = (self.0.app.clone(), topic.cloned());
        let key = self.key_of(topic)?;
        query(&self.0, &key, None, move |store, _, _| {
            let (app, only, after) = (app.clone(), only.clone(), after.clone());
            Box::pin(async move { store.examine_keys(&app, only.as_ref(), after.as_deref()).await })
        })
        .await
    }

    /// Repairs a mismatch, if it is still there.
    pub(crate) async fn repair(&self, mismatch: Mismatch, nodes: Vec<NodeId>) -> Result<bool, QueryError> {
        let key = self.key_of(Some(&mismatch.topic))?;
        query(&self.0, &key, None, move |store, key, _| {
            let (mismatch, nodes) = (mismatch.clone(), nodes.clone());
            Box::pin(async move { store.repair(&key.app, &mismatch, &nodes).await })
        })
        .await
    }

    /// What endangers the store as a whole.
    pub(crate) async fn dangers(&self) -> Result<Vec<Danger>, QueryError> {
        let key = self.key_of(None)?;
        query(&self.0, &key, None, |store, _, _| Box::pin(async move { store.dangers().await })).await
    }

    /// The clock of this machine.
    pub(crate) fn wall(&self) -> Timestamp {
        self.0.environment.wall()
    }

    /// Every query has a topic; some are about all of them.
    pub(super) fn key_of(&self, topic: Option<&TopicName>) -> Result<TopicKey, QueryError> {
        let topic = topic.cloned().map_or_else(|| TopicName::new("all"), Ok)?;
        Ok(TopicKey { topic, app: self.0.app.clone() })
    }
}
