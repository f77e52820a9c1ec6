//! From the collected settings and listeners to a plan: every check first, and only then the listeners.

use std::any::{TypeId, type_name};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::ContextFactory;
use super::contact::{FirstContact, Unreachable};
use super::discover::{Listeners, listener_at};
use super::stores::{self, IntoStore};
use crate::config::{
    EffectiveSettings, Layers, NodeSettings, Resolved, Setting, SettingProblem, SourceLocation, TopicSettings,
    check_batches, check_node, check_topic, of_this_process, read_file, read_variables,
};
use crate::context::error::Error;
use crate::context::node::{BroadcastPlan, Plan, TopicPlan};
use crate::context::problems::{Need, Problem, StartError};
use crate::environment::Environment;
use crate::job::{AppName, TopicKey, TopicName};
use crate::listener::{Build, Built, Injector, Registration};
use crate::provider::{Bounds, Buffer, CodeSchedule, DefinitionsWake, Provider};
use crate::schedule::{Periodic, Ticks};
use crate::store::{Durability, Store, masked_url};

/// The longest time that a call may take.
const MAX_CALL: Duration = Duration::from_secs(3600);

/// A topic, its listener and its settings.
struct ResolvedTopic {
    topic: TopicName,
    listener: Registration,
    resolved: Resolved<TopicSettings>,
}

/// A node that is ready to start, and its provider.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) provider: Provider,
    /// The schedules of the code, by topic.
    pub(crate) definitions: BTreeMap<TopicName, Vec<CodeSchedule>>,
}

impl ContextFactory {
    /// Checks everything and makes the plan. Reports every problem at once.
    pub(crate) async fn prepare(self) -> Result<Prepared, StartError> {
        let mut problems = Vec::new();
        let app = AppName::new(&self.app).map_err(|bad| problems.push(Problem::AppName { at: self.at.clone(), bad }));
        let listeners = self.selection.discover(&mut problems);
        let layers = self.layers(&listeners, &mut problems);
        let node = layers.node();
        problems.extend(check_node(&node).into_iter().map(Problem::from));
        let topics = resolve_topics(&layers, &listeners, &mut problems);
        check_provided(&self.injector, &mut problems);
        listeners.check_needs(&self.injector, &own().map(|(_, type_id)| type_id), &mut problems);
        problems.extend(check_durability(&node, self.store.is_some(), &layers).map(Problem::from));
        problems.extend(check_memory_limit(&node, self.store.is_some(), &layers).map(Problem::from));
        let store_at = if self.store.is_none() { layers.store().map(|(_, at)| at.clone()) } else { None };
        let store = choose_store(self.store, &layers, self.shared_store_only, &node.settings);
        let store = store.map_err(|problem| problems.push(*problem));
        let environment = self.environment.map_or_else(Environment::of_this_runtime, Ok);
        let environment = environment.map_err(|error| problems.push(Problem::NoThread(error)));
        let mut refused = BTreeMap::new();
        if let (Ok(app), Ok(store), Ok(environment)) = (&app, &store, &environment) {
            let limit = match self.unreachable {
                Unreachable::Fails | Unreachable::Ignored => node.settings.call_deadline,
                Unreachable::Waits => node.settings.call_timeout,
            };
            // A value that is out of range is among the problems, and still must not overflow the clock.
            let limit = limit.min(MAX_CALL);
            let (store_at, unreachable) = (store_at.as_ref(), self.unreachable);
            let contact = FirstContact { app, store: &**store, store_at, environment, limit, unreachable };
            refused = contact.make(&listeners, self.selection.without_listeners, &mut problems).await;
        }
        let (Ok(app), Ok(store), Ok(environment), true) = (app, store, environment, problems.is_empty()) else {
            return Err(StartError::new(problems, self.injector.provided()));
        };
        let provider = Provider::root(app.clone(), store.clone(), environment.clone(), node.settings.clone());
        let provider = match &self.buffer {
            None => provider,
            Some(path) => match buffered(path, &app, &store, &environment, &node.settings).await {
                Ok(provider) => provider,
                Err(problem) => return Err(StartError::new(vec![problem], self.injector.provided())),
            },
        };
        let mut maker = Maker { injector: self.injector, problems };
        maker.injector.provide(app.clone(), None);
        maker.injector.provide(provider.clone(), None);
        let definitions = maker.definitions(&provider, &listeners.schedules);
        let topics = maker.topics(&app, topics, &listeners.schedules);
        let broadcasts = maker.broadcasts(&app, listeners.broadcast);
        if !maker.problems.is_empty() {
            return Err(StartError::new(maker.problems, maker.injector.provided()));
        }
        let listing = EffectiveSettings::of(&node).with_store(store.url(), store_at);
        let (settings, node) = (node.settings, environment.node_id());
        let plan = Plan { app, node, store, environment, settings, listing, topics, broadcasts, refused };
        Ok(Prepared { plan, provider, definitions })
    }

