//! What the jobs of a storm do.

use serde::{Deserialize, Serialize};

use crate::ledger::End;

macro_rules! kinds {
    ($(#[$doc:meta] $kind:ident $topic:literal;)+) => {
        /// A kind of job. Each has a topic of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $(#[$doc] $kind,)+ }

        impl Kind {
            /// All kinds.
            pub const ALL: [Self; 14] = [$(Self::$kind),+];

            /// The topic of these jobs.
            pub const fn topic(self) -> &'static str {
                match self { $(Self::$kind => $topic,)+ }
            }
        }
    };
}

kinds! {
    /// Is acked.
    Ack "ack";
    /// Fails some times, then is acked.
    Retry "retry";
    /// Rejoins until a time, then is acked.
    Rejoin "rejoin";
    /// Parks until it is acked from outside.
    Park "park";
    /// Is deleted before it is due.
    Deleted "deleted";
    /// Is deleted while it runs.
    Cut "cut";
    /// Fails until it is DEAD.
    Dead "dead";
    /// Fails some times, then is acked, and has a group.
    Grouped "grouped";
    /// Is acked, and a job of the next kind follows.
    First "first";
    /// The same.
    Second "second";
    /// Is acked, and ends its chain.
    Third "third";
    /// Is a member of a set, and is acked, deleted or DEAD.
    Row "row";
    /// The same, in another topic.
    Line "line";
    /// Is the last job of a set, and is acked.
    Last "last";
}

/// The pause before a retry, ms, as in the attributes of the listeners.
pub const RETRY_MS: u64 = 200;
/// How often a job of `dead` is retried.
pub const DEAD_RETRIES: u32 = 2;
/// How many jobs that rejoin run at a time on all nodes, as in the attribute of their listener.
pub const SLOTS: usize = 5;
/// How many groups there are. One job of each runs at a time, as in the attribute of the listener.
pub const GROUPS: u64 = 200;
/// The pause of a rejoin, ms.
pub const REJOIN_MS: u64 = 300;

/// What limits the runs of a job, as its id tells: its group or the slots of its topic; and how many run at a time.
pub fn gate_of(id: &str) -> Option<(&str, usize)> {
    let (_, gate) = id.split_once('@')?;
    Some((gate, if gate == "slots" { SLOTS } else { 1 }))
}

/// The topic of the jobs with this gate.
pub fn topic_of(gate: &str) -> &'static str {
    if gate == "slots" { Kind::Rejoin.topic() } else { Kind::Grouped.topic() }
}

/// What the ids of the jobs of a chain end with.
pub const CHAIN: [&str; 3] = ["~1", "~2", "~3"];

/// The id of the job that follows the ack of this one.
pub fn next_of(id: &str) -> Option<String> {
    let (n, name) = CHAIN.iter().enumerate().find_map(|(n, end)| Some((n, id.strip_suffix(end)?)))?;
    CHAIN.get(n + 1).map(|next| format!("{name}{next}"))
}

/// What the id of the last job of a set ends with.
pub const LAST: &str = "%last";

/// The id of the member of this number.
pub fn member(set: &str, n: u64) -> String {
    format!("{set}%{n}")
}

/// The name of a set, and what of it this id is.
pub fn set_of(id: &str) -> Option<(&str, &str)> {
    id.split_once('%')
}

/// Whether the member of this number becomes DEAD, as one in twenty.
pub const fn must_fail(n: u64) -> bool {
    n.is_multiple_of(20)
}

/// Whether the producer deletes it.
pub const fn is_deleted(n: u64) -> bool {
    n % 20 == 7
}

/// The id of the member that this one adds with its ack, as one in fifty does.
pub fn adds_member(id: &str) -> Option<String> {
    let n: u64 = set_of(id)?.1.parse().ok()?;
    (n % 50 == 1).then(|| format!("{id}-more"))
}

/// The payload of every job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// How long its handler takes, ms.
    pub takes: u64,
    /// How often it fails.
    pub fails: u32,
    /// Until when it rejoins, µs.
    pub until: u64,
    /// Makes the payload as large as it is.
    pub filler: String,
}

impl Work {
    /// How a run of this attempt ends that is over `now`.
    pub fn end(&self, kind: Kind, attempt: u32, now: u64) -> End {
        match kind {
            Kind::Retry | Kind::Grouped if attempt < self.fails => End::Failed(Some(RETRY_MS)),
            Kind::Rejoin if now < self.until => End::Rejoin(REJOIN_MS),
            Kind::Park => End::Park,
            Kind::Dead => End::Failed((attempt < DEAD_RETRIES).then_some(RETRY_MS)),
            Kind::Ack | Kind::Retry | Kind::Rejoin | Kind::Deleted | Kind::Cut | Kind::Grouped => End::Ack,
            Kind::Row | Kind::Line if self.fails > 0 => End::Failed(None),
            Kind::First | Kind::Second | Kind::Third | Kind::Row | Kind::Line | Kind::Last => End::Ack,
        }
    }
}
