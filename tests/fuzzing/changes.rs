//! The changes of steps as a journal keeps them: the grammar of `docs/internals/journal-changes.md`.

use std::collections::{BTreeMap, BTreeSet};

use dq::job::JobId;

use crate::draw::{Draw, NOW};
use crate::{batches, grammar};

/// The variants of `Change` in their order. A test compares them with the type.
const VARIANTS: &str = "Origin(u64),Put(Row),Part(RowPart),Gone(&str),Claim(&str,u64,bool),Claimed(&str,Time),\
     Broadcast(&str,Option<(Time,Raw)>),Lease(&str,bool),State(Box<KeptTopicState>),PauseOfGroup(&str,Option<Cow<Pause>>),\
     History(&str,Option<Cow<History>>),HistorySetting(HistorySetting),Taken(&str,Option<TakenId>),\
     Position(&str,OutboxPosition),Outbox(TopicName,OutboxPosition,OutboxPosition,Raw),OutboxGone(TopicName,OutboxPosition),\
     Member(&str,Option<Cow<Membership>>),Set(JobId,Option<(SetRow,Option<Raw>)>),\
     SetMember(JobId,Cow<Member>,MemberState),";

/// The name of a variant, if there is one of this number.
fn name(kind: usize) -> Option<&'static str> {
    VARIANTS.split("),").filter_map(|variant| Some(variant.split_once('(')?.0)).nth(kind)
}

/// How often each of them is drawn; `Claimed` follows a claim.
const SHARES: [u64; 19] = [2, 8, 6, 2, 2, 0, 2, 2, 2, 2, 2, 2, 3, 3, 5, 2, 4, 4, 4];

/// The kinds of limits in their order, and a value that each of them has.
const LIMITS: [&str; 7] = ["3", "100/s, burst 20", "1000", "1", "10/m", "50", "12"];

const SETS: [&str; 3] = ["import-7", "s", "n\u{e9}"];

/// Writes changes as `postcard` encodes the variants of `Change`, and knows the rows that they make: whether each is RUNNING.
pub struct Changes<'a> {
    draw: &'a Draw,
    rows: BTreeMap<String, bool>,
    bytes: Vec<u8>,
    /// The variants that it has written.
    kinds: BTreeSet<usize>,
}

impl<'a> Changes<'a> {
    pub const fn new(draw: &'a Draw) -> Self {
        Self { draw, rows: BTreeMap::new(), bytes: Vec::new(), kinds: BTreeSet::new() }
    }

    /// The changes of a step.
    pub fn step(&mut self) -> &[u8] {
        self.bytes.clear();
        self.number(0);
        self.number(NOW);
        (0..=self.draw.below(8)).for_each(|_| self.change());
        &self.bytes
    }

    /// The ids of the rows that the changes leave.
    pub fn into_rows(self) -> impl Iterator<Item = String> {
        self.rows.into_keys()
    }
}

