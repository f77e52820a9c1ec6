//! The directory of topics, which is for people: nothing is decided by it.
//!
//! It is a ZSET whose members all have the score 0, so it is read in the order of its names, from any name on. A listing asks each topic
//! whether it holds anything and leaves out what does not. The directory forgets that, so that it does not grow with every name that an
//! app ever used, unless it was entered within the two minutes before the listing. A producer enters its topic with its first batch and with
//! one a minute, and its batches are answered after that. So a topic that was empty when a listing looked, and holds a job since, stays.
//!
//! The directory and each topic are in other slots of a cluster, so no script touches two of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};

use super::RedisStore;
use super::keys::{Key, Keyspace};
use super::reply::Text;
use super::scripts::body;
use super::shards::Shards;
use crate::environment::{Boottime, Clock};
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::{MAX_NAMES, StoreError, TopicNames};

const ENTER: &str = include_str!("lua/enter.lua");
const LISTED: &str = include_str!("lua/listed.lua");
const UNLIST: &str = include_str!("lua/unlist.lua");

/// When a producer enters its topic again.
const ENTER_AGAIN: Duration = Duration::from_secs(60);

/// How long a batch waits for that, and when another one tries again what failed: in a cluster the directory is on another server than most
/// topics, and must not hold these up.
const ENTER_WITHIN: Duration = Duration::from_secs(1);
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// For how long after it was entered a topic stays, though it holds nothing. A batch may be on its way for the rest of this time.
const STAYS: Duration = Duration::from_secs(120);
const _: () = assert!(STAYS.as_secs() > ENTER_AGAIN.as_secs());

/// Enters the topic of a producer.
#[derive(Debug)]
pub(super) struct DirectoryEntry {
    shards: Arc<Shards>,
    command: Cmd,
    /// When the topic was entered last, at the earliest.
    entered: Mutex<Option<Duration>>,
    /// Since when an answer waits for that, while one does.
    waits_since: Mutex<Weak<Duration>>,
}

fn lock<T>(time: &Mutex<T>) -> MutexGuard<'_, T> {
    time.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DirectoryEntry {
    pub(super) fn new(shards: Arc<Shards>, keyspace: &Keyspace, topic: &TopicKey) -> Self {
        Self { shards, command: enter(keyspace, topic), entered: Mutex::default(), waits_since: Mutex::default() }
    }

    /// The time, if a batch must enter the topic now.
    fn due(&self) -> Option<Duration> {
        let now = Boottime.now();
        lock(&self.entered).is_none_or(|at| now >= at + ENTER_AGAIN).then_some(now)
    }

    pub(super) fn is_due(&self) -> bool {
        self.due().is_some()
    }

    /// For how long an answer has waited for that: it may be stuck on a runtime whose threads are blocked.
    pub(super) fn silent_for(&self) -> Duration {
        lock(&self.waits_since).upgrade().map_or(Duration::ZERO, |since| Boottime.now().saturating_sub(*since))
    }

    /// When the first of the answers that wait now began to wait. All of them share this time.
    fn waits_since(&self, now: Duration) -> Arc<Duration> {
        let mut since = lock(&self.waits_since);
        since.upgrade().unwrap_or_else(|| {
            let first = Arc::new(now);
            *since = Arc::downgrade(&first);
            first
        })
    }

    /// Enters the topic if that is due, before this answer to a batch of jobs goes to its caller; an error means that there is none, or that
    /// the batch comes again. None fails because the directory cannot be reached, but lists may not show the topic meanwhile.
    pub(super) async fn before<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Some(now) = self.due()
            && matches!(answer, Ok(_) | Err(StoreError::NotReplicated { .. }))
        {
            let _waits = self.waits_since(now);
            let is_entered = tokio::select! {
                biased;
                entered = self.shards.command("enter", &self.command) => !entered.is_err_and(|error| error.is_outage()),
                () = Boottime.sleep_until(now + ENTER_WITHIN) => false,
            };
            *lock(&self.entered) = if is_entered { Some(now) } else { (now + TRY_AGAIN).checked_sub(ENTER_AGAIN) };
        }
        answer
    }
}

/// The command that enters a topic. It answers 1 if the topic was not there.
pub(super) fn enter(keyspace: &Keyspace, topic: &TopicKey) -> Cmd {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(body(ENTER)).arg(2).arg(&keyspace.directory(topic.app.as_str())).arg(topic.topic.as_str());
    cmd
}

impl RedisStore {
    /// A page of the topics that hold any job or broadcast. The directory forgets the others that it looked at. It costs a command, one for
    /// each topic that it looks at, and one if any of these holds nothing.
    pub(super) async fn names_behind(
        &self,
        app: &AppName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<TopicNames, StoreError> {
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(body(LISTED)).arg(1).arg(&self.keyspace.directory(app.as_str())[0]).arg(from).arg(MAX_NAMES);
        let (clock, read): (u64, Vec<Text>) = self.shards.list("topics", &cmd).await?.whole()?;
        // Only another program enters what is no name.
        let known: Vec<_> = read.iter().filter_map(|Text(name)| TopicName::stored(name).ok()).collect();
        let (limit, is_full) = (limit.max(1), read.len() == MAX_NAMES);
        let (mut names, mut empty, mut left, mut size) = (Vec::new(), Vec::new(), known.as_slice(), limit);
        while names.len() < limit && !left.is_empty() {
            let (some, _) = left.split_at(size.min(left.len()));
            for (name, holds_any) in some.iter().zip(self.hold_any(app, some).await?) {
                let found = if holds_any { &mut names } else { &mut empty };
                found.push(name.clone());
                left = &left[1..];
                if names.len() == limit {
                    break;
                }
            }
            size *= 2;
        }
        self.unlist(app, clock.saturating_sub(STAYS.as_secs()), &empty).await;
        let next = match known.len().checked_sub(left.len() + 1) {
            Some(at) if !left.is_empty() => Some(known[at].to_string()),
            _ => read.into_iter().last().filter(|_| is_full).map(|Text(name)| name),
        };
        Ok(TopicNames { names, next })
    }

    /// Which of these topics hold a job, a broadcast, a follow-up or a job set.
    async fn hold_any(&self, app: &AppName, topics: &[TopicName]) -> Result<Vec<bool>, StoreError> {
        const RECORDS: [Key; 5] = [Key::Jobs, Key::FarJobs, Key::BroadcastJobs, Key::Sets, Key::Outbox];
        let mut commands = Pipeline::with_capacity(topics.len());
        for topic in topics {
            let keys = self.keyspace.of(&TopicKey { app: app.clone(), topic: topic.clone() });
            commands.cmd("EXISTS").arg(&RECORDS.map(|key| keys.name(key, "")));
        }
        let found = self.shards.commands("topics", &commands).await?;
        Ok(found.iter().map(|count| *count != Value::Int(0)).collect())
    }

    /// The directory forgets these topics, unless they were entered after `before`, s.
    async fn unlist(&self, app: &AppName, before: u64, empty: &[TopicName]) {
        if empty.is_empty() {
            return;
        }
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(body(UNLIST)).arg(2).arg(&self.keyspace.directory(app.as_str())).arg(before);
        empty.iter().for_each(|name| _ = cmd.arg(name.as_str()));
        // A user who may only read changes nothing; the names stay, and harm no listing.
        drop(self.shards.command("topics", &cmd).await);
    }
}
