//! The files of a storm, put together job by job.

use std::collections::{BTreeMap, HashMap};

use dq::job::State;

use super::reasons::Reasons;
use crate::ledger::{Answer, End, Entry, Log, Verb};
use crate::process::work::{CHAIN, member, next_of};

/// Everything that the files say.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    pub(super) jobs: BTreeMap<&'a str, Life<'a>>,
    pub(super) reasons: Reasons<'a>,
    /// The complete listings, in order of time.
    pub(super) listings: Vec<Listing<'a>>,
    /// What the runs of last jobs of sets were told.
    pub(super) counts: BTreeMap<&'a str, Vec<[u64; 3]>>,
    /// Of each process and topic when it learned until when its lease is valid.
    leases: BTreeMap<(&'a str, &'a str), Vec<(u64, u64)>>,
}

/// A job. All times are in µs.
#[derive(Debug, Default)]
pub(super) struct Life<'a> {
    /// When its add was sent, and its delay in ms.
    pub(super) adding: Option<(u64, u64)>,
    pub(super) added: Option<(u64, Answer)>,
    pub(super) commands: Vec<Command<'a>>,
    /// By fence.
    pub(super) runs: BTreeMap<u64, Run<'a>>,
    /// When a process was about to run it alone, and which.
    pub(super) alone: Vec<(u64, &'a str)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Command<'a> {
    process: &'a str,
    pub(super) verb: Verb,
    pub(super) sent: u64,
    pub(super) answer: Option<(u64, Answer)>,
}

/// What happened to a job under one fence.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    pub(super) process: &'a str,
    pub(super) starts: Vec<u64>,
    pub(super) due: u64,
    pub(super) attempt: u32,
    pub(super) end: Option<(u64, End)>,
    pub(super) finals: Vec<u64>,
    /// When, change and verdict.
    pub(super) settled: Vec<(u64, &'a str, &'a str)>,
}

/// What the store had at one time.
#[derive(Debug)]
pub(super) struct Listing<'a> {
    pub(super) at: u64,
    pub(super) jobs: HashMap<&'a str, Vec<(State, Option<&'a str>)>>,
}

impl<'a> Run<'a> {
    /// The kind of the outcome that the store accepted, and when the node learned of it. A rollback is no outcome of a handler.
    pub(super) fn accepted(&self) -> Option<(u64, &'a str)> {
        self.settled.iter().find_map(|(at, change, verdict)| {
            (*verdict == "taken" && *change != "given back").then_some((*at, *change))
        })
    }

    /// When a handler first began, `on_exhausted` included.
    pub(super) fn first_start(&self) -> Option<u64> {
        self.starts.iter().chain(&self.finals).min().copied()
    }

    /// The first moment at which the files show this run.
    pub(super) fn seen(&self) -> Option<u64> {
        self.first_start().into_iter().chain(self.settled.iter().map(|settled| settled.0)).min()
    }
}

impl<'a> Life<'a> {
    /// Whether the add was confirmed, and when.
    pub(super) fn confirmed(&self) -> Option<u64> {
        self.added.and_then(|(at, answer)| matches!(answer, Answer::Done { .. }).then_some(at))
    }

    /// When a handler returned an ack, and whether what follows it was certainly added.
    pub(super) fn acked(&self) -> Option<(u64, Answer)> {
        let acks = self.runs.values().rev().filter_map(|run| match run.end {
            Some((ended, End::Ack)) => Some((run.accepted().filter(|(_, kind)| *kind == "acked"), ended)),
            _ => None,
        });
        // The first one that was accepted: a failover may lose it, and then there is another one.
        let (accepted, ended) = acks.max_by_key(|(accepted, _)| accepted.is_some())?;
        let answer = if accepted.is_some() { Answer::Done { found: None, changed: true } } else { Answer::Unknown };
        Some((ended, answer))
    }

    /// The runs whose handlers began, in order.
    pub(super) fn began(&self) -> impl DoubleEndedIterator<Item = (u64, &Run<'a>)> + Clone {
        self.runs.iter().map(|(fence, run)| (*fence, run)).filter(|(_, run)| run.first_start().is_some())
    }
}

impl<'a> Facts<'a> {
    pub(super) fn of(logs: &'a [Log]) -> Self {
        let mut facts = Self::default();
        for log in logs {
            let mut listing = None;
            for line in &log.lines {
                facts.read(&log.process, line.at, &line.entry, &mut listing);
            }
        }
        facts.reasons.sort();
        facts.listings.sort_by_key(|listing| listing.at);
        facts.add_follow_ups();
        facts.add_members();
        facts
    }

