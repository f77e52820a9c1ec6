//! The directory of topics, which is for people: nothing is decided by it.
//!
//! An add enters its topic: the `SADD` is behind the step of the add in the same write ([`entry`]). A listing leaves out what holds
//! nothing, and the directory then forgets it, so that it does not grow with every name that an app ever used. The script that
//! forgets checks and removes in one step, and an add behind it enters the topic again.
//!
//! That script is the only one whose keys have several hash tags. A cluster would refuse it; there the directory would only grow,
//! because the listing itself needs no script.

use std::sync::Arc;

use redis::{Cmd, Value};
use tokio::sync::mpsc;

use super::RedisStore;
use super::keys::{Key, Keyspace};
use super::queries::Queries;
use super::reply::{Reply, malformed};
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

/// The command that enters a topic.
pub(super) fn entry(keyspace: &Keyspace, topic: &TopicKey) -> Cmd {
    let mut cmd = redis::cmd("SADD");
    cmd.arg(keyspace.directory(topic.app.as_str())).arg(topic.topic.as_str());
    cmd
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
fn records_of(keyspace: &Keyspace, app: &AppName, topic: &TopicName) -> [String; 2] {
    let keys = keyspace.of(&TopicKey { app: app.clone(), topic: topic.clone() });
    [keys.name(Key::Jobs, ""), keys.name(Key::BroadcastJobs, "")]
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
            cmd.arg(FORGET).arg(1 + 2 * topics.len()).arg(keyspace.directory(app.as_str()));
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
