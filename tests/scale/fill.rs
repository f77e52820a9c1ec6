//! A topic with a million jobs that wait, others in every state, and nodes that run some.

use std::time::Duration;

use dq::job::{AppName, Cause, Codec, Fence, JobId, Metadata, NodeId, ProducerId, Record, State, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::step::{Reconcile, Sequenced, Transfer};
use dq::store::{BatchAnswer, Due, Import, ImportOutcome, JobCopy, NewJob, Numbered, OnDuplicate, Store};
use dq::time::Timestamp;
use futures_util::StreamExt;

pub(crate) const TOPIC: &str = "orders";

/// Jobs that wait, once the nodes have taken theirs.
pub(crate) const WAITING: usize = 1_000_000;

/// How many of them are due.
pub(crate) const DUE: usize = 300_000;

/// The others are due over these, from an hour on: a slow machine takes minutes to add them.
pub(crate) const SPAN: Duration = Duration::from_secs(28 * 24 * 3_600);

pub(crate) const NODES: usize = 250;
pub(crate) const HELD: usize = 20;
pub(crate) const RUNNING: usize = NODES * HELD;

/// Jobs that are UNACKED, DEAD and DONE: of each as many.
pub(crate) const ENDED: usize = 20_000;

pub(crate) const SCHEDULES: usize = 120;

const BATCH: usize = 1_000;

fn key() -> TopicKey {
    TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new(TOPIC).unwrap() }
}

fn record() -> Record {
    let metadata = Metadata { headers: vec![("tenant".into(), "one".into())], ..Metadata::default() };
    Record::new(&metadata, Codec::Json, br#"{"order":4711,"reason":"not paid in time"}"#)
}

fn waiting(n: usize, record: &Record) -> NewJob {
    let apart = SPAN / (WAITING - DUE) as u32;
    let later = n.checked_sub(DUE + RUNNING).map(|n| apart * n as u32 + Duration::from_secs(3_600));
    let id = JobId::new(format!("j{n:07}")).unwrap();
    NewJob { due: Due::After(later.unwrap_or_default()), ..NewJob::new(id, record.clone()) }
}

fn ended(state: State, n: usize) -> JobCopy {
    let (name, at) = match state {
        State::Dead => ("dead", 1_763_000_000_000),
        State::Unacked => ("parked", 1_763_000_000_000),
        _ => ("done", 4_000_000_000_000),
    };
    let mut metadata = record().metadata().unwrap();
    if state == State::Dead {
        let error = Some(format!("the bank says {n}"));
        metadata = Metadata { attempts: 3, cause: Some(Cause::Error), error, exhausted: true, ..metadata };
    }
    if state == State::Unacked {
        metadata.parked_by = Some(Fence(7));
    }
    let id = JobId::new(format!("{name}{n:05}")).unwrap();
    JobCopy::new(id, Record::new(&metadata, Codec::Json, b"{}"), state, Timestamp::from_millis(at + n as u64))
}

pub(crate) async fn fill(store: &dyn Store) {
    let producer = store.producer(&key(), &ProducerId::new("filler"));
    let record = record();
    let add = |batch: usize| {
        let items = (batch * BATCH..(batch + 1) * BATCH).map(|n| waiting(n, &record)).collect();
        producer.add(Numbered { number: batch as u64 + 1, items })
    };
    // The server learns the script with the first batch.
    assert!(matches!(add(0).await.unwrap(), BatchAnswer::Done(_)));
    let mut answers = futures_util::stream::iter((1..(WAITING + RUNNING) / BATCH).map(add)).buffered(4);
    while let Some(answer) = answers.next().await {
        assert!(matches!(answer.unwrap(), BatchAnswer::Done(outcomes) if outcomes.len() == BATCH));
    }
    drop(answers);
    let mut number = ((WAITING + RUNNING) / BATCH) as u64;
    for state in [State::Unacked, State::Dead, State::Done] {
        for first in (0..ENDED).step_by(BATCH) {
            let copies = (first..first + BATCH).map(|n| ended(state, n)).collect();
            number += 1;
            let import = Import { copies, on_duplicate: OnDuplicate::Reject, fence: Fence(7) };
            let answer = producer.import(number, import).await.unwrap();
            let BatchAnswer::Done(outcomes) = answer else { panic!("{answer:?}") };
            assert!(outcomes.iter().all(|outcome| *outcome == ImportOutcome::Added));
        }
    }
    for node in 0..NODES {
        claim(store, &NodeId::new(format!("web-{node:03}"))).await;
    }
}

async fn claim(store: &dyn Store, node: &NodeId) {
    let link = store.link(&key(), node);
    let reconcile = Reconcile { last_seen: Default::default(), after: None, limit: 1 };
    let Sequenced::Done(reconciled) = link.step(reconcile).await.unwrap() else { panic!("a first page") };
    let transfer = Transfer::new(reconciled.lease_status.sequence, HELD, Duration::from_secs(600));
    let Sequenced::Done(claimed) = link.step(transfer).await.unwrap() else { panic!("it is reconciled") };
    assert_eq!(claimed.claims.len(), HELD);
}

pub(crate) async fn schedules(provider: &Provider) {
    let topic = provider.topic(TOPIC).unwrap();
    for n in 0..SCHEDULES {
        topic.add_schedule_json(format!("report-{n:03}"), "{}").every("1d").await.unwrap();
    }
}
