//! What happened to a job so far, where its topic keeps that.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::store::{CommandKind, Transition};
use crate::time::{Timestamp, in_millis};

/// A move of a job that its topic has kept. It displays as one line, without the time: `claimed by web-1-4711-012ec2040ea64cf6, 7ms late`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Of a claim: how long after its due time. `None` of any other move.
    #[serde(serialize_with = "in_millis::optional", skip_serializing_if = "Option::is_none")]
    pub late: Option<Duration>,
    /// What happened.
    #[serde(flatten)]
    pub what: Transition,
}

/// What a move is in the description of an API: it has the properties of its kind.
#[cfg(feature = "schema")]
#[expect(dead_code, reason = "they describe how a `Transition` serializes")]
pub(super) mod described {
    /// What happened to a job once.
    #[derive(utoipa::ToSchema)]
    pub(super) struct HistoryEntry {
        /// When, by the store's clock, ms.
        at: u64,
        /// `added`, `claimed`, `done`, `retried`, `dead`, `deleted` and so on, as events are named.
        event: String,
        /// Of a claim: how long after its due time, ms.
        late: Option<u64>,
        /// When the job is due, ms.
        due: Option<u64>,
        /// The node that ran it.
        node: Option<String>,
        /// Who asked for it.
        by: Option<String>,
        /// Why a run failed, or why the job is DEAD, as a word.
        cause: Option<String>,
        /// The command that waits for the end of the run.
        command: Option<String>,
        /// The state that an import brought.
        state: Option<String>,
    }

    /// How a job ended.
    #[derive(utoipa::ToSchema)]
    pub(crate) struct Ended {
        /// `deleted`, `done`, `removed`, `dropped` or `published`.
        event: String,
        /// Who asked for it, or the node that ran it.
        by: Option<String>,
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for HistoryEntry {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        <described::HistoryEntry as utoipa::PartialSchema>::schema()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for HistoryEntry {}

impl HistoryEntry {
    pub(super) fn new((at, what): (Timestamp, Transition)) -> Self {
        let late = match &what {
            Transition::Claimed { due, .. } => Some(at.since(*due)),
            _ => None,
        };
        Self { at, late, what }
    }
}

impl fmt::Display for HistoryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        match self.late.filter(|late| !late.is_zero()) {
            Some(late) => write!(f, ", {} late", humantime::format_duration(late)),
            None => Ok(()),
        }
    }
}

/// The end of a job in its history: when, how, and who asked for it. A command that waited for the end of a run names its caller
/// earlier.
pub(super) fn end_of(history: &[HistoryEntry]) -> Option<(Timestamp, Transition, Option<String>)> {
    let HistoryEntry { at, what, .. } = history.last()?;
    let by = match what {
        Transition::Deleted { by } | Transition::Done { by } => by,
        Transition::Removed | Transition::Dropped | Transition::Published => return Some((*at, what.clone(), None)),
        _ => return None,
    };
    let is_ack = matches!(what, Transition::Done { .. });
    let asked = history.iter().rev().find_map(|past| match &past.what {
        Transition::CommandWaits { command, by } if (*command == CommandKind::Ack) == is_ack => Some(by),
        _ => None,
    });
    let by = Some(by).filter(|by| !by.is_empty()).or(asked);
    Some((*at, what.clone(), by.cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn past(moves: &[Transition]) -> Vec<HistoryEntry> {
        moves.iter().zip(1..).map(|(what, n)| HistoryEntry::new((at(n), what.clone()))).collect()
    }

    #[test]
    fn a_claim_says_how_late_it_was() {
        let claimed = |due| HistoryEntry::new((at(9_500), Transition::Claimed { due: at(due), node: "n".into() }));
        assert_eq!(claimed(9_493).to_string(), "claimed by n, 7ms late");
        assert_eq!(claimed(9_500).to_string(), "claimed by n");
        assert_eq!(claimed(9_600).late, Some(Duration::ZERO), "it was claimed before it was due");
        let json = serde_json::to_value(claimed(9_493)).unwrap();
        assert_eq!(json, serde_json::json!({ "at": 9500, "late": 7, "event": "claimed", "due": 9493, "node": "n" }));
    }

    #[test]
    fn the_end_names_who_asked_for_it() {
        let (added, deleted) = (Transition::Added { due: at(1) }, |by: &str| Transition::Deleted { by: by.into() });
        let waits = |command, by: &str| Transition::CommandWaits { command, by: by.into() };
        let by = |moves: &[Transition]| end_of(&past(moves)).map(|(_, _, by)| by);
        assert_eq!(by(&[]), None);
        assert_eq!(by(std::slice::from_ref(&added)), None);
        assert_eq!(by(&[added.clone(), deleted("alice")]), Some(Some("alice".into())));
        let commands = [waits(CommandKind::Cancel, "bob"), waits(CommandKind::Ack, "carol")];
        assert_eq!(by(&[&commands[..], &[deleted("")]].concat()), Some(Some("bob".into())));
        assert_eq!(
            by(&[&commands[..], &[Transition::Done { by: String::new() }]].concat()),
            Some(Some("carol".into()))
        );
        assert_eq!(by(&[deleted("")]), Some(None));
        assert_eq!(by(&[added, Transition::Removed]), Some(None));
    }
}
