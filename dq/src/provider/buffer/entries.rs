//! The entries of a buffer in its directory, which is a `file:` store: an entry is a job of the topic that it is for, and nothing runs it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use super::state::{Size, State, Written};
use crate::environment::Environment;
use crate::job::{AppName, Codec, JobId, Metadata, ProducerId, Record, State as JobState, TopicKey, TopicName};
use crate::store::step::{MOST_JOBS, USUAL_BYTES};
use crate::store::{
    BatchAnswer, Command, CommandKind, Cursor, Due, NewJob, Numbered, OnDuplicate, OutboxEntry, Packed, PageRequest,
    Pending, Store, StoreError, Stored,
};
use crate::time::Timestamp;

/// How many entries are read and sent at once.
const AT_ONCE: usize = 64;

/// Texts of the directory itself: the name under which the store knows it, its last position, and whose adds it has.
const NAME: &str = "name";
const LAST: &str = "last";
const APP: &str = "app";

/// The entries of a buffer.
pub(super) struct Entries {
    directory: Arc<dyn Store>,
    /// The name under which the store knows the directory.
    pub(super) name: TopicName,
    /// Numbers the entries.
    writer: Numbers,
    /// Numbers what the sender does.
    sender: Numbers,
}

/// A producer of the directory, whose batches come in the order of their numbers.
struct Numbers(ProducerId, AtomicU64);

impl Numbers {
    fn new(environment: &Environment) -> Self {
        Self(environment.producer_id(), AtomicU64::new(0))
    }

    fn of<T>(&self, items: Vec<T>) -> Numbered<T> {
        Numbered { number: self.1.fetch_add(1, Relaxed) + 1, items }
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").field("directory", &self.directory.url()).field("name", &self.name).finish()
    }
}

/// An entry as it was read.
#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) entry: OutboxEntry,
    pub(super) size: Size,
}

impl Entries {
    /// Reads what waits for an app.
    pub(super) async fn open(
        directory: Arc<dyn Store>,
        app: &AppName,
        environment: &Environment,
    ) -> Result<(Self, State), StoreError> {
        let known = directory.get(&own_key(), &[id_of(NAME), id_of(LAST), id_of(APP)]).await?;
        let known: Vec<_> = known.iter().map(|stored| stored.as_ref().and_then(text_of)).collect();
        let [name, last, of_app] = &known[..] else { return Err(damaged("it does not answer")) };
        if let Some(other) = of_app.as_deref().filter(|known| *known != app.as_str()) {
            return Err(damaged(&format!("it has adds of app `{other}`, and each app needs a directory of its own")));
        }
        let chosen = name.clone().unwrap_or_else(|| format!("buffer-{}", environment.random_text()));
        let chosen = TopicName::new(chosen).map_err(|_| damaged("its name is none"))?;
        let (writer, sender) = (Numbers::new(environment), Numbers::new(environment));
        let entries = Self { directory, name: chosen, writer, sender };
        if name.is_none() {
            entries.note(NAME, entries.name.as_str()).await?;
            entries.note(APP, app.as_str()).await?;
        }
        let last = last.as_ref().and_then(|last| last.parse().ok()).unwrap_or(0);
        let mut state = State::behind(last);
        for topic in entries.directory.topics(app).await? {
            entries.load(&TopicKey { app: app.clone(), topic }, &mut state).await?;
        }
        if !state.topics().is_empty() {
            state.goes_away(environment.now());
        }
        Ok((entries, state))
    }

    async fn load(&self, topic: &TopicKey, state: &mut State) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let (page, next) = self.page(topic, after, MOST_JOBS).await?;
            for read in page {
                state.note(topic, read.entry.position, read.size);
                state.knows(topic);
            }
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    pub(super) fn url(&self) -> String {
        self.directory.url()
    }