    /// A provider without a node.
    pub(super) async fn provider(self, unreachable: Unreachable) -> Result<Provider, Error> {
        // What its callers add waits in the buffer until the store can be reached.
        let unreachable = if self.buffer.is_some() { Unreachable::Ignored } else { unreachable };
        let factory = Self { shared_store_only: true, unreachable, ..self.without_listeners() };
        let prepared = factory.prepare().await?;
        prepared.plan.log_provider();
        Ok(prepared.provider)
    }

    fn layers(&self, listeners: &Listeners, problems: &mut Vec<Problem>) -> Layers {
        let known = (!self.selection.without_listeners).then_some(&*listeners.topics);
        let file = self.config_file.as_deref().map(read_file);
        let variables = self.variables.clone().unwrap_or_else(of_this_process);
        let layers = Layers::new(self.settings.clone(), file, read_variables(&variables, known));
        problems.extend(layers.problems(known).into_iter().map(Problem::from));
        layers.unused(known).log();
        layers
    }
}

impl Provider {
    /// Makes a provider of `app` for a program that only adds jobs: no listener, no node, nothing to shut down.
    ///
    /// The store is a URL or an `Arc` of a store, as in [`ContextFactory::store`], and `DQ_*` variables override a URL as they
    /// do there. It reads no config file, because nothing names one: [`ContextFactory::connect`] has every source of settings.
    /// `memory:` is refused, because no node could run its jobs; `memory:NAME` is shared with the rest of the process.
    ///
    /// # Errors
    /// [`Error::Start`] with every problem, also if the store cannot be reached within `call_deadline` (10 s by default).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn connect(app: impl Into<String>, store: impl IntoStore) -> impl Future<Output = Result<Self, Error>> + Send {
        ContextFactory::of(app.into(), Location::caller()).with_store(store, Location::caller()).connect()
    }

    /// Makes a provider as [`connect`](Self::connect) does, and does not ask the store whether it is there: the first call connects. So
    /// it does not matter in which order containers start. While the store cannot be reached, an add fails with
    /// [`NotDone`](crate::provider::CallError::NotDone) after `call_deadline`, or after the time of the call
    /// ([`within`](crate::provider::Call::within)). A `file:` store is opened here.
    ///
    /// # Errors
    /// [`Error::Start`] with every problem of the settings and the URL, or if a `file:` store does not open.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn connect_lazy(
        app: impl Into<String>,
        store: impl IntoStore,
    ) -> impl Future<Output = Result<Self, Error>> + Send {
        ContextFactory::of(app.into(), Location::caller()).with_store(store, Location::caller()).connect_lazy()
    }
}

