//! The directory of topics, which is for people: nothing is decided by it.
//!
//! A listing leaves out what holds nothing, and the directory then forgets it, so that it does not grow with every name that an app
//! ever used. The script that forgets checks and removes in one step, so only an add that finds its topic empty must enter it
//! ([`Entry`]): with an `SADD` behind the step in the same write. A producer sends it behind its first batch, behind one a minute, and
//! behind each while its batches find the topic empty. A batch that finds it empty otherwise is repeated with the `SADD` behind it.
//!
//! That script is the only one whose keys have several hash tags. A cluster would refuse it; there the directory would only grow,
//! because the listing itself needs no script.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::mpsc;

use super::RedisStore;
use super::keys::{Key, Keyspace};
use super::queries::Queries;
use super::reply::{Reply, malformed};
use crate::environment::{Boottime, Clock};
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::StoreError;

/// How many topics a query lists at most.
const MOST_TOPICS: usize = 10_000;

/// About how many names one command reads, and how many topics one write asks for.
const PAGE: usize = 1_000;

/// How many topics one script forgets at most, and how many are forgotten after one listing.
const FORGOTTEN_AT_ONCE: usize = 500;
const MOST_FORGOTTEN: usize = 50_000;

const FORGET: &str = include_str!("lua/forget.lua");

/// When a producer enters its topic again that holds jobs: another producer may have ended before it entered the topic.
const ENTER_AGAIN: Duration = Duration::from_secs(60);

/// Enters the topic of a producer.
#[derive(Debug)]
pub(super) struct Entry {
    command: Arc<Cmd>,
    /// The last batch behind which the topic was entered; `None` if the next batch must enter it.
    entered: Mutex<Option<Duration>>,
}

impl Entry {
    pub(super) fn new(keyspace: &Keyspace, topic: &TopicKey) -> Self {
        let mut cmd = redis::cmd("SADD");
        cmd.arg(keyspace.directory(topic.app.as_str())).arg(topic.topic.as_str());
        Self { command: Arc::new(cmd), entered: Mutex::new(None) }
    }

    /// The command that enters the topic.
    pub(super) fn command(&self) -> Arc<Cmd> {
        Arc::clone(&self.command)
    }

    fn entered(&self) -> MutexGuard<'_, Option<Duration>> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, if the next batch must enter the topic.
    pub(super) fn due(&self) -> Option<Duration> {
        let now = Boottime.now();
        self.entered().is_none_or(|at| now >= at + ENTER_AGAIN).then_some(now)
    }

    /// The time, for a batch that must enter the topic although none was due.
    pub(super) fn urgent(&self) -> Duration {
        Boottime.now()
    }

    /// A batch from `at` was done, and entered the topic. A producer whose batches meet an empty topic enters it behind each.
    pub(super) fn done(&self, at: Duration, was_empty: bool) {
        *self.entered() = Some(at).filter(|_| !was_empty);
    }
}

impl RedisStore {
    /// The topics that hold any job or broadcast, in order. The directory forgets the others, in the background.
    pub(super) async fn topics_of(&self, app: &AppName) -> Result<Vec<TopicName>, StoreError> {
        let (mut held, mut cursor) = (Vec::new(), "0".to_owned());
        let mut forgetting = Forgetting { left: MOST_FORGOTTEN, task: None };
        loop {
            let names;
            (cursor, names) = self.page_of_names(app, &cursor).await?;
            // A page can be longer than it should: a server sends a small set whole.
            for names in names.chunks(PAGE) {
                let empty = self.without_held(app, names, &mut held).await?;
                forgetting.take(self, app, empty);
            }
            if cursor == "0" || held.len() >= MOST_TOPICS {
                break;
            }
        }
        held.sort();
        held.dedup(); // a scan can name a topic twice
        held.truncate(MOST_TOPICS);
        Ok(held)
    }

    /// A page of names, and where the next one begins.
    async fn page_of_names(&self, app: &AppName, cursor: &str) -> Result<(String, Vec<TopicName>), StoreError> {
        let mut cmd = redis::cmd("SSCAN");
        cmd.arg(self.keyspace.directory(app.as_str())).arg(cursor).arg("COUNT").arg(PAGE);
        let mut page = Reply::list("topics", self.queries.command("topics", &cmd).await?)?;
        let (next, mut texts) = (page.text()?, page.nested()?);
        let mut names = Vec::with_capacity(texts.len());
        while texts.len() > 0 {
            names.extend(TopicName::new(texts.text()?).ok());
        }
        Ok((next, names))
    }

    /// Adds those of `names` that hold anything to `held`, with one write. Returns the others.
    async fn without_held(
        &self,
        app: &AppName,
        names: &[TopicName],
        held: &mut Vec<TopicName>,
    ) -> Result<Vec<TopicName>, StoreError> {
        let mut empty = Vec::new();
        let mut asked = redis::Pipeline::with_capacity(names.len());
        for name in names {
            asked.cmd("EXISTS").arg(&records_of(&self.keyspace, app, name));
        }
        let answers = self.queries.commands("topics", &asked).await?;
        if answers.len() != names.len() {
            return Err(malformed("topics", "it has another number of answers"));
        }
        for (name, answer) in names.iter().zip(answers) {
            let list = if answer == Value::Int(0) { &mut empty } else { &mut *held };
            list.push(name.clone());
        }
        Ok(empty)
    }
}

/// The task that forgets what a listing finds empty. It goes on when nobody waits for the listing any more.
struct Forgetting {
    /// How many more names it takes.
    left: usize,
    task: Option<mpsc::UnboundedSender<Vec<TopicName>>>,
}

impl Forgetting {
    fn take(&mut self, store: &RedisStore, app: &AppName, mut names: Vec<TopicName>) {
        names.truncate(self.left);
        self.left -= names.len();
        if names.is_empty() {
            return;
        }
        let task = self.task.get_or_insert_with(|| {
            let (task, received) = mpsc::unbounded_channel();
            super::spawn(forget(Arc::clone(&store.queries), store.keyspace.clone(), app.clone(), received));
            task
        });
        // The task ends early only after an error, which it has logged.
        drop(task.send(names));
    }
}

/// The keys that exist exactly while the topic holds a job or a broadcast.
fn records_of(keyspace: &Keyspace, app: &AppName, topic: &TopicName) -> [String; 3] {
    let keys = keyspace.of(&TopicKey { app: app.clone(), topic: topic.clone() });
    [Key::Jobs, Key::FarJobs, Key::BroadcastJobs].map(|key| keys.name(key, ""))
}

/// Removes those of these topics from the directory that still hold nothing. An error leaves names behind that harm nobody.
async fn forget(
    queries: Arc<Queries>,
    keyspace: Keyspace,
    app: AppName,
    mut received: mpsc::UnboundedReceiver<Vec<TopicName>>,
) {
    while let Some(topics) = received.recv().await {
        for topics in topics.chunks(FORGOTTEN_AT_ONCE) {
            let mut cmd = redis::cmd("EVAL");
            cmd.arg(FORGET).arg(1 + 3 * topics.len()).arg(keyspace.directory(app.as_str()));
            for topic in topics {
                cmd.arg(&records_of(&keyspace, &app, topic));
            }
            for topic in topics {
                cmd.arg(topic.as_str());
            }
            if let Err(error) = queries.command("forget", &cmd).await {
                tracing::debug!(%app, %error, "the directory keeps names of topics that hold nothing");
                return;
            }
        }
    }
}
