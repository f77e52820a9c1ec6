//! No handler begins before its job is due.

use super::Report;
use super::facts::Life;
use super::reasons::Reasons;
use crate::ledger::End;

pub(super) fn check(id: &str, life: &Life<'_>, reasons: &Reasons<'_>, report: &mut Report) {
    let mut due = life.adding.map_or(0, |(sent, after)| sent + after * 1_000);
    for (fence, run) in life.began() {
        for start in &run.starts {
            report.count("runs");
            let due = due.max(run.due);
            if *start < due {
                report.find("early", id, format!("run {fence} began {} µs early", due - start));
            }
        }
        let delay = match run.end {
            Some((_, End::Rejoin(after) | End::Failed(Some(after)))) => after,
            _ => 0,
        };
        if let (Some((ended, _)), Some((at, "rejoined" | "retried"))) = (run.end, run.accepted())
            && !reasons.may_be_lost(at)
        {
            due = due.max(ended + delay * 1_000);
        }
    }
}