/// The types whose values dq provides itself.
fn own() -> [(&'static str, TypeId); 2] {
    [(type_name::<AppName>(), TypeId::of::<AppName>()), (type_name::<Provider>(), TypeId::of::<Provider>())]
}

fn resolve_topics(layers: &Layers, listeners: &Listeners, problems: &mut Vec<Problem>) -> Vec<ResolvedTopic> {
    let mut topics = Vec::new();
    for (topic, listener) in &listeners.delay {
        let (resolved, unread) = layers.topic(topic.as_str(), listener);
        problems.extend(unread.into_iter().chain(check_topic(topic.as_str(), &resolved)).map(Problem::from));
        problems.extend(check_batches(topic.as_str(), &resolved).filter(|_| listener.takes_batches).map(Problem::from));
        topics.push(ResolvedTopic { topic: topic.clone(), listener: *listener, resolved });
    }
    topics
}

fn check_provided(injector: &Injector, problems: &mut Vec<Problem>) {
    for (first, again) in injector.provided_twice() {
        if let (Some(first_at), Some(again_at)) = (first.at, again.at) {
            let (first, again, type_name) =
                (SourceLocation::from(first_at), SourceLocation::from(again_at), again.type_name);
            problems.push(Problem::ProvidedTwice { first, again, type_name });
        }
    }
    for provided in injector.provided() {
        if let (true, Some(at)) = (own().iter().any(|(name, _)| *name == provided.type_name), provided.at) {
            problems.push(Problem::ProvidedByDq { at: at.into(), type_name: provided.type_name });
        }
    }
}

/// A setting of the node that the chosen store cannot have: what is allowed, and what to write.
fn not_of_this_store(
    node: &Resolved<NodeSettings>,
    key: &'static str,
    value: String,
    limit: String,
    write: String,
) -> SettingProblem {
    let (setting, at) = (Setting { topic: None, key }, node.source(key));
    SettingProblem::OutOfRange { setting, value, at, limit, write }
}

/// Only Redis has replicas to wait for, only `file:` syncs, at once or at an interval, and only for a store that dq makes from a URL.
fn check_durability(node: &Resolved<NodeSettings>, made: bool, layers: &Layers) -> Option<SettingProblem> {
    let value = EffectiveSettings::of(node).get("durability")?.value.clone();
    let url = layers.store().map(|(url, _)| url);
    let (limit, write) = match (node.settings.durability, url) {
        (Durability::Local, _) => return None,
        _ if made => (
            "\"local\" beside a store that was made by hand".to_owned(),
            "it where that store is made: `.with_durability(..)`".to_owned(),
        ),
        (Durability::Wait { .. }, Some(url)) if stores::is_alone(url) => (
            format!("\"local\" on `{}`, which has no replicas", masked_url(url)),
            "`durability = \"local\"`, or take a `redis:` store".to_owned(),
        ),
        (Durability::Sync, Some(url)) if !stores::is_file(url) => {
            let server = "`durability = \"local\"`, and let the server sync each write with `appendfsync always`";
            let write =
                if stores::is_alone(url) { "`durability = \"local\"`, or take a `file:` store" } else { server };
            (format!("\"local\" on `{}`, where dq syncs no files", masked_url(url)), write.to_owned())
        }
        (Durability::Interval(_), Some(url)) if !stores::is_file(url) => (
            format!("\"local\" on `{}`, which syncs no files of its own", masked_url(url)),
            "`durability = \"local\"`, or take a `file:` store".to_owned(),
        ),
        _ => return None,
    };
    Some(not_of_this_store(node, "durability", value, limit, write))
}

/// Only a `file:` store that dq makes from a URL takes the memory of this process by a limit.
fn check_memory_limit(node: &Resolved<NodeSettings>, made: bool, layers: &Layers) -> Option<SettingProblem> {
    let bytes = node.settings.max_memory?;
    let (limit, write) = match layers.store() {
        _ if made => ("unset beside a store that was made by hand".to_owned(), "it where that store is made"),
        Some((url, _)) if !stores::is_file(url) => {
            (format!("unset on `{}`", masked_url(url)), "no `max_memory`: it is for `file:`")
        }
        _ => return None,
    };
    Some(not_of_this_store(node, "max_memory", bytes.to_string(), limit, write.to_owned()))
}

/// A provider whose adds wait in this directory while the store is away.
async fn buffered(
    path: &Path,
    app: &AppName,
    store: &Arc<dyn Store>,
    environment: &Environment,
    settings: &NodeSettings,
) -> Result<Provider, Problem> {
    let directory =
        Arc::new(stores::file_store(path, &NodeSettings { durability: Durability::Sync, ..NodeSettings::default() }));
    let bounds = Bounds {
        jobs: settings.buffer_limit,
        bytes: settings.buffer_bytes,
        age: settings.buffer_age,
        call_timeout: settings.call_timeout,
    };
    let url = directory.url();
    let buffer = Buffer::open(store.clone(), directory, app, environment.clone(), bounds).await;
    let buffer = buffer.map_err(|error| Problem::StoreNotOpen { url, at: None, error })?;
    Ok(Provider::buffered(app.clone(), buffer, environment.clone(), settings.clone()))
}

fn choose_store(
    made: Option<Arc<dyn Store>>,
    layers: &Layers,
    shared: bool,
    settings: &NodeSettings,
) -> Result<Arc<dyn Store>, Box<Problem>> {
    if let Some(store) = made {
        return Ok(store);
    }
    let (url, at) = layers.store().ok_or(Problem::NoStore)?;
    stores::open(url, shared, settings)
        .map_err(|why| Box::new(Problem::StoreUrl { at: at.clone(), url: masked_url(url), why }))
}

/// Makes the listeners. The only problems left are listeners that need more than they declared, and schedules without a payload.
struct Maker {
    injector: Injector,
    problems: Vec<Problem>,
}

impl Maker {
    /// The topics with their listeners and the schedules of each.
    fn topics(&mut self, app: &AppName, topics: Vec<ResolvedTopic>, schedules: &[(Periodic, Ticks)]) -> Vec<TopicPlan> {
        let mut plans = Vec::new();
        for ResolvedTopic { topic, listener: registration, resolved } in topics {
            let Build::Delay(make) = registration.build else { continue };
            let Some(listener) = self.make(&registration, make) else { continue };
            let schedules = schedules.iter().map(|(schedule, _)| *schedule);
            let schedules = schedules.filter(|schedule| schedule.topic == topic.as_str()).collect();
            plans.push(TopicPlan {
                key: TopicKey { app: app.clone(), topic },
                listener,
                name: registration.name,
                declared_at: registration.declared_at,
                listing: EffectiveSettings::of(&resolved),
                settings: resolved.settings,
                schedules,
                definitions: DefinitionsWake::default(),
            });
        }
        plans
    }

    /// The broadcast listeners with their channels.
    fn broadcasts(&mut self, app: &AppName, listeners: Vec<(Vec<TopicName>, Registration)>) -> Vec<BroadcastPlan> {
        let mut plans = Vec::new();
        for (channels, registration) in listeners {
            let Build::Broadcast(make) = registration.build else { continue };
            let Some(listener) = self.make(&registration, make) else { continue };
            let channels = channels.into_iter().map(|topic| TopicKey { app: app.clone(), topic }).collect();
            plans.push(BroadcastPlan { channels, listener, name: registration.name });
        }
        plans
    }

    fn make<L: ?Sized>(&mut self, registration: &Registration, make: fn(&Injector) -> Built<L>) -> Option<Arc<L>> {
        let made = make(&self.injector);
        made.map_err(|missing| {
            let needed_by =
                vec![Need { listener: listener_at(registration), field: "a value that it does not declare" }];
            self.problems.push(Problem::NotProvided { written: missing.type_name, needed_by });
        })
        .ok()
    }

    /// The schedules of the code with their payloads, which the user's code makes.
    fn definitions(
        &mut self,
        provider: &Provider,
        schedules: &[(Periodic, Ticks)],
    ) -> BTreeMap<TopicName, Vec<CodeSchedule>> {
        let mut definitions = BTreeMap::<_, Vec<_>>::new();
        let mut names = BTreeSet::new();
        for (schedule, ticks) in schedules {
            let Ok(topic) = TopicName::new(schedule.topic) else { continue }; // a problem of the listener, reported before
            names.insert((topic.clone(), schedule.name.to_owned()));
            match provider.code_schedule(schedule, ticks.clone()) {
                Ok(ready) => definitions.entry(topic).or_default().push(ready),
                Err(error) => self.problems.push(Problem::Schedule {
                    at: SourceLocation::declared(schedule.declared_at),
                    name: schedule.name,
                    why: error.to_string(),
                }),
            }
        }
        provider.knows_code(names);
        definitions
    }
}
