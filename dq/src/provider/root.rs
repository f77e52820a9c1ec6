//! The provider: what users hold to add jobs and to look after them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::coalescer::Coalescer;
use super::lane::{Entry, Lane};
use super::pace::Pace;
use super::topic::TopicProvider;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{AppName, BadName, TopicKey, TopicName};
use crate::store::Store;

/// Adds jobs and looks after them. Cheap to clone; all clones are one provider.
///
/// `add` and its kin make futures that do nothing until they are awaited. Any number of them may be under way at once, from
/// any number of tasks, and should be: what is added concurrently goes to the store together. They may be awaited on any
/// executor.
///
/// A call is repeated by itself while the store is out of reach, until `call_total` (10 s); repeats are recognised by the
/// store. The error tells *not added* from *unknown*: see [`AddError`](super::AddError).
///
/// When the last clone is dropped, what was sent or waits to be sent is still carried out; [`close`](Self::close) waits
/// for that.
#[derive(Clone)]
pub struct Provider(pub(super) Arc<Root>);

pub(super) struct Root {
    app: AppName,
    pub(super) store: Arc<dyn Store>,
    pub(super) environment: Environment,
    pub(super) settings: NodeSettings,
    /// Places for requests that are unanswered; closed with the provider.
    pub(super) unanswered: Arc<Semaphore>,
    lanes: RwLock<Lanes>,
}

#[derive(Default)]
struct Lanes {
    by_topic: BTreeMap<TopicName, Arc<Lane>>,
    closed: bool,
}

impl Provider {
    /// A provider of `app` on `store`, for programs that bring their own store; others get theirs from the context.
    ///
    /// Each root has its own producers and its own bound on unanswered requests. It costs nothing until it is used; then a
    /// task for each topic, which sleeps while nothing is added.
    pub fn root(app: AppName, store: Arc<dyn Store>, environment: Environment, settings: NodeSettings) -> Self {
        let places = settings.unanswered_limit.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Root {
            app,
            store,
            environment,
            settings,
            unanswered: Arc::new(Semaphore::new(places)),
            lanes: RwLock::default(),
        }))
    }

    /// The app whose jobs these are.
    pub fn app(&self) -> &AppName {
        &self.0.app
    }

    /// The provider of one topic, without a payload type.
    ///
    /// A topic that was asked for once is remembered as long as this provider: about 300 bytes each.
    ///
    /// # Errors
    /// [`BadName`] when `name` cannot be a topic's.
    pub fn topic(&self, name: &str) -> Result<TopicProvider, BadName> {
        Ok(TopicProvider::new(Arc::clone(&self.0), self.0.lane(name)?))
    }

    /// Takes no more adds and withdrawals, of any clone, and waits until those under way are answered: at most
    /// `call_total`. Later ones fail with [`Stopped`](super::AddError::Stopped); looks still work.
    ///
    /// Cancel safe: it stays closed.
    pub async fn close(&self) {
        let lanes = self.0.close();
        join_all(lanes.iter().map(|lane| lane.ended.cancelled())).await;
    }
}

impl Root {
    pub(super) fn deadline(&self) -> Duration {
        self.environment.now().saturating_add(self.settings.call_total)
    }

    pub(super) fn unanswered_limit(&self) -> usize {
        self.settings.unanswered_limit.clamp(1, Semaphore::MAX_PERMITS)
    }

    /// The lane of a topic; made at its first use.
    fn lane(&self, name: &str) -> Result<Arc<Lane>, BadName> {
        if let Some(lane) = self.lanes.read().unwrap_or_else(PoisonError::into_inner).by_topic.get(name) {
            return Ok(Arc::clone(lane));
        }
        let topic = TopicName::new(name)?;
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let closed = lanes.closed;
        let lane = lanes.by_topic.entry(topic.clone()).or_insert_with(|| {
            let lane = Lane::new(TopicKey { app: self.app.clone(), topic });
            if closed {
                lane.close();
            }
            Arc::new(lane)
        });
        Ok(Arc::clone(lane))
    }

    /// Leaves entries with the coalescer of the lane, and starts it if they are the first.
    pub(super) fn post(&self, lane: &Arc<Lane>, entries: impl IntoIterator<Item = Entry>) {
        if lane.post(entries) {
            let pace = Pace::new(&self.settings);
            Coalescer::start(Arc::clone(lane), Arc::clone(&self.store), &self.environment, pace);
        }
    }

    fn close(&self) -> Vec<Arc<Lane>> {
        self.unanswered.close();
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        lanes.closed = true;
        let lanes: Vec<_> = lanes.by_topic.values().cloned().collect();
        lanes.iter().for_each(|lane| lane.close());
        lanes
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("app", &self.0.app.as_str()).field("store", &self.0.store.url()).finish()
    }
}
