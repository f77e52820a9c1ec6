//! The rows that the doctor reads one by one: which of them this version of dq can read. Another program, or a later version, wrote the
//! others (rule 1).

use bytes::Bytes;
use redis::Value;

use super::RedisStore;
use super::export::command_in;
use super::job_sets::{seen, waits_for};
use super::keys::Key;
use super::outbox::entry_of;
use super::packed::Packed;
use super::reply::{Reply, malformed};
use super::scripts::body;
use crate::job::limits::POSITION;
use crate::job::{GroupName, JobId, TopicKey, TopicName};
use crate::store::statistics::MinuteCounts;
use crate::store::{Examined, ForeignRow, OnDead, OutboxEntry, OutboxPosition, StoreError};

/// The keys whose rows the doctor reads one by one, and about how many at a time. Those of [`Key::Jobs`], [`Key::BroadcastJobs`] and
/// [`Key::Running`] it has read before, as jobs.
const KEYS: [(Key, usize); 24] = [
    (Key::Outbox, 16),
    (Key::Sets, 100),
    (Key::SetOrder, MANY),
    (Key::Members, MANY),
    (Key::Grouped, MANY),
    (Key::Meta, MANY),
    (Key::Leases, MANY),
    (Key::Delayed, MANY),
    (Key::Far, MANY),
    (Key::FarJobs, MANY),
    (Key::FarLeaves, MANY),
    (Key::Unacked, MANY),
    (Key::Dead, MANY),
    (Key::Done, MANY),
    (Key::Broadcasts, MANY),
    (Key::Metadata, 100),
    (Key::Pending, MANY),
    (Key::Crashes, MANY),
    (Key::Schedules, MANY),
    (Key::Ticks, MANY),
    (Key::Taken, MANY),
    (Key::Statistics, MANY),
    (Key::History, 200),
    (Key::HistoryEnds, MANY),
];
const MANY: usize = 500;

/// The key of this name, and the set or node that it is of.
pub(super) fn key_of(name: &str) -> Option<(Key, &str)> {
    let (suffix, owner) = name.split_once(':').unwrap_or((name, ""));
    let others = [Key::Set, Key::Jobs, Key::BroadcastJobs, Key::Running];
    let key = KEYS.iter().map(|(key, _)| *key).chain(others).find(|key| key.suffix() == suffix)?;
    (key.is_owned() != owner.is_empty()).then_some((key, owner))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

pub(super) fn is_id(name: &[u8]) -> bool {
    text(name).is_some_and(|id| JobId::new(id).is_ok())
}

fn is_number(value: &[u8]) -> bool {
    text(value).is_some_and(|value| value.parse::<u64>().is_ok())
}

/// Whether this is a position of an outbox, or its place alone.
fn is_position(value: &[u8]) -> bool {
    text(value).and_then(|value| value.parse().ok()).is_some_and(|OutboxPosition { at, .. }| at <= POSITION.last())
}

/// Whether a score is a time, or a sum of one and what priorities and groups add to it, as far as a script calculates exactly.
fn is_time(score: &[u8]) -> bool {
    text(score)
        .and_then(|score| score.parse().ok())
        .is_some_and(|score: f64| (0.0..=9_007_199_254_740_992.0).contains(&score))
}

/// Whether text consists of so many digits, and what follows them fits.
fn digits(bytes: &[u8], count: usize, fits: impl FnOnce(&[u8]) -> bool) -> bool {
    bytes.split_at_checked(count).is_some_and(|(digits, rest)| digits.iter().all(u8::is_ascii_digit) && fits(rest))
}

fn is_group(name: &[u8]) -> bool {
    text(name).is_some_and(|name| GroupName::new(name).is_ok())
}

fn is_bound(name: &[u8]) -> bool {
    digits(name, 15, |id| id.is_empty() || is_id(id))
}

/// Whether this is an entry of `grouped`, as `lua/parts/groups.lua` has it.
fn is_of_group(member: &[u8]) -> bool {
    let Some(end) = member.iter().position(|byte| *byte == 0) else { return false };
    let (name, rest) = (&member[..end], &member[end + 1..]);
    let Some((kind, rest)) = rest.split_first() else { return false };
    let of_turn = |rest: &[u8]| digits(rest, 17, <[u8]>::is_empty);
    match (name, kind) {
        (b"", b'0' | b'1' | b'2' | b'7') => digits(rest, 16, is_id),
        (b"", b'3' | b'4' | b'5') => digits(rest, 16, is_group),
        (b"", b'6') => {
            let end = rest.len().saturating_sub(33);
            is_group(&rest[..end]) && rest.get(end) == Some(&0) && digits(&rest[end + 1..], 32, <[u8]>::is_empty)
        }
        (name, b'w') => is_group(name) && digits(rest, 32, is_id),
        (name, b's') => is_group(name) && is_id(rest),
        (name, b't') => is_group(name) && of_turn(rest),
        (name, b'v') => is_group(name) && text(rest).is_some(),
        _ => false,
    }
}

fn is_membership(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == 0);
    let (home, set, on_dead) = (parts.next(), parts.next(), parts.next());
    home.and_then(text).is_some_and(|home| TopicName::stored(home).is_ok())
        && set.is_some_and(is_id)
        && matches!(on_dead, Some([letter]) if OnDead::of_letter(*letter).is_some())
        && parts.next().is_none()
}

