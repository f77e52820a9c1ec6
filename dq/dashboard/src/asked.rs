//! Which jobs a page, a form or a program asks for.

use dq::inspect::{Cursor, JobFilter};
use dq::job;
use dq::time::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::failure::Failure;

/// Which jobs somebody wants to see or change. A condition that is left out holds for every job.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct Asked {
    /// The JSON API has it in its paths.
    #[param(ignore)]
    pub(crate) topic: String,
    /// `delayed` (the default), `running`, `unacked`, `dead` or `done`.
    pub(crate) state: String,
    /// The id begins with this.
    pub(crate) id_prefix: String,
    /// `name=value` of a header.
    pub(crate) header: String,
    /// The last error has this in it.
    pub(crate) error: String,
    /// It has failed this often at least.
    pub(crate) attempts: String,
    /// Its time is this or later: RFC 3339 with its offset, or milliseconds since the Unix epoch.
    pub(crate) from: String,
    /// Its time is earlier.
    pub(crate) until: String,
    /// The first part of `next` of the page before.
    pub(crate) after_at: String,
    /// The second part of it.
    pub(crate) after_id: String,
}

/// The states with their words in links.
pub(crate) const STATES: [(&str, job::State, &str); 5] = [
    ("delayed", job::State::Delayed, "Waiting"),
    ("running", job::State::Running, "Running"),
    ("unacked", job::State::Unacked, "Un-acked"),
    ("dead", job::State::Dead, "Dead"),
    ("done", job::State::Done, "Done"),
];

pub(crate) fn state(word: &str) -> Result<job::State, Failure> {
    let found = STATES.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word));
    let unknown = || Failure::Bad(format!("`{word}` is not a state: write delayed, running, unacked, dead or done"));
    found.map(|(_, state, _)| *state).ok_or_else(unknown)
}

impl Asked {
    pub(crate) fn filter(&self) -> Result<JobFilter, Failure> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let header = some(&self.header).map(|header| {
            let split = header.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            split.ok_or_else(|| Failure::Bad("write a header as name=value".into()))
        });
        let attempts = some(&self.attempts)
            .map(|n| n.parse().map_err(|_| Failure::Bad(format!("`{n}` is not a number of attempts"))));
        Ok(JobFilter {
            id_prefix: some(&self.id_prefix),
            header: header.transpose()?,
            error: some(&self.error),
            attempts: attempts.transpose()?,
            from: some(self.from.trim()).map(|from| from.parse()).transpose()?,
            until: some(self.until.trim()).map(|until| until.parse()).transpose()?,
        })
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cursor>, Failure> {
        if self.after_at.is_empty() {
            return Ok(None);
        }
        let at =
            self.after_at.parse().map_err(|_| Failure::Bad("`after_at` is not a number of milliseconds".into()))?;
        Ok(Some(Cursor { at: Timestamp::from_millis(at), id: self.after_id.clone() }))
    }

    /// The fields of the filter, as a query.
    pub(crate) fn query(&self) -> [(&'static str, &str); 8] {
        [
            ("topic", &self.topic),
            ("state", &self.state),
            ("id_prefix", &self.id_prefix),
            ("header", &self.header),
            ("error", &self.error),
            ("attempts", &self.attempts),
            ("from", &self.from),
            ("until", &self.until),
        ]
    }
}
