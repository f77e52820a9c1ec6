//! The last step of a start: makes the listeners from the provided values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::contact::Refused;
use super::discover::{Listeners, listener_at};
use crate::config::{Listing, NodeSettings, Resolved, Source, SourceLocation, TopicSettings};
use crate::context::node::{BroadcastPlan, Plan, TopicPlan};
use crate::context::problems::{Need, Problem, StartError};
use crate::environment::Environment;
use crate::job::{AppName, TopicKey, TopicName};
use crate::listener::{Build, Built, Injector, Registration};
use crate::provider::Provider;
use crate::provider::define::CodeSchedule;
use crate::schedule::{Periodic, Ticks};
use crate::store::Store;

/// A topic, its listener and its settings.
pub(super) struct ResolvedTopic {
    pub(super) topic: TopicName,
    pub(super) listener: Registration,
    pub(super) resolved: Resolved<TopicSettings>,
}

/// Everything a plan needs, without a known problem.
pub(super) struct Checked {
    pub(super) app: AppName,
    pub(super) store: Arc<dyn Store>,
    /// Where its URL comes from.
    pub(super) store_at: Option<Source>,
    pub(super) environment: Environment,
    pub(super) node: Resolved<NodeSettings>,
    pub(super) topics: Vec<ResolvedTopic>,
    pub(super) listeners: Listeners,
    pub(super) injector: Injector,
    /// Topics that the store cannot serve for now, and why.
    pub(super) refused: Refused,
}

/// A node that is ready to start, and its provider.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) provider: Provider,
    /// The schedules of the code, by topic.
    pub(crate) definitions: BTreeMap<TopicName, Vec<CodeSchedule>>,
}

/// Makes the provider and the listeners. The only problem left is a listener that needs more than it declared.
pub(super) fn build(checked: Checked) -> Result<Prepared, StartError> {
    let Checked { app, store, store_at, environment, node, topics, listeners, mut injector, refused } = checked;
    let provider = Provider::root(app.clone(), store.clone(), environment.clone(), node.settings.clone());
    injector.provide(app.clone(), None);
    injector.provide(provider.clone(), None);
    let mut maker = Maker { injector, problems: Vec::new() };
    let key = |topic| TopicKey { app: app.clone(), topic };
    let definitions = maker.definitions(&provider, &listeners.schedules);
    let mut topic_plans = Vec::new();
    for ResolvedTopic { topic, listener: registration, resolved } in topics {
        let Build::Delay(make) = registration.build else { continue };
        let Some(listener) = maker.make(&registration, make) else { continue };
        let schedules = listeners.schedules.iter().map(|(schedule, _)| *schedule);
        let schedules = schedules.filter(|schedule| schedule.topic == topic.as_str()).collect();
        topic_plans.push(TopicPlan {
            key: key(topic),
            listener,
            name: registration.name,
            declared_at: registration.declared_at,
            listing: Listing::of(&resolved),
            settings: resolved.settings,
            schedules,
        });
    }
    let mut broadcasts = Vec::new();
    for (channels, registration) in listeners.broadcast {
        let Build::Broadcast(make) = registration.build else { continue };
        let Some(listener) = maker.make(&registration, make) else { continue };
        let channels = channels.into_iter().map(key).collect();
        broadcasts.push(BroadcastPlan { channels, listener, name: registration.name });
    }
    maker.done()?;
    let listing = Listing::of(&node).with_store(store.url(), store_at);
    let plan = Plan {
        node: environment.node_id(),
        app,
        store,
        environment,
        listing,
        settings: node.settings,
        topics: topic_plans,
        broadcasts,
        refused,
    };
    Ok(Prepared { plan, provider, definitions })
}

struct Maker {
    injector: Injector,
    problems: Vec<Problem>,
}

impl Maker {
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

    fn done(self) -> Result<(), StartError> {
        if self.problems.is_empty() { Ok(()) } else { Err(StartError::new(self.problems, self.injector.provided())) }
    }
}
