//! Adds that wait in a directory while the store is away.

use std::sync::Arc;
use std::time::Duration;

use dq::DelayJob;
use dq::context::ContextFactory;
use dq::environment::{StoreClock, TokioClock};
use dq::job::{Codec, JobId, Metadata, ProducerId, Record, State, TopicKey};
use dq::provider::{AddedHow, CallError, Provider};
use dq::store::file::FileStore;
use dq::store::memory::MemoryStore;
use dq::store::{NewJob, Numbered, OnDuplicate, Store};
use dq_tests::file::Folder;
use dq_tests::{Faults, FaultyStore};
use serde::{Deserialize, Serialize};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "mail", delay = "1h")]
struct Mail {
    #[job(id)]
    n: u64,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "bill")]
struct Bill {
    #[job(id)]
    n: u64,
}

/// A store that goes away, and the directory that takes adds meanwhile.
struct Shop {
    store: Arc<dyn Store>,
    faults: Arc<Faults>,
    folder: Folder,
}

impl Shop {
    fn new() -> Self {
        Self::under(Arc::new(TokioClock::new()))
    }

    /// The store has this clock.
    fn under(clock: Arc<dyn StoreClock>) -> Self {
        let (store, faults) = FaultyStore::over(Arc::new(MemoryStore::new(clock)));
        Self { store, faults, folder: Folder::unmade() }
    }

    fn factory(&self) -> ContextFactory {
        let factory = ContextFactory::new("shop").without_inventory().variables([("", ""); 0]);
        factory.store(Arc::clone(&self.store)).buffer(self.folder.path())
    }

    async fn provider(&self) -> Provider {
        self.factory().connect().await.unwrap()
    }

    /// The store goes away, and the provider has noticed it.
    async fn goes_away(&self, provider: &Provider) {
        self.faults.go_away();
        let unknown = provider.add(Mail { n: 99 }).await.unwrap_err();
        assert!(matches!(unknown, CallError::Unknown { .. }), "{unknown}");
        assert!(provider.buffer().unwrap().is_away);
    }

    /// The store is back, and nothing waits any more.
    async fn comes_back(&self, provider: &Provider) {
        self.faults.clear();
        until(|| provider.buffer().is_some_and(|buffer| buffer.jobs == 0 && !buffer.is_away)).await;
    }
}

/// Lets time pass until this holds.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::advance(SECOND / 4).await;
        tokio::task::yield_now().await;
    }
}

async fn how(provider: &Provider, n: u64) -> AddedHow {
    provider.add(Mail { n }).await.unwrap().how
}

