//! A caller that makes job sets. A process that takes the place of another one repeats what that one may have left undone.

use std::path::PathBuf;
use std::time::Duration;

use dq::provider::{CallError, JobSetSummary};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use super::callers::{Caller, added, sent};
use super::work::{Kind, LAST, Work, is_deleted, member, must_fail};
use crate::ledger::{Answer, Entry, Verb};

/// How many members a call adds at most.
const AT_ONCE: u64 = 250;

/// The sets of one caller.
#[derive(Debug)]
pub(super) struct Sets {
    /// What the names of its sets begin with, whatever process it is in.
    name: String,
    members: u64,
    /// How many of its sets are closed, and the file that says so to the next process.
    closed: u64,
    file: PathBuf,
}

macro_rules! members {
    ($($payload:ident $topic:literal)+) => {$(
        #[derive(Debug, Serialize, Deserialize, dq::DelayJob)]
        #[job(topic = $topic)]
        struct $payload {
            #[job(id)]
            id: String,
            #[serde(flatten)]
            work: Work,
        }
    )+};
}

members!(Row "row" Line "line" Last "last");

impl Sets {
    /// The sets of the caller of this number in the process, whose place is what is before its last dot.
    pub(super) fn of(part: &super::Part, number: u64) -> Option<Self> {
        let (place, _) = part.name.rsplit_once('.')?;
        let name = format!("{place}-{number}");
        let file = part.folder.join(format!("{name}.sets"));
        let closed = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
        Some(Self { name, members: part.sets?, closed, file })
    }
}

impl Caller {
    /// Adds one set, and returns how many jobs that are.
    pub(super) async fn add_set(&mut self, mut sets: Sets) -> (u32, Sets) {
        let set = format!("{}-{}", sets.name, sets.closed + 1);
        let at_once = sets.members.div_ceil(2).clamp(1, AT_ONCE);
        for (nth, from) in (0..sets.members).step_by(at_once as usize).enumerate() {
            let to = sets.members.min(from + at_once);
            let kind = if nth % 2 == 0 { Kind::Row } else { Kind::Line };
            while !self.add_members(&set, kind, from..to).await {}
            (from..to).filter(|n| is_deleted(*n)).for_each(|n| self.delete_later(kind, member(&set, n)));
        }
        while !self.close(&set).await {}
        sets.closed += 1;
        std::fs::write(&sets.file, sets.closed.to_string()).expect("the folder can be written");
        (sets.members as u32 + 1, sets)
    }

    /// Returns whether they are members now.
    async fn add_members(&mut self, set: &str, kind: Kind, of: std::ops::Range<u64>) -> bool {
        let after = Duration::from_millis(self.rng.u64(0..2_000));
        let jobs: Vec<_> = of.clone().map(|n| (member(set, n), self.work_of(n))).collect();
        let (set, from, to) = (set.to_owned(), of.start, of.end);
        self.ledger.note(Entry::Members { set: set.clone(), from, to });
        let job_set = self.provider.job_set::<Last>(&set);
        let call = match kind {
            Kind::Row => job_set.add_many(jobs.into_iter().map(|(id, work)| Row { id, work })),
            _ => job_set.add_many(jobs.into_iter().map(|(id, work)| Line { id, work })),
        };
        let answer = told(call.after(after).await);
        self.ledger.note(Entry::Joined { set, from, to, answer });
        self.count(answer, to - from)
    }

    fn work_of(&mut self, n: u64) -> Work {
        Work { takes: self.rng.u64(0..10), fails: u32::from(must_fail(n)), until: 0, filler: String::new() }
    }

    /// Returns whether the set is closed.
    async fn close(&mut self, set: &str) -> bool {
        let (id, work) = (format!("{set}{LAST}"), Work { fails: 0, ..self.work_of(1) });
        self.ledger.note(Entry::Adding { id: id.clone(), after: 0 });
        let answer = told(self.provider.job_set::<Last>(set).then(Last { id: id.clone(), work }).await);
        self.ledger.note(Entry::Added { id, answer });
        self.count(answer, 1)
    }

    fn delete_later(&mut self, kind: Kind, id: String) {
        let topic = self.provider.topic(kind.topic()).expect("the name is valid");
        let (ledger, pause) = (self.ledger.clone(), Duration::from_millis(self.rng.u64(0..2_000)));
        tokio::spawn(async move {
            sleep_until(Instant::now() + pause).await;
            ledger.note(Entry::Sending { id: id.clone(), verb: Verb::Delete });
            let answer = sent(topic.delete(&id).await);
            ledger.note(Entry::Sent { id, verb: Verb::Delete, answer });
        });
    }
}

/// What a change of a set answered. One that is closed or has ended has all its members: the caller closes it after it has added them.
fn told(answer: Result<JobSetSummary, CallError>) -> Answer {
    match answer {
        Err(CallError::Refused { .. }) => added(Ok(())),
        answer => added(answer.map(drop)),
    }
}
