//! Turns the items of an operation into the items of a request: new jobs, commands and outcomes.

use std::collections::HashSet;
use std::time::Duration;

use super::cluster::{ClusterState, job, metadata, ms};
use super::operation::{self, AddItem, ChangeItem, CommandItem, OutcomeItem, Setting, Version, What};
use dq::job::limits::STATE;
use dq::job::{Cause, Codec, Fence, KeptState, Metadata, Priority, Record};
use dq::store::step::{Change, Outcome, RejoinDue, Tick, TickJob};
use dq::store::{
    Batch, ChangeKind, Command, Due, JobChange, Limit, LimitKind, NewJob, Numbered, OptionChange, SetTopic, TopicChange,
};
use dq::time::Timestamp;

impl ClusterState {
    /// The batch of this producer under this number.
    pub(super) fn batch(&self, by: u8, number: u64, what: &operation::Batch) -> Batch {
        match what {
            operation::Batch::Add(jobs) => {
                let jobs = jobs.iter().enumerate();
                let items = jobs.map(|(n, job)| self.new_job(by, number, n, job)).collect();
                Batch::Add { batch: Numbered { number, items } }
            }
            operation::Batch::Command(items) => {
                let mut named = HashSet::new();
                let items = items.iter().filter(|item| named.insert(job(item.job)));
                let items = items.map(|item| self.command(item)).collect();
                Batch::Command { batch: Numbered { number, items } }
            }
            operation::Batch::Change(items) => {
                let items = items.iter().enumerate().map(|(n, item)| self.change(by, number, n, item)).collect();
                Batch::Change { batch: Numbered { number, items } }
            }
            operation::Batch::Set(setting) => Batch::Set { number, set: self.set_topic(by, *setting) },
        }
    }

    /// The `n`-th job of a batch; its payload names producer, number and `n`.
    fn new_job(&self, by: u8, number: u64, n: usize, item: &AddItem) -> NewJob {
        let (due, delay) = match item.due {
            operation::Due::After(after) => (Due::After(ms(after)), ms(after)),
            operation::Due::In(after) => (Due::At(self.at(after)), Duration::ZERO),
            operation::Due::Usual(after) => (Due::Usual(ms(after)), ms(after)),
        };
        let metadata = Metadata { delay, retain: ms(item.retain), priority: item.priority, ..Metadata::default() };
        let payload = format!("{by} {number} {n}");
        NewJob {
            due,
            expires_after: item.expires_after.map(ms),
            on_duplicate: item.on_duplicate,
            deliver: item.deliver,
            unique_for: item.unique_for.map(ms),
            ..NewJob::new(job(item.job), Record::new(&metadata, Codec::Json, payload.as_bytes()))
        }
    }

    fn set_topic(&self, by: u8, setting: Setting) -> SetTopic {
        let reason = || "why not: 1; 2".to_owned();
        let change = match setting {
            Setting::Resume => TopicChange::Resume { group: None },
            Setting::Undrain => TopicChange::Undrain,
            Setting::Delay(delay) => TopicChange::Delay(delay.map(ms)),
            Setting::Waiting(None) => TopicChange::ClearLimit(LimitKind::MaxWaiting),
            Setting::Waiting(Some(jobs)) => TopicChange::Limit { limit: Limit::MaxWaiting(jobs), reason: reason() },
            Setting::Drain => TopicChange::Drain { reason: reason() },
            Setting::Pause(until) => TopicChange::Pause {
                group: None,
                reason: reason(),
                until: until.map(|until| match until {
                    operation::Due::After(time) | operation::Due::Usual(time) => Due::After(ms(time)),
                    operation::Due::In(time) => Due::At(self.at(time)),
                }),
            },
        };
        SetTopic { by: format!("caller {by}"), change }
    }

    fn at(&self, after_ms: i64) -> Timestamp {
        Timestamp::from_millis((self.topic.micros / 1_000).saturating_add_signed(after_ms))
    }

