//! What the factory hands to the supervisor once everything is checked.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broadcast::ErasedBroadcast;
use crate::config::{Listing, NodeSettings, TopicSettings};
use crate::environment::Environment;
use crate::job::{AppName, NodeId, TopicKey};
use crate::listener::erased::ErasedListener;
use crate::store::{Store, StoreError};

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
    /// The settings with who said so, for logs and `health()`.
    pub listing: Listing,
    /// The topics with a listener.
    pub topics: Vec<TopicPlan>,
    /// The broadcast listeners.
    pub broadcasts: Vec<BroadcastPlan>,
    /// Topics that the store cannot serve until somebody has removed a key, and what it said.
    pub refused: BTreeMap<TopicKey, StoreError>,
}

/// A topic with its listener.
#[derive(Debug)]
pub struct TopicPlan {
    /// The topic.
    pub key: TopicKey,
    /// Its listener.
    pub listener: Arc<dyn ErasedListener>,
    /// The name of the listener and where it is annotated, for logs and `health()`.
    pub name: &'static str,
    /// Where it is annotated.
    pub declared_at: &'static str,
    /// The settings of the topic.
    pub settings: TopicSettings,
    /// The settings with who said so, for logs and `health()`.
    pub listing: Listing,
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
