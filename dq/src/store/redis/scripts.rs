//! The Lua scripts: one file per step, assembled from its parts when the store is made.
//!
//! The header of a file names its keys and arguments; the loader replaces a line `-- include PART.lua` with that part, which may include
//! others. A line `-- rare PART.lua` stands for the same, where only what the line in front of it asks for goes that way: whoever follows
//! the common path of a step need not read it, and no round trip lies between the two. The loader also writes the types of the keys into the
//! part that checks them, and what words stand for ([`words`]): the protocol version, the longest lease, [`FAR`] (ms), [`PRIORITY`], the
//! number of the first key of rows (`FIRST`), the places of the fields of metadata (`FIELD.delay`) and what each may be (`BOUNDS`), constants of the script, and the number of a key for its name, which is as in [`Key::suffix`]
//! (`KEYS.far_jobs`); nil where the step has no such key. A process assembles the scripts once. They are called by their hash. A server that
//! does not know a script (because it is new, was flushed or failed over) is sent the text once. A server keeps the scripts of an older dq
//! beside those of a newer one.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::Cmd;

use super::keys::{Key, Keys};
use crate::environment::StoreClock;
use crate::job::{FIELDS, NodeId};
use crate::store::PROTOCOL_VERSION;
use crate::store::step::MAX_LEASE;

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
    Transfer "transfer" [Jobs Delayed Running Leases Sequence Crashes Meta Metadata Far FarJobs FarLeaves Unacked Dead Done Grouped Broadcasts History HistoryEnds Members Outbox Ticks Statistics];
    Settle "settle" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Running Leases Sequence Pending Crashes Meta Wake Metadata Replacements FarJobs Grouped History HistoryEnds Members Outbox Schedules Ticks Statistics];
    Renew "renew" [Running Leases Sequence];
    Isolate "isolate" [Running Leases Sequence Pending Crashes];
    Note "note" [Running Leases Sequence Pending Jobs Metadata Crashes Meta];
    Reconcile "reconcile" [Running Leases Sequence Jobs Dead Meta];
    Reclaim "reclaim" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Running Leases Pending Crashes Meta Wake Metadata Replacements Grouped History HistoryEnds Members Outbox Statistics];
    Release "release" [Delayed Broadcasts Running Leases Sequence Meta Wake];
    Wake "wake" [Delayed Meta Wake];
    Sweep "sweep" [Jobs Delayed Unacked Dead Done Running Leases Sequence Crashes Meta Metadata Grouped Broadcasts History HistoryEnds Members Outbox];
    Publish "publish" [Broadcasts BroadcastJobs Meta BroadcastChannel Jobs Done History HistoryEnds Members Outbox];
    Scan "scan" [Jobs Delayed Unacked Dead Done Leases Meta Far FarJobs Grouped Running];
    Recover "recover" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Pending Crashes Meta Wake Metadata Replacements Far FarJobs FarLeaves Schedules Grouped History HistoryEnds Members Outbox Running];
    Add "add" [Jobs Delayed Broadcasts Calls Meta Wake Far FarJobs FarLeaves Grouped History HistoryEnds Members Outbox Unacked Dead Done BroadcastJobs Pending Crashes Metadata Replacements Leases Schedules Taken Ticks Running];
    Import "import" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Crashes Calls Meta Wake Metadata Far FarJobs FarLeaves Schedules Grouped Taken History HistoryEnds Members Outbox Ticks];
    Change "change" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Calls Meta Wake Metadata Far FarJobs FarLeaves Grouped History HistoryEnds Members Outbox Ticks];
    Listen "listen" [Meta];
    KeepHistory "keep_history" [Meta History HistoryEnds];
    Set "set" [Calls Meta Wake Delayed Grouped];
    TopicState "topic_state" [Meta];
    Command "command" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Pending Crashes Calls Meta Wake Metadata Replacements Far FarJobs FarLeaves Schedules Grouped Taken History HistoryEnds Members Outbox Ticks];
    Open "open" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Pending Crashes Meta Metadata Replacements Far FarJobs FarLeaves History HistoryEnds Grouped Taken Outbox Members Sets SetOrder];
    Get "get" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Metadata FarJobs Crashes];
    Page "page" [Jobs Delayed Metadata Far FarJobs FarLeaves Crashes Meta];
    Nodes "nodes" [Leases Running];
    Groups "groups" [Delayed Unacked Dead Done Grouped Running];
    Rows "rows" [Jobs Metadata Crashes Pending Replacements Meta Running];
    JobSet "job_set" [Calls Meta Wake Sets SetOrder Outbox Set];
    JobSets "job_sets" [Sets SetOrder Set];
    Relay "relay" [Outbox Meta];
    Outbox "outbox" [Outbox];
    SetBack "set_back" [Calls];
    Counts "counts" [Jobs Delayed Unacked Dead Done Broadcasts Far FarJobs FarLeaves];
    Overview "overview" [Jobs Delayed Unacked Dead Done Broadcasts Far FarJobs FarLeaves Leases Meta Statistics Running];
    DueCounts "due_counts" [Delayed Far FarJobs FarLeaves];
    Examine "examine" [Jobs Delayed Unacked Dead Done Broadcasts BroadcastJobs Leases Meta Far FarJobs FarLeaves Metadata Pending Crashes Schedules Grouped Running];
}

