//! What all clones of a provider share: the store, the bound on unanswered requests, and an inbox for each topic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use super::buffer::Buffer;
use super::coalescer::Coalescer;
use super::error::{Doing, Target};
use super::events::Source;
use super::inbox::Inbox;
use super::request::{Deadline, Places, Posted};
use super::retries::Retries;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{AppName, InvalidName, TopicKey, TopicName};
use crate::store::{Outage, Store};

/// The state that all clones of a provider share.
pub(super) struct Root {
    pub(super) app: AppName,
    pub(super) store: Arc<dyn Store>,
    pub(super) environment: Environment,
    pub(super) settings: NodeSettings,
    /// The bounds on what callers may have unanswered; closed with the provider.
    pub(super) places: Places,
    /// How often a task of the provider has panicked.
    pub(super) restarts: Arc<AtomicU64>,
    /// The outages of its node, or its own.
    pub(super) outage: OnceLock<Outage>,
    /// The schedules that the code of its program defines.
    pub(super) code: OnceLock<BTreeSet<(TopicName, String)>>,
    /// What takes adds while the store is away.
    pub(super) buffer: Option<Arc<Buffer>>,
    /// When the log named a store that was emptied, by the node's clock.
    pub(super) emptied: Mutex<Option<Duration>>,
    inboxes: RwLock<Inboxes>,
}

#[derive(Default)]
struct Inboxes {
    by_topic: BTreeMap<TopicName, Arc<Inbox>>,
    closed: bool,
}

impl Root {
    pub(super) fn new(app: AppName, store: Arc<dyn Store>, environment: Environment, settings: NodeSettings) -> Self {
        Self {
            app,
            store,
            environment,
            places: Places::new(&settings),
            settings,
            restarts: Arc::default(),
            outage: OnceLock::new(),
            code: OnceLock::new(),
            buffer: None,
            emptied: Mutex::default(),
            inboxes: RwLock::default(),
        }
    }

    /// Whether the code of this program defines the schedule.
    pub(super) fn defines(&self, topic: &TopicName, name: &str) -> bool {
        self.code.get().is_some_and(|code| code.contains(&(topic.clone(), name.to_owned())))
    }

    /// Until when a call may take that begins now: as long as it says itself, or `call_deadline`.
    pub(super) fn deadline(&self, within: Option<Duration>) -> Deadline {
        let (allowed, limit) = match within {
            Some(within) => (within, Deadline::OF_THE_CALL),
            None => (self.settings.call_deadline, "call_deadline"),
        };
        Deadline { at: self.environment.now().saturating_add(allowed), allowed, limit }
    }

    /// The inbox of a topic, made at its first use.
    pub(super) fn inbox(&self, name: &str) -> Result<Arc<Inbox>, InvalidName> {
        if let Some(inbox) = self.inboxes.read().unwrap_or_else(PoisonError::into_inner).by_topic.get(name) {
            return Ok(Arc::clone(inbox));
        }
        let topic = TopicName::new(name)?;
        let mut inboxes = self.inboxes.write().unwrap_or_else(PoisonError::into_inner);
        let closed = inboxes.closed;
        let inbox = inboxes.by_topic.entry(topic.clone()).or_insert_with(|| {
            let inbox = Inbox::new(TopicKey { app: self.app.clone(), topic });
            if closed {
                inbox.close();
            }
            Arc::new(inbox)
        });
        Ok(Arc::clone(inbox))
    }

    /// Puts requests in the inbox, and starts its coalescer if they are the first.
    pub(super) fn post(&self, inbox: &Arc<Inbox>, requests: impl IntoIterator<Item = Posted>) {
        if inbox.post(requests) {
            let (store, retries) = (Arc::clone(&self.store), Retries::new(&self.settings));
            let (restarts, environment) = (Arc::clone(&self.restarts), self.environment.clone());
            let outage = self.outage.get_or_init(|| Outage::new(environment.clone(), store.url()));
            let party = Arc::new(outage.party());
            Coalescer::new(Arc::clone(inbox), store, environment, retries, restarts, party).start();
        }
    }

    /// Accepts no more requests. Returns the inboxes, whose coalescers still have to end.
    pub(super) fn close(&self) -> Vec<Arc<Inbox>> {
        self.places.close();
        let mut inboxes = self.inboxes.write().unwrap_or_else(PoisonError::into_inner);
        inboxes.closed = true;
        let open: Vec<_> = inboxes.by_topic.values().cloned().collect();
        drop(inboxes); // closing lets coalescers answer callers, whose code may ask for an inbox
        open.iter().for_each(|inbox| inbox.close());
        open
    }
}

/// Whose call it is: a topic of a provider, and the name of the caller.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) root: Arc<Root>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) by: Option<Arc<str>>,
}

impl Caller {
    pub(super) fn key(&self) -> &TopicKey {
        &self.inbox.key
    }

    pub(super) fn topic(&self) -> &TopicName {
        &self.inbox.key.topic
    }

    /// What a call is about that concerns the whole topic.
    pub(super) fn target(&self, doing: Doing) -> Target {
        Target::of_topic(self.topic().clone(), doing)
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.root.environment
    }

    /// What a task that follows the topic needs.
    pub(super) fn source(&self) -> Source {
        let Root { store, environment, settings, .. } = &*self.root;
        let (store, environment, topic) = (Arc::clone(store), environment.clone(), self.key().clone());
        Source { store, environment, call_timeout: settings.call_timeout, topic }
    }
}

/// Shows the topic.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inbox.key.fmt(f)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.close();
    }
}
