//! The producer of a process, behind a wire that fails.

use std::sync::{Arc, Mutex};

use super::altered::answer_of;
use super::altered_state::ignore_versions;
use super::checker::{Checker, Did};
use super::network::Connection;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use super::version::version;
use dq::job::{ProducerId, State, TopicKey};
use dq::store::{
    AddOutcome, Batch, BatchAnswer, BatchReply, ChangeVerdict, Command, JobChange, NewJob, Numbered, OutboxEntry,
    OutboxPosition, Pending, Producer, SetChange, SetTopic, StoreError, TopicSet,
};

/// A producer of the memory store behind a wire.
#[derive(Debug)]
pub(super) struct FaultyProducer {
    pub(super) connection: Connection,
    pub(super) inner: Arc<dyn Producer>,
    pub(super) id: ProducerId,
    pub(super) key: TopicKey,
    pub(super) checker: Arc<Mutex<Checker>>,
}

impl FaultyProducer {
    /// The number under which a batch is sent: its own, or without rule 18 always a new one.
    fn number(&self, number: u64) -> u64 {
        if without("18") { self.connection.sim.next_number() } else { number }
    }

    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchReply> {
        let mut batch = Numbered { number: self.number(batch.number), ..batch };
        let workload = &self.connection.sim.workload;
        workload.stamp(&self.id, &mut batch);
        let left_out = workload.leave_out(&self.connection.process, &self.key, &mut batch);
        if !self.connection.connects() {
            return self.connection.refused("add");
        }
        lock(&self.checker).sends(&batch.items);
        let (inner, id, items) = (Arc::clone(&self.inner), self.id.clone(), batch.items.clone());
        let (name, key, checker) = (self.connection.process.name.clone(), self.key.clone(), Arc::clone(&self.checker));
        let execute = move |sim: &Arc<Sim>| {
            let (number, mut batch) = (batch.number, batch);
            if without("replaced") && !lock(&checker).is_repeated(&id, OutboxPosition::clock(number), false) {
                sim.end_replaced_runs(&key, &batch.items);
            }
            sim.ignore_usual(&mut batch.items);
            let answer = match sim.add_over_gates(&key, &*inner, batch) {
                Err(error @ StoreError::Draining { .. }) => {
                    sim.cluster.log(|| format!("{name} add {number} -> {error}"));
                    sim.check(&key, Did::RefuseAdd);
                    return Err(error);
                }
                answer => answer?,
            };
            sim.cluster.log(|| {
                let ids: Vec<_> = items.iter().map(|job| format!("{} {:?}", job.id, version(&job.record))).collect();
                format!("{name} add {number} {ids:?} -> {answer:?}")
            });
            check_batch(sim, &key, &checker, (&id, number), &answer, |outcomes| Did::Add {
                jobs: items.into_iter().zip(outcomes).collect(),
            });
            Ok(BatchReply::Add(put_back(left_out, answer)))
        };
        self.connection.ask("add", |_| 0, execute, |_, _| {})
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchReply> {
        let batch = Numbered { number: self.number(batch.number), ..batch };
        let (inner, id, items) = (Arc::clone(&self.inner), self.id.clone(), batch.items.clone());
        let (name, key, checker) = (self.connection.process.name.clone(), self.key.clone(), Arc::clone(&self.checker));
        let execute = move |sim: &Arc<Sim>| {
            let mut batch = batch;
            let number = batch.number;
            if without("fenced") {
                batch.items.iter_mut().for_each(|item| item.fence = None);
            }
            let defused = if without("13") { sim.defuse(&key, &mut batch.items) } else { Vec::new() };
            let mut answer = answer_of(inner.command(batch))?;
            if let BatchAnswer::Done(outcomes) = &mut answer {
                defused.into_iter().for_each(|place| outcomes[place].changed = true);
            }
            sim.cluster.log(|| format!("{name} command {number} {items:?} -> {answer:?}"));
            check_batch(sim, &key, &checker, (&id, number), &answer, |outcomes| Did::Command {
                items: items.into_iter().zip(outcomes).collect(),
            });
            Ok(BatchReply::Command(answer))
        };
        self.connection.ask("command", |_| 0, execute, |_, _| {})
    }

    fn change(&self, batch: Numbered<JobChange>) -> Pending<BatchReply> {
        let mut batch = Numbered { number: self.number(batch.number), ..batch };
        let (inner, id) = (Arc::clone(&self.inner), self.id.clone());
        let (name, key, checker) = (self.connection.process.name.clone(), self.key.clone(), Arc::clone(&self.checker));
        let execute = move |sim: &Arc<Sim>| {
            let number = batch.number;
            if !sim.workload.is_program() {
                lock(&checker).mark_updates(&mut batch.items);
            }
            let items = batch.items.clone();
            ignore_versions(&mut batch.items);
            let mut answer = answer_of(inner.change(batch))?;
            if let (true, BatchAnswer::Done(outcomes)) = (without("28"), &mut answer) {
                // A running job's caller is told that the change took effect.
                let running = outcomes.iter_mut().filter(|outcome| outcome.found == Some(State::Running));
                running.for_each(|outcome| outcome.verdict = ChangeVerdict::Changed);
            }
            sim.cluster.log(|| format!("{name} change {number} {items:?} -> {answer:?}"));
            check_batch(sim, &key, &checker, (&id, number), &answer, |outcomes| Did::Change {
                items: items.into_iter().zip(outcomes).collect(),
            });
            Ok(BatchReply::Change(answer))
        };
        self.connection.ask("change", |_| 0, execute, |_, _| {})
    }

    fn set(&self, number: u64, set: SetTopic) -> Pending<BatchReply> {
        let number = self.number(number);
        let (inner, id) = (Arc::clone(&self.inner), self.id.clone());
        let (name, key, checker) = (self.connection.process.name.clone(), self.key.clone(), Arc::clone(&self.checker));
        let execute = move |sim: &Arc<Sim>| {
            let answer = answer_of(inner.set(number, set.clone()))?;
            sim.cluster.log(|| format!("{name} set {number} {set:?} -> {answer:?}"));
            check_batch(sim, &key, &checker, (&id, number), &answer, |answers| {
                match <[TopicSet; 1]>::try_from(answers) {
                    Ok([answer]) => Did::Set { set, answer: Box::new(answer) },
                    Err(_) => Did::Nothing,
                }
            });
            Ok(BatchReply::Set(answer))
        };
        self.connection.ask("set", |_| 0, execute, |_, _| {})
    }

    fn relay(&self, entry: OutboxEntry) -> Pending<BatchReply> {
        let (inner, id, name) = (Arc::clone(&self.inner), self.id.clone(), self.connection.process.name.clone());
        let (key, checker) = (self.key.clone(), Arc::clone(&self.checker));
        let moves = self.connection.sim.move_position(&*inner, &entry);
        let execute = move |sim: &Arc<Sim>| {
            let position = entry.position;
            let answer = if sim.keys.contains(&key) {
                sim.bring_to_topic((&key, &checker), (&*inner, &id), entry)
            } else {
                sim.bring(&*inner, entry, moves)
            };
            sim.cluster.log(|| format!("{name} relay {position} -> {answer:?}"));
            answer.map(BatchReply::Relay)
        };
        self.connection.ask("relay", |_| 0, execute, |_, _| {})
    }

    fn job_set(&self, number: u64, change: SetChange) -> Pending<BatchReply> {
        let number = self.number(number);
        let (inner, key, name) = (Arc::clone(&self.inner), self.key.clone(), self.connection.process.name.clone());
        let execute = move |sim: &Arc<Sim>| {
            let answer = sim.change_set(&key, &*inner, (number, change.clone()));
            sim.cluster.log(|| format!("{name} job_set {number} {change:?} -> {answer:?}"));
            answer.map(BatchReply::JobSet)
        };
        self.connection.ask("job_set", |_| 0, execute, |_, _| {})
    }
}

impl Producer for FaultyProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        match batch {
            Batch::Add { batch } => self.add(batch),
            other @ Batch::Import { .. } => self.inner.ask(other),
            other if !self.connection.connects() => self.connection.refused(other.name()),
            Batch::Command { batch } => self.command(batch),
            Batch::Change { batch } => self.change(batch),
            Batch::Set { number, set } => self.set(number, set),
            Batch::Relay { entry } => self.relay(entry),
            Batch::JobSet { number, change } => self.job_set(number, change),
        }
    }
}

/// Puts outcomes for the jobs that were left out into the answer to a batch.
fn put_back(left_out: Vec<usize>, mut answer: BatchAnswer<AddOutcome>) -> BatchAnswer<AddOutcome> {
    if let BatchAnswer::Done(outcomes) = &mut answer {
        for place in left_out {
            outcomes.insert(place.min(outcomes.len()), AddOutcome::Added);
        }
    }
    answer
}

/// Reports to the checker what a batch did. A batch that was executed before does nothing.
fn check_batch<T: Clone>(
    sim: &Arc<Sim>,
    key: &TopicKey,
    checker: &Mutex<Checker>,
    (producer, number): (&ProducerId, u64),
    answer: &BatchAnswer<T>,
    did: impl FnOnce(Vec<T>) -> Did,
) {
    let number = OutboxPosition::clock(number);
    let repeated = lock(checker).is_repeated(producer, number, without("18"));
    match answer {
        BatchAnswer::Done(outcomes) if !repeated => {
            sim.check(key, did(outcomes.clone()));
            lock(checker).executed(producer, number);
        }
        _ => sim.check(key, Did::Nothing),
    }
}
