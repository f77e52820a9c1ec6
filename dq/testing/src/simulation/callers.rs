//! Programs that add jobs and send commands, with providers of their own, and handlers that do the same.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::join_all;

use super::checker::AddResult;
use super::process::Process;
use super::profile::Profile;
use super::random::RandomSource;
use super::settings::RunSettings;
use super::sim::Sim;
use super::store::FaultyStore;
use super::sync::lock;
use super::units::MS;
use super::version::{FAILING, KILLER, SLOW, payload};
use dq::config::NodeSettings;
use dq::environment::Runtime;
use dq::job::{Delivery, Priority, TopicKey};
use dq::provider::{Added, AddedHow, CallError, JobOptions, Provider, Refusal, TopicProvider};

/// The most jobs that one act of a caller adds.
pub(super) const MAX_ADDS: u64 = 64;

impl Sim {
    /// Starts a program that adds jobs and sends commands.
    pub(super) fn start_caller(self: &Arc<Self>) -> (Arc<Process>, Provider) {
        let number = self.names.fetch_add(1, Relaxed) + 1;
        let process = Process::new(format!("p{number}"), &self.cluster);
        let store = Arc::new(FaultyStore { sim: Arc::clone(self), process: Arc::clone(&process) });
        let provider = Provider::root(self.keys[0].app.clone(), store, process.environment(), NodeSettings::default());
        (process, provider)
    }

    /// A caller acts now, and some caller acts again later.
    pub(super) fn act(self: &Arc<Self>) {
        if self.is_calm() || self.is_over() {
            return;
        }
        let number = self.acts.fetch_add(1, Relaxed) + 1;
        let random = self.cluster.random("act", number);
        let next = random.between(20 * MS, self.settings().pace);
        if self.settings().only_acts.as_ref().is_none_or(|only| only.contains(&number)) {
            lock(&self.acted).push(number);
            let callers = lock(&self.callers);
            let (process, provider) = callers[random.below(callers.len() as u64) as usize].clone();
            drop(callers);
            let sim = Arc::clone(self);
            process.environment().spawn(Runtime::Own, async move { sim.act_as(provider, number, &random).await });
        }
        let sim = Arc::clone(self);
        self.cluster.at(self.cluster.now() + next, move || sim.act());
    }

    /// One act of a caller, in one topic. No other act has its number.
    pub(super) async fn act_as(self: &Arc<Self>, provider: Provider, number: u64, random: &RandomSource) {
        if self.settings().sets && number < 1 << 40 {
            let of_sets = self.cluster.random("set", number);
            if of_sets.chance(0.5) {
                return self.act_on_set(&provider, number, &of_sets).await;
            }
        }
        let topic = random.below(self.settings().topics);
        if random.chance(0.72) {
            let many = match self.settings().profile {
                Profile::Crowd => 30,
                Profile::Large => 8,
                _ => random.pick(&[1, 1, 1, 2]),
            };
            let adds = (0..many).map(|nth| (number * MAX_ADDS + nth, self.version_flags(random)));
            let adds: Vec<_> = adds.map(|(number, flags)| (number * 8) | flags).collect();
            join_all(adds.into_iter().map(|version| self.add(&provider, topic, version, random))).await;
            return;
        }
        match random.below(20) {
            0..5 => self.change(&provider, topic, random).await,
            5..7 if !self.is_calm() => self.set_topic(&provider, topic, random).await,
            7..9 if !self.is_calm() => self.schedule(&provider, topic, number, random).await,
            _ => self.command(&provider, topic, random).await,
        }
    }

    /// One of the ids of a topic. Each topic has its share of them, and at least one.
    pub(super) fn id(&self, topic: u64, random: &RandomSource) -> String {
        let RunSettings { ids, topics, .. } = *self.settings();
        let share = ids.saturating_sub(topic).div_ceil(topics).max(1);
        format!("j{}", topic + topics * random.below(share))
    }

    /// Draws how the handler of a job behaves.
    pub(super) fn version_flags(&self, random: &RandomSource) -> u64 {
        let settings = self.settings();
        if settings.profile == Profile::Large {
            return 0;
        }
        let killers = settings.profile == Profile::Killers;
        let slow = settings.timeout > 30_000_000 && random.chance(if killers { 0.4 } else { 0.12 });
        let killer = settings.killers && random.chance(if killers { 0.2 } else { 0.02 });
        let failing = random.chance(0.14);
        let flag = |is: bool, flag: u64| if is { flag } else { 0 };
        flag(slow, SLOW) | flag(killer, KILLER) | flag(failing, FAILING)
    }

