//! The producer of a topic: builds and sends adds and commands, each in a batch of its own unless a method says otherwise.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::topic::{Topic, id, lock};
use dq::job::{Codec, Delivery, Fence, Metadata, ProducerId, Record, Weight};
use dq::store::{
    AddOutcome, BatchAnswer, Command, CommandKind, CommandOutcome, Due, NewJob, Numbered, OnDuplicate, Producer,
};

/// A job that is due at once and whose payload is its id.
pub(super) fn job(name: &str) -> NewJob {
    with_payload(name, name)
}

/// A job with this payload, which distinguishes it from another job with the same id; due at once.
pub(super) fn with_payload(name: &str, payload: &str) -> NewJob {
    NewJob::new(id(name), Record::new(&Metadata::default(), Codec::Json, payload.as_bytes()))
}

/// A job that is due after `delay`, which its metadata have as well, as in a job from a provider.
pub(super) fn delayed(name: &str, delay: Duration) -> NewJob {
    let metadata =
        Metadata { delay: Duration::from_millis(delay.as_micros().div_ceil(1000) as u64), ..Metadata::default() };
    NewJob { due: Due::After(delay), ..with_metadata(name, &metadata) }
}

/// A job with these metadata, due at once.
pub(super) fn with_metadata(name: &str, metadata: &Metadata) -> NewJob {
    NewJob { record: Record::new(metadata, Codec::Json, name.as_bytes()), ..job(name) }
}

/// This job with other metadata; its payload is its id.
pub(super) fn changed(job: NewJob, change: impl FnOnce(&mut Metadata)) -> NewJob {
    let mut metadata = job.record.metadata().expect("it is a record");
    change(&mut metadata);
    NewJob { record: with_metadata(job.id.as_str(), &metadata).record, ..job }
}

/// This job with this weight.
pub(super) fn weighing(weight: u16, job: NewJob) -> NewJob {
    changed(job, |metadata| metadata.weight = Weight::new(weight).expect("it is a weight"))
}

/// The metadata of a job whose caller says everything; its delay is a minute.
pub(super) fn detailed() -> Metadata {
    let (retry, headers) = (Some("none".into()), vec![("k".into(), "v".into())]);
    let minute = Duration::from_secs(60);
    Metadata { delay: minute, retain: minute, retry, headers, ..Metadata::default() }
}

/// A job with a retention of one minute.
pub(super) fn retained(name: &str) -> NewJob {
    with_metadata(name, &Metadata { retain: Duration::from_secs(60), ..Metadata::default() })
}

/// A job with this payload that replaces an existing one.
pub(super) fn replacing(name: &str, payload: &str) -> NewJob {
    NewJob { on_duplicate: OnDuplicate::Replace, ..with_payload(name, payload) }
}

/// One command of a batch.
pub(super) fn command(verb: CommandKind, name: &str, fence: Option<Fence>) -> Command {
    Command { fence, ..Command::new(verb, id(name)) }
}

/// The outcomes of a batch, which must not be late.
pub(super) fn answered<T>(answer: BatchAnswer<T>) -> Vec<T> {
    match answer {
        BatchAnswer::Done(items) => items,
        BatchAnswer::Late => panic!("the batch is late"),
    }
}

impl Topic {
    /// The topic's own producer, for requests that must fail or that need a certain number.
    pub fn producer(&self) -> &dyn Producer {
        &*self.producer
    }

    /// A producer with another name, or a second handle of the same producer.
    pub fn producer_named(&self, name: &str) -> Arc<dyn Producer> {
        self.store.producer(&self.key, &ProducerId::new(name))
    }

    /// A batch of these items under the next number of the topic's own producer.
    pub fn numbered<T>(&self, items: Vec<T>) -> Numbered<T> {
        Numbered { number: self.number.fetch_add(1, Ordering::Relaxed) + 1, items }
    }

    /// Adds a batch.
    pub async fn add_all(&self, jobs: Vec<NewJob>) -> Vec<AddOutcome> {
        let named: Vec<_> = jobs.iter().map(|job| (job.deliver, job.id.clone())).collect();
        let answer = self.producer.add(self.numbered(jobs)).await.expect("add is answered");
        let outcomes = answered(answer);
        for ((deliver, id), outcome) in named.into_iter().zip(&outcomes) {
            match outcome {
                AddOutcome::Added | AddOutcome::Replaced(_) if deliver == Delivery::Broadcast => {
                    lock(&self.known).remove(&id);
                }
                AddOutcome::Added | AddOutcome::Replaced(_) => {
                    lock(&self.known).insert(id);
                }
                _ => {}
            }
        }
        self.audit_step().await;
        outcomes
    }

    /// Adds a job and returns the outcome.
    pub async fn add_job(&self, job: NewJob) -> AddOutcome {
        self.add_all(vec![job]).await.remove(0)
    }

    /// Adds a job that is due at once; it must be new.
    pub async fn add(&self, name: &str) {
        assert_eq!(self.add_job(job(name)).await, AddOutcome::Added, "adding {name}");
    }

    /// Adds a job that is due later; it must be new.
    pub async fn add_later(&self, name: &str, delay: Duration) {
        assert_eq!(self.add_job(delayed(name, delay)).await, AddOutcome::Added, "adding {name}");
    }

    /// Sends one command and returns the outcome.
    pub async fn command(&self, verb: CommandKind, name: &str, fence: Option<Fence>) -> CommandOutcome {
        let batch = self.numbered(vec![command(verb, name, fence)]);
        let answer = self.producer.command(batch).await.expect("command is answered");
        self.audit_step().await;
        answered(answer).remove(0)
    }

    /// Sends one command for a job with this version.
    pub async fn command_of(&self, name: &str, verb: CommandKind, version: u32) -> CommandOutcome {
        let named = Command { if_version: Some(version), ..command(verb, name, None) };
        let answer = self.producer.command(self.numbered(vec![named])).await.expect("command is answered");
        self.audit_step().await;
        answered(answer).remove(0)
    }

    /// Deletes a job.
    pub async fn delete(&self, name: &str) -> CommandOutcome {
        self.command(CommandKind::Delete, name, None).await
    }

    /// Cancels a job.
    pub async fn cancel(&self, name: &str) -> CommandOutcome {
        self.command(CommandKind::Cancel, name, None).await
    }

    /// Acks a job from outside without a fence.
    pub async fn ack_outside(&self, name: &str) -> CommandOutcome {
        self.command(CommandKind::Ack, name, None).await
    }

    /// Acks one run of a job from outside, by its fence.
    pub async fn ack_run(&self, name: &str, fence: Fence) -> CommandOutcome {
        self.command(CommandKind::Ack, name, Some(fence)).await
    }

    /// Requeues a job.
    pub async fn requeue(&self, name: &str) -> CommandOutcome {
        self.command(CommandKind::Requeue, name, None).await
    }
}
