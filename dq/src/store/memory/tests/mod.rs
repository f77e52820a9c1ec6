//! What only this store has: its changes, its indexes, its sinks and its panics, on a topic without a store, a clock or a runtime. The
//! behaviours of its steps are those of every store (`dq-testing`, `conformance`).

mod changes;
mod durable;
mod own;
mod store;
mod time_index;

use std::time::Duration;

use super::now::Now;
use super::topic::Topic;
use crate::environment::StoreClock;
use crate::job::{
    AppName, Codec, Delivery, Fence, JobId, Metadata, NodeId, ProducerId, Record, Sequence, State, Token, TopicKey,
    TopicName,
};
use crate::store::step::*;
use crate::store::{
    AddOutcome, Batch, BatchAnswer, BatchReply, Command, CommandKind, CommandOutcome, Due, NewJob, Numbered,
    OnDuplicate, SetTopic, StoreError, TopicChange, TopicSet, TopicState,
};
use crate::time::Timestamp;

const LEASE: Duration = Duration::from_secs(15);
const FALLBACK: Duration = Duration::from_secs(15);
const START_MS: u64 = 1_000_000;

/// A clock that stands still.
#[derive(Debug)]
struct Still;

impl StoreClock for Still {
    fn micros(&self) -> u64 {
        START_MS * 1_000
    }
}

/// A topic, its time and the number of the last batch.
struct Bench {
    topic: Topic,
    now: Now,
    number: u64,
}

fn key(topic: &str) -> TopicKey {
    TopicKey { app: AppName::new("app").unwrap(), topic: TopicName::new(topic).unwrap() }
}

fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

fn node(text: &str) -> NodeId {
    NodeId::new(text)
}

fn record(metadata: &Metadata, payload: &str) -> Record {
    Record::new(metadata, Codec::Json, payload.as_bytes())
}

fn job(text: &str) -> NewJob {
    NewJob::new(id(text), record(&Metadata::default(), "1"))
}

fn replacing(text: &str, payload: &str) -> NewJob {
    NewJob { record: record(&Metadata::default(), payload), on_duplicate: OnDuplicate::Replace, ..job(text) }
}

impl Bench {
    fn new() -> Self {
        let now = Now::from_micros(START_MS * 1_000);
        Self { topic: Topic::default(), now, number: 0 }
    }

    fn advance(&mut self, time: Duration) {
        self.now = Now::from_micros(self.now.micros() + time.as_micros() as u64);
    }

    /// Drops the signals of a step, and checks the topic.
    fn finish_step(&mut self) {
        drop(self.topic.take_notices());
        assert!(self.topic.jobs.is_consistent());
    }

    fn execute(&mut self, producer: &str, batch: Batch) -> Result<BatchReply, StoreError> {
        self.topic.execute(self.now, &ProducerId::new(producer), batch)
    }

    fn add_numbered(&mut self, number: u64, items: Vec<NewJob>) -> BatchAnswer<AddOutcome> {
        let batch = Numbered { number, items };
        let BatchReply::Add(answer) = self.execute("p", Batch::Add { batch }).unwrap() else { panic!("it is an add") };
        self.finish_step();
        answer
    }

    fn add(&mut self, job: NewJob) -> AddOutcome {
        self.number += 1;
        match self.add_numbered(self.number, vec![job]) {
            BatchAnswer::Done(mut outcomes) => outcomes.remove(0),
            BatchAnswer::Late => panic!("late"),
        }
    }

