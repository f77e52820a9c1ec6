//! The factory: collects what a program asks for, checks all of it, and starts a node.
//!
//! The builder methods never fail. [`ContextFactory::start`] reports every problem at once, and then it has started nothing: it
//! has made no listener and touched no job.
//!
//! `prepare` runs the checks in order, and makes the listeners and the plan: `discover` chooses the listeners, `stores` reads the URL,
//! `contact` asks the store. [`problems`] has every reason not to start. Only `stores` names a store.

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;

use dq_grammar::node_settings;

use super::error::Error;
use super::node::handle::Context;
use crate::broadcast::BroadcastListener;
use crate::config::{Layer, NodeSettings, SettingChange, Source, SourceLocation, TopicOverrides, Variables, setters};
use crate::environment::{Environment, Runtime};
use crate::listener::{BatchListener, DelayListener, Injectable, Injector, Registration};
use crate::provider::{Definitions, Provider};
use crate::schedule::HasSchedules;
use crate::store::{Durability, Store};

mod contact;
mod discover;
mod prepare;
mod stores;
#[cfg(test)]
mod tests;

pub use stores::{IntoStore, StoreChoice, directory_of, open_store};

use contact::Unreachable;
use discover::{Named, Selection};
use prepare::Prepared;
use stores::Chosen;

/// Builds and starts a node: its app, its store, its listeners and the values they need.
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
/// Settings made here override the attributes of listeners. A [config file](Self::config_file) overrides the settings made
/// here, and `DQ_*` environment variables override both; [`config`](crate::config) lists every name. A factory starts one
/// node. A process may have many factories, and with them many nodes.
#[derive(Debug)]
#[must_use = "nothing runs before `.start().await`"]
pub struct ContextFactory {
    app: String,
    at: SourceLocation,
    /// A store that the program made; a URL is among the settings.
    store: Option<Arc<dyn Store>>,
    /// Refuses a store that no node could reach.
    shared_store_only: bool,
    injector: Injector,
    selection: Selection,
    settings: Layer,
    config_file: Option<PathBuf>,
    variables: Option<Variables>,
    environment: Option<Environment>,
    unreachable: Unreachable,
    /// The directory that takes adds while the store is away.
    buffer: Option<PathBuf>,
}

