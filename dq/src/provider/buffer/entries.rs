//! The entries of a buffer in its directory, which is a `file:` store: an entry is a job of the topic that it is for, and nothing runs it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use super::state::{BufferState, Size, Written};
use crate::environment::Environment;
use crate::job::limits::{DUE, POSITION};
use crate::job::{AppName, Codec, JobId, Metadata, ProducerId, Record, State, TopicKey, TopicName};
use crate::provider::RefusedJob;
use crate::store::step::{DEFAULT_BYTES, MAX_JOBS};
use crate::store::{
    BatchAnswer, Command, CommandKind, Cursor, Due, FollowUpBatch, NewJob, Numbered, OnDuplicate, OutboxEntry,
    OutboxPosition, Packed, Page, PageRequest, Pending, Store, StoreError, Stored,
};
use crate::time::Timestamp;

/// How many entries are read and sent at once.
const AT_ONCE: usize = 64;

/// Texts of the directory itself: the name under which the store knows it, the last place, whose adds it has, and, in front of the name of a topic,
/// which numbers were given out for it.
const NAME: &str = "name";
const LAST: &str = "last";
const APP: &str = "app";
const NUMBERS: &str = "numbers:";

/// No place follows a clock above this one: no job may be due then.
const LAST_PLACE: u64 = DUE.most * 1_000;

/// The header of an entry that was not written at the time of its place: when it was, in ms.
const WRITTEN: &str = "written";

/// The app under which the directory keeps what cannot be read, each in the topic that it was for.
const ASIDE: &str = "dq-set-aside";

/// The entries of a buffer.
#[derive(Debug)]
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
#[derive(Debug)]
struct Numbers(ProducerId, AtomicU64);

impl Numbers {
    fn new(environment: &Environment) -> Self {
        Self(environment.producer_id(), AtomicU64::new(0))
    }

    fn of<T>(&self, items: Vec<T>) -> Numbered<T> {
        Numbered { number: self.1.fetch_add(1, Relaxed) + 1, items }
    }
}

/// An entry as it was read.
#[derive(Debug, Clone)]
pub(super) struct Read {
    /// Its place in the directory.
    pub(super) place: u64,
    /// When it was written, by the clock of the program.
    pub(super) written: Timestamp,
    pub(super) batch: Packed,
    pub(super) size: Size,
}

/// The entries for a topic up to this place have numbers, and the last of them has this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) place: u64,
    pub(super) number: u64,
    /// By how many ms the store's clock was ahead of the clock of the program. An entry that is sent again keeps its position by that.
    pub(super) ahead: i64,
}

impl Given {
    /// When an entry was written, by the store's clock, in µs.
    pub(super) fn written(self, read: &Read) -> u64 {
        read.written.as_millis().saturating_add_signed(self.ahead).saturating_mul(1_000)
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.place, self.number, self.ahead)
    }
}

impl Read {
    /// The entry at its position, behind another one.
    pub(super) fn entry(&self, topic: &TopicKey, position: OutboxPosition, after: OutboxPosition) -> OutboxEntry {
        OutboxEntry { target: topic.topic.clone(), position, after, batch: self.batch.clone() }
    }
}

impl Entries {
    /// Reads what waits for an app.
    pub(super) async fn open(
        directory: Arc<dyn Store>,
        app: &AppName,
        environment: &Environment,
    ) -> Result<(Self, BufferState), StoreError> {
        let known = directory.get(&own_key(), &[id_of(NAME), id_of(LAST), id_of(APP)]).await?;
        let known: Vec<_> = known.iter().map(|stored| stored.as_ref().and_then(text_of)).collect();
        let [name, last, of_app] = &known[..] else { return Err(damaged("it does not answer")) };
        if let Some(other) = of_app.as_deref().filter(|known| *known != app.as_str()) {
            return Err(damaged(&format!("it has adds of app `{other}`, and each app needs a directory of its own")));
        }
        let known = name.as_ref().and_then(|name| TopicName::new(name).ok());
        if let Some(name) = name.as_ref().filter(|_| known.is_none()) {
            tracing::warn!(
                name,
                "the buffer has an invalid name, and gets another one: adds that were on their way may be done twice"
            );
        }
        let new = || TopicName::new(format!("buffer-{}", environment.random_text())).expect("it is a name");
        let (writer, sender) = (Numbers::new(environment), Numbers::new(environment));
        let entries = Self { directory, name: known.clone().unwrap_or_else(new), writer, sender };
        if known.is_none() {
            entries.note(NAME, entries.name.as_str()).await?;
            entries.note(APP, app.as_str()).await?;
        }
        let last = last.as_ref().and_then(|last| last.parse().ok()).filter(|last| *last <= LAST_PLACE).unwrap_or(0);
        let mut state = BufferState::behind(last);
        for topic in entries.directory.topics(app).await? {
            entries.load(&TopicKey { app: app.clone(), topic }, &mut state, environment.wall()).await?;
        }
        if !state.topics().is_empty() {
            state.goes_away(environment.now());
        }
        Ok((entries, state))
    }

