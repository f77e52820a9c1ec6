//! The Lua scripts: one file per step, assembled from its parts when the store is made.
//!
//! The header of a file names its keys and arguments; the loader replaces a line `-- include PART.lua` with that part, which
//! may include others. It also writes the protocol version, the longest lease and [`FAR`] (ms) in front of the script, and the types of its
//! [keys](Step::keys) in front of the part that checks them, so a script checks exactly the keys that it is given. Scripts are
//! called by their hash. A link that counts (rule 33) has scripts of its own for three steps: the same files, with the parts in [`COUNTING`], which
//! the others leave out. A server that does not know a script (because it is new, was flushed or failed over) is sent the text once. A server keeps the scripts of an older dq beside those of a newer one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;

use super::keys::{Key, Keys};
use crate::job::NodeId;
use crate::store::PROTOCOL_VERSION;
use crate::store::step::LONGEST_LEASE;

macro_rules! steps {
    ($($step:ident $name:literal [$($key:ident)+];)+) => {
        /// The steps that are scripts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Step { $($step,)+ }

        impl Step {
            pub(super) const ALL: &'static [Self] = &[$(Self::$step,)+];

            /// The name of the step in errors, and of its file.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$step => $name,)+ }
            }

            /// The keys of the script, in order.
            pub(super) const fn keys(self) -> &'static [Key] {
                match self { $(Self::$step => &[$(Key::$key,)+],)+ }
            }

            const fn text(self) -> &'static str {
                match self { $(Self::$step => include_str!(concat!("lua/", $name, ".lua")),)+ }
            }
        }
    };
}

steps! {
    Transfer "transfer" [Jobs Delayed Running Leases Sequence Crashes Meta Metadata Far FarJobs];
    Settle "settle" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Running Leases Sequence Pending Crashes Meta Wake Metadata Replacements FarJobs];
    Renew "renew" [Running Leases Sequence];
    Isolate "isolate" [Running Leases Sequence Pending Crashes];
    Exhaust "exhaust" [Running Leases Sequence Pending Jobs Metadata];
    Reconcile "reconcile" [Running Leases Sequence Jobs Dead];
    Reclaim "reclaim" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Running Leases Pending Crashes Meta Wake Metadata Replacements];
    Release "release" [Delayed Broadcasts Running Leases Sequence Meta Wake];
    Wake "wake" [Delayed Meta Wake];
    Sweep "sweep" [Jobs Delayed Unacked Dead Done Running Leases Sequence Crashes Meta Metadata];
    Publish "publish" [Broadcasts BroadcastJobs Meta BroadcastChannel];
    Scan "scan" [Jobs Delayed Unacked Dead Done Leases Meta Far FarJobs Running];
    Audit "audit" [Jobs Delayed Unacked Dead Done Leases Meta Far FarJobs Running];
    Recover "recover" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Pending Crashes Meta Wake Metadata Replacements Running];
    Add "add" [Jobs Delayed Broadcasts Calls Meta Wake Far FarJobs Unacked Dead Done BroadcastJobs Pending Crashes Metadata Replacements Leases Running];
    Import "import" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Crashes Calls Meta Wake Metadata Far FarJobs];
    Change "change" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Calls Meta Wake Metadata Far FarJobs];
    Listen "listen" [Meta];
    KeepHistory "keep_history" [Meta History HistoryEnds];
    History "history" [History];
    Set "set" [Calls Meta Wake];
    TopicState "topic_state" [Meta];
    Command "command" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Pending Crashes Calls Meta Wake Metadata Replacements Far FarJobs];
    Open "open" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Pending Crashes Meta Metadata Replacements Far FarJobs History HistoryEnds];
    Get "get" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Metadata FarJobs Crashes];
    Page "page" [Jobs Delayed Metadata Far FarJobs];
    Export "export" [Jobs Delayed Metadata Far FarJobs Crashes Meta];
    ExportRuns "export_runs" [Jobs Running Metadata Crashes Pending Replacements Meta];
    Nodes "nodes" [Leases Running];
    Rows "rows" [Jobs Metadata Running];
    Schedules "schedules" [Schedules];
    Counts "counts" [Jobs Delayed Unacked Dead Done Broadcasts Far FarJobs];
    Overview "overview" [Jobs Delayed Unacked Dead Done Broadcasts Far FarJobs Leases Meta Statistics Running];
    DueCounts "due_counts" [Delayed Far FarJobs];
    Examine "examine" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Meta Far FarJobs Metadata Pending Crashes Schedules Running];
    Repair "repair" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Meta Far FarJobs Metadata Pending Crashes Schedules Running];
    GiveUp "give_up" [Jobs Delayed Unacked Dead Meta Metadata Far FarJobs Crashes];
    CountingTransfer "transfer" [Jobs Delayed Running Leases Sequence Crashes Meta Metadata Far FarJobs Statistics];
    CountingSettle "settle" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Running Leases Sequence Pending Crashes Meta Wake Metadata Replacements FarJobs Schedules Statistics];
    CountingReclaim "reclaim" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Running Leases Pending Crashes Meta Wake Metadata Replacements Statistics];
}

