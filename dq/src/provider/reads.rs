//! What the inspector asks: reads, each one query of one topic or of the app, and the commands of a bulk change.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::command::{CommandResult, command_many};
use super::error::QueryError;
use super::query::{Query, query};
use super::topic::TopicProvider;
use super::typed::Provider;
use crate::job::{JobId, TopicKey};
use crate::store::{
    CommandKind, DueCount, JobHistory, MinuteCounts, NodesPage, NodesRequest, Page, PageRequest, Store, StoreError,
    Stored, TopicNames, TopicOverview,
};
use crate::time::Timestamp;

impl TopicProvider {
    /// A query of the topic, which is sent when it is awaited.
    fn asks<T: Send + 'static>(
        &self,
        ask: impl Fn(Arc<dyn Store>, TopicKey, u32) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
    ) -> Query<T> {
        let (root, inbox) = (Arc::clone(&self.root), Arc::clone(&self.inbox));
        Query::new(Box::new(move |within| Box::pin(async move { query(&root, &inbox.key, within, ask).await })))
    }

    /// Sends the same command for many jobs, whose ids differ: together, even where the store answers at once.
    pub(crate) async fn command_many(&self, verb: CommandKind, ids: Vec<JobId>) -> Vec<CommandResult> {
        command_many(&self.root, &self.inbox, verb, ids, self.by.as_ref(), None).await
    }

    /// The topic as a whole, with up to `nodes` of the nodes that hold jobs.
    pub(crate) fn overview(&self, nodes: usize) -> Query<TopicOverview> {
        self.asks(move |store, key, _| Box::pin(async move { store.overview(&key, nodes).await }))
    }

    /// How many DELAYED jobs are due between each two of these times.
    pub(crate) fn due_counts(&self, times: Vec<Timestamp>) -> Query<Vec<DueCount>> {
        self.asks(move |store, key, _| {
            let times = times.clone();
            Box::pin(async move { store.due_counts(&key, &times).await })
        })
    }

    /// A page of the nodes that hold jobs.
    pub(crate) fn nodes(&self, request: NodesRequest) -> Query<NodesPage> {
        self.asks(move |store, key, _| {
            let request = request.clone();
            Box::pin(async move { store.nodes(&key, request).await })
        })
    }

    /// What the topic counted in the minutes from `from` to `to`.
    pub(crate) fn statistics(&self, from: u64, to: u64) -> Query<Vec<MinuteCounts>> {
        self.asks(move |store, key, _| Box::pin(async move { store.statistics(&key, from, to).await }))
    }

    /// A page of one state; each try after an outage asks for half of it.
    pub(crate) fn page(&self, request: PageRequest) -> Query<Page> {
        self.asks(move |store, key, tries| {
            let halved = |most: usize| most.checked_shr(tries).unwrap_or_default().max(1);
            let (limit, bytes) = (halved(request.limit), halved(request.bytes));
            let request = PageRequest { limit, bytes, ..request.clone() };
            Box::pin(async move { store.page(&key, request).await })
        })
    }

    /// What the topic has kept of the moves of a job, oldest first. A store that keeps no histories has none.
    pub(crate) fn history(&self, id: JobId) -> Query<Option<JobHistory>> {
        self.asks(move |store, key, _| {
            let id = id.clone();
            Box::pin(async move {
                match store.history(&key, &id).await {
                    Err(StoreError::Unsupported { .. }) => Ok(None),
                    answer => answer,
                }
            })
        })
    }

    /// A job by its id.
    pub(crate) fn stored(&self, id: JobId) -> Query<Option<Stored>> {
        self.asks(move |store, key, _| {
            let id = id.clone();
            Box::pin(async move { Ok(store.get(&key, std::slice::from_ref(&id)).await?.into_iter().next().flatten()) })
        })
    }
}

impl Provider {
    /// A page of the names of the topics of the app that hold anything, in order, behind a name.
    pub(crate) async fn topic_names(&self, after: Option<&str>, limit: usize) -> Result<TopicNames, QueryError> {
        let app = self.0.app.clone();
        let key = self.key_of(None)?;
        let after = after.map(str::to_owned);
        let names = query(&self.0, &key, None, move |store, _, _| {
            let (app, after) = (app.clone(), after.clone());
            Box::pin(async move { store.topics_behind(&app, after.as_deref(), limit).await })
        });
        names.await.map_err(|error| match error {
            QueryError::Store { source, .. } => QueryError::Topics { source },
            other => other,
        })
    }
}
