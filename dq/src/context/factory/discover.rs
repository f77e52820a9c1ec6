//! Which listeners a node runs: those that register automatically and those that the factory names, less those left out.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};

use crate::config::{SourceLocation, nearest};
use crate::context::problems::{ListenerAt, Need, Problem};
use crate::job::TopicName;
use crate::listener::{Injector, ListenerKind, Registration};
use crate::schedule::{Periodic, Ticks};

/// A topic that the builder names, and where.
pub(crate) type Named = (String, SourceLocation);

/// Which of the registered listeners a node is to have.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// The factory names these.
    pub(crate) by_hand: Vec<Registration>,
    /// The factory names these schedules of the code.
    pub(crate) schedules_by_hand: Vec<Periodic>,
    /// Listeners and schedules do not register automatically.
    pub(crate) without_inventory: bool,
    /// The node has no listeners.
    pub(crate) without_listeners: bool,
    /// Only these topics.
    pub(crate) only: Option<Vec<Named>>,
    /// Not these topics.
    pub(crate) except: Vec<Named>,
    /// Topics and channels that must have a listener.
    pub(crate) expected: Vec<Named>,
}

/// The listeners of a node.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// By topic, in order of the names.
    pub(crate) delay: Vec<(TopicName, Registration)>,
    /// With their channels, in order of the places of their annotations.
    pub(crate) broadcast: Vec<(Vec<TopicName>, Registration)>,
    /// The schedules that the code defines for topics of this node, and their ticks, in order of topics, then names.
    pub(crate) schedules: Vec<(Periodic, Ticks)>,
    /// Every topic that has a listener, selected or not.
    pub(crate) topics: Vec<&'static str>,
    /// Every broadcast channel that has a listener.
    pub(crate) channels: BTreeSet<&'static str>,
}

pub(crate) fn listener_at(registration: &Registration) -> ListenerAt {
    ListenerAt { at: SourceLocation::declared(registration.declared_at), name: registration.name }
}

impl Selection {
    /// Chooses the listeners and reports every problem with them.
    pub(crate) fn discover(&self, problems: &mut Vec<Problem>) -> Listeners {
        if self.without_listeners {
            return Listeners::default();
        }
        let registered = self.registered();
        if registered.is_empty() {
            problems.push(Problem::NoListener);
            return Listeners::default();
        }
        let mut found = Listeners::default();
        for registration in &registered {
            match registration.kind {
                ListenerKind::Delay { topic } => found.add_delay(topic, registration, problems),
                ListenerKind::Broadcast { channels } => found.add_broadcast(channels, registration, problems),
            }
        }
        found.topics.dedup();
        self.check_names(&found, problems);
        found.delay.retain(|(topic, _)| self.selects(topic.as_str()));
        if found.delay.is_empty() && found.broadcast.is_empty() && !found.topics.is_empty() {
            problems.push(Problem::NoneLeft { registered: registered.len() });
        }
        found.leave_one_of_each(problems);
        found.add_schedules(self.schedules(), problems);
        found
    }

    /// Every schedule of the code once, in order of topics, then names, then places.
    fn schedules(&self) -> Vec<Periodic> {
        let mut all = if self.without_inventory { Vec::new() } else { Periodic::all() };
        all.extend(&self.schedules_by_hand);
        all.sort_by_key(|schedule| (schedule.topic, schedule.name, schedule.declared_at));
        all.dedup_by_key(|schedule| (schedule.topic, schedule.name, schedule.declared_at));
        all
    }

    /// Every listener once, in order of topics, then places.
    fn registered(&self) -> Vec<Registration> {
        let inventory = if self.without_inventory { Vec::new() } else { Registration::all() };
        let mut seen = BTreeSet::<TypeId>::new();
        let all = inventory.into_iter().chain(self.by_hand.iter().copied());
        let mut once: Vec<_> = all.filter(|registration| seen.insert((registration.type_id)())).collect();
        once.sort_by_key(|registration| match registration.kind {
            ListenerKind::Delay { topic } => (topic, listener_at(registration)),
            ListenerKind::Broadcast { .. } => ("", listener_at(registration)),
        });
        once
    }

    fn selects(&self, topic: &str) -> bool {
        let names = |list: &[Named]| list.iter().any(|(name, _)| name == topic);
        self.only.as_ref().is_none_or(|only| names(only)) && !names(&self.except)
    }