/// A set, or the last job of one.
fn is_of_set(name: &[u8], value: &[u8]) -> bool {
    if let Some(set) = name.strip_suffix(b"\0") {
        return is_id(set) && OutboxEntry::is_job(value);
    }
    let set = text(name).and_then(|set| JobId::new(set).ok());
    set.zip(text(value)).and_then(|(set, row)| seen(set, row)).is_some()
}

/// The fields of `meta` that are numbers. Others are settings, of which nothing keeps a step from its jobs, or have a finding of their own.
fn is_note(name: &[u8], value: &[u8]) -> bool {
    const NUMBERS: [&str; 15] = [
        "largest",
        "taken",
        "far",
        "far-lost",
        "opens",
        "shut",
        "watcher-until",
        "standby-until",
        "publisher-until",
        "relay-until",
        "published",
        "events",
        "groups",
        "members",
        "retains",
    ];
    match text(name) {
        Some("history") => text(value)
            .and_then(|value| value.split_once(':'))
            .is_some_and(|(moves, after)| is_number(moves.as_bytes()) && is_number(after.as_bytes())),
        Some(name) if name == "outbox" || name.starts_with("outbox:") => is_position(value),
        Some(name) if NUMBERS.contains(&name) => is_number(value),
        name => name.is_some(),
    }
}

fn is_crashes(value: &[u8]) -> bool {
    let count = value.split(|byte| *byte == b' ').next().unwrap_or_default();
    let count = count.strip_suffix(b"+").or_else(|| count.strip_suffix(b"!")).unwrap_or(count);
    text(count).is_some_and(|count| count.parse::<u32>().is_ok())
}

fn is_leaf(value: &Bytes) -> bool {
    Packed::new(value.clone()).is_some_and(|mut ids| (0..ids.len()).all(|_| ids.next().is_some()))
}

/// Whether this version of dq can read a row: its field or member, and its value or score.
fn is_readable(key: Key, name: &Bytes, value: &Bytes) -> bool {
    match key {
        Key::Outbox => entry_of(name).is_some_and(|entry| entry.unfit().is_none()),
        Key::Sets => is_of_set(name, value),
        Key::Set => waits_for(name).is_some(),
        Key::Members => is_id(name) && is_membership(value),
        Key::Grouped => is_of_group(name),
        Key::Meta => is_note(name, value),
        Key::Leases => text(name).is_some_and(|node| !node.is_empty()) && is_time(value),
        Key::Far => is_bound(name),
        Key::FarJobs => is_id(name) && value.len() >= 6,
        Key::FarLeaves => is_bound(name) && is_leaf(value),
        Key::Pending => is_id(name) && text(value).and_then(command_in).is_some(),
        Key::Crashes => is_id(name) && is_crashes(value),
        Key::Metadata | Key::Schedules | Key::History => is_id(name),
        Key::Statistics => is_number(name) && MinuteCounts::from_bytes(value).is_some(),
        _ => is_id(name) && is_time(value),
    }
}

