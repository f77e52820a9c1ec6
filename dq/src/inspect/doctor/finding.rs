//! A finding, and how the mismatches of a store become findings.

use std::fmt;

use serde::Serialize;

use super::code::{FindingCode, Severity};
use crate::job::TopicName;
use crate::store::{Danger, DangerKind, GiveUp, Mismatch, MismatchKind};

/// Something that the doctor found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is; `docs/guide/doctor.md` has a table of all codes.
    pub code: FindingCode,
    /// How bad it is.
    pub severity: Severity,
    /// The topic; `None` if it concerns the store as a whole.
    pub topic: Option<TopicName>,
    /// The job, the node or the key.
    pub id: Option<String>,
    /// What is wrong.
    pub text: String,
    /// What a repair does; `None` if the doctor cannot repair it.
    pub repair: Option<String>,
    /// What to do by hand.
    pub advice: String,
    #[serde(skip)]
    pub(super) remedy: Option<Remedy>,
}

/// What a repair asks the store to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Repair the mismatch.
    Repair(Mismatch),
    /// Make the job DEAD.
    GiveUp(GiveUp),
}

/// As a line: `error several-places order-timeout/4711: ..`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.severity, self.code)?;
        match (&self.topic, &self.id) {
            (Some(topic), Some(id)) => write!(f, " {topic}/{id}")?,
            (Some(topic), None) => write!(f, " {topic}")?,
            (None, _) => {}
        }
        write!(f, ": {}", self.text)
    }
}

impl Finding {
    pub(super) fn new(code: FindingCode, topic: Option<TopicName>, text: String, advice: &str) -> Self {
        let (severity, advice) = (code.severity(), advice.to_owned());
        Self { code, severity, topic, id: None, text, repair: None, advice, remedy: None }
    }

    pub(super) fn of_danger(danger: Danger) -> Self {
        let (code, advice) = match danger.kind {
            DangerKind::OldServer => (FindingCode::OldServer, "upgrade the server to Redis 6.2 or later"),
            DangerKind::Evicts => (FindingCode::EvictsJobs, "set `maxmemory-policy` to `noeviction`"),
            DangerKind::NotPersistent => (FindingCode::NotPersistent, "set `appendonly` to `yes`"),
            DangerKind::DiskFull => (FindingCode::DiskFull, "make room on the disk; the store then goes on by itself"),
            DangerKind::Halted => (FindingCode::StoreHalted, "mend the disk, and start the program again"),
            DangerKind::TooFewReplicas => (FindingCode::TooFewReplicas, "connect more replicas"),
            DangerKind::MemoryNearlyFull => (FindingCode::MemoryNearlyFull, MORE_MEMORY),
            DangerKind::MemoryFull => (FindingCode::MemoryFull, MORE_MEMORY),
        };
        Self::new(code, None, danger.text, advice)
    }

    pub(super) fn of_mismatch(mismatch: Mismatch) -> Self {
        let Mismatch { topic, id, detail, .. } = mismatch.clone();
        let Said { code, text, repair, advice } = said_of(mismatch.kind, &id, &detail);
        let repair = Some(repair.to_owned()).filter(|repair| !repair.is_empty());
        let remedy = repair.is_some().then_some(Remedy::Repair(mismatch));
        Self { id: Some(id), repair, remedy, ..Self::new(code, Some(topic), text, advice) }
    }

    /// A job whose record or payload does not decode.
    pub(super) fn of_job(code: FindingCode, topic: TopicName, job: GiveUp) -> Self {
        let (text, advice) = match code {
            FindingCode::MangledRecord => (format!("its record cannot be read: {}", job.error), LOOK_AT_BYTES),
            _ => (format!("its payload is not JSON: {}", job.error), UPDATE),
        };
        let repair = Some("make the job DEAD with the cause `decode`; its bytes stay as its payload".to_owned());
        let id = Some(job.id.to_string());
        Self { id, repair, remedy: Some(Remedy::GiveUp(job)), ..Self::new(code, Some(topic), text, advice) }
    }
}

const MORE_MEMORY: &str = "raise `maxmemory`, or delete what you do not need";
const LOOK_AT_BYTES: &str = "look at it with `dq show --payload` after the repair; add the job again if you know it";
const UPDATE: &str = "give it a payload that decodes with `update`, or delete it";
const FIND_WHO: &str = "find out which program changes keys of dq";
const EVICTED: &str = "set `maxmemory-policy` to `noeviction`, and find out which program changes keys of dq";

/// What to say of a mismatch.
struct Said {
    code: FindingCode,
    text: String,
    repair: &'static str,
    advice: &'static str,
}