impl Step {
    /// The keys that the common path of a script writes without having read them before its first write. The script
    /// checks their types each time; `None`: it checks the types of all its keys. Only the hot steps have such a list,
    /// because one check costs as much as one job. (Transfers and changes read all their keys and include no check, and neither do
    /// scripts that write nothing.)
    const fn unread(self) -> Option<&'static [Key]> {
        match self {
            Self::Settle => Some(&[Key::Jobs, Key::Leases]),
            Self::Publish => Some(&[Key::Broadcasts, Key::BroadcastJobs, Key::Meta]),
            Self::Command => Some(&[Key::BroadcastJobs, Key::Crashes, Key::Replacements]),
            _ => None,
        }
    }
}

macro_rules! parts {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("lua/parts/", $name))),)+]
    };
}

const PARTS: &[(&str, &str)] = parts! {
    "back_off.lua" "bulk.lua" "calls.lua" "claim.lua" "clock.lua" "counted.lua" "cut.lua" "drained.lua" "edit.lua" "ends.lua" "entries.lua" "extend.lua" "far.lua" "fit.lua" "gate.lua" "group_rate.lua" "group_waiting.lua" "groups.lua" "head.lua" "heavy.lua" "heavy_batch.lua"
    "holders.lua" "join.lua" "keep.lua" "lapse.lua" "lease.lua" "leave.lua" "leave_out.lua" "letters.lua" "limits.lua" "merge.lua" "metadata.lua" "move.lua" "near.lua"
    "news.lua" "note.lua" "open_groups.lua" "options.lua" "order.lua" "outcomes.lua" "overrides.lua" "pace.lua" "pages.lua" "parked.lua" "pauses.lua" "pending.lua" "places.lua" "plain_far.lua" "post.lua" "postcard.lua" "put_far.lua" "put_outbox.lua"
    "ranked.lua" "recorder.lua" "roles.lua" "says.lua" "scan_rows.lua" "score.lua" "scored.lua" "seats.lua" "shifts.lua" "shut.lua" "signal.lua" "slot_free.lua" "special.lua" "take.lua" "tell_lease.lua" "tell_sets.lua" "ticks.lua" "told.lua" "types.lua" "usual.lua" "version.lua" "waiting.lua" "weigh.lua" "weight.lua"
};

/// A new job that is due at least this much later waits in the tree of later jobs, and half of it before its due time in `delayed`.
pub(super) const FAR: Duration = Duration::from_secs(5 * 60);

/// What the score of a high job in `delayed` has beyond its due time (ms), and that of a low one twice. No due time is so late, and all
/// scores are exact.
const PRIORITY: u64 = 1 << 49;

/// What the part that checks types includes: the loader writes it.
const TYPES: &str = "TYPES";

/// The one line that reads the clock, and the line that replaces it under a clock that a test moves. The time of that clock is
/// behind all arguments, and the first line takes it from there.
const SERVER_CLOCK: &str = "local time = redis.call('TIME')";
const TEST_CLOCK: &str = "local time = {math.floor(CLOCK / 1000000), CLOCK % 1000000}";
const TAKE_TEST_CLOCK: &str = "local CLOCK = table.remove(ARGV)\n";