impl Changes<'_> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.put(text.as_bytes());
    }

    /// A flag, or what comes before an optional value.
    fn flag(&mut self, is_set: bool) -> bool {
        self.bytes.push(is_set.into());
        is_set
    }

    /// The variant of an enum.
    fn one_of(&mut self, variants: u64) -> u64 {
        let variant = self.draw.below(variants);
        self.number(variant);
        variant
    }

    /// A time after the origin.
    fn time(&mut self) {
        let time =
            if self.draw.one_in(4) { self.draw.number() as i64 } else { self.draw.below(200_000) as i64 - 100_000 };
        self.number((time << 1 ^ time >> 63) as u64);
    }

    fn fence(&mut self) {
        let fence = if self.draw.one_in(8) { self.draw.number() } else { self.draw.below(1 << 51) };
        self.number(fence & u64::MAX >> 1);
    }

    fn node(&mut self) {
        self.text(self.draw.pick(&["n1", "n2", "node é", "x"]));
    }

    fn record(&mut self) {
        let record = grammar::record(self.draw);
        self.put(&record);
    }

    fn new_id(&self) -> String {
        let id = grammar::id(self.draw);
        if JobId::new(&id).is_ok() { id } else { self.draw.word() }
    }

    /// A row that is there, mostly.
    fn known(&self) -> Option<String> {
        if self.draw.one_in(60) {
            return Some(self.new_id());
        }
        self.rows.keys().nth(self.draw.below(self.rows.len().max(1) as u64) as usize).cloned()
    }

    /// A place. RUNNING is a state of rows of a claim alone.
    fn place(&mut self, is_running: bool) {
        const RUNNING: u64 = 1;
        let state = if is_running { RUNNING } else { [0, 2, 3, 4][self.draw.below(4) as usize] };
        self.number(if self.draw.one_in(400) { RUNNING } else { state });
        self.time();
        self.flag(self.draw.one_in(8));
    }

    fn row(&mut self, is_running: bool) {
        let id = self.new_id();
        self.text(&id);
        self.place(is_running);
        self.number(if self.draw.one_in(4) { self.draw.number() & u64::from(u32::MAX) } else { 0 });
        self.record();
        if self.flag(is_running) {
            self.notes();
        }
        self.rows.insert(id, is_running);
    }

    fn notes(&mut self) {
        if self.flag(self.draw.one_in(3)) {
            self.one_of(2);
        }
        if self.flag(self.draw.one_in(4)) {
            self.pending();
        }
    }

    fn pending(&mut self) {
        if self.flag(self.draw.one_in(2)) {
            self.one_of(3);
            if self.flag(self.draw.one_in(2)) {
                self.fence();
            }
        }
        if self.flag(self.draw.one_in(2)) {
            self.record();
            self.number(self.draw.number());
            self.one_of(3);
            self.flag(self.draw.one_in(2));
        }
    }

    fn parts(&mut self, id: &str) {
        let is_running = self.rows.get(id).copied().unwrap_or_default();
        self.text(id);
        let moves = self.flag(self.draw.one_in(2));
        if moves {
            self.place(false);
            self.rows.insert(id.to_owned(), false);
        }
        if self.flag(self.draw.one_in(2)) {
            self.number(self.draw.number() & u64::from(u32::MAX));
        }
        if self.flag(self.draw.one_in(2)) {
            let record = grammar::record(self.draw);
            self.put(&record[..record.len().min(40)]);
            self.number(self.draw.below(if self.draw.one_in(20) { 1_000 } else { 3 }));
        }
        if self.flag(is_running && !moves && self.draw.one_in(2)) {
            self.notes();
        }
    }

    fn reason(&mut self) {
        let reason = self.draw.text();
        self.text(reason.get(..1_024).unwrap_or(&reason));
    }

    fn pause(&mut self) {
        self.reason();
        if self.flag(self.draw.one_in(2)) {
            self.number(self.draw.number());
        }
        self.text(&self.draw.word());
        self.number(self.draw.number());
    }

    fn state(&mut self) {
        if self.flag(self.draw.one_in(2)) {
            self.pause();
        }
        if self.flag(self.draw.one_in(3)) {
            self.reason();
            self.text(&self.draw.word());
            self.number(self.draw.number());
        }
        if self.flag(self.draw.one_in(3)) {
            self.number(self.draw.number());
            self.text(&self.draw.word());
            self.number(self.draw.number());
        }
        let limits = if self.draw.one_in(4) { self.draw.below(4) } else { 0 };
        self.number(limits);
        for _ in 0..limits {
            let kind = self.one_of(LIMITS.len() as u64) as usize;
            self.text(if self.draw.one_in(30) { "no limit" } else { LIMITS[kind] });
            self.reason();
            self.text(&self.draw.word());
            self.number(self.draw.number());
        }
    }

    /// A change: mostly of the rows.
    fn change(&mut self) {
        let drawn = self.draw.below(SHARES.iter().sum());
        let mut sums = SHARES.iter().scan(0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let kind = if self.rows.is_empty() { 1 } else { sums.position(|sum| drawn < sum).unwrap_or_default() };
        let kind = if self.draw.one_in(600) { self.draw.below(256) as usize } else { kind };
        self.number(kind as u64);
        self.kinds.insert(kind);
        let name = name(kind).unwrap_or_default();
        match name {
            "Origin" => self.number(NOW),
            "Put" => self.row(false),
            "Part" | "Gone" | "Claimed" => self.of_row(name),
            "Claim" => self.claim(),
            "Lease" => {
                self.node();
                self.flag(self.draw.one_in(2));
            }
            "State" => self.state(),
            "HistorySetting" => {
                self.number(self.draw.below(200));
                self.number(self.draw.below(1 << 22));
                self.number(self.draw.below(1_000_000_000));
            }
            "Position" => {
                self.text(self.draw.pick(&["outbox:u", "outbox:t", "p"]));
                self.position();
            }
            "Outbox" | "OutboxGone" => {
                self.text(self.draw.pick(&batches::TARGETS));
                self.position();
                if name != "OutboxGone" {
                    self.position();
                    let batch = batches::packed(self.draw);
                    self.put(&batch);
                }
            }
            "Set" => self.set(),
            "SetMember" => {
                self.text(self.draw.pick(&SETS));
                self.text(self.draw.pick(&batches::TARGETS));
                let id = self.known().unwrap_or_else(|| self.new_id());
                self.text(&id);
                self.one_of(3);
            }
            other => self.beside(other),
        }
    }

    /// A change of a row that is there.
    fn of_row(&mut self, kind: &str) {
        let Some(id) = self.known() else { return };
        match kind {
            "Part" => self.parts(&id),
            "Gone" => {
                self.text(&id);
                self.rows.remove(&id);
            }
            _ => {
                self.text(&id);
                self.time();
            }
        }
    }

    /// A claim of some rows: whole ones, and ones that are there.
    fn claim(&mut self) {
        const PUT: usize = 1;
        const CLAIMED: usize = 5;
        self.node();
        self.fence();
        self.flag(self.draw.one_in(2));
        for _ in 0..=self.draw.below(3) {
            if self.draw.one_in(3) {
                self.number(PUT as u64);
                self.kinds.insert(PUT);
                self.row(true);
                continue;
            }
            let Some(id) = self.known() else { return };
            self.number(CLAIMED as u64);
            self.kinds.insert(CLAIMED);
            self.text(&id);
            self.time();
            self.rows.insert(id, true);
        }
    }

    /// A place among the follow-ups of a topic, and when it was written, in µs.
    fn position(&mut self) {
        let number = || if self.draw.one_in(6) { self.draw.number() } else { NOW * 1_000 + self.draw.below(1_000) };
        let at = number();
        let written = if self.draw.one_in(4) { number() } else { at };
        self.number(at & u64::MAX >> 1);
        self.number(written & u64::MAX >> 1);
    }

    /// A job set, or that there is none.
    fn set(&mut self) {
        self.text(self.draw.pick(&SETS));
        if !self.flag(!self.draw.one_in(5)) {
            return;
        }
        self.one_of(3);
        self.number(self.draw.below(5));
        for _ in 0..3 {
            let ended = if self.draw.one_in(12) { self.draw.number() } else { self.draw.below(2) };
            self.number(ended);
        }
        self.number(self.draw.number());
        self.flag(self.draw.one_in(3));
        if self.flag(self.draw.one_in(2)) {
            let job = batches::packed_job(self.draw);
            self.put(&job);
        }
    }

    /// What is kept under a name beside the rows, or nothing.
    fn beside(&mut self, kind: &str) {
        let id = if self.draw.one_in(2) { self.known() } else { None };
        self.text(&id.unwrap_or_else(|| self.new_id()));
        if !self.flag(!self.draw.one_in(4)) {
            return;
        }
        match kind {
            "Broadcast" => {
                self.time();
                self.record();
            }
            "PauseOfGroup" => self.pause(),
            "History" => {
                self.text(&self.draw.text());
                if self.flag(self.draw.one_in(2)) {
                    self.number(self.draw.number());
                }
            }
            "Member" => {
                self.text(self.draw.pick(&batches::TARGETS));
                self.text(self.draw.pick(&SETS));
                self.one_of(3);
            }
            _ => {
                self.number(self.draw.number());
                self.flag(self.draw.one_in(2));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGE: &str = include_str!("../../dq/src/store/memory/changes/change.rs");
    const JOB_SETS: &str = include_str!("../../dq/src/store/memory/job_sets.rs");
    const HISTORIES: &str = include_str!("../../dq/src/store/memory/histories.rs");
    const TAKEN: &str = include_str!("../../dq/src/store/memory/taken.rs");
    const PENDING: &str = include_str!("../../dq/src/store/pending.rs");
    const JOB_STATE: &str = include_str!("../../dq/src/job/state.rs");
    const STATE: &str = include_str!("../../dq/src/store/topic_state.rs");
    const JOB_SET: &str = include_str!("../../dq/src/store/job_set.rs");
    const HISTORY: &str = include_str!("../../dq/src/store/history.rs");
    const OUTBOX: &str = include_str!("../../dq/src/store/outbox.rs");
    const LIMIT: &str = include_str!("../../dq/src/store/limit.rs");

    /// What the grammar was written for: a source, a type in it, and what stands in that.
    const WRITTEN: [(&str, &str, &str); 21] = [
        (CHANGE, "enum Change", VARIANTS),
        (OUTBOX, "struct OutboxPosition", "at:u64,written:u64,"),
        (CHANGE, "struct Row", "id:&str,place:KeptPlace,crashes:u32,record:Raw,notes:Option<Notes>,"),
        (CHANGE, "struct KeptPlace", "state:State,at:Time,has_seat:bool,"),
        (CHANGE, "struct Notes", "isolation:Option<Isolation>,pending:Option<Cow<Box<PendingCommand>>>,"),
        (
            CHANGE,
            "struct RowPart",
            "id:&str,place:Option<KeptPlace>,crashes:Option<u32>,metadata:Option<(Raw,usize)>,notes:Option<Notes>,",
        ),
        (
            CHANGE,
            "struct KeptTopicState",
            "pause:Option<Pause>,drain:Option<Drain>,delay:Option<TopicDelay>,limits:Vec<(LimitKind,String,String,String,Timestamp)>,",
        ),
        (JOB_STATE, "enum State", "Delayed,Running,Unacked,Dead,Done,"),
        (STATE, "struct Pause", "reason:String,until:Option<Timestamp>,by:String,since:Timestamp,"),
        (STATE, "struct Drain", "reason:String,by:String,since:Timestamp,"),
        (STATE, "struct TopicDelay", "delay:Duration,by:String,since:Timestamp,"),
        (
            LIMIT,
            "enum LimitKind",
            "ClusterConcurrency,Rate,MaxWaiting,GroupConcurrency,GroupRate,GroupMaxWaiting,GroupBurst,",
        ),
        (HISTORIES, "struct History", "text:String,until:Option<Timestamp>,"),
        (HISTORY, "struct HistorySetting", "moves:usize,after:Duration,"),
        (TAKEN, "struct TakenId", "until:Timestamp,was_deleted:bool,"),
        (JOB_SET, "struct Membership", "home:TopicName,set:JobId,on_dead:OnDead,"),
        (JOB_SET, "struct SetCounts", "members:u64,acked:u64,dead:u64,left:u64,"),
        (JOB_SETS, "struct SetRow", "state:SetState,counts:SetCounts,since:Timestamp,cancels:bool,"),
        (JOB_SETS, "enum MemberState", "Waits,Cancelled,Ended,"),
        (PENDING, "struct PendingCommand", "end:Option<End>,replacement:Option<Replacement>,"),
        (PENDING, "struct Replacement", "job:AddedJob,conditional:bool,"),
    ];

    /// What stands between the braces of a type, without comments, attributes, visibility, lifetimes and blanks.
    fn body(source: &str, name: &str) -> String {
        let at = [" {", "<'a> {"].into_iter().find_map(|end| source.find(&format!("{name}{end}")));
        let rest = &source[at.unwrap_or_else(|| panic!("there is no `{name}`"))..];
        let lines = rest.lines().skip(1).take_while(|line| *line != "}");
        let lines = lines.map(str::trim).filter(|line| !line.starts_with("//"));
        let lines = lines.map(|line| line.replace("#[serde(borrow)]", "")).filter(|line| !line.starts_with("#["));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        for gone in ["pub(super)", "pub(crate)", "pub ", "<'a>", "'a, ", "'a ", " ", "\n"] {
            text = text.replace(gone, "");
        }
        text
    }

    #[test]
    fn the_grammar_of_changes_is_that_of_their_types() {
        for (source, name, written) in WRITTEN {
            assert_eq!(body(source, name), written, "the grammar of changes does not have `{name}` as it is now");
        }
    }

    #[test]
    fn each_change_is_generated() {
        let mut kinds = BTreeSet::new();
        for seed in 0..300 {
            let draw = Draw::new(seed);
            let mut changes = Changes::new(&draw);
            changes.step();
            kinds.extend(changes.kinds);
        }
        assert!((0..).take_while(|kind| name(*kind).is_some()).all(|kind| kinds.contains(&kind)), "{kinds:?}");
    }
}