    /// Reads what waits for a topic. What another program or a later version wrote, and this one cannot read, is set aside.
    async fn load(&self, topic: &TopicKey, state: &mut BufferState, now: Timestamp) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.page(topic, after, MAX_JOBS).await?;
            for stored in &page.jobs {
                match read(stored) {
                    Ok(read) => {
                        state.note(topic, read.place, read.size);
                        state.knows(topic);
                    }
                    Err(error) => {
                        self.set_aside(topic, stored).await?;
                        let (entry, topic, cause) = (&stored.id, &topic.topic, error.to_string());
                        tracing::warn!(%topic, %entry, cause, "an entry of the buffer cannot be read: its adds are not sent, and the directory keeps it under app `{ASIDE}`");
                        state.refuse(RefusedJob::new(topic, &format!("entry {entry}"), cause, now));
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Moves an entry to where nothing is sent: it is there first, so it is never lost.
    async fn set_aside(&self, topic: &TopicKey, stored: &Stored) -> Result<(), StoreError> {
        let aside = TopicKey { app: AppName::new(ASIDE).expect("it is a name"), topic: topic.topic.clone() };
        let job = waiting(stored.id.clone(), stored.record.clone(), Timestamp::EPOCH);
        let producer = self.directory.producer(&aside, &self.sender.0);
        done(&producer.add(self.sender.of(vec![job])).await?)?;
        self.delete(topic, vec![stored.id.clone()]).await
    }

    pub(super) fn url(&self) -> String {
        self.directory.url()
    }

    /// Writes an entry, behind those that were written before. The caller holds a lock, so that they come in order.
    pub(super) fn write(&self, topic: &TopicKey, written: &Written) -> Pending<()> {
        let at = Timestamp::floor_micros(written.place);
        let mut metadata = Metadata::default();
        if at != written.at {
            // The clock of the program fell back: places, by which entries are read, do not.
            metadata.headers.push((WRITTEN.to_owned(), written.at.as_millis().to_string()));
        }
        let job = new(entry_id(written.place), &metadata, written.batch.as_bytes(), at);
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
        let page = self.page(topic, None, AT_ONCE).await?;
        page.jobs.iter().map(read).collect()
    }

    /// Which numbers were given out last for a topic, of which no entry has a place above `last`. What another program wrote there holds up nothing.
    pub(super) async fn numbers(&self, topic: &TopicKey, last: u64) -> Result<Option<Given>, StoreError> {
        let known = self.directory.get(&own_key(), &[numbers_id(topic)]).await?;
        let Some(known) = known.into_iter().flatten().next() else { return Ok(None) };
        let given = text_of(&known).and_then(|text| {
            let mut parts = text.split(' ');
            let (place, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let given = Given { place, number, ahead: parts.next()?.parse().ok()? };
            // Numbers follow a clock, and up to this many entries have one.
            let is_one = (AT_ONCE as u64..=POSITION.most).contains(&number) && place <= last;
            is_one.then_some(given)
        });
        if given.is_none() {
            let topic = &topic.topic;
            tracing::warn!(%topic, "the buffer cannot read which numbers it gave out: adds that were on their way may be done twice");
        }
        Ok(given)
    }

    /// Keeps which numbers are given out, before an entry is sent under one.
    pub(super) async fn keep_numbers(&self, topic: &TopicKey, given: Given) -> Result<(), StoreError> {
        self.note_at(numbers_id(topic), &given.to_string()).await
    }

    /// Removes entries. No later one gets `last` or a smaller place.
    pub(super) async fn remove(&self, topic: &TopicKey, gone: &[u64], last: u64) -> Result<(), StoreError> {
        self.note(LAST, &last.to_string()).await?;
        self.delete(topic, gone.iter().map(|place| entry_id(*place)).collect()).await
    }

    async fn delete(&self, topic: &TopicKey, ids: Vec<JobId>) -> Result<(), StoreError> {
        let items = ids.into_iter().map(|id| Command::new(CommandKind::Delete, id)).collect();
        let producer = self.directory.producer(topic, &self.sender.0);
        done(&producer.command(self.sender.of(items)).await?)
    }

    /// Keeps a text of the directory itself.
    async fn note(&self, what: &str, text: &str) -> Result<(), StoreError> {
        self.note_at(id_of(what), text).await
    }

    async fn note_at(&self, id: JobId, text: &str) -> Result<(), StoreError> {
        let job = new(id, &Metadata::default(), text.as_bytes(), Timestamp::EPOCH);
        let producer = self.directory.producer(&own_key(), &self.sender.0);
        done(&producer.add(self.sender.of(vec![job])).await?)
    }

    async fn page(&self, topic: &TopicKey, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let request = PageRequest { state: State::Delayed, after, limit, bytes: DEFAULT_BYTES };
        self.directory.page(topic, request).await
    }
}

/// Where these are.
fn own_key() -> TopicKey {
    let (app, topic) = (AppName::new("dq-buffer"), TopicName::new("own"));
    TopicKey { app: app.expect("it is a name"), topic: topic.expect("it is a name") }
}

/// An entry sorts by its place.
fn entry_id(place: u64) -> JobId {
    id_of(&format!("{place:020}"))
}

fn numbers_id(topic: &TopicKey) -> JobId {
    id_of(&format!("{NUMBERS}{}", topic.topic))
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
fn new(id: JobId, metadata: &Metadata, bytes: &[u8], at: Timestamp) -> NewJob {
    waiting(id, Record::new(metadata, Codec::Json, bytes), at)
}

fn waiting(id: JobId, record: Record, at: Timestamp) -> NewJob {
    NewJob { due: Due::At(at), on_duplicate: OnDuplicate::Replace, ..NewJob::new(id, record) }
}

fn text_of(stored: &Stored) -> Option<String> {
    String::from_utf8(stored.record.payload().ok()?.1.to_vec()).ok()
}

fn read(stored: &Stored) -> Result<Read, StoreError> {
    // What has its place in another form is not removed under it.
    let place = stored.id.as_str().parse().ok();
    let place = place.filter(|place| entry_id(*place) == stored.id && *place <= LAST_PLACE);
    let place = place.ok_or_else(|| damaged("an entry has no place"))?;
    let headers = stored.record.metadata().map_err(|_| damaged("an entry does not decode"))?.headers;
    let header = headers.iter().find(|(name, _)| name == WRITTEN).and_then(|(_, value)| value.parse().ok());
    let written = header.map_or_else(|| Timestamp::floor_micros(place), Timestamp::from_millis);
    let (_, payload) = stored.record.payload().map_err(|_| damaged("an entry does not decode"))?;
    let (bytes, batch) = (payload.len(), Packed::from_bytes(Bytes::copy_from_slice(payload)));
    let mut read = Read { place, written, batch, size: Size { jobs: 0, bytes } };
    // A buffer takes adds alone.
    let FollowUpBatch::Add(jobs) = read.batch.batch()? else {
        return Err(damaged("an entry is not an add"));
    };
    read.size.jobs = jobs.len();
    Ok(read)
}

fn damaged(what: &str) -> StoreError {
    StoreError::Other {
        operation: "buffer",
        source: format!("the directory is not a buffer of this program: {what}").into(),
    }
}
