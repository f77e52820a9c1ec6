//! The factory: collects what a node is to be, checks all of it, and starts it.
//!
//! Collecting never fails; whatever is wrong is told by [`ContextFactory::start`], all of it at once, and then nothing was
//! started: no listener was made, no job was touched.

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::Error;
use super::node::handle::Context;
use crate::broadcast::BroadcastListener;
use crate::config::{Layer, Source, SourceLocation, TopicOverrides, Variables};
use crate::environment::Environment;
use crate::listener::{DelayListener, Injectable, Injector, Registration};
use crate::store::Store;

mod build;
mod connect;
mod contact;
mod discover;
mod prepare;
pub(super) mod problems;
mod settings;
mod stores;
#[cfg(test)]
mod tests;

pub use stores::{IntoStore, StoreChoice};

use build::Prepared;
use discover::{Named, Selection};
use stores::Chosen;

/// Makes a node: its app, its store, its listeners and what they need.
///
/// ```no_run
/// # use dq::context::ContextFactory;
/// # async fn start() -> Result<(), dq::Error> {
/// let dq = ContextFactory::new("shop")
///     .store("memory:")
///     .provide(std::sync::Arc::new(7_u8))
///     .topic("order-timeout", |topic| topic.concurrency(8).timeout("10s"))
///     .start()
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// What is set here is outweighed by a [config file](Self::config_file) and by `DQ_*` variables of the environment, and
/// outweighs the attributes of listeners; [`config`](crate::config) has every name. A factory is used once; a process may
/// start as many as it likes, each is a node of its own.
#[derive(Debug)]
#[must_use = "nothing runs before `.start().await`"]
pub struct ContextFactory {
    app: String,
    at: SourceLocation,
    /// A store made by hand; the URL of one is among the settings.
    store: Option<Arc<dyn Store>>,
    /// A store that nobody else can reach is refused.
    shared_store_only: bool,
    injector: Injector,
    selection: Selection,
    settings: Layer,
    config_file: Option<PathBuf>,
    variables: Option<Variables>,
    environment: Option<Environment>,
}

impl ContextFactory {
    /// A node of this app: 1 to 128 bytes of `A-Z a-z 0-9 . _ -`. Apps share nothing in a store.
    #[track_caller]
    pub fn new(app: impl Into<String>) -> Self {
        Self::of(app.into(), Location::caller())
    }

    fn of(app: String, at: &'static Location<'static>) -> Self {
        Self {
            app,
            at: at.into(),
            store: None,
            shared_store_only: false,
            injector: Injector::default(),
            selection: Selection::default(),
            settings: Layer::default(),
            config_file: None,
            variables: None,
            environment: None,
        }
    }

    /// Where jobs are kept: a URL, or an `Arc` of a store.
    ///
    /// `memory:` is a store of this node alone; `memory:NAME` is shared by all in this process who name it, and gone with
    /// the last of them. There is no default: a node without a store does not start. A URL is outweighed by `store` in
    /// the config file and by `DQ_STORE`; an `Arc` is not, so a variable in the shell never leads a test elsewhere.
    #[track_caller]
    pub fn store(self, store: impl IntoStore) -> Self {
        self.with_store(store, Location::caller())
    }

    fn with_store(mut self, store: impl IntoStore, at: &'static Location<'static>) -> Self {
        (self.store, self.settings.store) = match store.into_store().0 {
            Chosen::Url(url) => (None, Some((url, Source::Builder(at.into())))),
            Chosen::Made(store) => (Some(store), None),
        };
        self
    }

    /// Provides a value to every listener that has a field or parameter of exactly this type.
    ///
    /// Each gets a clone: share with `Arc`. For a field of type `Arc<dyn Notify>`, provide exactly that:
    /// `let notify: Arc<dyn Notify> = Arc::new(Mailer); factory.provide(notify)`. A second value of one type is a problem
    /// at start, and so is a type that dq provides itself: `Provider` and `AppName`.
    #[track_caller]
    pub fn provide<T: Injectable>(mut self, value: T) -> Self {
        self.injector.provide(value, Some(Location::caller()));
        self
    }

