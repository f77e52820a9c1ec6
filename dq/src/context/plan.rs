//! What the factory hands to the supervisor once everything is checked.

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
pub(crate) struct Plan {
    pub(crate) app: AppName,
    pub(crate) node: NodeId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) environment: Environment,
    pub(crate) settings: NodeSettings,
    /// The settings with who said so, for logs and `health()`.
    pub(crate) listing: Listing,
    pub(crate) topics: Vec<TopicPlan>,
    pub(crate) broadcasts: Vec<BroadcastPlan>,
    /// Topics that the store cannot serve until somebody has removed a key, and what it said.
    pub(crate) refused: BTreeMap<TopicKey, StoreError>,
}

/// A topic with its listener.
#[derive(Debug)]
pub(crate) struct TopicPlan {
    pub(crate) key: TopicKey,
    pub(crate) listener: Arc<dyn ErasedListener>,
    /// The name of the listener and where it is annotated, for logs and `health()`.
    pub(crate) name: &'static str,
    pub(crate) declared_at: &'static str,
    pub(crate) settings: TopicSettings,
    /// The settings with who said so, for logs and `health()`.
    pub(crate) listing: Listing,
}

/// A broadcast listener with its channels.
#[derive(Debug)]
pub(crate) struct BroadcastPlan {
    pub(crate) channels: Vec<TopicKey>,
    pub(crate) listener: Arc<dyn ErasedBroadcast>,
    pub(crate) name: &'static str,
}
