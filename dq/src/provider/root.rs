//! What all clones of a provider share: the store, the bound on unanswered requests, and a lane for each topic.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::coalescer::Coalescer;
use super::lane::{Entry, Lane};
use super::pace::Pace;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{AppName, BadName, TopicKey, TopicName};
use crate::store::Store;

/// See the module.
pub(super) struct Root {
    pub(super) app: AppName,
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

impl Root {
    pub(super) fn new(app: AppName, store: Arc<dyn Store>, environment: Environment, settings: NodeSettings) -> Self {
        let places = settings.unanswered_limit.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            app,
            store,
            environment,
            settings,
            unanswered: Arc::new(Semaphore::new(places)),
            lanes: RwLock::default(),
        }
    }

    pub(super) fn deadline(&self) -> Duration {
        self.environment.now().saturating_add(self.settings.call_total)
    }

    pub(super) fn unanswered_limit(&self) -> usize {
        self.settings.unanswered_limit.clamp(1, Semaphore::MAX_PERMITS)
    }

    /// The lane of a topic; made at its first use.
    pub(super) fn lane(&self, name: &str) -> Result<Arc<Lane>, BadName> {
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

    /// Takes no more entries; the lanes that are still to end.
    pub(super) fn close(&self) -> Vec<Arc<Lane>> {
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
