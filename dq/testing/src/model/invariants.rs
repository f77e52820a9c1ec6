//! What must hold of the memory store after every step. Other stores are compared with it, so it is judged by itself; what each step
//! does to a job, [`conformance`](crate::conformance) says, for every store.
//!
//! Pages, counts, queries and leases agree with where the jobs are (`agree`). A step changes only the jobs that its request and
//! answer name, and moves them as [`State::apply`] allows. Fences grow, nothing is claimed or published early, and repeated batches
//! change nothing.

mod agree;

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Topic;
use super::exchange::{ModelAnswer, ModelRequest};
use super::queries::{Shown, same};
use crate::conformance::EVENTS;
use dq::job::{Fence, JobId, NodeId, ProducerId, State};
use dq::store::step::{self, Claim, NoteVerdict, Sequenced, Verdict};
use dq::store::{Answer, Batch, BatchAnswer, BatchReply, ChangeVerdict, Request};
use dq::testing::seam::JobView;

/// What earlier steps have promised.
#[derive(Debug, Default)]
pub(super) struct Invariants {
    /// The newest fence that was given out.
    fence: Fence,
    /// The answer to each batch.
    answers: BTreeMap<(ProducerId, u64), ModelAnswer>,
}

impl Invariants {
    pub(super) fn check(
        &mut self,
        (request, answer): (&ModelRequest, &ModelAnswer),
        (before, after): (&Topic, &Topic),
        shown: &Shown,
    ) -> Result<(), String> {
        agree::agree(after, shown)?;
        let named = if self.is_repeated(request, answer)? {
            BTreeSet::new()
        } else {
            self.check_step((request, answer), (before, after))?;
            named(request, answer, before)
        };
        for id in before.view.jobs.keys().chain(after.view.jobs.keys()) {
            let (was, is) = (before.view.jobs.get(id), after.view.jobs.get(id));
            if named.contains(id) {
                let states = [was, is].map(|job| job.map(|job| job.state));
                same(&format!("whether {id} may move from {was:?} to {is:?}"), &true, &is_move(states))?;
            } else {
                same(&format!("the job {id}, which the step does not name"), &was, &is)?;
            }
        }
        Ok(())
    }

    /// A repeated batch has its first answer, without removed records, or that it is late. Either changes nothing.
    fn is_repeated(&mut self, request: &ModelRequest, answer: &ModelAnswer) -> Result<bool, String> {
        let ModelRequest::Batch(by, number, _) = request else { return Ok(false) };
        let mut kept = answer.clone();
        if let ModelAnswer::Batch(BatchReply::Command(BatchAnswer::Done(outcomes))) = &mut kept {
            outcomes.iter_mut().for_each(|outcome| outcome.removed = None);
        }
        let late = matches!(
            answer,
            ModelAnswer::Batch(
                BatchReply::Add(BatchAnswer::Late)
                    | BatchReply::Command(BatchAnswer::Late)
                    | BatchReply::Change(BatchAnswer::Late)
                    | BatchReply::Set(BatchAnswer::Late)
            )
        );
        if late || *answer == ModelAnswer::Draining {
            return Ok(true);
        }
        match self.answers.insert((by.clone(), *number), kept.clone()) {
            Some(first) => same("the answer to a repeated batch", &(&first, &kept), &(&kept, answer)).map(|()| true),
            None => Ok(false),
        }
    }

    /// What a step takes and tells.
    fn check_step(
        &mut self,
        (request, answer): (&ModelRequest, &ModelAnswer),
        (before, after): (&Topic, &Topic),
    ) -> Result<(), String> {
        let (ModelRequest::Step(node, request), ModelAnswer::Step(answer)) = (request, answer) else { return Ok(()) };
        match (request, answer) {
            (Request::Transfer(request), Answer::Transfer(Sequenced::Done(done))) => {
                let latest = after.now().after(request.lookahead);
                self.check_claims(node, &done.claims, (before, after))?;
                let early = done.claims.iter().any(|claim| claim.token.due > latest);
                same("whether a claim is early", &false, &early)?;
                let is_due = |job: &JobView| job.state == State::Delayed && job.at.is_some_and(|at| at <= latest);
                let hidden = after.view.jobs.values().any(is_due) && !done.more && !after.is_held;
                same("whether a due job is left and the answer does not tell it", &false, &hidden)
            }
            (_, Answer::Sweep(Sequenced::Done(done))) => self.check_claims(node, &done.claims, (before, after)),
            (_, Answer::Publish(published)) => {
                let broadcasts = before.view.broadcasts.iter();
                let gone: Vec<_> = broadcasts.filter(|(id, _)| !after.view.broadcasts.contains_key(*id)).collect();
                let early = gone.iter().any(|(_, (due, _))| *due > after.now());
                same("whether a broadcast is published early", &false, &early)?;
                same("how many broadcasts a publish removes", &(published.published + published.dropped), &gone.len())
            }
            _ => Ok(()),
        }
    }

