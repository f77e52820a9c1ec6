//! Large payloads on slow links: while bytes flow, every due job runs soon, and once (rules 5 and 7).

use super::record::{Checker, HandlerKind};
use dq::job::State;

/// How long a job may be due on a slow link before its handler begins, in ms: longer than all payloads of a run take over
/// one link.
const SOON: u64 = 600_000;

impl Checker {
    /// Checks that no due job waits for too long.
    pub(in crate::simulation) fn check_slow(&mut self, micros: u64) {
        let polled = |run: Option<&u64>| run.is_some_and(|run| !self.runs[run].polled.is_empty());
        let waits = self.before.jobs.iter().find(|(id, job)| {
            let due = match (job.state, &job.row) {
                (State::Delayed, _) => job.at,
                (State::Running, Some(row)) => {
                    Some(row.token.due).filter(|_| !polled(self.expected.rows.get(&(row.node.clone(), (*id).clone()))))
                }
                _ => None,
            };
            due.is_some_and(|due| due.as_millis() + SOON < micros / 1000)
        });
        if let Some((id, job)) = waits {
            let text = format!("[5] {id} is {} and has been due for ten minutes on a slow link", job.state);
            self.bad(text);
        }
    }

    /// The handler of a version begins again.
    pub(super) fn check_once(&mut self, number: u64, kind: HandlerKind) {
        let version = self.runs[&number].version;
        let mut others = self.runs.iter().filter(|(other, run)| **other != number && run.version == version);
        if kind == HandlerKind::OnDue && others.any(|(_, run)| run.polled.contains(&kind)) {
            self.bad(format!("[7] {version} runs again in run {number} on a slow link, though nothing failed"));
        }
    }
}
