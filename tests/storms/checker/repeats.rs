//! A job begins again only after an outcome that says so, or for a reason.

use super::Report;
use super::facts::{Life, Run};
use super::reasons::Reasons;
use crate::ledger::{End, Verb};

pub(super) fn check(id: &str, life: &Life<'_>, reasons: &Reasons<'_>, report: &mut Report) {
    let mut failed = (0, 0);
    let mut before: Option<(u64, &Run<'_>)> = None;
    for (fence, run) in life.began() {
        if run.starts.len() > 1 {
            report.find("duplicate", id, format!("run {fence} began {} times", run.starts.len()));
        }
        if let Some((earlier, before)) = before {
            again(id, life, (earlier, before), (fence, run), reasons, report);
        }
        if !run.starts.is_empty() && !(failed.0..=failed.1).contains(&run.attempt) {
            let what = format!("run {fence} is attempt {}, after {} to {} failures", run.attempt, failed.0, failed.1);
            report.find("attempt", id, what);
        }
        match (run.accepted(), run.end) {
            (Some((at, "retried")), _) if reasons.may_be_lost(at) => failed.1 += 1,
            (Some((_, "retried")), _) => failed = (failed.0 + 1, failed.1 + 1),
            (None, Some((_, End::Failed(_)))) => failed.1 += 1,
            _ => {}
        }
        before = Some((fence, run));
    }
}

/// The job began under `next` after `last`.
fn again(
    id: &str,
    life: &Life<'_>,
    (last_fence, last): (u64, &Run<'_>),
    (next_fence, next): (u64, &Run<'_>),
    reasons: &Reasons<'_>,
    report: &mut Report,
) {
    let (Some(from), Some(to)) = (last.first_start(), next.first_start()) else { return };
    let requeued = || life.commands.iter().any(|command| command.verb == Verb::Requeue && command.sent < to);
    match last.accepted() {
        Some((_, "rejoined" | "retried")) => return,
        Some((_, "parked")) if requeued() => return,
        Some((at, _)) if reasons.may_be_lost(at) => return report.count("outcomes that a failover lost"),
        Some((_, kind)) => {
            let what = format!("run {next_fence} began after the accepted outcome {kind} of run {last_fence}");
            return report.find("duplicate", id, what);
        }
        None => {}
    }
    // A node that stops between the last failure and `on_exhausted` gives the job back, and `on_exhausted` stays owed.
    if matches!(last.end, Some((_, End::Failed(None)))) && last.finals.is_empty() && next.starts.is_empty() {
        return report.count("final retries on another node");
    }
    // The store took the retry, and the node was killed before it wrote that down.
    if let Some((ended, End::Failed(Some(_)))) = last.end
        && last.settled.is_empty()
        && next.attempt == last.attempt + 1
        && reasons.killed(last.process).is_some_and(|at| at >= ended)
    {
        return report.count("retries of which the node did not learn");
    }
    // A run of which nothing more is known than that its job came again.
    match reasons.between(last.process, from, to) {
        Some(reason) => {
            let how = match last.end {
                Some((_, End::Dropped)) | None => "cut short",
                Some(_) => "answer lost",
            };
            report.count(format!("duplicates: {how}, {reason}"));
            report.count("duplicates");
        }
        None => {
            let what = format!("run {next_fence} began without a reason after run {last_fence} of {}", last.process);
            report.find("duplicate", id, what);
        }
    }
}