    /// Each claim shows its job as it was, and has a new fence and a row.
    fn check_claims(
        &mut self,
        node: &NodeId,
        claims: &[Claim],
        (before, after): (&Topic, &Topic),
    ) -> Result<(), String> {
        for claim in claims {
            same("whether the fence grows", &true, &(claim.token.fence > self.fence))?;
            let was = before.view.jobs.get(&claim.id).map(|job| (job.at, &job.record, job.crashes));
            let shown = Some((Some(claim.token.due), &claim.record, claim.crashes));
            same(&format!("the claim of {}", claim.id), &was, &shown)?;
            let row = after.row(&claim.id).map(|row| (&row.node, row.token));
            same(&format!("the row of {}", claim.id), &Some((node, claim.token)), &row)?;
        }
        self.fence = claims.iter().map(|claim| claim.token.fence).fold(self.fence, Fence::max);
        Ok(())
    }
}

/// Whether a job may go from one state to another. `None`: there is none.
fn is_move([was, is]: [Option<State>; 2]) -> bool {
    match was {
        None => matches!(is, None | Some(State::Delayed)),
        Some(was) => is == Some(was) || EVENTS.iter().any(|event| was.apply(*event) == Ok(is)),
    }
}

/// The jobs that a request, and the answer to it, name.
fn named(request: &ModelRequest, answer: &ModelAnswer, before: &Topic) -> BTreeSet<JobId> {
    let (batch, reply) = match (request, answer) {
        (ModelRequest::Batch(.., batch), ModelAnswer::Batch(reply)) => (batch, reply),
        (ModelRequest::Step(_, request), ModelAnswer::Step(answer)) => return named_by_step(request, answer, before),
        _ => return BTreeSet::new(),
    };
    match (batch, reply) {
        (Batch::Add { batch }, BatchReply::Add(BatchAnswer::Done(outcomes))) => {
            let outcomes = batch.items.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_taken());
            outcomes.map(|(new, _)| new.id.clone()).collect()
        }
        (Batch::Command { batch }, BatchReply::Command(BatchAnswer::Done(outcomes))) => {
            let outcomes = batch.items.iter().zip(outcomes).filter(|(_, outcome)| outcome.changed);
            outcomes.map(|(command, _)| command.id.clone()).collect()
        }
        (Batch::Change { batch }, BatchReply::Change(BatchAnswer::Done(outcomes))) => {
            let outcomes = batch.items.iter().zip(outcomes);
            let changed = outcomes.filter(|(_, outcome)| outcome.verdict == ChangeVerdict::Changed);
            changed.map(|(item, _)| item.id.clone()).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn named_by_step(request: &Request, answer: &Answer, before: &Topic) -> BTreeSet<JobId> {
    let of_claims = |claims: &[Claim]| claims.iter().map(|claim| claim.id.clone()).collect();
    match (request, answer) {
        (_, Answer::Transfer(Sequenced::Done(done))) => of_claims(&done.claims),
        (_, Answer::Sweep(Sequenced::Done(done))) => {
            // It prunes jobs without a name.
            let ended = before.view.jobs.iter().filter(|(_, job)| matches!(job.state, State::Dead | State::Done));
            ended.map(|(id, _)| id.clone()).chain(of_claims(&done.claims)).collect()
        }
        (Request::Settle(settle), Answer::Settle(settled)) => {
            let outcomes = settle.outcomes.iter().zip(&settled.verdicts);
            let done = outcomes.filter(|(_, verdict)| **verdict == Verdict::Done).map(|(outcome, _)| outcome);
            let added = |outcome: &step::Outcome| match &outcome.change {
                step::Change::Tick(tick) => tick.jobs.iter().map(|job| job.id.clone()).collect(),
                _ => Vec::new(),
            };
            done.flat_map(|outcome| added(outcome).into_iter().chain([outcome.id.clone()])).collect()
        }
        (Request::Reclaim(reclaim), Answer::Reclaim(step::Reclaimed { moved: 1.., .. })) => {
            let is_its = |job: &JobView| job.row.as_ref().is_some_and(|row| row.node == reclaim.node);
            before.view.jobs.iter().filter(|(_, job)| is_its(job)).map(|(id, _)| id.clone()).collect()
        }
        (Request::Isolate(isolate), Answer::Isolate(isolated)) => {
            let notes = isolate.runs.iter().zip(isolated.notes.iter().flatten());
            notes.filter(|(_, note)| **note == NoteVerdict::Done).map(|((id, _), _)| id.clone()).collect()
        }
        (
            Request::Exhaust(step::Exhaust { id, .. }) | Request::Note(step::Note { id, .. }),
            Answer::Exhaust(noted) | Answer::Note(noted),
        ) if noted.note == NoteVerdict::Done => BTreeSet::from([id.clone()]),
        _ => BTreeSet::new(),
    }
}