    /// The accepted ack of a job of a chain is the add of the next one; another ack may be. It may stand in an outbox until the storm is
    /// over, so only the last listing has to have it.
    fn add_follow_ups(&mut self) {
        let last = self.listings.last().map_or(0, |listing| listing.at.saturating_sub(1));
        let mut ids: Vec<&'a str> = self.jobs.keys().copied().filter(|id| id.ends_with(CHAIN[0])).collect();
        while let Some(id) = ids.pop() {
            let Some(next) = next_of(id) else { continue };
            // The checker ends with its program.
            let next: &'a str = next.leak();
            let Some((ended, answer)) = self.life(id).acked() else { continue };
            let life = self.life(next);
            (life.adding, life.added) = (Some((ended, 0)), Some((last.max(ended), answer)));
            ids.push(next);
        }
    }

    fn read(&mut self, process: &'a str, at: u64, entry: &'a Entry, listing: &mut Option<Listing<'a>>) {
        match entry {
            Entry::Adding { id, after } => self.adding(id, at, *after),
            Entry::Added { id, answer } => self.added(id, at, *answer),
            // The checker ends with its program.
            Entry::Members { set, from, to } => {
                (*from..*to).for_each(|n| self.adding(member(set, n).leak(), at, 0));
            }
            Entry::Joined { set, from, to, answer } => {
                (*from..*to).for_each(|n| self.added(member(set, n).leak(), at, *answer));
            }
            Entry::Counts { id, counts } => self.counts.entry(id).or_default().push(*counts),
            Entry::Sending { id, verb } => {
                self.life(id).commands.push(Command { process, verb: *verb, sent: at, answer: None });
            }
            Entry::Sent { id, verb, answer } => {
                let mut sent = self.life(id).commands.iter_mut();
                let is_this =
                    |sent: &&mut Command<'_>| sent.process == process && sent.verb == *verb && sent.answer.is_none();
                if let Some(command) = sent.find(is_this) {
                    command.answer = Some((at, *answer));
                }
            }
            Entry::Start { id, fence, due, attempt } => {
                let run = self.run(process, id, *fence);
                run.starts.push(at);
                (run.due, run.attempt) = (*due, *attempt);
            }
            Entry::End { id, fence, end } => self.run(process, id, *fence).end = Some((at, *end)),
            Entry::Final { id, fence, .. } => self.run(process, id, *fence).finals.push(at),
            Entry::Alone { ids } => ids.iter().for_each(|id| self.life(id).alone.push((at, process))),
            Entry::Settled { id, fence, change, verdict } => {
                self.run(process, id, *fence).settled.push((at, change, verdict));
            }
            Entry::Lease { topic, until } => self.leases.entry((process, topic)).or_default().push((at, *until)),
            Entry::Event { target, what, from, to } => self.reasons.add(target, what, *from, *to),
            Entry::Listing => *listing = Some(Listing { at, jobs: HashMap::new() }),
            Entry::Listed { id, place, cause } => {
                if let Some(listing) = listing {
                    listing.jobs.entry(id).or_default().push((*place, cause.as_deref()));
                }
            }
            Entry::ListingEnd => self.listings.extend(listing.take()),
        }
    }

    /// Until when the lease of this process, which it had at this time, was provably valid; `None` if the files tell nothing of its leases. A later
    /// one does not count: others may have taken over the jobs in between.
    pub(super) fn lease_end(&self, process: &str, topic: &str, start: u64) -> Option<u64> {
        let learned = self.leases.get(&(process, topic))?;
        let mut end = learned.iter().take_while(|(at, _)| *at <= start).map(|(_, until)| *until).max().unwrap_or(0);
        for (at, until) in learned.iter().skip_while(|(at, _)| *at <= start) {
            if *at >= end {
                break;
            }
            end = end.max(*until);
        }
        Some(end)
    }

    /// Only a set is added again by the next process, or after an answer that was none.
    fn adding(&mut self, id: &'a str, at: u64, after: u64) {
        self.life(id).adding.get_or_insert((at, after));
    }

    fn added(&mut self, id: &'a str, at: u64, answer: Answer) {
        let added = &mut self.life(id).added;
        if !matches!(added, Some((_, Answer::Done { .. }))) {
            *added = Some((at, answer));
        }
    }

    pub(super) fn life(&mut self, id: &'a str) -> &mut Life<'a> {
        self.jobs.entry(id).or_default()
    }

    fn run(&mut self, process: &'a str, id: &'a str, fence: u64) -> &mut Run<'a> {
        let run = self.life(id).runs.entry(fence).or_default();
        run.process = process;
        run
    }
}