impl Step {
    /// Whether it is the script of a link that counts: the same file, with the parts that count.
    const fn counts(self) -> bool {
        matches!(self, Self::CountingTransfer | Self::CountingSettle | Self::CountingReclaim)
    }

    /// The keys that the common path of a script writes without having read them before its first write. The script
    /// checks their types each time; `None`: it checks the types of all its keys. Only the hot steps have such a list,
    /// because one check costs as much as one job. (A transfer reads all its keys and includes no check.)
    const fn unread(self) -> Option<&'static [Key]> {
        match self {
            Self::Settle | Self::CountingSettle => Some(&[Key::Jobs, Key::Leases]),
            Self::Change => Some(&[]),
            Self::Command => Some(&[Key::BroadcastJobs, Key::Crashes, Key::Replacements]),
            _ => None,
        }
    }
}

const PARTS: &[(&str, &str)] = &[
    ("bulk.lua", include_str!("lua/parts/bulk.lua")),
    ("calls.lua", include_str!("lua/parts/calls.lua")),
    ("claim.lua", include_str!("lua/parts/claim.lua")),
    ("clock.lua", include_str!("lua/parts/clock.lua")),
    ("counted.lua", include_str!("lua/parts/counted.lua")),
    ("cut.lua", include_str!("lua/parts/cut.lua")),
    ("metadata.lua", include_str!("lua/parts/metadata.lua")),
    ("overrides.lua", include_str!("lua/parts/overrides.lua")),
    ("gate.lua", include_str!("lua/parts/gate.lua")),
    ("settings.lua", include_str!("lua/parts/settings.lua")),
    ("usual.lua", include_str!("lua/parts/usual.lua")),
    ("told.lua", include_str!("lua/parts/told.lua")),
    ("lapse.lua", include_str!("lua/parts/lapse.lua")),
    ("leave.lua", include_str!("lua/parts/leave.lua")),
    ("pending.lua", include_str!("lua/parts/pending.lua")),
    ("plain_acks.lua", include_str!("lua/parts/plain_acks.lua")),
    ("holders.lua", include_str!("lua/parts/holders.lua")),
    ("order.lua", include_str!("lua/parts/order.lua")),
    ("scan_rows.lua", include_str!("lua/parts/scan_rows.lua")),
    ("rank.lua", include_str!("lua/parts/rank.lua")),
    ("roles.lua", include_str!("lua/parts/roles.lua")),
    ("signal.lua", include_str!("lua/parts/signal.lua")),
    ("keep.lua", include_str!("lua/parts/keep.lua")),
    ("note.lua", include_str!("lua/parts/note.lua")),
    ("plain.lua", include_str!("lua/parts/plain.lua")),
    ("lease.lua", include_str!("lua/parts/lease.lua")),
    ("types.lua", include_str!("lua/parts/types.lua")),
    ("version.lua", include_str!("lua/parts/version.lua")),
    ("places.lua", include_str!("lua/parts/places.lua")),
    ("edit.lua", include_str!("lua/parts/edit.lua")),
    ("extend.lua", include_str!("lua/parts/extend.lua")),
    ("far.lua", include_str!("lua/parts/far.lua")),
    ("put_far.lua", include_str!("lua/parts/put_far.lua")),
    ("near.lua", include_str!("lua/parts/near.lua")),
    ("moves.lua", include_str!("lua/parts/moves.lua")),
    ("history.lua", include_str!("lua/parts/history.lua")),
    ("forget.lua", include_str!("lua/parts/forget.lua")),
    ("move.lua", include_str!("lua/parts/move.lua")),
    ("merge.lua", include_str!("lua/parts/merge.lua")),
    ("news.lua", include_str!("lua/parts/news.lua")),
    ("plain_far.lua", include_str!("lua/parts/plain_far.lua")),
    ("statistics.lua", include_str!("lua/parts/statistics.lua")),
    ("count_first.lua", include_str!("lua/parts/count_first.lua")),
    ("count_claims.lua", include_str!("lua/parts/count_claims.lua")),
    ("count_acks.lua", include_str!("lua/parts/count_acks.lua")),
    ("count_runs.lua", include_str!("lua/parts/count_runs.lua")),
    ("count_dead.lua", include_str!("lua/parts/count_dead.lua")),
    ("count_crashes.lua", include_str!("lua/parts/count_crashes.lua")),
];

