//! Programs that pause and drain topics, set their default delays and limits, and add and remove schedules (rules 29, 30 and 35).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::callers::{MAX_ADDS, result_of};
use super::checker::AddResult;
use super::profile::Profile;
use super::random::RandomSource;
use super::sim::Sim;
use super::sync::lock;
use super::units::MS;
use dq::environment::{Runtime, StoreClock as _};
use dq::job::{Delivery, Priority};
use dq::provider::{AddSchedule, AddedHow, Call, CallError, Limit, LimitKind, Provider, TopicProvider};
use dq::schedule::{OnMissed, Overlap};
use dq::time::Timestamp;

/// Otherwise the name of this process would stand there, and a seed would not be the same run again.
const WHO: &str = "an operator";

impl Sim {
    /// Pauses or drains a topic, mostly for a time, or sets its default delay or a limit.
    pub(super) async fn set_topic(self: &Arc<Self>, provider: &Provider, topic: u64, random: &RandomSource) {
        let key = self.keys[topic as usize].clone();
        let Ok(provider) = provider.topic(key.topic.as_str()) else { return };
        let millis = random.pick(&[300, 2_000, 6_000, 20_000]);
        let time = Duration::from_millis(millis);
        let at = self.cluster.now() + millis * MS;
        let group = format!("group-{}", random.between(1, 4));
        // Without an answer the checker knows what the store did.
        match random.below(23) {
            0 | 1 => drop(provider.pause().reason("it is paused for a time").by(WHO).for_duration(time).await),
            2 | 3 => {
                self.end_later(at, topic);
                drop(provider.pause().reason("it is paused").by(WHO).await);
            }
            4 => drop(provider.resume().by(WHO).await),
            5 | 6 => {
                self.end_later(at, topic);
                drop(provider.drain().reason("it drains").by(WHO).await);
            }
            7 => drop(provider.set_default_delay(time / 5).by(WHO).await),
            8 => drop(provider.clear_default_delay().by(WHO).await),
            9 => drop(provider.clear_limit(random.pick(&LimitKind::ALL)).by(WHO).await),
            10 => {
                let rate = random.pick(&["2/s", "10/s, burst 3", "30/m"]).parse().expect("it is a rate");
                drop(provider.set_limit(Limit::Rate(rate)).by(WHO).await);
            }
            16 | 17 => {
                let Ok(pause) = provider.pause_group(group) else { return };
                drop(pause.reason("it is paused for a time").by(WHO).for_duration(time).await);
            }
            18 => drop(provider.resume_group(group).await),
            19 => {
                let rate = random.pick(&["1/s", "5/s, burst 2"]).parse().expect("it is a rate");
                drop(provider.set_limit(Limit::GroupRate(rate)).by(WHO).await);
            }
            20 => drop(provider.set_limit(Limit::GroupBurst(random.pick(&[0, 1, 4]))).by(WHO).await),
            21 => drop(provider.set_limit(Limit::GroupMaxWaiting(random.pick(&[1, 2, 4]))).by(WHO).await),
            11 | 12 => drop(provider.set_limit(Limit::MaxWaiting(random.pick(&[1, 2, 5, 12]))).by(WHO).await),
            _ => drop(provider.set_limit(Limit::ClusterConcurrency(random.pick(&[1, 1, 2, 4]))).by(WHO).await),
        }
    }

    /// At this time somebody ends the pause and the drain of a topic.
    fn end_later(self: &Arc<Self>, at: u64, topic: u64) {
        let sim = Arc::clone(self);
        self.cluster.at(at, move || {
            if sim.is_calm() || sim.is_over() {
                return;
            }
            let Some((process, provider)) = lock(&sim.callers).first().cloned() else { return };
            let Ok(provider) = provider.topic(sim.keys[topic as usize].topic.as_str()) else { return };
            process.environment().spawn(Runtime::Own, async move {
                drop(provider.resume().by(WHO).await);
                drop(provider.undrain().by(WHO).await);
            });
        });
    }

