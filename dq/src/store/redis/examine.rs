//! What the doctor asks: whether the keys of a topic agree, whether keys have owners, and what endangers the server.
//!
//! A topic is examined part by part, each with a scan of one of its keys. A position is `PART:CURSOR`, for the rows of nodes
//! `r:CURSOR:NODE`, and for the names of keys the cursor alone.

use std::collections::{BTreeMap, BTreeSet};

use super::RedisStore;
use super::audit::{TRIES, nodes_of, too_many_nodes};
use super::keys::{Key, Keys};
use super::reply::{Reply, malformed};
use super::scripts::Step;
use crate::job::{AppName, NodeId, TopicKey, TopicName};
use crate::store::step::USUAL_BYTES;
use crate::store::{Examine, Examined, MOST_EXAMINED, Mismatch, MismatchKind, StoreError};

/// The parts of a topic, in the order in which they are examined. The last one has a page for each node.
const PARTS: [char; 13] = ['l', 'j', 'w', 'd', 'u', 'x', 'f', 'b', 'B', 'M', 'P', 'C', 'r'];

/// The names of keys in a page, about.
const MOST_KEYS: usize = 1_000;

/// How many nodes one read names.
const NODES_A_READ: usize = 1_000;

const OWNED: &str = include_str!("lua/owned.lua");

/// The mismatches, with their letters in the scripts.
const LETTERS: [(MismatchKind, &str); 15] = [
    (MismatchKind::JobWithoutPlace, "o"),
    (MismatchKind::PlaceWithoutJob, "p"),
    (MismatchKind::RowWithoutJob, "r"),
    (MismatchKind::SeveralPlaces, "t"),
    (MismatchKind::SeveralRecords, "v"),
    (MismatchKind::RowsWithoutLease, "a"),
    (MismatchKind::LeaseWithoutRows, "l"),
    (MismatchKind::FarWithoutLeaf, "n"),
    (MismatchKind::ScheduleNotListed, "s"),
    (MismatchKind::BroadcastWithoutPlace, "b"),
    (MismatchKind::LeftoverEntry, "e"),
    (MismatchKind::NotesBehind, "m"),
    (MismatchKind::WrongType, "y"),
    (MismatchKind::NoExpiry, "k"),
    (MismatchKind::TopicNotListed, "u"),
];

/// The letter of a mismatch in the scripts.
pub(super) fn letter_of(kind: MismatchKind) -> &'static str {
    LETTERS.iter().find(|(known, _)| *known == kind).map_or("", |(_, letter)| letter)
}

fn kind_of(letter: &str) -> Option<MismatchKind> {
    LETTERS.iter().find(|(_, known)| *known == letter).map(|(kind, _)| *kind)
}

/// Where a page of a topic begins.
struct Position {
    part: char,
    cursor: String,
    node: Option<NodeId>,
}

impl Position {
    fn read(text: Option<&str>) -> Self {
        let mut parts = text.unwrap_or_default().splitn(3, ':');
        let part = parts.next().and_then(|part| part.chars().next()).unwrap_or(PARTS[0]);
        let cursor = parts.next().unwrap_or("0").to_owned();
        Self { part, cursor, node: parts.next().map(NodeId::new) }
    }

    /// The next part; `None` behind the last one.
    fn next_part(&self) -> Option<String> {
        let at = PARTS.iter().position(|part| *part == self.part)?;
        Some(format!("{}:0", PARTS.get(at + 1)?))
    }
}