/// The scripts of a store, each with its hash.
#[derive(Debug)]
pub(super) struct Scripts {
    scripts: Vec<(String, String)>,
    test_clock: Option<Arc<dyn StoreClock>>,
}

impl Scripts {
    /// Assembles the scripts. `test_clock` replaces the server's.
    pub(super) fn new(test_clock: Option<Arc<dyn StoreClock>>) -> Self {
        let with_hash = |step: &Step| {
            let mut text = assembled(*step).to_owned();
            if test_clock.is_some() {
                text = TAKE_TEST_CLOCK.to_owned() + &text.replace(SERVER_CLOCK, TEST_CLOCK);
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
}

/// The scripts of a topic, for those who call them: with its keys, and the node or producer that some of these belong to.
#[derive(Debug, Clone)]
pub(super) struct TopicScripts {
    scripts: Arc<Scripts>,
    pub(super) keys: Keys,
    /// Empty if the calls need no such key.
    pub(super) owner: Arc<str>,
}

impl TopicScripts {
    pub(super) fn new(scripts: &Arc<Scripts>, keys: Keys, owner: &str) -> Self {
        Self { scripts: Arc::clone(scripts), keys, owner: owner.into() }
    }

    /// A call without arguments.
    pub(super) fn call(&self, step: Step) -> ScriptCall {
        self.call_with_first(step, step.keys().len(), &self.owner)
    }

    /// A call without arguments of a step that reads the rows of these nodes.
    pub(super) fn call_with_nodes(&self, step: Step, nodes: &BTreeSet<NodeId>) -> ScriptCall {
        let own = step.keys().iter().filter(|key| **key != Key::Running).map(|key| self.keys.name(*key, &self.owner));
        let rows = nodes.iter().map(|node| self.keys.name(Key::Running, node.as_str()));
        self.call_on(step, own.chain(rows).collect())
    }

    /// A call without arguments of a step that needs only its first keys, those of `owner`. Every step of a node passes here, so one
    /// buffer holds each name in turn.
    pub(super) fn call_with_first(&self, step: Step, count: usize, owner: &str) -> ScriptCall {
        let (mut call, mut name) = (self.without_keys(step, count), String::new());
        for key in step.keys().iter().take(count) {
            self.keys.write_name(*key, owner, &mut name);
            call.cmd.arg(&name);
        }
        call
    }

    /// A call without arguments, on keys that the caller names.
    pub(super) fn call_on(&self, step: Step, names: Vec<String>) -> ScriptCall {
        self.without_keys(step, names.len()).arg(names)
    }

    fn without_keys(&self, step: Step, count: usize) -> ScriptCall {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.scripts.scripts[step as usize].1).arg(count);
        ScriptCall { step, form: Form::Hash, cmd, keys: self.keys.clone(), scripts: Arc::clone(&self.scripts) }
    }
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

/// How the script of a call is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Hash,
    Text,
    /// Not the script itself, but one that finds the key of a wrong type.
    Diagnosis,
}

/// A script, its keys and its arguments.
#[derive(Debug, Clone)]
pub(super) struct ScriptCall {
    pub(super) step: Step,
    pub(super) form: Form,
    pub(super) cmd: Cmd,
    pub(super) keys: Keys,
    scripts: Arc<Scripts>,
}

impl ScriptCall {
    /// Sends the text of the script from now on instead of its hash.
    pub(super) fn write_in_full(&mut self) {
        (self.form, self.cmd) = (Form::Text, with_text(&self.scripts.scripts[self.step as usize].0, &self.cmd));
    }

    /// Becomes a call that finds which of the same keys has a wrong type.
    pub(super) fn become_diagnosis(&mut self) {
        (self.form, self.cmd) = (Form::Diagnosis, with_text(&diagnosis(self.step), &self.cmd));
    }

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

    /// Adds the names of these nodes.
    pub(super) fn nodes(mut self, nodes: &BTreeSet<NodeId>) -> Self {
        nodes.iter().for_each(|node| self.push(node.as_str()));
        self
    }

    /// Adds what is behind all arguments: the time, under a clock that a test moves.
    pub(super) fn complete(mut self) -> Self {
        if let Some(clock) = &self.scripts.test_clock {
            self.cmd.arg(clock.micros());
        }
        self
    }

    /// Adds an argument, for use in a loop.
    pub(super) fn push(&mut self, argument: impl redis::ToRedisArgs) {
        self.cmd.arg(argument);
    }
}

/// The text behind the header.
pub(super) fn body(text: &str) -> &str {
    text.split_once("]]\n").map_or(text, |(_, body)| body)
}

/// The line that the loader writes in front of the part `types`.
fn types_of(step: Step, is_diagnosis: bool) -> String {
    let type_of = |key: &Key| match key {
        // Of the wrong type they keep no step from its jobs. A channel is not checked.
        Key::History | Key::HistoryEnds | Key::Ticks if !matches!(step, Step::Open | Step::KeepHistory) => {
            "'channel'".into()
        }
        // A script reads these before it writes them, where jobs have groups, or are schedules or members of job sets; where an id is taken;
        // and where an outcome has follow-ups.
        Key::Grouped | Key::Schedules | Key::Members | Key::Taken | Key::Outbox
            if !is_diagnosis && !matches!(step, Step::Open | Step::JobSet) =>
        {
            "'channel'".into()
        }
        key => format!("'{}'", key.redis_type()),
    };
    let types: Vec<_> = step.keys().iter().map(type_of).collect();
    let is_unread = |key: &Key| step.unread().is_none_or(|unread| unread.contains(key));
    let unread: Vec<_> = step.keys().iter().map(|key| is_unread(key).to_string()).collect();
    format!("  local types, unread = {{{}}}, {{{}}}\n", types.join(", "), unread.join(", "))
}

fn part(name: &str) -> Option<&'static str> {
    PARTS.iter().find(|(part, _)| *part == name).map(|(_, text)| body(text))
}

fn assembled(step: Step) -> &'static str {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    &TEXTS.get_or_init(|| Step::ALL.iter().copied().map(text_of).collect())[step as usize]
}