#[tokio::test(start_paused = true)]
async fn adds_wait_on_the_disk_while_the_store_is_away_and_arrive_once_and_in_order() {
    let shop = Shop::new();
    let provider = shop.provider().await;
    assert_eq!(how(&provider, 0).await, AddedHow::New);
    shop.goes_away(&provider).await;
    for n in 1..5 {
        tokio::time::advance(SECOND).await;
        assert_eq!(how(&provider, n).await, AddedHow::Buffered);
    }
    let many = provider.add_many((5..9).map(|n| Mail { n })).await.unwrap().all().unwrap();
    assert!(many.iter().all(|added| added.how == AddedHow::Buffered));
    let buffer = provider.buffer().unwrap();
    assert_eq!((buffer.jobs, buffer.sent, buffer.refused), (8, 0, 0));
    drop(provider);

    let again = shop.provider().await;
    assert_eq!(again.buffer().unwrap().jobs, 8, "the disk has them");
    assert_eq!(how(&again, 9).await, AddedHow::Buffered);
    shop.comes_back(&again).await;
    assert_eq!(again.buffer().unwrap().sent, 9);
    assert_eq!(how(&again, 10).await, AddedHow::New);
    let waiting = again.get::<Mail>(1).await.unwrap().unwrap();
    assert_eq!(waiting.state(), State::Delayed);
    let listed: Vec<_> = again.inspect().jobs("mail", State::Delayed, &Default::default(), None).await.unwrap().jobs;
    let ids: Vec<_> = listed.iter().map(|job| job.id.as_str().to_owned()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    let at = |n: usize| listed[n].at.unwrap();
    assert_eq!(at(2).since(at(1)), SECOND, "a delay counts from the add");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_fact_is_counted_and_named() {
    let shop = Shop::new();
    let provider = shop.provider().await;
    provider.add(Mail { n: 7 }).await.unwrap();
    shop.goes_away(&provider).await;
    assert_eq!(how(&provider, 7).await, AddedHow::Buffered);
    assert_eq!(how(&provider, 8).await, AddedHow::Buffered);
    shop.comes_back(&provider).await;
    let buffer = provider.buffer().unwrap();
    assert_eq!((buffer.sent, buffer.refused), (2, 1));
    let refused = &buffer.last_refused[0];
    assert_eq!((refused.topic.as_str(), refused.job.as_str()), ("mail", "7"));
    assert_eq!(refused.cause, "a job with this id exists, and is delayed");
}

#[tokio::test(start_paused = true)]
async fn a_buffer_is_bounded_and_drops_what_is_too_old() {
    let shop = Shop::new();
    let provider = shop.factory().buffer_limit(2).buffer_age("1h").connect().await.unwrap();
    provider.add(Mail { n: 0 }).await.unwrap();
    shop.goes_away(&provider).await;
    assert_eq!(how(&provider, 1).await, AddedHow::Buffered);
    tokio::time::advance(3600 * SECOND).await;
    assert_eq!(how(&provider, 2).await, AddedHow::Buffered);
    let full = provider.add(Mail { n: 3 }).await.unwrap_err();
    assert!(full.to_string().contains("the buffer is full: 2 jobs"), "{full}");
    assert!(full.to_string().contains("Raise `buffer_limit`"), "{full}");
    shop.comes_back(&provider).await;
    let buffer = provider.buffer().unwrap();
    assert_eq!((buffer.sent, buffer.refused), (1, 1));
    assert_eq!(buffer.last_refused[0].cause, "it waited in the buffer for longer than `buffer_age`");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_drains_gets_its_adds_later_and_holds_up_no_other() {
    let shop = Shop::new();
    let provider = shop.provider().await;
    provider.topic("mail").unwrap().drain().reason("we move").await.unwrap();
    provider.add(Bill { n: 0 }).await.unwrap();
    shop.faults.go_away();
    provider.add(Bill { n: 1 }).await.unwrap_err();
    assert_eq!(how(&provider, 2).await, AddedHow::Buffered);
    assert_eq!(provider.add(Bill { n: 3 }).await.unwrap().how, AddedHow::Buffered);
    shop.faults.clear();
    until(|| provider.buffer().is_some_and(|buffer| !buffer.is_away)).await;
    assert_eq!(provider.buffer().unwrap().jobs, 1);
    assert_eq!(provider.add(Bill { n: 4 }).await.unwrap().how, AddedHow::New);
    assert_eq!(how(&provider, 5).await, AddedHow::Buffered, "it does not overtake the one that waits");
    provider.topic("mail").unwrap().undrain().await.unwrap();
    until(|| provider.buffer().is_some_and(|buffer| buffer.jobs == 0)).await;
    assert_eq!(how(&provider, 6).await, AddedHow::New);
}

/// What the buffer notes of itself: which numbers it gave out, and its name.
#[tokio::test(start_paused = true)]
async fn notes_of_a_buffer_that_cannot_be_read_hold_up_nothing() {
    let of = |app: &str, topic: &str| TopicKey { app: app.parse().unwrap(), topic: topic.parse().unwrap() };
    for (note, text) in [
        ("numbers:mail", "rubbish"),
        ("numbers:mail", "9 99"),
        ("numbers:mail", "9 0 0"),
        ("numbers:mail", "99999999999999999999 99 0"),
        ("numbers:mail", "9 9007199254740993 0"),
        ("numbers:mail", "4000000000000000 4000000000000000 0"),
        ("name", "no\u{0}name"),
    ] {
        let shop = Shop::new();
        let provider = shop.provider().await;
        shop.goes_away(&provider).await;
        assert_eq!(how(&provider, 1).await, AddedHow::Buffered);
        drop(provider);
        let directory = FileStore::new(shop.folder.path());
        directory.prepare().await.unwrap();
        let record = Record::new(&Metadata::default(), Codec::Json, text.as_bytes());
        let job = NewJob { on_duplicate: OnDuplicate::Replace, ..NewJob::new(JobId::new(note).unwrap(), record) };
        let producer = directory.producer(&of("dq-buffer", "own"), &ProducerId::new("another program"));
        producer.add(Numbered { number: 1, items: vec![job] }).await.unwrap();
        drop((producer, directory));

        let again = shop.provider().await;
        shop.comes_back(&again).await;
        assert_eq!(again.buffer().unwrap().sent, 1, "{note}: {text}");
        assert!(again.get::<Mail>(1).await.unwrap().is_some(), "{note}: {text}");
        shop.goes_away(&again).await;
        assert_eq!(how(&again, 2).await, AddedHow::Buffered);
        shop.comes_back(&again).await;
        assert!(again.get::<Mail>(2).await.unwrap().is_some(), "{note}: {text}");
    }
}

/// One entry has a name that is no position, another one has its position in another form, and what a third one has is no batch.
#[tokio::test(start_paused = true)]
async fn an_entry_that_cannot_be_read_is_set_aside_and_the_others_are_sent() {
    let shop = Shop::new();
    let provider = shop.provider().await;
    shop.goes_away(&provider).await;
    assert_eq!(how(&provider, 1).await, AddedHow::Buffered);
    drop(provider);
    let directory = |app: &str| {
        let factory = ContextFactory::new(app).without_inventory().variables([("", ""); 0]);
        factory.store(shop.folder.url()).connect()
    };
    let entries = ["00000000000000000007", "7", "rubbish"];
    let other = directory("shop").await.unwrap();
    for entry in entries {
        other.topic("mail").unwrap().add_json("{}").id(entry).after("1h").await.unwrap();
    }
    drop(other);

    let again = shop.provider().await;
    let buffer = again.buffer().unwrap();
    assert_eq!((buffer.jobs, buffer.refused), (1, 3), "{buffer:?}");
    let refused: Vec<_> = buffer.last_refused.iter().map(|refused| refused.job.as_str()).collect();
    assert_eq!(refused, entries.map(|entry| format!("entry {entry}")));
    shop.comes_back(&again).await;
    assert_eq!(again.buffer().unwrap().sent, 1);
    drop(again);
    assert_eq!(shop.provider().await.buffer().unwrap().refused, 0, "they are out of the way");
    let aside = directory("dq-set-aside").await.unwrap();
    let kept = aside.inspect().jobs("mail", State::Delayed, &Default::default(), None).await.unwrap().jobs;
    let mut kept: Vec<_> = kept.iter().map(|job| job.id.as_str()).collect();
    kept.sort_unstable();
    assert_eq!(kept, entries);
}

#[tokio::test(start_paused = true)]
async fn a_directory_belongs_to_one_app() {
    let shop = Shop::new();
    drop(shop.provider().await);
    let other = ContextFactory::new("other").without_inventory().variables([("", ""); 0]);
    let error = other.store(Arc::clone(&shop.store)).buffer(shop.folder.path()).connect().await.unwrap_err();
    assert!(error.to_string().contains("it has adds of app `shop`"), "{error}");
}

/// A clock that is days behind those of programs, or ahead of them.
#[derive(Debug)]
struct Apart(TokioClock, i64);

impl StoreClock for Apart {
    fn micros(&self) -> u64 {
        self.0.micros().saturating_add_signed(self.1)
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_counts_from_the_add_whatever_the_clock_of_the_program_says() {
    const DAY: i64 = 24 * 3_600_000_000;
    for apart in [-3 * DAY, 3 * DAY] {
        let shop = Shop::under(Arc::new(Apart(TokioClock::new(), apart)));
        let provider = shop.factory().buffer_age("1d").connect().await.unwrap();
        provider.add(Mail { n: 0 }).await.unwrap();
        shop.goes_away(&provider).await;
        assert_eq!(how(&provider, 1).await, AddedHow::Buffered);
        tokio::time::advance(10 * SECOND).await;
        drop(provider);
        let again = shop.factory().buffer_age("1d").connect().await.unwrap();
        assert_eq!(how(&again, 2).await, AddedHow::Buffered);
        shop.comes_back(&again).await;
        let buffer = again.buffer().unwrap();
        assert_eq!((buffer.sent, buffer.refused), (2, 0));
        let listed = again.inspect().jobs("mail", State::Delayed, &Default::default(), None).await.unwrap().jobs;
        let at: Vec<_> = listed.iter().map(|job| job.at.unwrap()).collect();
        assert!(at[2].since(at[0]) < 3600 * SECOND && at[2].since(at[1]) >= 10 * SECOND, "{at:?}");
    }
}
