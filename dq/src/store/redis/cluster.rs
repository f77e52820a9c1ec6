//! Cluster: the map of slots that the connections of a store share, and how it follows the cluster.
//!
//! A server that does not have a slot answers `MOVED`: it has done nothing, and names the server that has it. The map takes that
//! over at once, and is then asked for as a whole from the server that was named, because more slots may have moved. A connection that
//! cannot be made or breaks, and a caller that gives one up, lead to a question to all servers that were ever named: for each slot the owner
//! is the one that most of those name that answer, so that an old master that was cut off does not decide. dq asks one question at
//! a time, and pauses in between.
//!
//! The client library's own connection to a cluster is not used: it sends a request again by itself, behind later ones.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use redis::{Cmd, RedisError, RedisResult, Value, make_extension_error};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::sentinel::{Host, next_in_time};
use super::slots::{Slot, SlotMap, moved};
use super::words::words_of;
use crate::environment::{Boottime, Clock};

/// How long to wait for the answers of all servers.
const ANSWERED_WITHIN: Duration = Duration::from_millis(800);

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(200);

/// Asks a server a question, over a connection of its own.
pub(super) type Ask = Box<dyn Fn(Host, Cmd) -> BoxFuture<'static, RedisResult<Value>> + Send + Sync>;

/// The servers of a cluster.
pub(super) struct Cluster {
    ask: Ask,
    seeds: Vec<Host>,
    map: watch::Sender<SlotMap>,
    /// Held while the first map is asked for.
    first: tokio::sync::Mutex<()>,
    question: Mutex<Question>,
}

/// What is to be asked.
#[derive(Debug, Default)]
struct Question {
    is_open: bool,
    /// Whom to ask first.
    named: Option<Host>,
    /// Alive while a task asks.
    task: Weak<()>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("seeds", &self.seeds).field("masters", &self.masters()).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(super) fn new(ask: Ask, seeds: Vec<Host>) -> Self {
        let map = watch::Sender::new(SlotMap::default());
        Self { ask, seeds, map, first: tokio::sync::Mutex::default(), question: Mutex::default() }
    }

    pub(super) fn owner(&self, slot: Slot) -> Option<Host> {
        self.map.borrow().owner(slot).cloned()
    }

    /// The servers that have any slot.
    pub(super) fn masters(&self) -> BTreeSet<Host> {
        self.map.borrow().masters().into_iter().cloned().collect()
    }

    /// Reports each change of the map.
    pub(super) fn changes(&self) -> watch::Receiver<SlotMap> {
        self.map.subscribe()
    }

    /// Waits for the first map.
    pub(super) async fn known(&self) -> RedisResult<()> {
        if !self.map.borrow().is_empty() {
            return Ok(());
        }
        let _first = self.first.lock().await;
        if self.map.borrow().is_empty() { self.ask_all().await } else { Ok(()) }
    }

    /// The map may be wrong: asks for it in a task of its own, `named` first.
    pub(super) fn doubt(self: &Arc<Self>, named: Option<Host>) {
        let mut question = self.question();
        question.is_open = true;
        question.named = named.or_else(|| question.named.take());
        // Outside a runtime the store is being dropped.
        if question.task.strong_count() > 0 || Handle::try_current().is_err() {
            return;
        }
        let task = Arc::new(());
        question.task = Arc::downgrade(&task);
        drop(question);
        super::spawn(Arc::clone(self).ask_while_open(task));
    }

    async fn ask_while_open(self: Arc<Self>, _task: Arc<()>) {
        while let Some(named) = self.next_question() {
            if let Err(error) = self.ask_again(named).await {
                tracing::debug!(error = words_of(&error), "no server of the cluster has a map of the slots");
            }
            Boottime.sleep_until(Boottime.now() + PAUSE).await;
        }
    }

    /// Whom to ask first, if there is a question. If there is none, the task ends.
    fn next_question(&self) -> Option<Option<Host>> {
        let mut question = self.question();
        if !std::mem::take(&mut question.is_open) {
            question.task = Weak::new();
            return None;
        }
        Some(question.named.take())
    }