    /// Adds a schedule, or removes one.
    pub(super) async fn schedule(
        self: &Arc<Self>,
        provider: &Provider,
        topic: u64,
        number: u64,
        random: &RandomSource,
    ) {
        let key = &self.keys[topic as usize];
        let Ok(provider) = provider.topic(key.topic.as_str()) else { return };
        let name = random.pick(&["one", "two"]);
        if random.chance(0.3) {
            return drop(provider.remove_schedule(name).await);
        }
        let version = ((number * MAX_ADDS) * 8) | self.version_flags(random);
        self.versions.fetch_add(1, Relaxed);
        let Some(result) = self.add_schedule(&provider, name, version, random).await else { return };
        self.cluster.log(|| format!("the caller of the schedule {version} gets {result:?}"));
        lock(&self.checker_of(key)).add_answered(version, result);
    }

    async fn add_schedule(
        &self,
        provider: &TopicProvider,
        name: &str,
        version: u64,
        random: &RandomSource,
    ) -> Option<AddResult> {
        let mut add = provider.add_schedule_json(name, version.to_string());
        let every = Duration::from_secs(random.pick(&[1, 1, 2, 5, 12]));
        add = if random.chance(0.15) { each_minute(add) } else { add.every(every) };
        add = add.on_missed(random.pick(&[OnMissed::All, OnMissed::All, OnMissed::Once, OnMissed::Skip]));
        add = add.overlap(random.pick(&[Overlap::Allow, Overlap::Skip]));
        add = add.priority(self.cluster.random("priority", version).pick(&Priority::ALL));
        if random.chance(0.3) {
            add = add.jitter(Duration::from_millis(700));
        }
        if random.chance(0.2) {
            add = add.end_at(Timestamp::floor_micros(self.clock.micros()).after(Duration::from_secs(20)));
        }
        if self.settings().profile == Profile::Broadcasts && random.chance(0.6) {
            add = add.deliver(random.pick(&[Delivery::Broadcast, Delivery::Both]));
        }
        add = match random.below(3) {
            0 => add,
            1 => add.keep_existing(),
            _ => add.replace_existing(),
        };
        Some(match add.await {
            Ok(added) if matches!(added.how, AddedHow::Kept(_)) => AddResult::Exists,
            Ok(_) => AddResult::Added,
            // Nothing was sent.
            Err(CallError::Invalid(_)) => return None,
            Err(error) => result_of(&error),
        })
    }

    /// Ends what would keep jobs from ending, once the faults are over: pauses, drains and schedules.
    pub(super) fn open_topics(self: &Arc<Self>) {
        let mut left = Vec::new();
        self.for_topics(|key, checker| {
            if !checker.state().is_default() || !checker.schedules().is_empty() {
                left.push((key.clone(), checker.schedules()));
            }
        });
        if left.is_empty() {
            return;
        }
        let (process, provider) = self.start_caller();
        process.environment().spawn(Runtime::Own, async move {
            for (key, schedules) in left {
                let Ok(topic) = provider.topic(key.topic.as_str()) else { continue };
                drop(topic.resume().by(WHO).await);
                drop(topic.undrain().by(WHO).await);
                drop(topic.clear_default_delay().by(WHO).await);
                for kind in LimitKind::ALL {
                    drop(topic.clear_limit(kind).by(WHO).await);
                }
                for name in schedules {
                    drop(topic.remove_schedule(&name).await);
                }
            }
        });
    }
}

#[cfg(feature = "cron")]
fn each_minute(add: Call<AddSchedule>) -> Call<AddSchedule> {
    add.cron("* * * * *", "UTC")
}

#[cfg(not(feature = "cron"))]
fn each_minute(add: Call<AddSchedule>) -> Call<AddSchedule> {
    add.every(Duration::from_secs(60))
}
