//! What a caller was told of a command holds.

use dq::job::State;

use super::Report;
use super::facts::{Life, Listing};
use crate::ledger::{Answer, Verb};

pub(super) fn check(id: &str, life: &Life<'_>, listings: &[Listing<'_>], report: &mut Report) {
    if life.adding.is_none() && (!life.runs.is_empty() || !life.commands.is_empty()) {
        report.find("made up", id, "nobody added it".into());
    }
    if let Some((_, Answer::NotDone)) = life.added
        && !life.runs.is_empty()
    {
        report.find("made up", id, "it ran, but its add was answered with `not done`".into());
    }
    for command in &life.commands {
        let Some((at, Answer::Done { found, changed })) = command.answer else { continue };
        let is_over = match (command.verb, found) {
            (Verb::Requeue, Some(_)) => continue,
            // A job that is not there has ended, unless its add came later.
            (_, None) => life.confirmed().is_some_and(|added| added <= command.sent),
            (Verb::Delete | Verb::Ack, Some(_)) => changed,
            (Verb::AckRun, Some(found)) => changed && found == State::Unacked,
        };
        if !is_over {
            continue;
        }
        report.count(format!("{:?} that held", command.verb));
        // The run that holds the job when the command comes may begin later.
        let may_begin = usize::from(found == Some(State::Running));
        let starts = life.began().filter(|(_, run)| run.starts.iter().any(|start| *start > at)).count();
        if starts > may_begin {
            let found = found.map_or("nothing".to_owned(), |found| format!("it {found:?}"));
            report.find("command", id, format!("{starts} runs began after a {:?} that found {found}", command.verb));
        }
        let is_there = |listing: &&Listing<'_>| listing.at > at && listing.jobs.contains_key(id);
        if found != Some(State::Running) && listings.iter().any(|listing| is_there(&listing)) {
            report.find("command", id, format!("it is in the store after a {:?}", command.verb));
        }
    }
}