fn said_of(kind: MismatchKind, id: &str, detail: &str) -> Said {
    use FindingCode as C;
    let said = |code, text: String, repair, advice| Said { code, text, repair, advice };
    let is_gone = |what: &str| format!("{what} names a job that has no record: another program removed it");
    match kind {
        MismatchKind::JobWithoutPlace => said(
            C::JobWithoutPlace,
            "the job has a record and is in no place, so it never runs".into(),
            "put it back: UNACKED if it was parked, otherwise DEAD with the cause `place lost`",
            "requeue it after the repair if it should run",
        ),
        MismatchKind::PlaceWithoutJob => {
            said(C::PlaceWithoutJob, is_gone(&place_words(detail)), "remove its id from the place", FIND_WHO)
        }
        MismatchKind::RowWithoutJob => said(
            C::RowWithoutJob,
            format!("node {detail} holds a job that has no record: another program removed it"),
            "remove its id from what the node holds",
            FIND_WHO,
        ),
        MismatchKind::SeveralPlaces => said(
            C::SeveralPlaces,
            format!("the job is in several places: {}", place_words(detail)),
            "keep the newest run, otherwise the first of these places, and remove the job from the others",
            FIND_WHO,
        ),
        MismatchKind::SeveralRecords => said(
            C::SeveralRecords,
            "the job has a record in `jobs` and another one in `far-jobs`".into(),
            "if both are the same, keep the one that has a place; otherwise leave both",
            "if they differ, compare both with HGET and remove one with HDEL",
        ),
        MismatchKind::RowsWithoutLease => said(
            C::RowsWithoutLease,
            format!("node {id} holds jobs and has no lease, so no other node takes them if it is dead"),
            "give it a lease of a minute: if it lives it renews the lease, otherwise its jobs go to other nodes",
            FIND_WHO,
        ),
        MismatchKind::LeaseWithoutRows => said(
            C::LeaseWithoutRows,
            format!("node {id} has a lease and holds no job"),
            "remove the lease; a node that holds a job has one again",
            FIND_WHO,
        ),
        MismatchKind::FarWithoutLeaf => said(
            C::FarWithoutLeaf,
            "the job is due much later and missing in the tree of such jobs, so it would not run in time".into(),
            "let it wait in `delayed` under its due time",
            EVICTED,
        ),
        other => said_of_keys(other, id, detail),
    }
}

fn said_of_keys(kind: MismatchKind, id: &str, detail: &str) -> Said {
    use FindingCode as C;
    let said = |code, text: String, repair, advice| Said { code, text, repair, advice };
    match kind {
        MismatchKind::ScheduleNotListed => said(
            C::ScheduleNotListed,
            "the schedule is missing in the list of schedules: it runs, and nobody sees it".into(),
            "enter it into the list",
            FIND_WHO,
        ),
        MismatchKind::BroadcastWithoutPlace => said(
            C::BroadcastWithoutPlace,
            "the broadcast has a record and no due time, so it is never published".into(),
            "",
            "publish it again if it still matters, then remove its field from `broadcast-jobs` with HDEL",
        ),
        MismatchKind::LeftoverEntry => said(
            C::LeftoverEntry,
            format!("`{}` keeps something of a job that does not exist", entry_word(detail)),
            "remove that field",
            FIND_WHO,
        ),
        MismatchKind::NotesBehind => said(
            C::NotesBehind,
            format!("`meta` lacks `{id}`, or what it has is too small: another program changed or evicted it"),
            "write it",
            EVICTED,
        ),
        MismatchKind::WrongType => said(
            C::WrongType,
            format!("the key has the wrong type: expected {detail}. The topic is stopped, and not examined further"),
            "rename the key: its new name begins with `set-aside:` behind the prefix of dq",
            "look at the key, then delete it, or rename it yourself",
        ),
        MismatchKind::NoExpiry => said(
            C::NoExpiry,
            "the key should expire and does not, so it stays for good".into(),
            "let it expire: a day from now for a node, an hour from now for a producer",
            FIND_WHO,
        ),
        _ => said(
            C::TopicNotListed,
            "the topic holds something and is missing in the directory, so lists of topics leave it out".into(),
            "enter it into the directory",
            EVICTED,
        ),
    }
}

/// The places of these letters.
fn place_words(letters: &str) -> String {
    let word = |letter| match letter {
        'd' => "`delayed`",
        'u' => "`unacked`",
        'x' => "`dead`",
        'f' => "`done`",
        'b' => "`broadcasts`",
        _ => "RUNNING",
    };
    letters.chars().map(word).collect::<Vec<_>>().join(", ")
}

fn entry_word(letter: &str) -> &'static str {
    match letter {
        "M" => "metadata",
        "P" => "pending",
        _ => "crashes",
    }
}