    /// Writes an entry, behind those that were written before. The caller holds a lock, so that they come in order.
    pub(super) fn write(&self, topic: &TopicKey, written: &Written) -> Pending<()> {
        let at = Timestamp::floor_micros(written.position);
        let job = new(entry_id(written.position), written.batch.as_bytes(), at);
        let producer = self.directory.producer(topic, &self.writer.0);
        let answer = producer.add(self.writer.of(vec![job]));
        Box::pin(async move {
            let answer = answer.await;
            drop(producer);
            done(&answer?)
        })
    }

    /// The first entries for a topic.
    pub(super) async fn first(&self, topic: &TopicKey) -> Result<Vec<Read>, StoreError> {
        Ok(self.page(topic, None, AT_ONCE).await?.0)
    }

    /// Removes entries. No later one gets `last` or a smaller position.
    pub(super) async fn remove(&self, topic: &TopicKey, gone: &[u64], last: u64) -> Result<(), StoreError> {
        self.note(LAST, &last.to_string()).await?;
        let delete = |position: &u64| Command::new(CommandKind::Delete, entry_id(*position));
        let items = gone.iter().map(delete).collect();
        let producer = self.directory.producer(topic, &self.sender.0);
        done(&producer.command(self.sender.of(items)).await?)
    }

    /// Keeps a text of the directory itself.
    async fn note(&self, what: &str, text: &str) -> Result<(), StoreError> {
        let job = new(id_of(what), text.as_bytes(), Timestamp::EPOCH);
        let producer = self.directory.producer(&own_key(), &self.sender.0);
        done(&producer.add(self.sender.of(vec![job])).await?)
    }

    async fn page(
        &self,
        topic: &TopicKey,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Read>, Option<Cursor>), StoreError> {
        let request = PageRequest { state: JobState::Delayed, after, limit, bytes: USUAL_BYTES };
        let page = self.directory.page(topic, request).await?;
        let read = page.jobs.iter().map(|stored| read(topic, stored)).collect::<Result<_, _>>()?;
        Ok((read, page.next))
    }
}

/// Where these are.
fn own_key() -> TopicKey {
    let (app, topic) = (AppName::new("dq-buffer"), TopicName::new("own"));
    TopicKey { app: app.expect("it is a name"), topic: topic.expect("it is a name") }
}

/// An entry sorts by its position.
fn entry_id(position: u64) -> JobId {
    id_of(&format!("{position:020}"))
}

/// A batch that the directory passed over was not done.
fn done<T>(answer: &BatchAnswer<T>) -> Result<(), StoreError> {
    match answer {
        BatchAnswer::Done(_) => Ok(()),
        BatchAnswer::Late => Err(damaged("another program uses it")),
    }
}

fn id_of(text: &str) -> JobId {
    JobId::new(text).expect("it is short")
}

/// A job of the directory.
fn new(id: JobId, bytes: &[u8], at: Timestamp) -> NewJob {
    let record = Record::new(&Metadata::default(), Codec::Json, bytes);
    NewJob { due: Due::At(at), on_duplicate: OnDuplicate::Replace, ..NewJob::new(id, record) }
}

fn text_of(stored: &Stored) -> Option<String> {
    String::from_utf8(stored.record.payload().ok()?.1.to_vec()).ok()
}

fn read(topic: &TopicKey, stored: &Stored) -> Result<Read, StoreError> {
    let position = stored.id.as_str().parse().map_err(|_| damaged("an entry has no position"))?;
    let (_, payload) = stored.record.payload().map_err(|_| damaged("an entry does not decode"))?;
    let (bytes, batch) = (payload.len(), Packed::from_bytes(Bytes::copy_from_slice(payload)));
    let entry = OutboxEntry { target: topic.topic.clone(), position, after: 0, batch };
    let jobs = entry.batch()?.len();
    Ok(Read { entry, size: Size { jobs, bytes } })
}

fn damaged(what: &str) -> StoreError {
    StoreError::Other {
        operation: "buffer",
        source: format!("the directory is no buffer of this program: {what}").into(),
    }
}