impl RedisStore {
    pub(super) async fn examine_of(&self, topic: &TopicKey, request: Examine) -> Result<Examined, StoreError> {
        let (keys, mut at) = (self.keyspace.of(topic), Position::read(request.after.as_deref()));
        let mut nodes: BTreeSet<NodeId> = BTreeSet::new();
        let mut following = at.next_part();
        match at.part {
            // The script names those with a lease.
            'l' | 'j' => nodes.extend(request.nodes),
            'r' => {
                let all: BTreeSet<_> = self.holders(&keys).await?.into_iter().chain(request.nodes).collect();
                let Some(node) = at.node.take().or_else(|| all.first().cloned()) else {
                    return Ok(Examined::default());
                };
                following = all.iter().find(|other| **other > node).map(|other| format!("r:0:{other}"));
                nodes.insert(node);
            }
            _ => {}
        }
        let node = nodes.first().map(ToString::to_string).unwrap_or_default();
        let (page, cursor) = self.examine_part(topic, &keys, &at, nodes).await?;
        let next = match (at.part, cursor.as_str()) {
            (_, "0") => following,
            ('r', cursor) => Some(format!("r:{cursor}:{node}")),
            (part, cursor) => Some(format!("{part}:{cursor}")),
        };
        Ok(Examined { next, ..page })
    }

    /// All nodes with a lease, read page by page.
    async fn holders(&self, keys: &Keys) -> Result<Vec<NodeId>, StoreError> {
        let mut holders: Vec<NodeId> = Vec::new();
        loop {
            let after = holders.last().map_or("", NodeId::as_str);
            let page = self.nodes_behind(keys, after, NODES_A_READ).await?;
            let is_last = page.len() < NODES_A_READ;
            holders.extend(page.into_iter().map(|(node, _)| node));
            if is_last {
                return Ok(holders);
            }
        }
    }

    /// A page of one part, and the cursor of the next one.
    async fn examine_part(
        &self,
        topic: &TopicKey,
        keys: &Keys,
        at: &Position,
        mut nodes: BTreeSet<NodeId>,
    ) -> Result<(Examined, String), StoreError> {
        for _ in 0..TRIES {
            let call = self.scripts.call_with_nodes(Step::Examine, keys, "", &nodes);
            let mut call = call.arg(at.part.to_string()).arg(&at.cursor).arg(MOST_EXAMINED).arg(USUAL_BYTES);
            nodes.iter().for_each(|node| call.push(node.as_str()));
            let mut reply = self.queries.ask_list(call).await?;
            if reply.is_set()? {
                nodes.extend(nodes_of(&mut reply)?);
                continue;
            }
            let (cursor, looked_at) = (reply.text()?, reply.count()?);
            let mismatches = mismatches_in(&mut reply, &topic.topic)?;
            return Ok((Examined { mismatches, looked_at, ..Examined::default() }, cursor));
        }
        Err(too_many_nodes("examine"))
    }

    /// A page of the names of all keys. The topics of one app are those whose names begin with it and a colon.
    pub(super) async fn examine_names(
        &self,
        app: &AppName,
        topic: Option<&TopicName>,
        after: Option<&str>,
    ) -> Result<Examined, StoreError> {
        let tag = topic.map_or_else(|| format!("{{{app}:"), |topic| format!("{{{app}:{topic}}}:"));
        let prefix = self.keyspace.prefix();
        let mut scan = redis::cmd("SCAN");
        scan.arg(after.unwrap_or("0")).arg("MATCH").arg(format!("{}{}*", as_pattern(prefix), as_pattern(&tag)));
        scan.arg("COUNT").arg(MOST_KEYS);
        let mut reply = Reply::list("examine_keys", self.queries.command("examine_keys", &scan).await?)?;
        let (cursor, mut names) = (reply.text()?, reply.nested()?);
        let mut owned = Vec::with_capacity(names.len());
        let looked_at = names.len();
        while names.len() > 0 {
            // A name that is no text is not of dq.
            let name = String::from_utf8(names.bytes()?.to_vec()).ok();
            owned.extend(name.and_then(|name| self.owned(app, name)));
        }
        let mismatches = self.mismatches_of(&owned).await?;
        let next = Some(cursor).filter(|cursor| cursor != "0");
        Ok(Examined { mismatches, producers: producers_in(&owned), looked_at, next })
    }