    async fn ask_again(&self, named: Option<Host>) -> RedisResult<()> {
        if let Some(host) = named {
            let answered = tokio::select! {
                biased;
                map = self.ask(&host) => map.ok(),
                () = Boottime.sleep_until(Boottime.now() + ANSWERED_WITHIN) => None,
            };
            if let Some(map) = answered {
                self.learn(map);
                return Ok(());
            }
        }
        self.ask_all().await
    }

    async fn ask_all(&self) -> RedisResult<()> {
        let hosts: BTreeSet<Host> = self.seeds.iter().chain(self.map.borrow().nodes()).cloned().collect();
        let mut asked: FuturesUnordered<_> = hosts.iter().map(|host| self.ask(host)).collect();
        let mut too_late = Boottime.sleep_until(Boottime.now() + ANSWERED_WITHIN);
        let (mut maps, mut why) = (Vec::new(), None);
        while let Some(answer) = next_in_time(&mut asked, &mut too_late).await {
            match answer {
                Ok(map) => maps.push(map),
                Err(error) => drop(why.get_or_insert(error)),
            }
        }
        if maps.is_empty() {
            return Err(why.unwrap_or_else(|| io::Error::from(io::ErrorKind::TimedOut).into()));
        }
        self.learn(SlotMap::most_named(&maps));
        Ok(())
    }

    async fn ask(&self, host: &Host) -> RedisResult<SlotMap> {
        let mut question = redis::cmd("CLUSTER");
        question.arg("SLOTS");
        let answer = (self.ask)(host.clone(), question).await?;
        SlotMap::read(&answer, host).ok_or_else(|| io::Error::other("no server of the cluster has slots yet").into())
    }

    fn learn(&self, map: SlotMap) {
        self.map.send_if_modified(|known| {
            let is_new = *known != map;
            *known = map;
            is_new
        });
    }

    fn question(&self) -> MutexGuard<'_, Question> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) cluster: Arc<Cluster>,
    pub(super) place: ServerPlace,
}

/// Which server it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerPlace {
    /// The one server, or any of a cluster that has slots.
    Any,
    At(Host),
    /// The server that turns out to have this slot, once the map is known.
    Of(Slot),
}

impl Node {
    /// Where to connect to.
    pub(super) async fn host(&self) -> RedisResult<Host> {
        if let Some(host) = self.known_host() {
            return Ok(host.clone());
        }
        self.cluster.known().await?;
        let owner = if let ServerPlace::Of(slot) = self.place { self.cluster.owner(slot) } else { None };
        owner
            .or_else(|| self.cluster.masters().pop_first())
            .ok_or_else(|| io::Error::other("no server of the cluster has slots yet").into())
    }

    const fn known_host(&self) -> Option<&Host> {
        if let ServerPlace::At(host) = &self.place { Some(host) } else { None }
    }

    /// Whether the server has this slot, as far as is known.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.cluster.owner(slot).as_ref() == self.known_host()
    }

    /// Takes note of what an error of this server says of the cluster. Returns it as one that passes, if it names another server.
    pub(super) fn noted(&self, error: RedisError) -> RedisError {
        let detail = error.detail().unwrap_or_default();
        match error.code() {
            Some("MOVED") => {
                let to = self.known_host().and_then(|asked| moved(detail, asked));
                if let Some((slot, owner)) = &to {
                    self.cluster.map.send_if_modified(|map| map.give(*slot, owner));
                }
                self.cluster.doubt(to.map(|(_, owner)| owner));
                passing(&format!("slot and server are now {detail}"))
            }
            Some("ASK") => passing(&format!("a slot is on its way: {detail}")),
            Some("CLUSTERDOWN" | "MASTERDOWN" | "READONLY") => {
                self.cluster.doubt(None);
                error
            }
            _ => error,
        }
    }
}

/// As a server answers that has one part of a slot.
fn passing(detail: &str) -> RedisError {
    make_extension_error("TRYAGAIN".into(), Some(detail.to_owned()))
}
