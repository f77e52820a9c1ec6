//! What the names of all keys show: keys that their topics do not know of, of another type, or that should expire.

use std::collections::BTreeMap;

use redis::Pipeline;

use super::RedisStore;
use super::keys::Key;
use super::reply::{Readable, read};
use super::scripts::{Step, body};
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::{Examined, FindingCode, Mismatch, StoreError, is_relay};

/// The names of keys in a page, about.
const MAX_KEYS: usize = 1_000;

const OWNED: &str = include_str!("lua/owned.lua");

/// A key that belongs to a topic.
struct Owned {
    topic: TopicName,
    key: Key,
    /// The node or producer that has it; empty if the topic has one such key.
    owner: String,
    name: String,
}

impl RedisStore {
    /// A page of the names of all keys. The topics of one app are those whose names begin with it and a colon.
    pub(super) async fn examine_names(
        &self,
        app: &AppName,
        topic: Option<&TopicName>,
        after: Option<&str>,
    ) -> Result<Examined, StoreError> {
        let tag = topic.map_or_else(|| format!("{{{app}:"), |topic| format!("{{{app}:{topic}}}:"));
        let prefix = self.keyspace.prefix();
        // Server by server: the place of one, and how far the scan of it has come.
        let (place, cursor) = after.and_then(|after| after.split_once(':')).unwrap_or(("0", "0"));
        let (place, servers) = (place.parse::<usize>().unwrap_or_default(), self.shards.all("examine_keys").await?);
        let Some(server) = servers.get(place) else { return Ok(Examined::default()) };
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{}{}*", as_pattern(prefix), as_pattern(&tag)));
        scan.arg("COUNT").arg(MAX_KEYS);
        let (cursor, names): (String, Vec<Readable<String>>) =
            read("examine_keys", server.command("examine_keys", &scan).await?)?;
        let (mut producers, looked_at) = (BTreeMap::new(), names.len());
        // dq writes no name that is not UTF-8.
        let owned: Vec<_> = names.into_iter().filter_map(|Readable(name)| self.owned(app, name?)).collect();
        for key in owned.iter().filter(|key: &&Owned| key.key == Key::Calls && !is_relay(&key.owner)) {
            *producers.entry(key.topic.clone()).or_default() += 1;
        }
        let mismatches = if owned.is_empty() { Vec::new() } else { self.mismatches_of(app, owned).await? };
        let next = match cursor.as_str() {
            "0" => Some(format!("{}:0", place + 1)).filter(|_| place + 1 < servers.len()),
            cursor => Some(format!("{place}:{cursor}")),
        };
        let producers = producers.into_iter().collect();
        Ok(Examined { mismatches, producers, looked_at, next, ..Examined::default() })
    }

    /// What a key of a topic of this app is; `None` if it is none.
    fn owned(&self, app: &AppName, name: String) -> Option<Owned> {
        let (tag, rest) = name.strip_prefix(self.keyspace.prefix())?.strip_prefix('{')?.split_once("}:")?;
        let topic = TopicName::stored(tag.strip_prefix(app.as_str())?.strip_prefix(':')?).ok()?;
        let (suffix, owner) = rest.split_once(':').unwrap_or((rest, ""));
        let mut known = Step::ALL.iter().flat_map(|step| step.keys()).copied();
        let key = known.find(|key| key.suffix() == suffix && key.redis_type() != "channel")?;
        let owner = owner.to_owned();
        (key.is_owned() != owner.is_empty()).then_some(Owned { topic, key, owner, name })
    }

    async fn mismatches_of(&self, app: &AppName, owned: Vec<Owned>) -> Result<Vec<Mismatch>, StoreError> {
        let mut of_topics = BTreeMap::<_, Vec<_>>::new();
        owned.into_iter().for_each(|key| of_topics.entry(key.topic.clone()).or_default().push(key));
        let mut commands = Pipeline::with_capacity(of_topics.len());
        for (topic, keys) in &of_topics {
            let leases = self.keyspace.of(&TopicKey { app: app.clone(), topic: topic.clone() }).name(Key::Leases, "");
            let nodes = keys.iter().map(|key| if key.key == Key::Running { &*key.owner } else { "" });
            let cmd = commands.cmd("EVAL").arg(body(OWNED)).arg(1 + keys.len()).arg(leases);
            cmd.arg(keys.iter().map(|key| &*key.name).collect::<Vec<_>>()).arg(nodes.collect::<Vec<_>>());
        }
        let answers = self.shards.commands("examine_keys", &commands).await?;
        let (mut listed, mut mismatches) = (self.listed(app, of_topics.keys()).await?.into_iter(), Vec::new());
        for ((_, keys), facts) in of_topics.into_iter().zip(answers) {
            let is_listed = listed.next().is_none_or(|score| score.is_some());
            let facts: Vec<(String, i64, bool)> = read("examine_keys", facts)?;
            for (key, (found, life, has_lease)) in keys.into_iter().zip(facts) {
                let is_known = if key.key == Key::Running { has_lease } else { is_listed };
                mismatches.extend(wrong_with(key, &found, life, is_known));
            }
        }
        mismatches.sort();
        mismatches.dedup();
        Ok(mismatches)
    }

    /// The scores of these topics in the directory; none of any if another program has made something else of it.
    async fn listed(
        &self,
        app: &AppName,
        topics: impl Iterator<Item = &TopicName>,
    ) -> Result<Vec<Option<f64>>, StoreError> {
        let [directory, _] = self.keyspace.directory(app.as_str());
        let mut cmd = redis::cmd("ZMSCORE");
        cmd.arg(directory).arg(topics.map(TopicName::as_str).collect::<Vec<_>>());
        match self.shards.list("examine_keys", &cmd).await {
            Ok(scores) => scores.whole(),
            Err(error) if error.is_outage() => Err(error),
            Err(_) => Ok(Vec::new()),
        }
    }
}

/// What is wrong with a key of this type, which lives as long, s, and of which its topic or the directory knows or not.
fn wrong_with(key: Owned, found: &str, life: i64, is_known: bool) -> Option<Mismatch> {
    let Owned { topic, key, owner, name } = key;
    let expected = key.redis_type();
    let (code, id, detail) = match key {
        _ if found == "none" => return None,
        _ if found != expected => (FindingCode::WrongType, name, expected),
        Key::Running if !is_known => (FindingCode::RowsWithoutLease, owner, ""),
        Key::Calls if is_relay(&owner) => return None,
        Key::Calls | Key::Sequence | Key::Taken if life == -1 => (FindingCode::NoExpiry, name, ""),
        Key::Jobs | Key::FarJobs | Key::BroadcastJobs if !is_known => {
            (FindingCode::TopicNotListed, topic.to_string(), "")
        }
        _ => return None,
    };
    Some(Mismatch { code, topic, id, detail: detail.to_owned() })
}

/// A text as a pattern that only it matches.
fn as_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '^' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
