//! A store with a sink: what it hands over, and which answers wait.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::super::{MemoryStore, Position, Replay, ReplayPart, Sink};
use super::*;
use crate::store::{Answer, Link, Pending, Producer, Store, StoreError};

type Confirm = oneshot::Sender<Result<(), StoreError>>;

/// Keeps the changes, and what answers wait for until the test confirms it.
#[derive(Debug, Default)]
struct HeldSink {
    changes: Mutex<Vec<Vec<u8>>>,
    waiting: Mutex<Vec<(String, Confirm)>>,
    is_full: Mutex<bool>,
}

impl HeldSink {
    fn wait(&self, what: String) -> Option<Pending<()>> {
        let (confirm, confirmed) = oneshot::channel();
        self.waiting.lock().unwrap().push((what, confirm));
        Some(confirmed.map(|confirmed| confirmed.expect("the test answers")).boxed())
    }

    /// What answers wait for; they wait no longer.
    fn confirm(&self) -> Vec<String> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        let confirmed = waiting.into_iter().map(|(what, confirm)| {
            confirm.send(Ok(())).ok();
            what
        });
        confirmed.collect()
    }
}

impl Sink for HeldSink {
    fn admit(&self, operation: &'static str) -> Result<(), StoreError> {
        if *self.is_full.lock().unwrap() {
            return Err(StoreError::Refused { operation, reason: "the disk is full".into() });
        }
        Ok(())
    }

    fn append(&self, topic: &TopicKey, changes: &[u8], _fence: Fence) -> Position {
        assert_eq!(topic, &key("topic"));
        let mut all = self.changes.lock().unwrap();
        all.push(changes.to_vec());
        Position(all.len() as u64)
    }

    fn confirm(&self, operation: &'static str, Position(position): Position) -> Option<Pending<()>> {
        self.wait(format!("{operation} {position}"))
    }

    fn confirm_fence(&self, operation: &'static str, fence: Fence) -> Option<Pending<()>> {
        self.wait(format!("{operation} fence +{}", fence.0 - START_MS * 1_000))
    }
}

struct Journaled {
    sink: Arc<HeldSink>,
    store: MemoryStore,
    producer: Arc<dyn Producer>,
    link: Arc<dyn Link>,
    number: u64,
}

impl Journaled {
    fn new() -> Self {
        let sink = Arc::<HeldSink>::default();
        let store = MemoryStore::journaled(Arc::new(Still), sink.clone());
        let producer = store.producer(&key("topic"), &ProducerId::new("p"));
        let link = store.link(&key("topic"), &node("n"));
        Self { sink, store, producer, link, number: 0 }
    }

    fn add(&mut self, text: &str) -> Pending<BatchAnswer<AddOutcome>> {
        self.number += 1;
        self.producer.add(Numbered { number: self.number, items: vec![job(text)] })
    }

    /// Asks, and returns the answer and what it waited for.
    fn ask(&self, request: impl Into<crate::store::Request>) -> (Answer, Vec<String>) {
        let mut answer = self.link.ask(request.into());
        match (&mut answer).now_or_never() {
            Some(answer) => (answer.unwrap(), self.sink.confirm()),
            None => {
                let waited = self.sink.confirm();
                (answer.now_or_never().expect("all is confirmed").unwrap(), waited)
            }
        }
    }

    fn claimed(&self, last_seen: u64) -> (Claim, Vec<String>) {
        match self.ask(Transfer::new(Sequence(last_seen), 10, LEASE)) {
            (Answer::Transfer(Sequenced::Done(mut done)), waited) => (done.claims.remove(0), waited),
            other => panic!("{other:?}"),
        }
    }
}

fn settle_of(claim: &Claim, change: Change) -> Settle {
    let outcomes = vec![Outcome { id: claim.id.clone(), token: claim.token, change, metadata: None }];
    Settle { last_seen: Sequence(2), lease: LEASE, bytes: DEFAULT_BYTES, outcomes }
}

#[test]
fn answers_that_promise_something_wait_for_their_changes_and_a_claim_only_for_its_fence() {
    let mut dq = Journaled::new();
    let mut added = dq.add("a");
    assert!((&mut added).now_or_never().is_none(), "nothing is confirmed");
    assert_eq!(dq.sink.confirm(), ["add 1"]);
    added.now_or_never().unwrap().unwrap();
    let reconcile = Reconcile { last_seen: Sequence(0), after: None, limit: 10 };
    assert!(dq.ask(reconcile).1.is_empty());
    let (claim, waited) = dq.claimed(1);
    assert_eq!(waited, ["transfer fence +0"]);
    assert!(dq.ask(Renew { last_seen: Sequence(2), lease: LEASE }).1.is_empty());
    assert!(dq.ask(Scan).1.is_empty());
    assert!(dq.ask(Wake).1.is_empty());
    let (last_seen, lease, isolation) = (Sequence(2), LEASE, Some(crate::job::Isolation::Alone));
    let runs = vec![(claim.id.clone(), claim.token)];
    assert_eq!(dq.ask(Isolate { last_seen, lease, isolation, runs }).1, ["isolate 3"]);
    let (id, token, metadata) = (claim.id.clone(), claim.token, Metadata::default());
    assert_eq!(dq.ask(Exhaust { last_seen, lease, id, token, metadata }).1, ["exhaust 4"]);
    assert_eq!(dq.ask(settle_of(&claim, Change::Park)).1, ["settle 5"]);
    let (limit, bytes, park_timeout) = (10, DEFAULT_BYTES, Duration::ZERO);
    let (dead_retention, dead_max) = (LEASE, 10);
    let sweep = Sweep { last_seen, limit, bytes, lease, park_timeout, dead_retention, dead_max, done_max: None };
    assert_eq!(dq.ask(sweep).1, ["sweep 6", "sweep fence +1"]);
    assert_eq!(dq.ask(Release { last_seen: Sequence(3) }).1, ["release 7"]);
    let reclaim = Reclaim { node: node("n"), seen: Timestamp::EPOCH, limit, bytes, max_crashes: 1 };
    assert_eq!(dq.ask(reclaim).1, ["reclaim 8"]);
    assert_eq!(dq.ask(Publish { limit, bytes, fallback: FALLBACK, expires_after: LEASE }).1, ["publish 8"]);
}

