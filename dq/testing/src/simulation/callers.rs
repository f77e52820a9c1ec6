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
use dq::job::Deliver;
use dq::provider::{AddError, Added, Addition, CommandOutcome, Provider};

/// The most jobs that one act of a caller adds.
const MOST_ADDS: u64 = 64;

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
        let topic = random.below(self.settings().topics);
        if random.chance(0.72) {
            let many = match self.settings().profile {
                Profile::Crowd => 30,
                Profile::Large => 8,
                _ => random.pick(&[1, 1, 1, 2]),
            };
            let adds = (0..many).map(|nth| (number * MOST_ADDS + nth, self.version_flags(random)));
            let adds: Vec<_> = adds.map(|(number, flags)| (number * 8) | flags).collect();
            join_all(adds.into_iter().map(|version| self.add(&provider, topic, version, random))).await;
        } else {
            self.command(&provider, topic, random).await;
        }
    }

    /// One of the ids of a topic. Each topic has its share of them, and at least one.
    fn id(&self, topic: u64, random: &RandomSource) -> String {
        let RunSettings { ids, topics, .. } = *self.settings();
        let share = ids.saturating_sub(topic).div_ceil(topics).max(1);
        format!("j{}", topic + topics * random.below(share))
    }

    /// Draws how the handler of a job behaves.
    fn version_flags(&self, random: &RandomSource) -> u64 {
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
        let (cluster, key) = (&self.cluster, &self.keys[topic as usize]);
        let crowd = self.settings().profile.has_crowds();
        self.versions.fetch_add(1, Relaxed);
        let Ok(provider) = provider.topic(key.topic.as_str()) else { return };
        let size = if self.settings().bandwidth > 0 { random.pick(&[0, 60_000, 250_000, 250_000]) } else { 0 };
        let mut add = provider.add_json(payload(version, size));
        if random.chance(if crowd { 0.1 } else { 0.9 }) {
            add = add.id(self.id(topic, random));
        }
        let delay = if crowd { 500 } else { random.pick(&[0, 0, 100, 900, 3000, 9000]) };
        add = add.after(Duration::from_millis(delay));
        let on_duplicate = random.below(3);
        if random.chance(0.25) && !crowd {
            add = add.expires_after(Duration::from_secs(2));
        }
        if random.chance(0.15) {
            add = add.retain(Duration::from_secs(30));
        }
        if self.settings().profile == Profile::Broadcasts && random.chance(0.6) {
            let both = random.chance(0.3);
            add = add.deliver(if both { Deliver::Both } else { Deliver::Broadcast });
        }
        let added = match on_duplicate {
            0 => add.await,
            1 => add.keep_existing().await.map(Added::from),
            _ => add.replace_existing().await,
        };
        let result = match added {
            Ok(added) => match added.how {
                Addition::New | Addition::Replaced(_) | Addition::ReplacementWaits | Addition::ReplacementIfEnds => {
                    AddResult::Added
                }
                Addition::Kept(_) => AddResult::Exists,
                other => unreachable!("the simulation does not know the result {other:?}"),
            },
            Err(AddError::AlreadyExists { .. }) => AddResult::Exists,
            Err(AddError::NotAdded { .. } | AddError::Stopped { .. }) => AddResult::NotAdded,
            Err(_) => AddResult::Unknown,
        };
        cluster.log(|| format!("the caller of {version} gets {result:?}"));
        lock(&self.checker_of(key)).add_answered(version, result);
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
        let _ = match (verb, fence) {
            (0, _) => provider.delete(id).await,
            (1, _) => provider.cancel(id).await,
            (2 | 3, Some(fence)) => provider.requeue(id).fence(fence).await.map(CommandOutcome::from),
            (2 | 3, None) => provider.requeue(id).await.map(CommandOutcome::from),
            (_, Some(fence)) => provider.ack(id).fence(fence).await.map(CommandOutcome::from),
            (_, None) => provider.ack(id).await.map(CommandOutcome::from),
        };
    }
}
