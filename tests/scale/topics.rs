//! The pages of 5,000 topics in memory.

use std::sync::Arc;

use dq::environment::WallClock;
use dq::job::{AppName, Codec, JobId, Metadata, ProducerId, Record, TopicKey, TopicName};
use dq::store::memory::MemoryStore;
use dq::store::{Due, Interest, NewJob, Numbered, Store};

use crate::counting::CountingStore;
use crate::meter::{MAX_COMMANDS, Meter, Source};
use crate::provider;

const TOPICS: usize = 5_000;

fn key(app: &str, topic: String) -> TopicKey {
    TopicKey { app: AppName::new(app).unwrap(), topic: TopicName::new(topic).unwrap() }
}

async fn add(store: &dyn Store, key: &TopicKey) {
    let record = Record::new(&Metadata::default(), Codec::Json, b"{}");
    let due = Due::After(std::time::Duration::from_secs(60));
    let job = NewJob { due, ..NewJob::new(JobId::new("a").unwrap(), record) };
    store.producer(key, &ProducerId::new("p")).add(Numbered { number: 1, items: vec![job] }).await.unwrap();
}

/// Of this app, of another one, and as many names that hold nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_5_000_topics_in_memory_is_bounded() {
    let counting = Arc::new(CountingStore::over(Arc::new(MemoryStore::new(Arc::new(WallClock)))));
    for n in 0..TOPICS {
        add(&*counting, &key("shop", format!("t{n:04}"))).await;
        add(&*counting, &key("another", format!("t{n:04}"))).await;
        let interest = Interest { node: None, broadcasts: false, moves: false };
        drop(counting.signals(&key("shop", format!("empty-{n:04}")), interest).await.unwrap());
    }
    let look = provider(counting.clone()).inspect();
    let meter = Meter::from(Source::Requests(counting));
    let (mut seen, mut after, mut pages) = (Vec::new(), None::<String>, 0);
    loop {
        let page = meter.within("topics", (MAX_COMMANDS, 0), look.topics(after.as_deref())).await.unwrap();
        assert!(page.topics.len() <= 18);
        seen.extend(page.topics.iter().map(|topic| topic.topic.to_string()));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, (0..TOPICS).map(|n| format!("t{n:04}")).collect::<Vec<_>>());
    assert!(pages < 300, "{pages} pages");
}
