//! Programs that make job sets, and handlers of members that add members.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::callers::MAX_ADDS;
use super::job_sets::LAST;
use super::random::RandomSource;
use super::sim::{Sim, TOPICS};
use dq::job::{DelayJob, InvalidName, JobId};
use dq::provider::{AddMembers, Call, JobSet, OnDead, Provider};
use dq::testing::seam::{Returned, returned};

/// How many acts of callers are about the same sets.
const ACTS: u64 = 6;

const ON_DEAD: [OnDead; 4] = [OnDead::Count, OnDead::Count, OnDead::Wait, OnDead::CancelRest];

/// A job of a topic of the run: its payload is its version.
#[derive(Debug)]
struct InTopic<const TOPIC: usize> {
    id: String,
    version: u64,
}

impl<const TOPIC: usize> Serialize for InTopic<TOPIC> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.version)
    }
}

impl<'de, const TOPIC: usize> Deserialize<'de> for InTopic<TOPIC> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(|version| Self { id: String::new(), version })
    }
}

impl<const TOPIC: usize> DelayJob for InTopic<TOPIC> {
    const TOPIC: &'static str = TOPICS[TOPIC];

    fn job_id(&self) -> Option<Result<JobId, InvalidName>> {
        Some(JobId::new(&self.id))
    }
}

/// A new member: its topic, id and version.
type New = (u64, String, u64);

/// The number of the set in whose name a member was made, as its id says.
fn set_of(id: &JobId) -> Option<u64> {
    id.as_str().strip_prefix('m')?.split_once('-')?.0.parse().ok()
}

fn name_of(set: u64) -> String {
    format!("s{set}")
}

impl Sim {
    /// One act of a caller, about one of the sets of this time.
    pub(super) async fn act_on_set(self: &Arc<Self>, provider: &Provider, number: u64, random: &RandomSource) {
        let set = (number / ACTS).saturating_sub(random.below(2));
        match set % self.settings().topics {
            0 => self.change_set_in::<0>(provider, (set, number), random).await,
            1 => self.change_set_in::<1>(provider, (set, number), random).await,
            _ => self.change_set_in::<2>(provider, (set, number), random).await,
        }
    }

    async fn change_set_in<const HOME: usize>(
        self: &Arc<Self>,
        provider: &Provider,
        (set, number): (u64, u64),
        random: &RandomSource,
    ) {
        let job_set = provider.job_set::<InTopic<HOME>>(name_of(set)).on_dead(random.pick(&ON_DEAD));
        match random.below(10) {
            0..5 => {
                let members = random.between(1, 4);
                let topic = random.below(self.settings().topics);
                let new = (0..members).map(|nth| self.new_member((set, topic), number * MAX_ADDS + nth, random));
                let mut new: Vec<_> = new.collect();
                new.sort_by(|a, b| a.1.cmp(&b.1));
                new.dedup_by(|a, b| a.1 == b.1);
                let mut add = add_to(&job_set, topic, new).after(Duration::from_millis(random.pick(&[0, 100, 3_000])));
                if random.chance(0.2) {
                    add = add.expires_after(Duration::from_secs(2));
                }
                if random.chance(0.2) {
                    add = add.retain(Duration::from_secs(30));
                }
                // Without an answer the ledger knows what the store did.
                drop(add.await);
            }
            5..8 => {
                self.versions.fetch_add(1, Relaxed);
                let version = (number * MAX_ADDS * 8) | self.version_flags(random);
                drop(job_set.then(InTopic { id: format!("{LAST}{set}"), version }).await);
            }
            _ => {
                let topic = TOPICS[random.below(self.settings().topics) as usize];
                let Ok(topic) = provider.topic(topic) else { return };
                let id = format!("m{set}-{}", random.below(6));
                match random.below(4) {
                    0 => drop(topic.delete(id).await),
                    1 => drop(topic.cancel(id).await),
                    2 => drop(topic.ack(id).await),
                    _ => drop(topic.requeue(id).await),
                }
            }
        }
    }

    /// Mostly a member of its own, sometimes with the id of another job.
    fn new_member(&self, (set, topic): (u64, u64), number: u64, random: &RandomSource) -> New {
        self.versions.fetch_add(1, Relaxed);
        let id = if random.chance(0.2) { self.id(topic, random) } else { format!("m{set}-{}", random.below(6)) };
        (topic, id, (number * 8) | self.version_flags(random))
    }

    /// The ack of a member that brings another one, sometimes in place of a job that is there.
    pub(super) fn ack_of_member(&self, id: &JobId, random: &RandomSource) -> Option<Returned> {
        let set = set_of(id)?;
        if random.chance(0.6) {
            return None;
        }
        let topics = self.settings().topics;
        // No act of a caller has such a number.
        let number = ((1 << 38) + self.next_number()) * MAX_ADDS;
        let (topic, mut id, version) = self.new_member((set, random.below(topics)), number, random);
        if random.chance(0.5) {
            id = format!("m{set}-r{number}");
        }
        let decided = dq::testing::channel().ack().then(|next| {
            let job = match topic {
                0 => next.add(InTopic::<0> { id, version }),
                1 => next.add(InTopic::<1> { id, version }),
                _ => next.add(InTopic::<2> { id, version }),
            };
            match set % topics {
                0 => job.member_of::<InTopic<0>>(name_of(set)),
                1 => job.member_of::<InTopic<1>>(name_of(set)),
                _ => job.member_of::<InTopic<2>>(name_of(set)),
            };
            job.on_dead(random.pick(&ON_DEAD));
            if random.chance(0.3) {
                job.replace_existing();
            }
        });
        Some(returned(decided.expect("it is one small job")))
    }
}

fn add_to<const HOME: usize>(set: &JobSet<InTopic<HOME>>, topic: u64, new: Vec<New>) -> Call<AddMembers> {
    let jobs = new.into_iter().map(|(_, id, version)| (id, version));
    match topic {
        0 => set.add_many(jobs.map(|(id, version)| InTopic::<0> { id, version })),
        1 => set.add_many(jobs.map(|(id, version)| InTopic::<1> { id, version })),
        _ => set.add_many(jobs.map(|(id, version)| InTopic::<2> { id, version })),
    }
}
