//! The last job of a set comes after the ends of all members, and counts them.

use std::collections::BTreeMap;

use dq::job::State;

use super::Report;
use super::facts::{Facts, Life};
use crate::ledger::{Answer, Verb};
use crate::process::work::{LAST, adds_member, set_of};

/// What the files say of the members of a set.
#[derive(Debug, Default)]
struct Members {
    /// Those that were certainly registered, and those that may have been.
    certain: u64,
    perhaps: u64,
    dead: u64,
    /// Those whose delete found them waiting, and those that may have been deleted.
    deleted: u64,
    perhaps_deleted: u64,
    /// When the last handler of one ended whose outcome was accepted.
    ended: u64,
}

impl Facts<'_> {
    /// A member and a last job may stand in an outbox until the storm is over, so only the last listing has to have them. The accepted
    /// ack of a member adds another one.
    pub(super) fn add_members(&mut self) {
        let last = self.listings.last().map_or(0, |listing| listing.at.saturating_sub(1));
        let ids: Vec<&str> = self.jobs.keys().copied().filter(|id| set_of(id).is_some()).collect();
        for id in ids {
            let life = self.life(id);
            life.added = life.added.map(|(at, answer)| (last.max(at), answer));
            // The checker ends with its program.
            let more = adds_member(id).zip(life.acked());
            if let Some((next, (ended, answer))) = more {
                let life = self.life(next.leak());
                (life.adding, life.added) = (Some((ended, 0)), Some((last.max(ended), answer)));
            }
        }
    }
}

pub(super) fn check(facts: &Facts<'_>, report: &mut Report) {
    let mut sets = BTreeMap::<_, Members>::new();
    for (id, life) in facts.jobs.iter().filter(|(id, _)| !id.ends_with(LAST)) {
        let Some((set, _)) = set_of(id) else { continue };
        sets.entry(set).or_default().count(id, life, facts);
    }
    for (id, all) in &facts.counts {
        let (Some(counts), Some((set, _))) = (all.first(), set_of(id)) else { continue };
        report.count("sets ended");
        let members = sets.remove(set).unwrap_or_default();
        if all.iter().any(|other| other != counts) {
            report.find("set", id, format!("its runs were told different counts: {all:?}"));
        }
        if !members.fit(*counts) {
            report.find("set", id, format!("it is told {counts:?} of {members:?}"));
        }
        let began = facts.jobs.get(id).and_then(|life| life.began().filter_map(|(_, run)| run.first_start()).min());
        if began.is_some_and(|began| began < members.ended) {
            report.find("set", id, format!("it began at {began:?}, and a member ended at {}", members.ended));
        }
    }
}

impl Members {
    fn count(&mut self, id: &str, life: &Life<'_>, facts: &Facts<'_>) {
        match life.added {
            Some((_, Answer::Done { .. })) => self.certain += 1,
            _ => self.perhaps += 1,
        }
        let listed = facts.listings.last().and_then(|listing| listing.jobs.get(id));
        self.dead += u64::from(listed.is_some_and(|places| places.iter().any(|(place, _)| *place == State::Dead)));
        let deletes = || life.commands.iter().filter(|command| command.verb == Verb::Delete);
        let found = |answer: Answer| matches!(answer, Answer::Done { found: Some(State::Delayed), changed: true });
        self.deleted += u64::from(deletes().any(|sent| sent.answer.is_some_and(|(_, answer)| found(answer))));
        self.perhaps_deleted += u64::from(deletes().next().is_some());
        let ends = life.runs.values().filter(|run| run.accepted().is_some()).filter_map(|run| run.end);
        self.ended = ends.map(|(at, _)| at).max().unwrap_or(0).max(self.ended);
    }

    fn fit(&self, [acked, dead, left]: [u64; 3]) -> bool {
        let all = acked.saturating_add(dead).saturating_add(left);
        (self.certain..=self.certain + self.perhaps).contains(&all)
            && dead == self.dead
            && (self.deleted..=self.perhaps_deleted).contains(&left)
    }
}
