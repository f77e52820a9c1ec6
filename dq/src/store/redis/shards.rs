//! Shards: the server of each slot, with everything that dq opens to it. A store on one server, or behind sentinels, has one.
//!
//! All keys of a topic are in one slot. So a topic needs one server at a time, and another one only once the slot has moved: who sends
//! asks for the server of a slot whenever nothing of it is in flight, and needs to know nothing else of a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::cluster::{Ask, Cluster, Node, ServerPlace};
use super::confirm::Confirm;
use super::connect::Connector;
use super::errors::of_connecting;
use super::lines::Lines;
use super::query_connection::QueryConnection;
use super::signals::Subscriptions;
use super::slots::Slot;
use super::{LINK_LINES, PRODUCER_LINES, WAITING_LINES};
use crate::store::StoreError;

/// All servers of a store.
#[derive(Debug)]
pub(super) struct Shards {
    pub(super) connector: Connector,
    confirm: Option<Confirm>,
    cluster: Option<Arc<Cluster>>,
    servers: Mutex<BTreeMap<ServerPlace, Arc<Server>>>,
}

/// What is open to one server. Nothing is, until it is used.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) links: Lines,
    pub(super) prompt: Lines,
    pub(super) producers: Lines,
    pub(super) queries: QueryConnection,
    pub(super) subscriptions: Subscriptions,
}

impl Shards {
    pub(super) fn new(connector: Connector, confirm: Option<Confirm>) -> Self {
        let asker = connector.clone();
        let ask: Ask = Box::new(move |host, question| {
            let asker = asker.clone();
            Box::pin(async move { asker.ask(&asker.settings().await?, &host, &question).await })
        });
        let cluster = connector.address.seeds.clone().map(|seeds| Arc::new(Cluster::new(ask, seeds)));
        Self { connector, confirm, cluster, servers: Mutex::default() }
    }

    pub(super) const fn is_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// The server of this slot, as far as is known now.
    pub(super) fn of(&self, slot: Slot) -> Arc<Server> {
        let Some(cluster) = &self.cluster else { return self.at(ServerPlace::Any) };
        self.at(cluster.owner(slot).map_or(ServerPlace::Of(slot), ServerPlace::At))
    }

    /// The server of this slot, or any, once the servers of a cluster are known.
    pub(super) async fn known(&self, operation: &'static str, slot: Option<Slot>) -> Result<Arc<Server>, StoreError> {
        self.ready(operation).await?;
        let any = || self.cluster.as_ref().and_then(|cluster| cluster.masters().pop_first());
        Ok(slot.map_or_else(|| self.at(any().map_or(ServerPlace::Any, ServerPlace::At)), |slot| self.of(slot)))
    }

    /// All servers that have slots.
    pub(super) async fn all(&self, operation: &'static str) -> Result<Vec<Arc<Server>>, StoreError> {
        self.ready(operation).await?;
        Ok(match &self.cluster {
            Some(cluster) => cluster.masters().into_iter().map(|host| self.at(ServerPlace::At(host))).collect(),
            None => vec![self.at(ServerPlace::Any)],
        })
    }

    async fn ready(&self, operation: &'static str) -> Result<(), StoreError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        cluster.known().await.map_err(|error| of_connecting(operation, self.connector.address.is_tls, &error))
    }

    fn at(&self, place: ServerPlace) -> Arc<Server> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&place) {
            return Arc::clone(server);
        }
        // What is still in flight to a server that has no slots any more keeps its line.
        let (masters, mut gone) =
            (self.cluster.as_ref().map(|cluster| cluster.masters()).unwrap_or_default(), Vec::new());
        servers.retain(|place, server| {
            let stays = match place {
                ServerPlace::Any => true,
                ServerPlace::At(host) => masters.contains(host),
                ServerPlace::Of(_) => masters.is_empty(),
            };
            if !stays {
                gone.push(Arc::clone(server));
            }
            stays
        });
        let node = self.cluster.clone().map(|cluster| Node { cluster, place: place.clone() });
        let server = Arc::new(self.open(Connector { node, ..self.connector.clone() }));
        servers.insert(place, Arc::clone(&server));
        drop(servers);
        drop(gone);
        server
    }

    fn open(&self, connector: Connector) -> Server {
        let connector = Arc::new(connector);
        let lines = |confirm, most| Lines::new(Arc::clone(&connector), confirm, most);
        let producers = if self.confirm.is_some() { WAITING_LINES } else { PRODUCER_LINES };
        Server {
            links: lines(None, LINK_LINES),
            prompt: lines(None, 1),
            producers: lines(self.confirm, producers),
            queries: QueryConnection::new(Arc::clone(&connector)),
            subscriptions: Subscriptions::new(connector),
        }
    }
}