/// The parts that only the scripts of links that count have.
const COUNTING: &[&str] = &[
    "statistics.lua",
    "count_first.lua",
    "count_claims.lua",
    "count_acks.lua",
    "count_runs.lua",
    "count_dead.lua",
    "count_crashes.lua",
];

/// A new job that is due at least this much later waits in the tree of later jobs, and half of it before its due time in `delayed`.
pub(super) const FAR: Duration = Duration::from_secs(5 * 60);

/// The part that checks types.
const TYPES: &str = "types.lua";

/// The part that reads the clock.
const CLOCK: &str = "clock.lua";

/// The one line that reads the clock, and the line that replaces it under a clock that a test moves. The key of that
/// clock is the last of the keys.
const SERVER_CLOCK: &str = "local time = redis.call('TIME')";
const TEST_CLOCK: &str = "local time = redis.call('HMGET', KEYS[#KEYS], 'seconds', 'micros')";

/// The scripts of a store, each with its hash.
#[derive(Debug)]
pub(super) struct Scripts {
    scripts: Vec<(String, String)>,
    test_clock: Option<String>,
}

impl Scripts {
    /// Assembles the scripts. `test_clock` is the key of a clock that replaces the server's.
    pub(super) fn new(test_clock: Option<String>) -> Self {
        let with_hash = |step: &Step| {
            let mut text = assembled(*step);
            if test_clock.is_some() {
                text = text.replace(SERVER_CLOCK, TEST_CLOCK);
            }
            let hash = redis::Script::new(&text).get_hash().to_owned();
            (text, hash)
        };
        Self { scripts: Step::ALL.iter().map(with_hash).collect(), test_clock }
    }

    /// The texts of all scripts.
    #[cfg(feature = "testing")]
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.scripts.iter().map(|(text, _)| text.as_str())
    }

    /// A call without arguments. `owner` is the node or producer of the owned keys.
    pub(super) fn call(&self, step: Step, keys: &Keys, owner: &str) -> ScriptCall {
        self.call_on(step, step.keys().iter().map(|key| keys.name(*key, owner)).collect(), keys)
    }

    /// A call without arguments of a step that reads the rows of these nodes.
    pub(super) fn call_with_nodes(&self, step: Step, keys: &Keys, owner: &str, nodes: &BTreeSet<NodeId>) -> ScriptCall {
        self.call_on(step, names_with_nodes(step, keys, owner, nodes).collect(), keys)
    }

    /// The same with the key of the index of schedules behind the others.
    pub(super) fn call_with_nodes_and_schedules(
        &self,
        step: Step,
        keys: &Keys,
        owner: &str,
        nodes: &BTreeSet<NodeId>,
    ) -> ScriptCall {
        // The script checks that the first rows are rows, so there have to be some: a producer holds no job, and has none.
        let no_rows = nodes.is_empty().then(|| keys.name(Key::Running, owner));
        let names = names_with_nodes(step, keys, owner, nodes).chain(no_rows).chain([keys.name(Key::Schedules, "")]);
        self.call_on(step, names.collect(), keys)
    }

    /// A call without arguments of a step that also enters schedules into their index, or removes them: its key is the last.
    pub(super) fn call_with_schedules(&self, step: Step, keys: &Keys, owner: &str) -> ScriptCall {
        let names = step.keys().iter().map(|key| keys.name(*key, owner));
        self.call_on(step, names.chain([keys.name(Key::Schedules, "")]).collect(), keys)
    }

    /// A call without arguments of a step that needs only its first keys.
    pub(super) fn call_with_first(&self, step: Step, count: usize, keys: &Keys, owner: &str) -> ScriptCall {
        let names = step.keys().iter().take(count).map(|key| keys.name(*key, owner));
        self.call_on(step, names.collect(), keys)
    }

    /// A call without arguments, on keys that the caller names.
    pub(super) fn call_on(&self, step: Step, names: Vec<String>, keys: &Keys) -> ScriptCall {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.scripts[step as usize].1).arg(names.len() + usize::from(self.test_clock.is_some())).arg(names);
        if let Some(clock) = &self.test_clock {
            cmd.arg(clock);
        }
        ScriptCall { step, cmd, keys: keys.clone(), behind: None }
    }

    /// The same call, with the text of the script instead of its hash.
    pub(super) fn in_full(&self, step: Step, cmd: &Cmd) -> Cmd {
        with_text(&self.scripts[step as usize].0, cmd)
    }

    /// A call that finds which of the same keys has a wrong type.
    pub(super) fn diagnosis(&self, step: Step, cmd: &Cmd) -> Cmd {
        with_text(&diagnosis(step), cmd)
    }
}