    /// The `n`-th change of a batch; a new payload names producer, number and `n`.
    fn change(&self, by: u8, number: u64, n: usize, item: &ChangeItem) -> JobChange {
        let what = match item.what {
            What::Reschedule(operation::Due::After(after) | operation::Due::Usual(after)) => {
                ChangeKind::Reschedule(Due::After(ms(after)))
            }
            What::Reschedule(operation::Due::In(after)) => ChangeKind::Reschedule(Due::At(self.at(after))),
            What::ExtendBy(by) => ChangeKind::ExtendBy(ms(by)),
            What::RunNow => ChangeKind::RunNow,
            What::Options { headers, retain } => ChangeKind::Options(OptionChange {
                retry: Some(format!("{}s x 5", number % 60 + 1)),
                headers: headers.then(|| vec![("n".into(), n.to_string())]),
                retain: retain.then(|| ms(10_000)),
            }),
            What::Update => {
                let payload = format!("{by} {number} {n} new");
                ChangeKind::Update(Record::new(&Metadata::default(), Codec::Json, payload.as_bytes()))
            }
        };
        JobChange { id: job(item.job), what, if_version: self.version(item.job, item.version), by: None }
    }

    fn version(&self, id: u8, version: Version) -> Option<u32> {
        let present = self.topic.record(&job(id)).map_or(0, |record| metadata(record).version);
        match version {
            Version::Any => None,
            Version::Right => Some(present),
            Version::Wrong => Some(present + 1),
        }
    }

    fn command(&self, item: &CommandItem) -> Command {
        let parked_by = self.metadata(item.job).parked_by;
        let right = self.token(item.job, operation::Token::Right).fence;
        let fence = match item.fence {
            operation::Fence::None => None,
            operation::Fence::Right => parked_by.or(Some(right)),
            operation::Fence::Old(back) => Some(self.token(item.job, operation::Token::Old(back)).fence),
            operation::Fence::Wrong => Some(Fence(right.0 + 1)),
        };
        Command {
            verb: item.verb,
            id: job(item.job),
            fence,
            if_version: self.version(item.job, item.version),
            by: None,
        }
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
                let metadata = Metadata { priority: Priority::ALL[usize::from(adds) % 3], ..Metadata::default() };
                let record = Record::new(&metadata, Codec::Json, b"of a tick");
                let new = TickJob { id: job(adds), due: self.at(0), deliver, record };
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
                state: Some(KeptState::from_bytes(attempts.to_string().as_bytes())),
                ..metadata
            }
        });
        let metadata = match (metadata, &change) {
            (Some(Metadata { state, retain, .. }), Change::Ack) => {
                let retain = if retain.is_zero() { ms(700) } else { retain };
                Some(Metadata { result: state, state: None, retain, ..self.metadata(it.job) })
            }
            (metadata, _) => metadata,
        };
        Outcome { id: job(it.job), token: self.token(it.job, it.token), change, metadata }
    }

    /// The metadata that `exhaust` writes, with a forged parking fence.
    pub(super) fn last_metadata(&self, id: u8) -> Metadata {
        let (cause, parked_by, error) = (Some(Cause::Timeout), Some(Fence(7)), Some("late".into()));
        Metadata { exhausted: true, cause, parked_by, error, ..self.metadata(id) }
    }

    /// The metadata that `note` writes: with a state, and with a forged parking fence.
    pub(super) fn noted_metadata(&self, id: u8, is_large: bool) -> Metadata {
        let metadata = self.metadata(id);
        let state = if is_large { vec![b'7'; STATE.most as usize] } else { self.topic.micros.to_string().into_bytes() };
        Metadata { state: Some(KeptState::from_bytes(&state)), parked_by: Some(Fence(7)), ..metadata }
    }

    fn metadata(&self, id: u8) -> Metadata {
        self.topic.view.jobs.get(&job(id)).map(|job| metadata(&job.record)).unwrap_or_default()
    }
}
