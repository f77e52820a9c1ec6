//! The `file:` store of dq in the place of an engine: its steps and a commit by hand, without callers, handlers and decoding.

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dq::job::{AppName, Codec, JobId, Metadata, NodeId, ProducerId, Record, Sequence, Token, TopicKey, TopicName};
use dq::store::file::{Commits, FileStore};
use dq::store::step::{Change, MAX_JOBS, Outcome, Reconcile, Sequenced, Settle, Transfer, Verdict};
use dq::store::{AddOutcome, Answer, BatchAnswer, Due, Link, NewJob, Numbered, Producer, Request, Store};
use dq::time::Timestamp;
use dq_bench::PAYLOAD;

use crate::engine::{Claimed, Engine, Work};

const LEASE: Duration = Duration::from_secs(30);
const MAX_BYTES: usize = 4 << 20;

pub(crate) struct Alone {
    store: FileStore,
    producer: Arc<dyn Producer>,
    link: Arc<dyn Link>,
    batches: u64,
    last_seen: Sequence,
    /// What was claimed, by the fence of the transaction.
    running: HashMap<u64, Vec<(JobId, Token)>>,
}

/// The value of a future that has one by now.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("everything was committed"),
    }
}

impl Alone {
    fn settle(&mut self, fence: u64) -> Request {
        let ended = self.running.remove(&fence).unwrap();
        let outcomes = ended.into_iter().map(|(id, token)| Outcome { id, token, change: Change::Ack, metadata: None });
        let outcomes = outcomes.collect();
        Request::Settle(Settle { last_seen: self.last_seen, lease: LEASE, bytes: MAX_BYTES, outcomes })
    }

    fn claim(&mut self, most: usize, fence: u64) -> Claimed {
        let request = Transfer { bytes: MAX_BYTES, ..Transfer::new(self.last_seen, most, LEASE) };
        let answer = self.link.ask(Request::Transfer(request));
        self.store.commit().unwrap();
        let Ok(Answer::Transfer(Sequenced::Done(done))) = now(answer) else { panic!("a transfer is answered") };
        self.last_seen = done.lease_status.sequence;
        let ids = done.claims.iter().map(|claim| claim.id.as_str().to_owned()).collect();
        done.claims.iter().for_each(|claim| drop(black_box(claim.record.as_bytes().to_vec())));
        if !done.claims.is_empty() {
            self.running.insert(fence, done.claims.into_iter().map(|claim| (claim.id, claim.token)).collect());
        }
        Claimed { ids, fence }
    }
}

impl Engine for Alone {
    const NAME: &'static str = "the store alone";

    fn open(folder: &Path) -> Self {
        let store = FileStore::new(folder).with(|options| options.commits = Commits::ByHand);
        now(store.open()).unwrap();
        let topic = TopicKey { app: AppName::new("bench").unwrap(), topic: TopicName::new("nothing").unwrap() };
        let producer = store.producer(&topic, &ProducerId::new("producer"));
        let link = store.link(&topic, &NodeId::new("node"));
        let first = link.ask(Request::Reconcile(Reconcile { last_seen: Sequence::default(), after: None, limit: 1 }));
        let Ok(Answer::Reconcile(Sequenced::Done(first))) = now(first) else { panic!("a reconcile is answered") };
        let last_seen = first.lease_status.sequence;
        Self { store, producer, link, batches: 0, last_seen, running: HashMap::new() }
    }

    fn transact(&mut self, work: &[Work], _: u64, most: usize, fence: u64) -> Claimed {
        let mut jobs = Vec::new();
        let mut settled = Vec::new();
        for work in work {
            match work {
                Work::Add(added) => jobs.extend(added.iter().map(|(id, due)| {
                    let record = Record::new(&Metadata::default(), Codec::Json, PAYLOAD.as_bytes());
                    let due = Due::At(Timestamp::from_millis(*due));
                    NewJob { generated: true, due, ..NewJob::new(JobId::new(id).unwrap(), record) }
                })),
                Work::Ack(_, fence) => {
                    let request = self.settle(*fence);
                    settled.push(self.link.ask(request));
                }
            }
        }
        let mut added = Vec::new();
        while !jobs.is_empty() {
            let items = jobs.split_off(jobs.len().saturating_sub(MAX_JOBS));
            self.batches += 1;
            added.push(self.producer.add(Numbered { number: self.batches, items }));
        }
        let claimed = if most > 0 { self.claim(most, fence) } else { Claimed::default() };
        self.store.commit().unwrap();
        for answer in added {
            let Ok(BatchAnswer::Done(outcomes)) = now(answer) else { panic!("an add is answered") };
            assert!(outcomes.iter().all(|outcome| *outcome == AddOutcome::Added));
        }
        for answer in settled {
            let Ok(Answer::Settle(done)) = now(answer) else { panic!("a settle is answered") };
            assert!(done.verdicts.iter().all(|verdict| *verdict == Verdict::Done));
        }
        claimed
    }
}
