//! The directory of topics, which is for people: nothing is decided by it.
//!
//! It is a ZSET whose members all have the score 0, so it is read in the order of its names, from any name on. A listing leaves out
//! what holds nothing, and the directory forgets it in the same step, so that it does not grow with every name that an app ever used.
//! The script that forgets checks and removes at once, so only an add that finds its topic empty must enter it ([`Entry`]): with a
//! `ZADD` behind the step in the same write. A producer sends it behind its first batch, behind one a minute, and behind each while
//! its batches find the topic empty. A batch that finds it empty otherwise is repeated with the `ZADD` behind it.
//!
//! That script is the only one whose keys have several hash tags. A cluster would refuse it, and with it the listing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Cmd;

use super::RedisStore;
use super::keys::{Key, Keyspace};
use super::reply::Reply;
use crate::environment::{Boottime, Clock};
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::{MOST_NAMES, StoreError, TopicNames};

const HELD: &str = include_str!("lua/held.lua");

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
        let mut cmd = redis::cmd("ZADD");
        cmd.arg(keyspace.directory(topic.app.as_str())).arg(0).arg(topic.topic.as_str());
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
    /// A page of the topics that hold any job or broadcast. The directory forgets the others that it looked at. It costs two commands.
    pub(super) async fn names_behind(
        &self,
        app: &AppName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<TopicNames, StoreError> {
        let directory = self.keyspace.directory(app.as_str());
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(&directory).arg(from).arg("+").arg("BYLEX").arg("LIMIT").arg(0).arg(MOST_NAMES);
        let mut read = Reply::list("topics", self.queries.command("topics", &cmd).await?)?;
        let (mut known, mut last, is_full) = (Vec::new(), None, read.len() == MOST_NAMES);
        while read.len() > 0 {
            let name = read.text()?;
            // Only another program enters what is no name.
            known.extend(TopicName::new(name.as_str()).ok());
            last = Some(name);
        }
        if known.is_empty() {
            return Ok(TopicNames { names: Vec::new(), next: last.filter(|_| is_full) });
        }
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(HELD).arg(1 + 5 * known.len()).arg(&directory);
        for name in &known {
            cmd.arg(&records_of(&self.keyspace, app, name));
        }
        cmd.arg(limit.max(1));
        for name in &known {
            cmd.arg(name.as_str());
        }
        let mut held = Reply::list("topics", self.queries.command("topics", &cmd).await?)?;
        let looked_at = held.count()?;
        let mut names = Vec::with_capacity(held.len());
        while held.len() > 0 {
            names.extend(TopicName::new(held.text()?).ok());
        }
        let next = match known.get(looked_at.saturating_sub(1)) {
            Some(until) if looked_at < known.len() => Some(until.to_string()),
            _ => last.filter(|_| is_full),
        };
        Ok(TopicNames { names, next })
    }
}

/// The keys that exist exactly while the topic holds a job, a broadcast, a follow-up or a job set.
fn records_of(keyspace: &Keyspace, app: &AppName, topic: &TopicName) -> [String; 5] {
    let keys = keyspace.of(&TopicKey { app: app.clone(), topic: topic.clone() });
    [Key::Jobs, Key::FarJobs, Key::BroadcastJobs, Key::Sets, Key::Outbox].map(|key| keys.name(key, ""))
}