impl ContextFactory {
    /// Begins a node of this app: 1 to 128 bytes of `A-Z a-z 0-9 . _ -`. Apps share nothing in a store.
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
            unreachable: Unreachable::default(),
            buffer: None,
        }
    }

    /// Sets the store that keeps the jobs: a URL, or an `Arc` of a store. There is no default: a node without a store does not
    /// start.
    ///
    /// `file:DIRECTORY` keeps jobs on disk for one process; it opens the directory, and makes it if it is missing, when the node starts.
    /// `redis://HOST` is for many nodes. `memory:` is a store of this node alone. `memory:NAME` is one store for all nodes and providers of this process that
    /// name it, and it is gone with the last of them. `store` in the config file and `DQ_STORE` override a URL. They do not
    /// override an `Arc`, so a variable in the shell never leads a test to another store.
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

    /// Lets the provider take adds while the store is away: they wait in this directory, on its disk, and are sent when the store is back, each once
    /// and in their order, also if the program was killed meanwhile. Such an add answers [`AddedHow::Buffered`](crate::provider::AddedHow::Buffered). Use it in a
    /// service that has to work while its Redis is away.
    ///
    /// The directory belongs to one process at a time, is made if it is missing, and keeps the name under which the store knows it: do not delete or copy it
    /// while anything waits. The settings `buffer_limit`, `buffer_bytes` and `buffer_age` bound what it takes. A provider with a buffer connects also
    /// if the store cannot be reached. Everything but adds fails while the store is away.
    pub fn buffer(self, directory: impl Into<PathBuf>) -> Self {
        Self { buffer: Some(directory.into()), ..self }
    }

    /// Provides a value to every listener that has a field or parameter of exactly this type.
    ///
    /// Each listener gets a clone, so the type must be `Clone`: wrap the value in an `Arc` to share it, `.provide(Arc::new(db))`, and
    /// write `&Arc<Db>` in the listener. For a field of type `Arc<dyn Notify>`, provide
    /// exactly that: `let notify: Arc<dyn Notify> = Arc::new(Mailer); factory.provide(notify)`. A second value of the same type
    /// is a problem at start, and so is a `Provider` or an `AppName`, which dq provides itself.
    #[track_caller]
    pub fn provide<T: Injectable>(mut self, value: T) -> Self {
        self.injector.provide(value, Some(Location::caller()));
        self
    }

    /// Adds a delay listener that does not register automatically: a generic one, one with `register = false`, or any listener
    /// under [`without_inventory`](Self::without_inventory). A listener that is also registered counts once.
    ///
    /// A function listener is named like the function: `.listener::<handlers::close>()`, wherever the function is visible.
    pub fn listener<L: DelayListener>(mut self) -> Self {
        self.selection.by_hand.push(const { Registration::delay::<L>() });
        self
    }

    /// Adds a delay listener that takes batches, as [`listener`](Self::listener) adds one that takes one job at a time.
    pub fn batch_listener<L: BatchListener>(mut self) -> Self {
        self.selection.by_hand.push(const { Registration::batch::<L>() });
        self
    }

    /// Adds the schedules of a `#[periodic]` that does not register them: one with `register = false`, or any under
    /// [`without_inventory`](Self::without_inventory). A schedule that is also registered counts once.
    ///
    /// Those of a function are named like the function: `.periodic::<reports::nightly>()`, wherever the function is visible.
    pub fn periodic<S: HasSchedules>(mut self) -> Self {
        self.selection.schedules_by_hand.extend(S::SCHEDULES);
        self
    }

    /// Adds a broadcast listener, as [`listener`](Self::listener) adds a delay listener.
    pub fn broadcast_listener<L: BroadcastListener>(mut self) -> Self {
        self.selection.by_hand.push(Registration::broadcast::<L>());
        self
    }

    /// Takes only the listeners that the factory names. Default: every annotated listener that is linked registers
    /// automatically.
    pub fn without_inventory(mut self) -> Self {
        self.selection.without_inventory = true;
        self
    }

    /// Makes a node that only provides: it runs no listener, not even those that the factory names. Default: a node without
    /// listeners does not start, because most such nodes lack a listener that was not linked.
    pub fn without_listeners(mut self) -> Self {
        self.selection.without_listeners = true;
        self
    }

    /// Runs the delay listeners of these topics alone. A further call adds topics. Broadcast listeners stay. Default: all
    /// topics. A topic that has no listener is a problem at start.
    #[track_caller]
    pub fn only<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        let at = Location::caller();
        self.selection.only.get_or_insert_default().extend(named(topics, at));
        self
    }

    /// Leaves out the delay listeners of these topics, even if [`only`](Self::only) names them. Broadcast listeners stay.
    /// Default: none. A topic that has no listener is a problem at start.
    #[track_caller]
    pub fn except<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        let at = Location::caller();
        self.selection.except.extend(named(topics, at));
        self
    }

    /// Names topics or broadcast channels that must have a listener; the node does not start otherwise. The linker silently
    /// leaves out a listener in a crate that the program never mentions, and this finds it. Default: none.
    #[track_caller]
    pub fn expect_topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        let at = Location::caller();
        self.selection.expected.extend(named(topics, at));
        self
    }

    /// Sets the settings of a topic: `.topic("order-timeout", |topic| topic.concurrency(8).timeout("10s"))`. If two calls set
    /// the same setting of a topic, the later one holds. A topic that has no listener is a problem at start.
    #[track_caller]
    pub fn topic(mut self, topic: &str, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Self {
        let at = SourceLocation::from(Location::caller());
        let said = settings(TopicOverrides::new(topic, at.clone())).into_layer();
        let changes = self.settings.name_topic(topic, Source::Builder(at));
        changes.extend(said.topics.into_values().flat_map(|(_, changes)| changes));
        self.settings.problems.extend(said.problems);
        self
    }

    /// Reads a config file in TOML at start, of 1 MiB at most; [`config`](crate::config) shows one. Default: none. A later call
    /// replaces the file. A file that cannot be read is a problem at start, and so is every unknown key.
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.config_file = Some(path.into());
        self
    }

    /// Reads settings from these variables instead of the environment of the process. `[("", ""); 0]` means no variables.
    pub fn variables<K: Into<String>, V: Into<String>>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self {
        let pairs = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.variables = Some(pairs.collect::<BTreeMap<_, _>>());
        self
    }

    /// Checks everything and starts the node. Its handlers run on the runtime that calls this.
    ///
    /// If another program wrote a key of a topic with a wrong type, the other topics start all the same. That topic is
    /// [`Condition::Stopped`](crate::context::Condition::Stopped) in [`Context::health`] and in the log at WARN, and it starts
    /// once the key is gone. If there is no other topic, the node does not start.
    ///
    /// # Errors
    /// [`Error::Start`] with every problem; then nothing was started. A store that does not answer each question within
    /// `call_deadline` (10 s by default) is one of them.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(self) -> Result<Context, Error> {
        let Prepared { plan, provider, mut definitions } = self.prepare().await?;
        for plan_of_topic in &plan.topics {
            let topic = plan_of_topic.key.topic.clone();
            let schedules = definitions.remove(&topic).unwrap_or_default();
            let definitions = Definitions { topic, schedules, history: plan_of_topic.history() };
            plan.environment.spawn(Runtime::Own, provider.clone().look_after(definitions, &plan_of_topic.definitions));
        }
        Ok(Context::launch(&plan, provider))
    }

    /// Starts the node as [`start`](Self::start) does, also if the store cannot be reached yet. For containers that start in any order.
    ///
    /// It returns after `call_timeout` (2 s by default) at the latest. Its topics then ask for the store again and again, with pauses
    /// that grow up to 5 s, and start once it answers. Until then the log says so, [`Context::health`] is not `ready` and has the error, and
    /// [`Context::ready`] waits. Adds fail meanwhile: [`NotDone`](crate::provider::CallError::NotDone).
    ///
    /// # Errors
    /// [`Error::Start`] with every problem that waiting does not mend: of the settings, the listeners and the URL, a password that
    /// the store rejects, a `file:` store that does not open. Then nothing was started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start_when_reachable(self) -> Result<Context, Error> {
        Self { unreachable: Unreachable::Waits, ..self }.start().await
    }

    /// Makes a provider with the settings of this factory, for a program that only adds jobs: no listener, no node, nothing to shut
    /// down. [`Provider::connect`] is the short form.
    ///
    /// # Errors
    /// [`Error::Start`] with every problem, also if the store cannot be reached within `call_deadline` (10 s by default).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(self) -> Result<Provider, Error> {
        self.provider(Unreachable::Fails).await
    }

    /// Makes a provider as [`connect`](Self::connect) does, and does not ask the store whether it is there:
    /// [`Provider::connect_lazy`] is the short form.
    ///
    /// # Errors
    /// [`Error::Start`] with every problem of the settings and the URL, or if a `file:` store does not open.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect_lazy(self) -> Result<Provider, Error> {
        self.provider(Unreachable::Ignored).await
    }

    /// Sets a setting of the node. `start` checks its limits.
    #[track_caller]
    fn set<T: Send + Sync + 'static>(
        mut self,
        key: &'static str,
        value: Result<T, String>,
        put: fn(&mut NodeSettings, &T),
    ) -> Self {
        let source = Source::Builder(Location::caller().into());
        self.settings.change_node(SettingChange::new(key, None, source, value, put));
        self
    }

    /// Sets the clock, the randomness and the runtimes of the node, for tests and simulations. Default: those of the program.
    #[doc(hidden)]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }
}

node_settings!(setters ContextFactory NodeSettings);

fn named<T: Into<String>>(
    topics: impl IntoIterator<Item = T>,
    at: &'static Location<'static>,
) -> impl Iterator<Item = Named> {
    topics.into_iter().map(move |topic| (topic.into(), SourceLocation::from(at)))
}