    async fn add(self: &Arc<Self>, provider: &Provider, topic: u64, version: u64, random: &RandomSource) {
        let key = &self.keys[topic as usize];
        let crowd = self.settings().profile.has_crowds();
        self.versions.fetch_add(1, Relaxed);
        let Ok(provider) = provider.topic(key.topic.as_str()) else { return };
        let size = if self.settings().bandwidth > 0 { random.pick(&[0, 60_000, 250_000, 250_000]) } else { 0 };
        let mut add = provider.add_json(payload(version, size));
        if random.chance(if crowd { 0.1 } else { 0.9 }) {
            add = add.id(self.id(topic, random));
            let unique = self.cluster.random("unique", version);
            if unique.chance(0.15) {
                add = add.unique_for(Duration::from_secs(unique.pick(&[1, 4, 30])));
            }
        }
        let delay = if crowd { 500 } else { random.pick(&[0, 0, 100, 900, 3000, 9000]) };
        if random.chance(0.8) {
            add = add.after(Duration::from_millis(delay));
        }
        let on_duplicate = random.below(4);
        if on_duplicate == 3 {
            return self.extend(&provider, key, version, (size, delay), random).await;
        }
        if random.chance(0.25) && !crowd {
            add = add.expires_after(Duration::from_secs(2));
        }
        add = add.priority(self.cluster.random("priority", version).pick(&Priority::ALL));
        let group = self.cluster.random("group", version).below(4);
        if self.settings().groups > 0 && group > 0 {
            add = add.group(format!("group-{group}"));
        }
        if random.chance(0.15) {
            add = add.retain(Duration::from_secs(30));
        }
        if self.settings().profile == Profile::Broadcasts && random.chance(0.6) {
            let both = random.chance(0.3);
            add = add.deliver(if both { Delivery::Both } else { Delivery::Broadcast });
        }
        let added = match on_duplicate {
            0 => add.await,
            1 => add.keep_existing().await.map(Added::from),
            _ => add.replace_existing().await,
        };
        self.answered(key, version, added);
    }

    /// Adds a job, or extends the one that has its id.
    async fn extend(
        &self,
        provider: &TopicProvider,
        key: &TopicKey,
        version: u64,
        (size, delay): (usize, u64),
        random: &RandomSource,
    ) {
        let delay = Duration::from_millis(delay.max(1));
        let id = self.id(self.keys.iter().position(|other| other == key).unwrap_or_default() as u64, random);
        let mut add = provider.add_or_extend_json(payload(version, size)).id(id).after(delay);
        if random.chance(0.6) {
            add = add.at_most(delay * random.between(1, 4) as u32);
        }
        self.answered(key, version, add.await);
    }

    fn answered(&self, key: &TopicKey, version: u64, added: Result<Added, CallError>) {
        let result = match added {
            Ok(Added { how: AddedHow::Kept(_) | AddedHow::KeptDeleted, .. }) => AddResult::Exists,
            Ok(_) => AddResult::Added,
            Err(error) => result_of(&error),
        };
        self.cluster.log(|| format!("the caller of {version} gets {result:?}"));
        lock(&self.checker_of(key)).add_answered(version, result);
    }

    /// Changes the due time of a job, or its payload: the seam writes its version there, and the blanks behind it tell updates apart.
    async fn change(self: &Arc<Self>, provider: &Provider, topic: u64, random: &RandomSource) {
        let (id, key) = (self.id(topic, random), self.keys[topic as usize].clone());
        let Ok(provider) = provider.topic(key.topic.as_str()) else { return };
        let time = Duration::from_millis(random.pick(&[0, 400, 2_500, 12_000]));
        let change = match random.below(5) {
            0 => provider.reschedule(id, time),
            1 => provider.extend_by(id, time),
            2 => provider.update_json(id, payload(0, random.between(2, 40) as usize)),
            3 => {
                let options = JobOptions::new().headers([("drawn", random.below(9).to_string())]);
                provider.set_options(id, if random.chance(0.3) { options.retain("30s") } else { options })
            }
            _ => provider.run_now(id),
        };
        let change = if random.chance(0.3) { change.if_version(random.below(3) as u32) } else { change };
        // Without an answer the checker knows what the store did.
        drop(change.await);
    }

    async fn command(self: &Arc<Self>, provider: &Provider, topic: u64, random: &RandomSource) {
        let id = self.id(topic, random);
        let received = lock(&self.known_runs).get(random.below(12) as usize).cloned().filter(|_| random.chance(0.7));
        let verb = random.below(7);
        let (key, id, fence) = match received.filter(|_| verb > 1) {
            Some((key, id, fence)) => (key, id.to_string(), Some(fence)),
            None => (self.keys[topic as usize].clone(), id, None),
        };
        let Ok(provider) = provider.topic(key.topic.as_str()) else { return };
        let version = random.chance(0.3).then(|| random.below(3) as u32);
        if verb < 2 {
            let mut command = if verb == 0 { provider.delete(id) } else { provider.cancel(id) };
            if let Some(version) = version {
                command = command.if_version(version);
            }
            return drop(command.await);
        }
        let mut command = if verb < 4 { provider.requeue(id) } else { provider.ack(id) };
        if let Some(fence) = fence {
            command = command.fence(fence);
        }
        if let Some(version) = version {
            command = command.if_version(version);
        }
        drop(command.await);
    }
}

/// What the caller of an add learns from an error.
pub(super) const fn result_of(error: &CallError) -> AddResult {
    match error {
        CallError::Refused { refusal: Refusal::Exists(_) | Refusal::Deleted | Refusal::NotExtended(_), .. } => {
            AddResult::Exists
        }
        CallError::NotDone { .. }
        | CallError::Refused {
            refusal:
                Refusal::Draining { .. } | Refusal::TopicFull { .. } | Refusal::GroupFull { .. } | Refusal::TooHeavy { .. },
            ..
        } => AddResult::NotAdded,
        _ => AddResult::Unknown,
    }
}
