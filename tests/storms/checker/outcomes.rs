//! The store accepts the outcome of the run that holds the job, and of no other.

use super::Report;
use super::facts::Life;
use super::reasons::Reasons;

pub(super) fn check(id: &str, life: &Life<'_>, reasons: &Reasons<'_>, report: &mut Report) {
    for (fence, run) in &life.runs {
        verdicts(id, life, *fence, reasons, report);
        let Some((at, kind)) = run.accepted() else { continue };
        report.count(format!("accepted: {kind}"));
        let Some((ended, _)) = run.end else { continue };
        for (later, other) in life.runs.range(fence + 1..) {
            if other.seen().is_some_and(|seen| seen < ended) {
                let what =
                    format!("run {fence} had lost its job to run {later}, but its later outcome {kind} was accepted");
                report.find("outcome", id, what);
            }
            if matches!(kind, "acked" | "dropped") && !reasons.may_be_lost(at) {
                let what = format!("run {later} came after the accepted outcome {kind} of run {fence}");
                report.find("outcome", id, what);
            }
        }
    }
}

/// Each outcome is done once, or refused for a reason.
fn verdicts(id: &str, life: &Life<'_>, fence: u64, reasons: &Reasons<'_>, report: &mut Report) {
    let run = &life.runs[&fence];
    let mut done = 0;
    for (at, change, verdict) in &run.settled {
        match *verdict {
            "taken" => done += 1,
            "later" => {}
            "stale" => {
                let is_taken =
                    life.runs.range(fence + 1..).any(|(_, other)| other.seen().is_some_and(|seen| seen < *at));
                report.count(match (*change == "given back", is_taken) {
                    (true, _) => "refused rollbacks",
                    (false, true) => "refused outcomes: another run has the job",
                    // The first try was accepted, and its answer was lost.
                    (false, false) => "refused outcomes: repeated",
                });
                let since = run.first_start().unwrap_or(*at);
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