    async fn mismatches_of(&self, owned: &[Owned]) -> Result<Vec<Mismatch>, StoreError> {
        if owned.is_empty() {
            return Ok(Vec::new());
        }
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(OWNED).arg(2 * owned.len());
        for key in owned {
            cmd.arg(&key.name).arg(&key.beside);
        }
        for key in owned {
            cmd.arg(key.what).arg(key.expected).arg(&key.owner);
        }
        let mut letters = Reply::list("examine_keys", self.queries.command("examine_keys", &cmd).await?)?;
        let mut mismatches = Vec::new();
        for key in owned {
            let Some(kind) = kind_of(&letters.text()?) else { continue };
            let (id, detail) = match kind {
                MismatchKind::WrongType => (key.name.clone(), key.expected.to_owned()),
                MismatchKind::NoExpiry => (key.name.clone(), String::new()),
                MismatchKind::RowsWithoutLease => (key.owner.clone(), String::new()),
                _ => (key.topic.to_string(), String::new()),
            };
            mismatches.push(Mismatch { kind, topic: key.topic.clone(), id, detail });
        }
        mismatches.sort();
        mismatches.dedup();
        Ok(mismatches)
    }

    /// What a key of a topic of this app is; `None` if it is none.
    fn owned(&self, app: &AppName, name: String) -> Option<Owned> {
        let (tag, rest) = name.strip_prefix(self.keyspace.prefix())?.strip_prefix('{')?.split_once("}:")?;
        let topic = TopicName::new(tag.strip_prefix(app.as_str())?.strip_prefix(':')?).ok()?;
        let (suffix, owner) = rest.split_once(':').unwrap_or((rest, ""));
        let key = key_of(suffix).filter(|key| key.is_owned() != owner.is_empty())?;
        let keys = self.keyspace.of(&TopicKey { app: app.clone(), topic: topic.clone() });
        let (what, beside, owner) = match key {
            Key::Running => ("r", keys.name(Key::Leases, ""), owner.to_owned()),
            Key::Calls | Key::Sequence => ("c", name.clone(), String::new()),
            Key::Jobs | Key::FarJobs | Key::BroadcastJobs => {
                ("h", self.keyspace.directory(app.as_str()), topic.to_string())
            }
            _ => ("-", name.clone(), String::new()),
        };
        Some(Owned { topic, is_of_producer: key == Key::Calls, beside, what, expected: key.redis_type(), owner, name })
    }
}

/// A key that belongs to a topic, and what it should be.
struct Owned {
    topic: TopicName,
    is_of_producer: bool,
    name: String,
    beside: String,
    what: &'static str,
    expected: &'static str,
    owner: String,
}

/// How many producers the topics of these keys have.
fn producers_in(owned: &[Owned]) -> Vec<(TopicName, usize)> {
    let mut producers = BTreeMap::new();
    for key in owned.iter().filter(|key| key.is_of_producer) {
        *producers.entry(key.topic.clone()).or_default() += 1;
    }
    producers.into_iter().collect()
}

/// The key with this suffix; `None` for a channel, or if no script has such a key.
fn key_of(suffix: &str) -> Option<Key> {
    let mut known = Step::ALL.iter().flat_map(|step| step.keys()).copied();
    known.find(|key| key.suffix() == suffix && key.redis_type() != "channel")
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

fn mismatches_in(reply: &mut Reply, topic: &TopicName) -> Result<Vec<Mismatch>, StoreError> {
    let mut mismatches = Vec::new();
    while reply.len() > 0 {
        let letter = reply.text()?;
        let kind = kind_of(&letter).ok_or_else(|| malformed("examine", "a mismatch is unknown"))?;
        // Only another program writes an id that is no text.
        let id = String::from_utf8_lossy(&reply.bytes()?).into_owned();
        mismatches.push(Mismatch { kind, topic: topic.clone(), id, detail: reply.text()? });
    }
    Ok(mismatches)
}