    fn command(&mut self, verb: CommandKind, text: &str, fence: Option<Fence>) -> CommandOutcome {
        self.number += 1;
        let batch = Numbered { number: self.number, items: vec![Command { fence, ..Command::new(verb, id(text)) }] };
        let reply = self.execute("p", Batch::Command { batch }).unwrap();
        self.finish_step();
        match reply {
            BatchReply::Command(BatchAnswer::Done(mut outcomes)) => outcomes.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn set(&mut self, set: SetTopic) -> TopicSet {
        self.number += 1;
        let reply = self.execute("p", Batch::Set { number: self.number, set }).unwrap();
        self.finish_step();
        match reply {
            BatchReply::Set(BatchAnswer::Done(mut outcomes)) => outcomes.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn sequence(&self, name: &str) -> Sequence {
        self.topic.lease_status(&node(name)).sequence
    }

    fn reconcile(&mut self, name: &str) -> Reconciled {
        let request = Reconcile { last_seen: self.sequence(name), after: None, limit: 100 };
        let Sequenced::Done(answer) = self.topic.reconcile(self.now, &node(name), &request).unwrap() else {
            panic!("the first page takes a sequence number")
        };
        self.finish_step();
        answer
    }

    fn transfer(&mut self, name: &str, limit: usize) -> Transferred {
        if self.sequence(name) == Sequence::default() {
            self.reconcile(name);
        }
        let request = Transfer::new(self.sequence(name), limit, LEASE);
        let Sequenced::Done(answer) = self.topic.transfer(self.now, &node(name), &request).unwrap() else {
            panic!("the sequence number is current")
        };
        self.finish_step();
        answer
    }

    /// Adds a job, and node `name` claims it.
    fn run(&mut self, name: &str, job: NewJob) -> Token {
        let wanted = job.id.clone();
        self.add(job);
        self.claim(name, wanted.as_str())
    }

    fn claim(&mut self, name: &str, text: &str) -> Token {
        let claims = self.transfer(name, 1_000).claims;
        claims.iter().find(|claim| claim.id == id(text)).expect("the job is due").token
    }

    fn settle_with(
        &mut self,
        name: &str,
        text: &str,
        token: Token,
        change: Change,
        metadata: Option<Metadata>,
    ) -> Verdict {
        let outcomes = vec![Outcome { id: id(text), token, change, metadata }];
        let request = Settle { last_seen: self.sequence(name), lease: LEASE, bytes: DEFAULT_BYTES, outcomes };
        let verdict = self.topic.settle(self.now, &node(name), request).unwrap().verdicts.remove(0);
        self.finish_step();
        verdict
    }

    fn settle(&mut self, name: &str, text: &str, token: Token, change: Change) -> Verdict {
        self.settle_with(name, text, token, change, None)
    }

    fn isolate(&mut self, name: &str, text: &str, token: Token) -> NoteVerdict {
        let isolation = Some(crate::job::Isolation::Alone);
        let request =
            Isolate { last_seen: self.sequence(name), lease: LEASE, isolation, runs: vec![(id(text), token)] };
        self.topic.isolate(self.now, &node(name), &request).unwrap().notes.unwrap()[0]
    }

    fn sweep(&mut self, name: &str, park_timeout: Duration) -> Swept {
        let request = Sweep {
            last_seen: self.sequence(name),
            limit: 100,
            bytes: DEFAULT_BYTES,
            lease: LEASE,
            park_timeout,
            dead_retention: Duration::from_secs(3_600),
            dead_max: 2,
            done_max: None,
        };
        let Sequenced::Done(answer) = self.topic.sweep(self.now, &node(name), &request).unwrap() else {
            panic!("the sequence number is current")
        };
        self.finish_step();
        answer
    }

    /// Waits until the lease of `name` has expired, and reclaims all its rows.
    fn crash(&mut self, name: &str) -> Reclaimed {
        let seen = self.lease(name).expect("the node holds a job");
        self.advance(seen.since(self.now.floor()));
        self.reclaim(name, seen)
    }

    fn reclaim(&mut self, name: &str, seen: Timestamp) -> Reclaimed {
        let request = Reclaim { node: node(name), seen, limit: 100, bytes: DEFAULT_BYTES, max_crashes: 3 };
        let answer = self.topic.reclaim(self.now, &request).unwrap();
        self.finish_step();
        answer
    }

    fn lease(&self, name: &str) -> Option<Timestamp> {
        self.topic.jobs.holders().get(&node(name)).map(|holder| holder.lease)
    }

    fn payload(&self, text: &str) -> String {
        let record = &self.topic.jobs.get(&id(text)).expect("the job is known").record;
        String::from_utf8(record.payload().unwrap().1.to_vec()).unwrap()
    }
}