fn names_with_nodes<'a>(
    step: Step,
    keys: &'a Keys,
    owner: &'a str,
    nodes: &'a BTreeSet<NodeId>,
) -> impl Iterator<Item = String> + 'a {
    let own = step.keys().iter().filter(|key| **key != Key::Running).map(|key| keys.name(*key, owner));
    own.chain(nodes.iter().map(|node| keys.name(Key::Running, node.as_str())))
}

fn with_text(text: &str, cmd: &Cmd) -> Cmd {
    let mut full = redis::cmd("EVAL");
    full.arg(text);
    for argument in cmd.args_iter().skip(2) {
        if let redis::Arg::Simple(bytes) = argument {
            full.arg(bytes);
        }
    }
    full
}

/// A script, its keys and its arguments.
#[derive(Debug, Clone)]
pub(super) struct ScriptCall {
    pub(super) step: Step,
    pub(super) cmd: Cmd,
    pub(super) keys: Keys,
    /// A command that goes out behind the script, in the same write. Its answer is ignored.
    pub(super) behind: Option<Arc<Cmd>>,
}

impl ScriptCall {
    /// The name of a key that the call has, counted from 0.
    pub(super) fn name_of_key(&self, at: usize) -> Option<String> {
        match self.cmd.args_iter().nth(3 + at)? {
            redis::Arg::Simple(name) => Some(String::from_utf8_lossy(name).into_owned()),
            _ => None,
        }
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl redis::ToRedisArgs) -> Self {
        self.cmd.arg(argument);
        self
    }

    /// Adds an argument, for use in a loop.
    pub(super) fn push(&mut self, argument: impl redis::ToRedisArgs) {
        self.cmd.arg(argument);
    }
}

/// The text behind the header.
fn body(text: &str) -> &str {
    text.split_once("]]\n").map_or(text, |(_, body)| body)
}

/// The line that the loader writes in front of the part `types`.
fn types_of(step: Step) -> String {
    let types: Vec<_> = step.keys().iter().map(|key| format!("'{}'", key.redis_type())).collect();
    let is_unread = |key: &Key| step.unread().is_none_or(|unread| unread.contains(key));
    let unread: Vec<_> = step.keys().iter().map(|key| is_unread(key).to_string()).collect();
    format!("local TYPES, UNREAD = {{{}}}, {{{}}}\n", types.join(", "), unread.join(", "))
}

fn part(name: &str) -> Option<&'static str> {
    PARTS.iter().find(|(part, _)| *part == name).map(|(_, text)| body(text))
}

fn assembled(step: Step) -> String {
    let (longest_lease, far) = (LONGEST_LEASE.as_millis(), FAR.as_millis());
    let mut text = format!("local PROTOCOL, LONGEST_LEASE, FAR = '{PROTOCOL_VERSION}', {longest_lease}, {far}\n");
    if step.counts() {
        text.push_str(&format!("local statistics = KEYS[{}]\n", step.keys().len()));
    }
    assemble(step, body(step.text()), &mut text);
    text
}

fn assemble(step: Step, lines: &str, text: &mut String) {
    for line in lines.lines() {
        let name = line.trim_start().strip_prefix("-- include ");
        let Some((name, part)) = name.and_then(|name| Some((name, part(name)?))) else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        // A script that counts has read the clock before all others would.
        let is_left_out =
            if step.counts() { name == CLOCK && text.contains(SERVER_CLOCK) } else { COUNTING.contains(&name) };
        if is_left_out {
            continue;
        }
        if name == TYPES {
            text.push_str(&types_of(step));
        }
        assemble(step, part, text);
    }
}

/// The text of a script that only finds which of the keys of a step has a wrong type.
fn diagnosis(step: Step) -> String {
    format!("{}{}return wrong_type(true) or 1\n", types_of(step), part(TYPES).unwrap_or_default())
}

#[cfg(test)]
mod tests;