    /// Names a delay listener by hand: a generic one, one with `register = false`, or any under
    /// [`without_inventory`](Self::without_inventory). One that is also found by itself counts once.
    pub fn listener<L: DelayListener>(mut self) -> Self {
        self.selection.by_hand.push(const { Registration::delay::<L>() });
        self
    }

    /// Names a broadcast listener by hand, as [`listener`](Self::listener) does.
    pub fn broadcast_listener<L: BroadcastListener>(mut self) -> Self {
        self.selection.by_hand.push(Registration::broadcast::<L>());
        self
    }

    /// Takes only listeners that are named by hand. Default: every annotated one that is linked.
    pub fn without_inventory(mut self) -> Self {
        self.selection.without_inventory = true;
        self
    }

    /// A node that only provides: no listener, also none that is named by hand. Default: a node without listeners does
    /// not start, because it mostly is one whose listeners were not linked.
    pub fn without_listeners(mut self) -> Self {
        self.selection.without_listeners = true;
        self
    }

    /// Runs the delay listeners of these topics alone; called again, of those as well. Broadcast listeners stay. Default:
    /// all. A topic that has no listener is a problem at start.
    #[track_caller]
    pub fn only<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        let at = Location::caller();
        self.selection.only.get_or_insert_default().extend(named(topics, at));
        self
    }

    /// Leaves out the delay listeners of these topics, also where [`only`](Self::only) names them. Broadcast listeners
    /// stay. Default: none. A topic that has no listener is a problem at start.
    #[track_caller]
    pub fn except<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        let at = Location::caller();
        self.selection.except.extend(named(topics, at));
        self
    }

    /// Topics or broadcast channels that must have a listener, else the node does not start: a listener in a crate that
    /// nothing mentions is not linked, and would be missing without a word. Default: none.
    #[track_caller]
    pub fn expect_topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        let at = Location::caller();
        self.selection.expected.extend(named(topics, at));
        self
    }

    /// Settings of a topic: `.topic("order-timeout", |topic| topic.concurrency(8).timeout("10s"))`. Called again for the
    /// same topic, the later call holds. A topic that has no listener is a problem at start.
    #[track_caller]
    pub fn topic(mut self, topic: &str, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Self {
        let at = SourceLocation::from(Location::caller());
        let said = settings(TopicOverrides::new(topic, at.clone())).into_layer();
        let changes = self.settings.name_topic(topic, Source::Builder(at));
        changes.extend(said.topics.into_values().flat_map(|(_, changes)| changes));
        self.settings.problems.extend(said.problems);
        self
    }

    /// A config file in TOML, read at start; [`config`](crate::config) shows one. A file that cannot be read is a problem
    /// at start, and so is every unknown key. At most 1 MiB. Default: none. Called again, the later call holds.
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.config_file = Some(path.into());
        self
    }

    /// Reads settings from these variables instead of those of the process; `[("", ""); 0]` for none.
    pub fn variables<K: Into<String>, V: Into<String>>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self {
        let pairs = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.variables = Some(pairs.collect::<BTreeMap<_, _>>());
        self
    }

    /// Checks everything and starts the node. On the runtime it is called on, its handlers run.
    ///
    /// A topic of which a key in the store has a wrong type, because another program wrote it, does not keep the others from
    /// starting: it is [`Condition::Stopped`](crate::context::Condition::Stopped) in [`Context::health`], the log says so at
    /// ERROR, and it starts once that key is gone. Where there is no other topic, the start is refused.
    ///
    /// # Errors
    /// [`Error::Start`] with everything that is wrong; then nothing was started. The store is asked whether it is there,
    /// for `call_total` at the longest.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(self) -> Result<Context, Error> {
        let Prepared { plan, provider } = self.prepare().await?;
        Ok(Context::launch(&plan, provider))
    }

    /// Time, randomness and runtimes of the node, for tests and simulations. Default: those of the program.
    #[doc(hidden)]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }
}

fn named<T: Into<String>>(
    topics: impl IntoIterator<Item = T>,
    at: &'static Location<'static>,
) -> impl Iterator<Item = Named> {
    topics.into_iter().map(move |topic| (topic.into(), SourceLocation::from(at)))
}
