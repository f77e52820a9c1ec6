//! Follow-ups: what the outcome of a run adds or deletes in topics of the same app, each once (rule 18).
//!
//! The step that settles the outcome writes them into the outbox of its topic, one entry for each topic that they are for. A node
//! [relays](super::Store::relay) the entries of each target in order. The target keeps the position of the last one in the step that executes it.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::job::{JobId, NodeId, ProducerId, TopicName};
use crate::time::Timestamp;

/// The most follow-ups of an outcome.
pub const MAX_FOLLOW_UPS: usize = 1_000;

/// The most bytes of the follow-ups of an outcome.
pub const FOLLOW_UP_BYTES: usize = 1 << 20;

/// The most entries that one [`Relay`] asks for.
pub const MAX_ENTRIES: usize = 1_000;

/// The most entries that a [`follow_ups`](super::Store::follow_ups) returns; each may have [`FOLLOW_UP_BYTES`].
pub const MAX_READ: usize = 16;

/// What the name of a producer begins with that relays an outbox.
const RELAY: &str = "outbox:";

/// Why a target takes no entry before the one in front of it.
pub(crate) const OUT_OF_ORDER: &str =
    "an earlier follow-up has not arrived yet: the store has lost it in a failover, and it is sent again";

/// The producer under which a target knows the outbox of a source. Its numbers are positions, and a store never forgets the last one.
pub fn relay_of(source: &TopicName) -> ProducerId {
    ProducerId::new(format!("{RELAY}{source}"))
}

/// Whether the numbers of a producer are positions of an outbox.
pub(crate) fn is_relay(producer: &str) -> bool {
    producer.starts_with(RELAY)
}

/// The follow-ups of one outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowUpBatches {
    pub(super) parts: Vec<(TopicName, Packed)>,
    pub(super) count: usize,
}

/// A batch as an outbox keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct Packed(pub(super) Bytes);

/// Shows the length, never the bytes: they have payloads.
impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({} bytes)", self.0.len())
    }
}

impl Packed {
    /// A batch with these bytes, as a store kept them.
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl FollowUpBatches {
    /// The batches, in order, each with its topic.
    pub fn parts(&self) -> &[(TopicName, Packed)] {
        &self.parts
    }

    /// How many jobs they add or delete.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes an outbox keeps of them.
    pub fn size(&self) -> usize {
        self.parts.iter().map(|(target, packed)| target.as_str().len() + packed.0.len()).sum()
    }
}

/// Where an entry of an outbox stands. Both numbers together tell entries apart: a store that falls back, and its clock too, may give the same place to
/// another entry, which it writes at another time.
///
/// As a text it is the place, and behind a comma when the entry was written, unless that is the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct OutboxPosition {
    /// The place: `max(last + 1, store clock in µs)` when the entry was written. 0 is before all entries.
    pub at: u64,
    /// When its outcome was settled, in µs.
    pub written: u64,
}

impl OutboxPosition {
    /// Before all entries.
    pub const START: Self = Self::clock(0);

    /// The place of an entry that has the time at which it was written.
    pub const fn clock(at: u64) -> Self {
        Self { at, written: at }
    }
}

impl fmt::Display for OutboxPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.written == self.at {
            true => write!(f, "{}", self.at),
            false => write!(f, "{},{}", self.at, self.written),
        }
    }
}

impl FromStr for OutboxPosition {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (at, written) = text.split_once(',').unwrap_or((text, text));
        Ok(Self { at: at.parse()?, written: written.parse()? })
    }
}

/// An entry of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The topic that it is for.
    pub target: TopicName,
    /// Its position.
    pub position: OutboxPosition,
    /// The position of the entry before it for the same target.
    pub after: OutboxPosition,
    /// What the target does.
    pub batch: Packed,
}

/// What the target did with a follow-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowUpOutcome {
    /// It is done. A delete of a job that is not there has nothing to do.
    Done,
    /// The target refuses it for good.
    Refused {
        /// The job.
        id: JobId,
        /// Why.
        cause: String,
    },
}

/// Asks for the next entries of an outbox, and removes those that have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// The node that relays. While it does, no other one gets entries.
    pub node: NodeId,
    /// For how long from now it relays, unless it asks again.
    pub lease: Duration,
    /// Targets that have answered entries, each with the place of the last one. The store removes the entries up to these, as far as
    /// the target has them by its own position.
    pub arrived: Vec<(TopicName, u64)>,
    /// Entries that the node cannot read, by target and place: the store neither gives nor removes them.
    pub unread: Vec<(TopicName, u64)>,
    /// Targets whose entries are not asked for, because they take none now.
    pub without: Vec<TopicName>,
    /// The most entries, 1 to [`MAX_ENTRIES`].
    pub limit: usize,
    /// The most bytes; the first entry may have more.
    pub bytes: usize,
}

/// The answer to a [`Relay`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relayed {
    /// Another node relays, and does so for this long unless it asks again: no entries.
    pub busy: Option<Duration>,
    /// The next entries, those of a target in order. Without any the node does not relay any more.
    pub entries: Vec<OutboxEntry>,
    /// Targets that are ahead. None of their entries is removed, or among the next ones.
    pub ahead: Vec<Ahead>,
    /// How many entries there are.
    pub waiting: usize,
    /// The beginning of something in the outbox that is no entry: another program wrote it, and it stays.
    pub skipped: Option<String>,
}

/// A target whose position is above the predecessor of the first waiting entry, and is that of no waiting entry: so the source does not know it.
/// An import, or a source that a failover took back, has left it there, and the target may answer what waits for it as late, and do nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The target.
    pub target: TopicName,
    /// Its position.
    pub position: OutboxPosition,
    /// The position to which it is set back: the position of the entry before the first waiting one.
    pub back_to: OutboxPosition,
    /// Whether the position is ahead of the store's clock by more than [`MAX_AHEAD`](super::MAX_AHEAD).
    pub is_far: bool,
}

/// What waits in an outbox for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxSeen {
    /// The topic that it is for.
    pub target: TopicName,
    /// How many entries wait.
    pub waiting: usize,
    /// When the first of them was written, in µs.
    pub oldest: u64,
    /// The position of the entry before the first one.
    pub before: OutboxPosition,
}

/// After this long the log says again that entries wait, and later whenever they have waited twice as long.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// What the log says of entries that wait because their target takes none: since when they have, and when it repeats that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    wall: Timestamp,
    since: Duration,
    said_at: Duration,
}

impl Waits {
    /// The target has taken nothing. Returns since when, if it is time for a line in the log.
    pub(crate) fn to_say(waits: &mut Option<Self>, environment: &Environment) -> Option<Timestamp> {
        let now = environment.now();
        let begin = || Self { wall: environment.wall(), since: now, said_at: now };
        let waits = waits.get_or_insert_with(begin);
        if now < waits.said_at {
            return None;
        }
        waits.said_at = now + SAID_AGAIN.max(now.saturating_sub(waits.since));
        Some(waits.wall)
    }

    /// The target takes entries again. Returns since when it had taken none, if the log said that.
    pub(crate) fn over(waits: &mut Option<Self>) -> Option<Timestamp> {
        waits.take().map(|waits| waits.wall)
    }
}