const EXAMINE_ROWS: &str = include_str!("lua/examine_rows.lua");

/// Where a page of rows begins: the number of the key, and a cursor in it. After all keys come the members of open sets, by their numbers.
fn place_of(at: &str) -> (usize, &str) {
    let (number, cursor) = at.trim_start_matches(':').split_once(':').unwrap_or_default();
    (number.parse().unwrap_or_default(), if cursor.is_empty() { "0" } else { cursor })
}

impl RedisStore {
    /// A page of the rows that the doctor reads one by one.
    pub(super) async fn examine_rows(&self, topic: &TopicKey, at: &str) -> Result<Examined, StoreError> {
        let (number, cursor) = place_of(at);
        let (first, known) = match number.checked_sub(KEYS.len()) {
            None => (0, KEYS.map(|(key, count)| (key, String::new(), count)).to_vec()),
            Some(set) => match self.open_set(topic, set).await? {
                Some(name) => (number, vec![(Key::Set, name, MANY)]),
                None => return Ok(Examined::default()),
            },
        };
        let keys = self.keyspace.of(topic);
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(body(EXAMINE_ROWS)).arg(known.len());
        known.iter().for_each(|(key, owner, _)| _ = cmd.arg(keys.name(*key, owner)));
        cmd.arg(number - first).arg(cursor);
        known.iter().for_each(|(key, _, count)| _ = cmd.arg(key.redis_type()).arg(*count));
        let mut reply = self.shards.list("examine", &cmd).await?;
        let (at, cursor, rows) = (reply.count()?, reply.text()?, reply.nested()?);
        let looked_at = rows.len() / 2;
        let foreign = match known.get(at) {
            Some((key, owner, _)) => unreadable_in(rows, topic, *key, owner)?,
            None => Vec::new(),
        };
        let number = first + at + usize::from(cursor == "0" && at < known.len());
        let next = Some(format!("rows:{number}:{cursor}"));
        Ok(Examined { foreign, looked_at, next, ..Examined::default() })
    }

    /// The name of a set that has not ended, by its number among them.
    async fn open_set(&self, topic: &TopicKey, number: usize) -> Result<Option<String>, StoreError> {
        let (keys, page) = (self.keyspace.of(topic), (0, 0, "BYSCORE", "LIMIT", number, 1));
        match self.shards.read_key("examine", &keys, Key::SetOrder, "ZRANGE", page).await? {
            Value::Array(names) => match names.into_iter().next() {
                Some(Value::BulkString(name)) => Ok(Some(String::from_utf8_lossy(&name).into_owned())),
                _ => Ok(None),
            },
            _ => Err(malformed("examine", "expected a list")),
        }
    }
}

fn unreadable_in(rows: Reply, topic: &TopicKey, key: Key, owner: &str) -> Result<Vec<ForeignRow>, StoreError> {
    rows.each(|rows| {
        let (name, value) = (rows.bytes()?, rows.bytes()?);
        Ok((!is_readable(key, &name, &value)).then(|| foreign_row(topic, key, owner, name, value)))
    })
}

/// A row that cannot be read, of a key whose owner is empty or a node or a set.
pub(super) fn foreign_row(topic: &TopicKey, key: Key, owner: &str, name: Bytes, value: Bytes) -> ForeignRow {
    let reason = ForeignRow::unread(entry_of(&name).filter(|_| key == Key::Outbox).as_ref());
    let key = if owner.is_empty() { key.suffix().to_owned() } else { format!("{}:{owner}", key.suffix()) };
    ForeignRow { topic: topic.topic.clone(), key, name, value, reason }
}
