//! Buffers: a directory that has entries and notes as another program or a later version writes them, and a provider that opens it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dq::context::ContextFactory;
use dq::environment::TokioClock;
use dq::job::{AppName, Codec, JobId, Metadata, ProducerId, Record, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::file::FileStore;
use dq::store::memory::MemoryStore;
use dq::store::{Due, FollowUpBatch, NewJob, Numbered, OnDuplicate, Packed, Store};
use dq::time::Timestamp;
use dq_tests::file::Folder;

use crate::batches;
use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::node::{add_innocent_jobs, paused};
use crate::target::Found;

/// The most entries of a directory.
const ENTRIES: u64 = 6;
/// After this long nothing may wait any more, in real time.
const LONGEST: Duration = Duration::from_secs(10);
/// What a buffer notes of itself (`dq/src/provider/buffer/entries.rs`).
const NOTES: [&str; 5] = ["name", "last", "app", "numbers:t", "numbers:u"];

fn topic(app: &str, topic: &str) -> TopicKey {
    let (app, topic) = (AppName::new(app), TopicName::new(topic));
    TopicKey { app: app.expect("it is a name"), topic: topic.expect("it is a name") }
}

/// What an entry has under the codec that a buffer writes.
fn record(draw: &Draw) -> Record {
    let mut metadata = Metadata::default();
    if draw.one_in(3) {
        let written = if draw.one_in(2) { draw.number().to_string() } else { draw.text() };
        metadata.headers.push(("written".to_owned(), written));
    }
    match draw.one_in(12) {
        true => Record::from_bytes(grammar::record(draw).into()),
        false => Record::new(&metadata, Codec::Json, &batches::packed(draw)),
    }
}

fn note(draw: &Draw) -> String {
    let number = || if draw.one_in(2) { draw.number() } else { NOW * 1_000 + draw.below(9) };
    match draw.below(4) {
        0 => draw.text(),
        1 => number().to_string(),
        2 => "test".to_owned(),
        _ => {
            let ahead = draw.number() as i64;
            format!("{} {} {}", number(), number(), if draw.one_in(2) { draw.below(99) as i64 } else { ahead })
        }
    }
}

/// The jobs that an entry with this record adds.
fn adds_of(record: &Record) -> Option<Vec<NewJob>> {
    let (_, batch) = record.payload().ok()?;
    record.metadata().ok()?;
    match Packed::from_bytes(batch.to_vec().into()).batch() {
        Ok(FollowUpBatch::Add(jobs)) => Some(jobs),
        _ => None,
    }
}

/// Writes a directory. Returns how many jobs its sound entries have.
async fn write(draw: &Draw, path: &Path) -> usize {
    let (store, producer) = (FileStore::new(path), ProducerId::new("another program"));
    store.prepare().await.expect("an empty folder opens");
    let (mut number, mut jobs) = (0, BTreeMap::new());
    let mut put = async |key: &TopicKey, id: JobId, record: Record, at| {
        number += 1;
        let job = NewJob { due: Due::At(at), on_duplicate: OnDuplicate::Replace, ..NewJob::new(id, record) };
        let added = store.producer(key, &producer).add(Numbered { number, items: vec![job] }).await;
        added.is_ok()
    };
    for what in NOTES.iter().filter(|_| draw.one_in(4)) {
        let text = Record::new(&Metadata::default(), Codec::Json, note(draw).as_bytes());
        put(&topic("dq-buffer", "own"), JobId::new(*what).expect("it is short"), text, Timestamp::EPOCH).await;
    }
    for n in 0..=draw.below(ENTRIES) {
        let place = if draw.one_in(6) { draw.number() } else { NOW * 1_000 + n };
        let id = match draw.below(12) {
            0 => grammar::id(draw),
            1 => place.to_string(),
            _ => format!("{place:020}"),
        };
        let Ok(id) = JobId::new(id) else { continue };
        let (record, at) = (record(draw), Timestamp::from_millis(place / 1_000));
        let adds = adds_of(&record);
        // Such an add waits for room.
        if adds.iter().flatten().any(|job| job.max_waiting.is_some()) {
            continue;
        }
        let has_place = id.as_str().len() == 20 && id.as_str().parse::<u64>().is_ok();
        let sent = adds.filter(|_| has_place).map_or(0, |jobs| jobs.len());
        let of = topic("test", draw.pick(&["t", "u"]));
        if put(&of, id.clone(), record, at).await {
            jobs.insert((of, id), sent); // the place of one that was there
        }
    }
    jobs.into_values().sum()
}

async fn opened(path: &Path, store: &Arc<dyn Store>) -> Option<Provider> {
    let factory = ContextFactory::new("test").without_inventory().variables([("", ""); 0]);
    factory.store(Arc::clone(store)).buffer(path).buffer_age("3650d").connect().await.ok()
}

/// Lets time pass until nothing waits.
async fn sends(provider: &Provider, found: &mut Found) {
    let start = Instant::now();
    while start.elapsed() < LONGEST {
        if provider.buffer().is_some_and(|buffer| buffer.jobs == 0 && !buffer.is_away) {
            return;
        }
        // What the disk does takes real time.
        tokio::time::advance(Duration::from_millis(20)).await;
        tokio::task::yield_now().await;
    }
    found.lost(format!("the buffer does not send: {:?}", provider.buffer()));
}

/// A provider opens the directory, sends what it has, and takes other jobs; the next one finds nothing to send.
pub fn buffer(draw: &Draw, found: &mut Found) {
    paused(async {
        let folder = Folder::in_memory();
        let jobs = write(draw, folder.path()).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(TokioClock::at(NOW * 1_000))));
        let provider = opened(folder.path(), &store).await;
        found.input(provider.is_some());
        let Some(provider) = provider else { return };
        let of_topic = provider.topic("t").expect("it is a topic");
        let innocent = add_innocent_jobs(&of_topic, "1h", found).await;
        sends(&provider, found).await;
        let health = provider.buffer().expect("it has one");
        if health.sent + health.refused < jobs as u64 {
            found.lost(format!("{jobs} jobs were in the directory: {health:?}"));
        }
        for id in innocent {
            if !matches!(of_topic.get(id.as_str()).await, Ok(Some(_))) {
                found.lost(format!("`{id}` is not there: {health:?}"));
            }
        }
        drop((of_topic, provider));
        match opened(folder.path(), &store).await {
            Some(again) if again.buffer().is_some_and(|buffer| buffer.jobs == 0) => {}
            Some(again) => found.lost(format!("it waits again: {:?}", again.buffer())),
            None => found.lost("the directory does not open again"),
        }
    });
}
