//! Turns the items of an operation into the items of a request: new jobs, commands and outcomes.

use std::time::Duration;

use super::cluster::{ClusterState, job, ms};
use super::operation::{self, AddItem, CommandItem, OutcomeItem};
use super::reference::Job;
use dq::job::{Cause, Codec, Fence, Metadata, Record};
use dq::store::step::{Change, Outcome, RejoinDue, Tick, TickJob};
use dq::store::{Command, Due, NewJob};
use dq::time::Timestamp;

impl ClusterState {
    /// The `n`-th job of a batch; its payload names producer, number and `n`.
    pub(super) fn new_job(&self, by: u8, number: u64, n: usize, item: &AddItem) -> NewJob {
        let (due, delay) = match item.due {
            operation::Due::After(after) => (Due::After(ms(after)), ms(after)),
            operation::Due::In(after) => (Due::At(self.at(after)), Duration::ZERO),
        };
        let metadata = Metadata { delay, retain: ms(item.retain), ..Metadata::default() };
        let payload = format!("{by} {number} {n}");
        NewJob {
            id: job(item.job),
            generated: false,
            due,
            expires_after: item.expires_after.map(ms),
            record: Record::new(&metadata, Codec::Json, payload.as_bytes()),
            on_duplicate: item.on_duplicate,
            deliver: item.deliver,
        }
    }

    fn at(&self, after_ms: i64) -> Timestamp {
        Timestamp::from_millis((self.topic.micros / 1_000).saturating_add_signed(after_ms))
    }

    pub(super) fn command(&self, item: &CommandItem) -> Command {
        let parked_by = self.topic.jobs.get(&job(item.job)).and_then(|job| job.metadata().parked_by);
        let right = self.token(item.job, operation::Token::Right).fence;
        let fence = match item.fence {
            operation::Fence::None => None,
            operation::Fence::Right => parked_by.or(Some(right)),
            operation::Fence::Old(back) => Some(self.token(item.job, operation::Token::Old(back)).fence),
            operation::Fence::Wrong => Some(Fence(right.0 + 1)),
        };
        Command { verb: item.verb, id: job(item.job), fence }
    }

    pub(super) fn outcome(&self, it: &OutcomeItem) -> Outcome {
        let change = match it.change {
            operation::Change::Ack => Change::Ack,
            operation::Change::RejoinAsAdded => Change::Rejoin(RejoinDue::AsAdded),
            operation::Change::RejoinAfter(after) => Change::Rejoin(RejoinDue::After(ms(after))),
            operation::Change::RejoinIn(after) => Change::Rejoin(RejoinDue::At(self.at(after))),
            operation::Change::Retry(after) => Change::Retry(ms(after)),
            operation::Change::Rollback => Change::Rollback,
            operation::Change::Park => Change::Park,
            operation::Change::Dead => Change::Dead,
            operation::Change::Drop => Change::Drop,
            operation::Change::Tick { next, adds, deliver, unless } => {
                let text = |text: &str| Record::new(&Metadata::default(), Codec::Json, text.as_bytes());
                let new = TickJob { id: job(adds), due: self.at(0), deliver, record: text("of a tick") };
                let (next, unless) =
                    (next.map(|after| self.at(after)), unless.map(|last| (job(last), text("skipped"))));
                Change::Tick(Box::new(Tick { next, schedule: text("ticked"), unless, jobs: vec![new] }))
            }
        };
        let metadata = it.metadata.then(|| {
            let metadata = self.metadata(it.job);
            let attempts = metadata.attempts + 1;
            Metadata {
                attempts,
                cause: Some(Cause::Error),
                parked_by: Some(Fence(7)),
                error: Some("no".into()),
                ..metadata
            }
        });
        Outcome { id: job(it.job), token: self.token(it.job, it.token), change, metadata }
    }

    /// The metadata that `exhaust` writes, with a forged parking fence.
    pub(super) fn last_metadata(&self, id: u8) -> Metadata {
        let (cause, parked_by, error) = (Some(Cause::Timeout), Some(Fence(7)), Some("late".into()));
        Metadata { exhausted: true, cause, parked_by, error, ..self.metadata(id) }
    }

    fn metadata(&self, id: u8) -> Metadata {
        self.topic.jobs.get(&job(id)).map(Job::metadata).unwrap_or_default()
    }
}
