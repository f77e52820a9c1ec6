//! Answers that are more than a type of `dq::inspect`.

use dq::inspect::{HistoryEntry, JobSummary, NotRunReason, RunStats};
use dq::provider::JobSetSummary;
use serde::Serialize;
use utoipa::ToSchema;

/// What ran, and how late.
#[derive(Serialize, ToSchema)]
pub(super) struct PastAnswer {
    /// `null` where the topic kept no statistics for a day.
    pub(super) past: Option<RunStats>,
}

/// Why a job has not run.
#[derive(Serialize, ToSchema)]
pub(super) struct Why {
    /// The job; `null` if there is none.
    pub(super) job: Option<JobSummary>,
    /// The reasons, the decisive one first. Each of them alone keeps the job from running.
    pub(super) reasons: Vec<NotRunReason>,
    /// What happened to the job so far, oldest first; empty where its topic keeps no histories.
    pub(super) history: Vec<HistoryEntry>,
    /// A line of plain English for each reason.
    pub(super) text: Vec<String>,
}

/// A page of schedules.
#[derive(Serialize, ToSchema)]
pub(super) struct Schedules {
    /// The schedules, in the order of their names.
    pub(super) schedules: Vec<Schedule>,
    /// `cursor` of the next page; `null`: this was the last.
    pub(super) next: Option<String>,
}

/// A schedule. One that this version of dq cannot read has `name` and `unreadable` alone.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct Schedule {
    /// Its name.
    pub(super) name: String,
    /// When it ticks, in words, or as a cron line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<String>,
    /// The next tick, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<u64>,
    /// Why it is paused; `null`: it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(super) paused: Option<Option<String>>,
    /// Who paused it; empty if nobody said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(super) paused_by: Option<Option<String>>,
    /// The id of the job of the last tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(super) last_job: Option<Option<String>>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unreadable: Option<String>,
}

/// A page of job sets.
#[derive(Serialize, ToSchema)]
pub(super) struct JobSets {
    /// The sets, those first that have not ended. `waits_for` is empty here; `counts` say how many members have not ended.
    pub(super) sets: Vec<JobSetSummary>,
    /// `from` of the next page; `null`: this was the last.
    pub(super) next: Option<usize>,
}

/// What an add did.
#[derive(Serialize, ToSchema)]
pub(super) struct Added {
    /// The id of the job.
    pub(super) id: String,
    /// `added`, `replaced`, `kept`: a job with this id was there, and stays; or `member`: the set adds it.
    pub(super) how: &'static str,
    /// The state of the job that was kept: `done` also if it has ended, `deleted` if it was deleted, and its id stays taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
}

/// What endangers the store.
#[derive(Serialize, ToSchema)]
pub(super) struct Findings {
    /// Each of them.
    pub(super) findings: Vec<Finding>,
}

/// Something that the doctor found.
#[derive(Serialize, ToSchema)]
pub(super) struct Finding {
    /// What it is; the guide has a table of all codes.
    pub(super) code: &'static str,
    /// `warning` or `error`.
    pub(super) severity: &'static str,
    /// What is wrong.
    pub(super) text: String,
    /// What to do.
    pub(super) advice: String,
}
