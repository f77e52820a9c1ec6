//! Who adds and withdraws: programs with a provider of their own, and handlers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::join_all;

use super::judge::Told;
use super::process::Process;
use super::script::{FAILING, KILLER, SLOW};
use super::sim::Sim;
use super::store::FaultyStore;
use super::terms::Profile;
use super::world::{MS, lock};
use crate::config::NodeSettings;
use crate::environment::Place;
use crate::provider::{AddError, Addition, Provider};

impl Sim {
    /// Starts a program that adds.
    pub(super) fn start_caller(self: &Arc<Self>) -> (Arc<Process>, Provider) {
        let number = self.names.fetch_add(1, Relaxed) + 1;
        let process = Process::new(format!("p{number}"), &self.world);
        let store = Arc::new(FaultyStore { sim: Arc::clone(self), process: Arc::clone(&process) });
        let provider = Provider::root(self.key.app.clone(), store, process.environment(), NodeSettings::default());
        (process, provider)
    }

    /// A caller acts now, and again later.
    pub(super) fn act(self: &Arc<Self>) {
        if self.is_calm() || self.is_over() {
            return;
        }
        let callers = lock(&self.callers);
        let (process, provider) = callers[self.world.below(callers.len() as u64) as usize].clone();
        drop(callers);
        let sim = Arc::clone(self);
        process.environment().spawn(Place::Link, async move { sim.act_as(provider).await });
        let sim = Arc::clone(self);
        self.world.at(self.world.now() + self.world.between(20 * MS, self.terms().pace), move || sim.act());
    }

    /// One act.
    pub(super) async fn act_as(self: &Arc<Self>, provider: Provider) {
        if self.world.chance(0.72) {
            let crowd = self.terms().profile == Profile::Crowd;
            let many = if crowd { 30 } else { self.world.pick(&[1, 1, 1, 2]) };
            join_all((0..many).map(|_| self.add(&provider, crowd))).await;
        } else {
            self.withdraw(&provider).await;
        }
    }

    fn id(&self) -> String {
        format!("j{}", self.world.below(self.terms().ids))
    }

    fn version(&self) -> u64 {
        let (world, terms) = (&self.world, self.terms());
        let number = (self.versions.fetch_add(1, Relaxed) + 1) * 8;
        let killers = terms.profile == Profile::Killers;
        let slow = terms.timeout > 30_000_000 && world.chance(if killers { 0.4 } else { 0.12 });
        let killer = terms.killers && world.chance(if killers { 0.2 } else { 0.02 });
        let failing = world.chance(0.14);
        number | if slow { SLOW } else { 0 } | if killer { KILLER } else { 0 } | if failing { FAILING } else { 0 }
    }

    async fn add(self: &Arc<Self>, provider: &Provider, crowd: bool) {
        let (world, version) = (&self.world, self.version());
        let Ok(topic) = provider.topic(self.key.topic.as_str()) else { return };
        let mut add = topic.add_json(version.to_string());
        if world.chance(if crowd { 0.1 } else { 0.9 }) {
            add = add.id(self.id());
        }
        let delay = if crowd { 500 } else { world.pick(&[0, 0, 100, 900, 3000, 9000]) };
        add = add.after(Duration::from_millis(delay));
        add = match world.below(3) {
            0 => add,
            1 => add.keep_existing(),
            _ => add.replace_existing(),
        };
        if world.chance(0.25) && !crowd {
            add = add.expires_after(Duration::from_secs(2));
        }
        if world.chance(0.15) {
            add = add.retain(Duration::from_secs(30));
        }
        let told = match add.await {
            Ok(added) => match added.how {
                Addition::New | Addition::Replaced(_) | Addition::ReplacementWaits | Addition::ReplacementIfEnds => {
                    Told::Added
                }
                Addition::Kept(_) => Told::Exists,
            },
            Err(AddError::AlreadyExists { .. }) => Told::Exists,
            Err(AddError::NotAdded { .. } | AddError::Stopped { .. }) => Told::NotAdded,
            Err(_) => Told::Unknown,
        };
        world.say(|| format!("the caller of {version} is told {told:?}"));
        self.court().told(version, told);
    }

    async fn withdraw(self: &Arc<Self>, provider: &Provider) {
        let world = &self.world;
        let Ok(topic) = provider.topic(self.key.topic.as_str()) else { return };
        let id = self.id();
        let heard = lock(&self.overheard).get(world.below(12) as usize).cloned().filter(|_| world.chance(0.7));
        let _ = match (world.below(7), heard) {
            (0, _) => topic.delete(id).await,
            (1, _) => topic.cancel(id).await,
            (2 | 3, Some((id, fence))) => topic.requeue(id.as_str()).fence(fence).await,
            (2 | 3, None) => topic.requeue(id).await,
            (_, Some((id, fence))) => topic.ack(id.as_str()).fence(fence).await,
            (_, None) => topic.ack(id).await,
        };
    }
}
