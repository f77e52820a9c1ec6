//! A topic with one node and one caller on a Redis store, in few words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dq::job::{AppName, Codec, Deliver, Front, JobId, NodeId, ProducerId, Record, TopicKey, TopicName, Turn};
use dq::store::redis::RedisStore;
use dq::store::step::{Change, Claim, Outcome, Reconcile, Settle, Settled, Transfer, Transferred, Turned};
use dq::store::{
    AddOutcome, BatchAnswer, Due, Link, NewJob, Numbered, OnDuplicate, Producer, Store, StoreError, WithdrawOutcome,
    WithdrawVerb, Withdrawal,
};

pub const LEASE: Duration = Duration::from_secs(15);

pub struct Topic {
    pub store: Arc<RedisStore>,
    pub key: TopicKey,
    pub link: Arc<dyn Link>,
    pub producer: Arc<dyn Producer>,
    number: AtomicU64,
    heard: AtomicU64,
}

pub fn key(topic: &str) -> TopicKey {
    TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new(topic).unwrap() }
}

pub fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

pub fn job(name: &str) -> NewJob {
    NewJob {
        id: id(name),
        generated: false,
        due: Due::After(Duration::ZERO),
        expires_after: None,
        record: Record::new(&Front::default(), Codec::Json, b"{}"),
        on_duplicate: OnDuplicate::Reject,
        deliver: Deliver::Queue,
    }
}

pub fn generated(count: u16) -> NewJob {
    NewJob { id: JobId::generated(7, count, 0), generated: true, ..job("x") }
}

impl Topic {
    /// The topic `t` on this server, under the server's own clock.
    pub fn on(url: &str) -> Self {
        Self::named(url, "t")
    }

    pub fn named(url: &str, topic: &str) -> Self {
        Self::of(RedisStore::new(url).unwrap(), topic)
    }

    pub fn of(store: RedisStore, topic: &str) -> Self {
        let (store, key) = (Arc::new(store), key(topic));
        let link = store.link(&key, &NodeId::new("n"));
        let producer = store.producer(&key, &ProducerId::new("p"));
        Self { store, key, link, producer, number: AtomicU64::new(0), heard: AtomicU64::new(0) }
    }

    pub async fn try_add(&self, items: Vec<NewJob>) -> Result<BatchAnswer<AddOutcome>, StoreError> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        self.producer.add(Numbered { number, items }).await
    }

    pub async fn add(&self, items: Vec<NewJob>) {
        let count = items.len();
        assert_eq!(self.try_add(items).await.unwrap(), BatchAnswer::Done(vec![AddOutcome::Added; count]));
    }

    pub async fn withdraw(&self, verb: WithdrawVerb, name: &str) -> WithdrawOutcome {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let items = vec![Withdrawal { verb, id: id(name), fence: None }];
        match self.producer.withdraw(Numbered { number, items }).await.unwrap() {
            BatchAnswer::Done(mut outcomes) => outcomes.remove(0),
            BatchAnswer::Late => panic!("the numbers go up"),
        }
    }

    pub fn heard(&self) -> Turn {
        Turn(self.heard.load(Ordering::Relaxed))
    }

    pub async fn reconcile(&self) -> usize {
        let request = Reconcile { heard: self.heard(), after: None, limit: 1_000 };
        match self.link.reconcile(request).await.unwrap() {
            Turned::Done(answer) => {
                self.heard.store(answer.standing.turn.0, Ordering::Relaxed);
                assert_eq!(answer.rows.len(), answer.standing.rows);
                answer.standing.rows
            }
            Turned::Reconcile(standing) => panic!("a first page needs no turn: {standing:?}"),
        }
    }

    pub async fn try_transfer(&self, limit: usize) -> Result<Transferred, StoreError> {
        let request = Transfer { heard: self.heard(), limit, lease: LEASE, fallback: LEASE };
        match self.link.transfer(request).await? {
            Turned::Done(answer) => {
                self.heard.store(answer.standing.turn.0, Ordering::Relaxed);
                Ok(answer)
            }
            Turned::Reconcile(standing) => panic!("the turn was right: {standing:?}"),
        }
    }

    /// Waits until everything that waits is due: a job without delay is due at the next millisecond.
    pub async fn ready(&self) {
        loop {
            let counts = self.store.counts(&self.key).await.unwrap();
            if counts.ready == counts.delayed {
                return;
            }
        }
    }

    pub async fn claims(&self) -> Vec<Claim> {
        self.ready().await;
        self.try_transfer(1_000).await.unwrap().claims
    }

    pub async fn try_settle(&self, claims: &[Claim], change: Change) -> Result<Settled, StoreError> {
        let outcome =
            |claim: &Claim| Outcome { id: claim.id.clone(), token: claim.token, change: change.clone(), front: None };
        let outcomes = claims.iter().map(outcome).collect();
        self.link.settle(Settle { heard: self.heard(), lease: LEASE, outcomes }).await
    }
}
