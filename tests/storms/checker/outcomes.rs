//! The store accepts the outcome of the run that holds the job, and of no other.

use super::Report;
use super::facts::{Life, Run};
use super::reasons::Reasons;

pub(super) fn check(id: &str, life: &Life<'_>, reasons: &Reasons<'_>, report: &mut Report) {
    for (fence, run) in &life.runs {
        verdicts(id, *fence, run, reasons, report);
        let Some((_, kind)) = run.accepted() else { continue };
        report.count(format!("accepted {kind}"));
        let Some((ended, _)) = run.end else { continue };
        for (later, other) in life.runs.range(fence + 1..) {
            if other.seen().is_some_and(|seen| seen < ended) {
                let what =
                    format!("run {fence} had lost its job to run {later}, but its later outcome {kind} was accepted");
                report.find("outcome", id, what);
            }
            if matches!(kind, "Ack" | "Drop") {
                report.find("outcome", id, format!("run {later} came after the accepted {kind} of run {fence}"));
            }
        }
    }
}

/// Each outcome is done once, or refused for a reason.
fn verdicts(id: &str, fence: u64, run: &Run<'_>, reasons: &Reasons<'_>, report: &mut Report) {
    let mut done = 0;
    for (at, change, verdict) in &run.settled {
        match *verdict {
            "Done" => done += 1,
            "Later" => {}
            "Stale" => {
                report.count(if change.starts_with("Rollback") { "refused rollbacks" } else { "refused outcomes" });
                let since = run.begun().unwrap_or(*at);
                if reasons.between(run.process, since, *at).is_none() {
                    report.find("outcome", id, format!("{change} of run {fence} was refused without a reason"));
                }
            }
            other => report.find("outcome", id, format!("the verdict on {change} of run {fence} is {other}")),
        }
    }
    if done > 1 {
        report.find("outcome", id, format!("{done} outcomes of run {fence} were accepted"));
    }
}
