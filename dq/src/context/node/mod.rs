//! What belongs to the node: its tasks, its handle, its health, its shutdown and its broadcasts.
//!
//! * The factory checks everything, makes a [`Plan`], and hands it to [`handle`].
//! * [`supervisor`] starts a task per topic and per broadcast channel once the store serves it, restarts one that panicked, and passes on
//!   the stop order.
//! * `broadcast` is the task of a channel.
//! * [`health`] reads the stats that all tasks keep; [`shutdown`] ends the node, at the [`signals`] of the operating system for example.
//!
//! The factory may use the plan and the handle. The node makes topics from their parts, gives them the stop order and reads
//! their counters; it sees nothing else of them. A topic uses nothing of the node.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

mod arrivals;
mod broadcast;
pub(crate) mod handle;
pub(super) mod health;
mod listener_queue;
pub(super) mod shutdown;
pub(super) mod signals;
mod supervisor;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broadcast::ErasedBroadcast;
use crate::config::{EffectiveSettings, NodeSettings, TopicSettings};
use crate::environment::Environment;
use crate::job::{AppName, NodeId, TopicKey};
use crate::listener::ErasedListener;
use crate::provider::DefinitionsWake;
use crate::schedule::Periodic;
use crate::store::{HistorySetting, Store, StoreError};

pub use supervisor::{Running, start};

/// A node that is ready to start.
#[derive(Debug)]
pub struct Plan {
    /// The app.
    pub app: AppName,
    /// The identity of the node.
    pub node: NodeId,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Time, randomness and tasks.
    pub environment: Environment,
    /// The settings of the node.
    pub settings: NodeSettings,
    /// The settings and where each came from, for logs and `health()`.
    pub listing: EffectiveSettings,
    /// The topics with a listener.
    pub topics: Vec<TopicPlan>,
    /// The broadcast listeners.
    pub broadcasts: Vec<BroadcastPlan>,
    /// Topics that the store cannot serve yet, because a key has a wrong type or it cannot be reached, and its errors.
    pub refused: BTreeMap<TopicKey, Arc<StoreError>>,
}

/// A topic with its listener.
#[derive(Debug)]
pub struct TopicPlan {
    /// The topic.
    pub key: TopicKey,
    /// Its listener.
    pub listener: Arc<dyn ErasedListener>,
    /// The name of the listener, for logs and `health()`.
    pub name: &'static str,
    /// The place of its annotation, for logs and `health()`.
    pub declared_at: &'static str,
    /// The settings of the topic.
    pub settings: TopicSettings,
    /// The settings and where each came from, for logs and `health()`.
    pub listing: EffectiveSettings,
    /// The schedules of the topic that the code defines.
    pub schedules: Vec<Periodic>,
    /// Wakes the task that looks after the definitions of the topic.
    pub definitions: DefinitionsWake,
}

impl TopicPlan {
    /// What the topic is to keep of the histories of its jobs; `None`: what it keeps.
    pub(crate) fn history(&self) -> Option<HistorySetting> {
        self.settings.history_max.map(|moves| HistorySetting { moves, after: self.settings.history_retention })
    }
}

/// A broadcast listener with its channels.
#[derive(Debug)]
pub struct BroadcastPlan {
    /// The channels it listens to.
    pub channels: Vec<TopicKey>,
    /// The listener.
    pub listener: Arc<dyn ErasedBroadcast>,
    /// Its name, for logs and `health()`.
    pub name: &'static str,
}
