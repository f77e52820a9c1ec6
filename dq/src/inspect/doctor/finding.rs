//! A finding, and how the mismatches of a store become findings.

use std::fmt;

use serde::Serialize;

use crate::job::{JobId, TopicName};
use crate::provider::AheadSchedule;
use crate::schedule::InvalidSchedule;
use crate::store::{FindingCode, ForeignRow, GiveUp, Mismatch, Repair, Severity};

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

/// What repairs a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// A step of the store.
    Step(Repair),
    /// These members of the job set count as left.
    Leave(JobId, Vec<(TopicName, JobId)>),
    /// This schedule waits for its next tick.
    Align(JobId),
}

/// As a line: `error foreign-change order-timeout/4711: ..`
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
    pub(super) fn new(code: FindingCode, topic: Option<TopicName>, text: String) -> Self {
        let repair = Some(code.repair().to_owned()).filter(|repair| !repair.is_empty());
        let (severity, advice) = (code.severity(), code.advice().to_owned());
        Self { code, severity, topic, id: None, text, repair, advice, remedy: None }
    }

    pub(super) fn of_mismatch(mismatch: Mismatch) -> Self {
        let Mismatch { code, topic, id, detail } = mismatch.clone();
        let text = text_of(code, &id, &detail);
        let remedy = code.can_be_repaired().then(|| Remedy::Step(Repair::Mismatch { mismatch, nodes: Vec::new() }));
        Self { id: Some(id), remedy, ..Self::new(code, Some(topic), text) }
    }

    /// A row to be set aside.
    pub(super) fn of_row(row: ForeignRow) -> Self {
        let ForeignRow { topic, key, name, value, reason } = &row;
        let text = format!("`{key}` has a row of {} bytes: {reason}", name.len() + value.len());
        let finding = Self::new(FindingCode::ForeignChange, Some(topic.clone()), text);
        Self {
            id: Some(format!("{key}/{}", shown(name))),
            remedy: Some(Remedy::Step(Repair::SetAside(row))),
            ..finding
        }
    }

    /// A DEAD job at which dq panicked.
    pub(super) fn of_defect(topic: TopicName, id: &JobId, error: &str) -> Self {
        let text = format!("dq gave the job up, because of a defect of its own: {error}");
        Self { id: Some(id.to_string()), ..Self::new(FindingCode::DefectiveJob, Some(topic), text) }
    }

    /// A schedule that this program cannot read.
    pub(super) fn of_schedule(topic: TopicName, id: &JobId, bad: &InvalidSchedule) -> Self {
        let text = format!("this program cannot read the schedule, so it does not tick here: {bad}");
        let finding = Self::new(FindingCode::ScheduleUnreadable, Some(topic), text);
        Self { id: Some(id.to_string()), advice: bad.advice().to_owned(), ..finding }
    }

    /// A schedule that waits for a tick which was computed while the clock of the store was ahead.
    pub(super) fn ahead(topic: TopicName, ahead: AheadSchedule) -> Self {
        let AheadSchedule { id, tick, next } = ahead;
        let text =
            format!("the schedule waits for {tick}, and its next tick is {next}: the clock of the store was ahead");
        let (name, remedy) = (Some(id.to_string()), Some(Remedy::Align(id)));
        Self { id: name, remedy, ..Self::new(FindingCode::ScheduleAhead, Some(topic), text) }
    }

    /// A job whose record or payload does not decode.
    pub(super) fn of_job(code: FindingCode, topic: TopicName, job: GiveUp) -> Self {
        let text = match code {
            FindingCode::MangledRecord => format!("its record cannot be read: {}", job.error),
            FindingCode::OverLimit => format!("no node can run it: {}", job.error),
            _ => format!("its payload is not JSON: {}", job.error),
        };
        let id = Some(job.id.to_string());
        Self { id, remedy: Some(Remedy::Step(Repair::GiveUp(job))), ..Self::new(code, Some(topic), text) }
    }
}

/// The beginning of a row, with its length where it is longer, so that no two rows of one length look alike for their end alone.
fn shown(row: &[u8]) -> String {
    const SHOWN: usize = 100;
    let begins = row[..row.len().min(SHOWN)].escape_ascii();
    match row.len() > SHOWN {
        true => format!("{begins}.. ({:08x})", crc32fast::hash(row)),
        false => begins.to_string(),
    }
}

/// What a mismatch means for people.
fn text_of(code: FindingCode, id: &str, detail: &str) -> String {
    use FindingCode as C;
    match code {
        C::ForeignChange => detail.to_owned(),
        C::JobWithoutPlace => "the job has a record and is in no place, so it never runs".into(),
        C::RowsWithoutLease => {
            format!("node {id} holds jobs and has no lease, so no other node takes them if it is dead")
        }
        C::LeaseWithoutRows => format!("node {id} has a lease and holds no job"),
        C::FarWithoutLeaf => {
            "the job is due much later and missing in the tree of such jobs, so it would not run in time".into()
        }
        C::ScheduleNotListed => {
            "the schedule is missing in the list of schedules: it runs, but lists leave it out".into()
        }
        C::NotInGroup => "the job waits for others of its group, which does not know it, so it never runs".into(),
        C::BroadcastWithoutPlace => "the broadcast has a record and no due time, so it is never published".into(),
        C::NotesBehind => {
            format!("`meta` lacks `{id}`, or what it has is too small: another program changed or evicted it")
        }
        C::WrongType => {
            format!("the key has the wrong type: expected {detail}. The topic is stopped, and not examined further")
        }
        C::FenceTooLarge => format!("the last fence is {detail}, which is above every fence that dq gives out"),
        C::NoExpiry => "the key should expire and does not, so it stays for good".into(),
        _ => "the topic holds something and is missing in the directory, so lists of topics leave it out".into(),
    }
}