#[test]
fn a_repeat_and_a_stale_outcome_wait_for_the_changes_that_they_tell_of() {
    let mut dq = Journaled::new();
    drop(dq.add("a"));
    dq.number -= 1;
    let mut repeated = dq.add("a");
    assert!((&mut repeated).now_or_never().is_none());
    assert_eq!(dq.sink.confirm(), ["add 1", "add 1"]);
    let (done, sink) = (repeated.now_or_never().unwrap().unwrap(), &dq.sink);
    assert_eq!(done, BatchAnswer::Done(vec![AddOutcome::Added]));
    dq.ask(Reconcile { last_seen: Sequence(0), after: None, limit: 10 });
    let (claim, _) = dq.claimed(1);
    drop(dq.link.ask(settle_of(&claim, Change::Ack).into()));
    assert_eq!(sink.confirm(), ["settle 3"]);
    assert_eq!(dq.ask(settle_of(&claim, Change::Ack)).1, ["settle 3"], "it is stale because of change 3");
    assert_eq!(sink.changes.lock().unwrap().len(), 3, "neither changes anything");
}

#[test]
fn an_answer_whose_changes_are_lost_is_unknown_and_a_sink_that_is_full_refuses_before_anything_is_done() {
    let mut dq = Journaled::new();
    let added = dq.add("a");
    let (_, confirm) = dq.sink.waiting.lock().unwrap().pop().unwrap();
    let source = "the disk failed".into();
    confirm.send(Err(StoreError::Other { operation: "add", source })).unwrap();
    assert!(!added.now_or_never().unwrap().unwrap_err().nothing_done());
    *dq.sink.is_full.lock().unwrap() = true;
    let refused = dq.add("b").now_or_never().unwrap().unwrap_err();
    assert!(refused.nothing_done() && refused.is_outage());
    let renew = Renew { last_seen: Sequence(0), lease: LEASE };
    assert!(dq.link.ask(renew.into()).now_or_never().unwrap().is_ok(), "handlers go on");
    let jobs = dq.store.get(&key("topic"), &[id("a"), id("b")]).now_or_never().unwrap().unwrap();
    assert_eq!(jobs.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_changes_of_a_topic_have_the_order_of_its_steps_whoever_takes_them() {
    let dq = Journaled::new();
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let producer = dq.store.producer(&key("topic"), &ProducerId::new(format!("p{caller}")));
            scope.spawn(move || {
                for number in 1..=50 {
                    let items = vec![replacing("a", &format!("{caller} {number}"))];
                    drop(producer.add(Numbered { number, items }));
                }
            });
        }
    });
    let copy = MemoryStore::new(Arc::new(Still));
    let all = dq.sink.changes.lock().unwrap();
    all.iter()
        .for_each(|changes| drop(copy.replay(&key("topic"), changes, Replay::Strict, ReplayPart::WHOLE).unwrap()));
    let get = |store: &MemoryStore| store.get(&key("topic"), &[id("a")]).now_or_never().unwrap().unwrap();
    assert_eq!((get(&copy), all.len()), (get(&dq.store), 200));
}

#[test]
fn fences_go_on_above_those_of_the_process_before_in_old_topics_and_in_new_ones() {
    let mut dq = Journaled::new();
    let first = Fence(START_MS * 1_000);
    drop(dq.add("a"));
    dq.ask(Reconcile { last_seen: Sequence(0), after: None, limit: 10 });
    assert_eq!(dq.claimed(1).0.token.fence, first);
    assert_eq!(dq.store.highest_fence().unwrap(), first);
    let mut later = Journaled::new();
    for changes in dq.sink.changes.lock().unwrap().iter() {
        later.store.replay(&key("topic"), changes, Replay::Strict, ReplayPart::WHOLE).unwrap();
    }
    assert_eq!(later.store.highest_fence().unwrap(), first, "the row has it");
    later.store.raise_fence(Fence(first.0 + 70)).unwrap();
    drop(later.add("b"));
    later.ask(Reconcile { last_seen: Sequence(0), after: None, limit: 10 });
    assert_eq!(later.claimed(1).0.token.fence, Fence(first.0 + 71));
    let mut new = Journaled::new();
    let store = MemoryStore::journaled(Arc::new(Still), new.sink.clone());
    store.raise_fence(Fence(first.0 + 70)).unwrap();
    assert_eq!(store.highest_fence().unwrap(), Fence(first.0 + 70));
    new.producer = store.producer(&key("topic"), &ProducerId::new("p"));
    new.link = store.link(&key("topic"), &node("n"));
    drop(new.add("c"));
    new.ask(Reconcile { last_seen: Sequence(0), after: None, limit: 10 });
    assert_eq!(new.claimed(1).0.token.fence, Fence(first.0 + 71));
}