fn text_of(step: Step) -> String {
    let (longest_lease, far) = (MAX_LEASE.as_millis(), FAR.as_millis());
    let first = step.keys().iter().position(|key| *key == Key::Running).map_or(0, |at| at + 1);
    let mut text = "local KEYS = KEYS\n".to_owned();
    assemble(step, body(step.text()), &["-- include ", "-- rare "], &mut text);
    let fields: Vec<_> = (1..).zip(FIELDS).map(|(place, (name, _))| (format!("FIELD.{name}"), place)).collect();
    let bounds: Vec<_> = FIELDS.iter().map(|(_, kind)| kind.in_lua()).collect();
    let mut constants = BTreeMap::from([
        ("PROTOCOL", format!("'{PROTOCOL_VERSION}'").into()),
        ("MAX_LEASE", longest_lease.to_string().into()),
        ("FAR", far.to_string().into()),
        ("PRIORITY", PRIORITY.to_string().into()),
        ("FIRST", first.to_string().into()),
        ("BOUNDS", format!("{{{}}}", bounds.join(", ")).into()),
    ]);
    constants.extend(fields.iter().map(|(name, place)| (name.as_str(), place.to_string().into())));
    words::replaced(step, &text, constants)
}

/// Writes these lines, with the parts that follow one of `words` in place of the lines that name them.
fn assemble(step: Step, lines: &str, words: &[&str], text: &mut String) {
    for line in lines.lines() {
        let name = words.iter().find_map(|word| line.trim_start().strip_prefix(word));
        let Some(name) = name else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        if name == TYPES {
            text.push_str(&types_of(step, false));
            continue;
        }
        let part = part(name).expect("a script includes parts of the list only");
        assemble(step, part, words, text);
    }
}

/// The text of a script that only finds which of the keys of a step has a wrong type.
fn diagnosis(step: Step) -> String {
    let check = part("types.lua").unwrap_or_default().replace("  -- include TYPES\n", &types_of(step, true));
    words::replaced(step, &format!("{check}return wrong_type(true) or 1\n"), BTreeMap::new())
}

#[cfg(test)]
mod tests;
