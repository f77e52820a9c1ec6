//! Changes: what pages and programs can do to jobs, topics and schedules.

mod bulk;
mod change;
mod confirm;
mod done;
mod pages;
mod words;

pub(crate) use bulk::{Stepped, bulk_action, step};
pub(crate) use change::{Applied, UserChange, apply};
pub(crate) use confirm::{act, confirm};
pub(crate) use done::Done;

use serde::Deserialize;

use crate::asked::Asked;

/// What a form asks for: a change of one job or topic, or of all jobs that a filter lets through.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Order {
    #[serde(flatten)]
    pub(crate) jobs: Asked,
    pub(crate) action: String,
    /// The job, the schedule or the group.
    pub(crate) id: String,
    pub(crate) reason: String,
    /// How long a pause lasts; empty: until somebody resumes.
    pub(crate) lasting: String,
    /// The new due time: a delay such as `15m`, or a time.
    pub(crate) due: String,
    /// The kind of a limit.
    pub(crate) limit: String,
    /// The new value of a limit.
    pub(crate) value: String,
    /// How many jobs were in the state when a bulk change began.
    pub(crate) all: String,
    pub(crate) changed: String,
    pub(crate) looked_at: String,
    pub(crate) form_token: String,
    /// The key of the session, which the script of a page fills in.
    pub(crate) key: String,
    /// The version that the job must have; empty: any.
    pub(crate) version: String,
}

impl Order {
    /// What its id names, and the page that shows that.
    fn of(&self) -> (&'static str, &'static str) {
        match () {
            () if self.action.ends_with("_schedule") => ("Schedule", "schedules"),
            () if self.action.ends_with("_group") => ("Group", "topic"),
            () if self.id.is_empty() => ("Topic", "topic"),
            () => ("Job", "job"),
        }
    }

    /// Whether it is about many jobs.
    fn is_bulk(&self) -> bool {
        self.id.is_empty() && !self.jobs.state.is_empty()
    }
}
