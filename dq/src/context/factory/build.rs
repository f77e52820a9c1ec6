//! The last step of a start: makes the listeners from the provided values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::discover::listener_at;
use crate::config::{Listing, Resolved, SourceLocation, TopicSettings};
use crate::context::node::{BroadcastPlan, Plan, TopicPlan};
use crate::context::problems::{Need, Problem, StartError};
use crate::job::{AppName, TopicKey, TopicName};
use crate::listener::{Build, Built, Injector, Registration};
use crate::provider::CodeSchedule;
use crate::provider::Provider;
use crate::schedule::{Periodic, Ticks};

/// A topic, its listener and its settings.
pub(super) struct ResolvedTopic {
    pub(super) topic: TopicName,
    pub(super) listener: Registration,
    pub(super) resolved: Resolved<TopicSettings>,
}

/// A node that is ready to start, and its provider.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) provider: Provider,
    /// The schedules of the code, by topic.
    pub(crate) definitions: BTreeMap<TopicName, Vec<CodeSchedule>>,
}

/// Makes the listeners. The only problems left are listeners that need more than they declared, and schedules without a payload.
pub(super) struct Maker {
    pub(super) injector: Injector,
    pub(super) problems: Vec<Problem>,
}

impl Maker {
    /// The topics with their listeners and the schedules of each.
    pub(super) fn topics(
        &mut self,
        app: &AppName,
        topics: Vec<ResolvedTopic>,
        schedules: &[(Periodic, Ticks)],
    ) -> Vec<TopicPlan> {
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
                listing: Listing::of(&resolved),
                settings: resolved.settings,
                schedules,
            });
        }
        plans
    }

    /// The broadcast listeners with their channels.
    pub(super) fn broadcasts(
        &mut self,
        app: &AppName,
        listeners: Vec<(Vec<TopicName>, Registration)>,
    ) -> Vec<BroadcastPlan> {
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
    pub(super) fn definitions(
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

    pub(super) fn done(self) -> Result<(), StartError> {
        if self.problems.is_empty() { Ok(()) } else { Err(StartError::new(self.problems, self.injector.provided())) }
    }
}
