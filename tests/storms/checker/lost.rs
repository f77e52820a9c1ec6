//! Every confirmed add is accounted for.

use dq::job::State;

use super::Report;
use super::facts::{Facts, Life, Listing};
use super::reasons::Reasons;
use crate::ledger::{Answer, End, Verb};

/// How long after its end an outcome certainly has an answer, in µs, if nothing happens.
const ANSWERED_WITHIN: u64 = 10_000_000;

/// How long after the node has said that a job runs alone its run certainly begins, in µs, if nothing happens.
const BEGINS_WITHIN: u64 = 1_000_000;

/// Compares one listing with what was confirmed before it.
pub(super) fn check(listing: &Listing<'_>, facts: &Facts<'_>, report: &mut Report) {
    for (id, places) in &listing.jobs {
        if places.len() > 1 {
            report.find("lost", id, format!("it is in {} places: {places:?}", places.len()));
        }
        match facts.jobs.get(id) {
            None => report.find("made up", id, "it is in the store, but nobody added it".into()),
            Some(life) => present(id, life, listing.at, places, &facts.reasons, report),
        }
    }
    for (id, life) in &facts.jobs {
        if life.confirmed().is_some_and(|added| added < listing.at) && !listing.jobs.contains_key(id) {
            absent(id, life, listing.at, &facts.reasons, report);
        }
    }
}

/// A job that the store has.
fn present(
    id: &str,
    life: &Life<'_>,
    at: u64,
    places: &[(State, Option<&str>)],
    reasons: &Reasons<'_>,
    report: &mut Report,
) {
    if let Some((_, Answer::NotDone)) = life.added {
        report.find("made up", id, "it is in the store, but its add was answered with `not done`".into());
    }
    let acked =
        life.runs.iter().find(|(_, run)| run.accepted().is_some_and(|(when, kind)| when < at && kind == "acked"));
    if let Some((fence, _)) = acked {
        report.find("lost", id, format!("it is in the store after the accepted ack of run {fence}"));
    }
    for (place, cause) in places {
        if *place == State::Dead && cause.is_none() {
            report.find("lost", id, "it is DEAD without a cause".into());
        }
        if *place == State::Dead && life.runs.values().all(|run| run.finals.is_empty()) {
            // The store has noted that it runs alone, and charges the end of the process to it, before `on_exhausted` begins.
            let is_cut = |(at, process): &(u64, &str)| reasons.between(process, *at, at + BEGINS_WITHIN).is_some();
            if *cause == Some("crashes") && life.alone.iter().any(is_cut) {
                report.count("left Dead by a kill just before `on_exhausted`");
            } else {
                report.find("lost", id, "it is DEAD, but its `on_exhausted` was not called".into());
            }
        }
    }
}

/// A job that the store does not have.
fn absent(id: &str, life: &Life<'_>, at: u64, reasons: &Reasons<'_>, report: &mut Report) {
    if life.began().any(|(_, run)| run.starts.iter().any(|start| *start > at)) {
        return report.find("lost", id, "it was not in the store, and ran later".into());
    }
    let ended = |(when, kind): (u64, &str)| when < at && matches!(kind, "acked" | "dropped");
    if life.runs.values().any(|run| run.accepted().is_some_and(ended)) {
        return;
    }
    if life.commands.iter().any(|command| command.sent < at && may_end(command.verb, command.answer)) {
        return;
    }
    // The store may have taken an ack whose answer never came, or came as the refusal of a repeat.
    let last = life.runs.iter().next_back().filter(|(_, run)| run.accepted().is_none());
    if let Some((fence, run)) = last
        && let Some((ended, End::Ack)) = run.end
    {
        let until = run.settled.iter().map(|settled| settled.0).max().unwrap_or(ended + ANSWERED_WITHIN);
        if reasons.between(run.process, ended, until).is_none() {
            let what = format!("it is gone after the ack of run {fence}, which was not accepted, without a reason");
            report.find("lost", id, what);
        }
        return;
    }
    report.find("lost", id, format!("it is nowhere, after {} runs", life.runs.len()));
}

/// Whether a command may have ended its job.
fn may_end(verb: Verb, answer: Option<(u64, Answer)>) -> bool {
    let may_have_run = match answer {
        Some((_, Answer::Done { changed, .. })) => changed,
        Some((_, Answer::NotDone)) => false,
        Some((_, Answer::Unknown)) | None => true,
    };
    verb != Verb::Requeue && may_have_run
}

/// Counts what became of the jobs.
pub(super) fn count(facts: &Facts<'_>, report: &mut Report) {
    for life in facts.jobs.values() {
        match life.added {
            Some((_, Answer::Done { .. })) => report.count("adds confirmed"),
            Some((_, Answer::NotDone)) => report.count("adds refused"),
            Some((_, Answer::Unknown)) | None => report.count("adds unknown"),
        }
    }
    report.counts.insert("listings".into(), facts.listings.len() as u64);
    for (place, cause) in facts.listings.last().into_iter().flat_map(|listing| listing.jobs.values().flatten()) {
        report.count(format!("left {place:?}{}", cause.map_or(String::new(), |cause| format!(" by {cause}"))));
    }
}
