//! Who adds and withdraws, as the store sees it: the producer of a process behind a wire that fails.

use std::sync::{Arc, Mutex};

use super::judge::{Court, Did, version};
use super::network::Way;
use super::sim::Sim;
use super::store::now;
use super::world::lock;
use dq::job::{ProducerId, TopicKey};
use dq::store::{AddOutcome, BatchAnswer, NewJob, Numbered, Pending, Producer, WithdrawOutcome, Withdrawal};
use dq::testing::seam::without;

/// See the module.
#[derive(Debug)]
pub(super) struct FaultyProducer {
    pub(super) way: Way,
    pub(super) inner: Arc<dyn Producer>,
    pub(super) id: ProducerId,
    pub(super) key: TopicKey,
    pub(super) court: Arc<Mutex<Court>>,
}

impl FaultyProducer {
    /// The number that a batch is sent under: its own, or always a new one, without rule 18.
    fn number(&self, number: u64) -> u64 {
        if without(18) { self.way.sim.next_number() } else { number }
    }
}

impl Producer for FaultyProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        let mut batch = Numbered { number: self.number(batch.number), ..batch };
        let program = self.way.sim.program.get();
        let left_out = program.map(|program| {
            program.mark(&self.id, &mut batch);
            program.leave_out(&self.way.process, &self.key, &mut batch)
        });
        let (inner, id, items) = (Arc::clone(&self.inner), self.id.clone(), batch.items.clone());
        let (name, key, court) = (self.way.process.name.clone(), self.key.clone(), Arc::clone(&self.court));
        let execute = move |sim: &Sim| {
            let number = batch.number;
            let answer = now(inner.add(batch))?;
            sim.world.say(|| {
                let ids: Vec<_> = items.iter().map(|job| format!("{} {:?}", job.id, version(&job.record))).collect();
                format!("{name} add {number} {ids:?} -> {answer:?}")
            });
            judge_batch(sim, &key, &court, (&id, number), &answer, |outcomes| Did::Add {
                jobs: items.into_iter().zip(outcomes).collect(),
            });
            Ok(match left_out {
                Some(left_out) => left_out.put_back(answer),
                None => answer,
            })
        };
        self.way.ask("add", execute, |_, _| {})
    }

    fn withdraw(&self, batch: Numbered<Withdrawal>) -> Pending<BatchAnswer<WithdrawOutcome>> {
        let batch = Numbered { number: self.number(batch.number), ..batch };
        let (inner, id, items) = (Arc::clone(&self.inner), self.id.clone(), batch.items.clone());
        let (name, key, court) = (self.way.process.name.clone(), self.key.clone(), Arc::clone(&self.court));
        let execute = move |sim: &Sim| {
            let mut batch = batch;
            let number = batch.number;
            if without(17) {
                batch.items.iter_mut().for_each(|item| item.fence = None);
            }
            let answer = now(inner.withdraw(batch))?;
            sim.world.say(|| format!("{name} withdraw {number} {items:?} -> {answer:?}"));
            judge_batch(sim, &key, &court, (&id, number), &answer, |outcomes| Did::Withdraw {
                items: items.into_iter().zip(outcomes).collect(),
            });
            Ok(answer)
        };
        self.way.ask("withdraw", execute, |_, _| {})
    }
}

/// Tells the judge what a batch did. One that was executed before, as the judge knows, does nothing.
fn judge_batch<T: Clone>(
    sim: &Sim,
    key: &TopicKey,
    court: &Mutex<Court>,
    (producer, number): (&ProducerId, u64),
    answer: &BatchAnswer<T>,
    did: impl FnOnce(Vec<T>) -> Did,
) {
    let repeated = lock(court).is_repeated(producer, number, without(18));
    match answer {
        BatchAnswer::Done(outcomes) if !repeated => {
            sim.judge(key, did(outcomes.clone()));
            lock(court).executed(producer, number);
        }
        _ => sim.judge(key, Did::Nothing),
    }
}