    fn check_names(&self, found: &Listeners, problems: &mut Vec<Problem>) {
        for (topic, at) in &self.expected {
            if !found.topics.contains(&topic.as_str()) && !found.channels.contains(topic.as_str()) {
                let suggestion = nearest(topic, found.topics.iter().chain(&found.channels).copied());
                problems.push(Problem::Expected { at: at.clone(), topic: topic.clone(), suggestion });
            }
        }
        let only = self.only.iter().flatten().map(|named| ("only", named));
        for (call, (topic, at)) in only.chain(self.except.iter().map(|named| ("except", named))) {
            if !found.topics.contains(&topic.as_str()) {
                let suggestion = nearest(topic, found.topics.iter().copied());
                problems.push(Problem::NotSelectable { at: at.clone(), call, topic: topic.clone(), suggestion });
            }
        }
    }
}

impl Listeners {
    fn add_delay(&mut self, topic: &'static str, registration: &Registration, problems: &mut Vec<Problem>) {
        self.topics.push(topic);
        match TopicName::new(topic) {
            Ok(name) => self.delay.push((name, *registration)),
            Err(bad) => problems.push(Problem::TopicName { listener: listener_at(registration), bad }),
        }
    }

    fn add_broadcast(
        &mut self,
        channels: &'static [&'static str],
        registration: &Registration,
        problems: &mut Vec<Problem>,
    ) {
        let mut names = Vec::new();
        for &channel in channels {
            self.channels.insert(channel);
            match TopicName::new(channel) {
                Ok(name) => names.push(name),
                Err(mut bad) => {
                    bad.what = "broadcast channel";
                    problems.push(Problem::TopicName { listener: listener_at(registration), bad });
                }
            }
        }
        names.sort();
        names.dedup();
        self.broadcast.push((names, *registration));
    }

    /// Takes the schedules whose topics this node listens to, and reports those that no node could tick.
    fn add_schedules(&mut self, schedules: Vec<Periodic>, problems: &mut Vec<Problem>) {
        let same = |a: &Periodic, b: &Periodic| (a.topic, a.name) == (b.topic, b.name);
        for same in schedules.chunk_by(same).filter(|same| same.len() > 1) {
            let (topic, name) = (same[0].topic, same[0].name);
            let places = same.iter().map(|schedule| SourceLocation::declared(schedule.declared_at)).collect();
            problems.push(Problem::DuplicateSchedule { topic, name, places });
        }
        for schedule in schedules {
            let (at, name) = (SourceLocation::declared(schedule.declared_at), schedule.name);
            match schedule.ticks() {
                Err(why) => problems.push(Problem::Schedule { at, name, why }),
                Ok(ticks) if self.delay.iter().any(|(topic, _)| topic.as_str() == schedule.topic) => {
                    self.schedules.push((schedule, ticks));
                }
                Ok(_) => {
                    tracing::info!(
                        schedule = name,
                        topic = schedule.topic,
                        "this node does not listen to the topic of the schedule, so it leaves the schedule to nodes that do"
                    );
                }
            }
        }
    }

    /// Reports topics with more than one listener, and keeps the first of each.
    fn leave_one_of_each(&mut self, problems: &mut Vec<Problem>) {
        for same in self.delay.chunk_by(|(a, _), (b, _)| a == b).filter(|same| same.len() > 1) {
            let listeners = same.iter().map(|(_, registration)| listener_at(registration)).collect();
            problems.push(Problem::DuplicateTopic { topic: same[0].0.to_string(), listeners });
        }
        self.delay.dedup_by(|(a, _), (b, _)| a == b);
    }

    /// Reports the types that the listeners need and that neither the program nor dq (`own`) provides, one problem per type.
    pub(crate) fn check_needs(&self, injector: &Injector, own: &[TypeId], problems: &mut Vec<Problem>) {
        let delay = self.delay.iter().map(|(_, registration)| registration);
        let mut missing: BTreeMap<TypeId, Vec<(Need, &'static str)>> = BTreeMap::new();
        for registration in delay.chain(self.broadcast.iter().map(|(_, registration)| registration)) {
            for dependency in (registration.dependencies)() {
                if !own.contains(&dependency.type_id) && !injector.has(dependency.type_id) {
                    let need = Need { listener: listener_at(registration), field: dependency.field };
                    missing.entry(dependency.type_id).or_default().push((need, dependency.written));
                }
            }
        }
        for mut needs in missing.into_values() {
            needs.sort();
            let written = needs[0].1;
            let needed_by = needs.into_iter().map(|(need, _)| need).collect();
            problems.push(Problem::NotProvided { written, needed_by });
        }
    }
}
