//! What must hold of the memory store after every step. Other stores are compared with it, so it is judged by itself.
//!
//! Pages, counts, queries and leases agree with where the jobs are (`agree`). A step changes only the jobs that its answer
//! names, and moves them as [`State::apply`](dq::job::State::apply) allows. Fences grow, pending commands are obeyed, repeated
//! batches change nothing, and what gives a job back keeps its time.

mod agree;
mod batches;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Topic;
use super::exchange::{ModelAnswer, ModelRequest};
use super::queries::{Shown, same};
use dq::job::state::Event;
use dq::job::{Fence, JobId, NodeId, ProducerId, State, Token};
use dq::store::step::{self, Claim, NoteVerdict, Noting, Sequenced};
use dq::store::{Answer, BatchAnswer, CommandKind, Request};
use dq::testing::seam::{JobView, Row};
use dq::time::Timestamp;

/// What earlier steps have promised.
#[derive(Debug, Default)]
pub(super) struct Invariants {
    /// The newest fence that was given out.
    fence: Fence,
    /// The pending end of each running job, and the run that it names.
    ends: BTreeMap<JobId, (CommandKind, Option<Fence>)>,
    /// Until when each id is taken, and whether its job was deleted.
    taken: BTreeMap<JobId, (Timestamp, bool)>,
    /// The highest number of a note of each run.
    notes: BTreeMap<(JobId, Token), u64>,
    /// The answer to each batch.
    answers: BTreeMap<(ProducerId, u64), ModelAnswer>,
}

/// The topic before and after a step.
#[derive(Clone, Copy)]
struct Change<'a> {
    before: &'a Topic,
    after: &'a Topic,
}

impl<'a> Change<'a> {
    fn was(self, id: &JobId) -> Result<&'a JobView, String> {
        self.before.view.jobs.get(id).ok_or_else(|| format!("there was no job {id}"))
    }

    fn is(self, id: &JobId) -> Option<&'a JobView> {
        self.after.view.jobs.get(id)
    }

    fn becomes(self, id: &JobId, expected: Option<&JobView>) -> Result<(), String> {
        same(&format!("the job {id} in the memory store"), &expected, &self.is(id))
    }

    fn stays(self, id: &JobId) -> Result<(), String> {
        self.becomes(id, self.before.view.jobs.get(id))
    }
}

/// The state of the job after `event`; the table must have this move. `None`: the job is gone.
fn moved(was: &JobView, event: Event) -> Result<Option<State>, String> {
    was.state.apply(event).map_err(|illegal| illegal.to_string())
}

impl Invariants {
    pub(super) fn check(
        &mut self,
        (request, answer): (&ModelRequest, &ModelAnswer),
        (before, after): (&Topic, &Topic),
        shown: &Shown,
    ) -> Result<(), String> {
        agree::agree(after, shown)?;
        let change = Change { before, after };
        let mut touched = BTreeSet::new();
        if !self.is_repeated(request, answer)? {
            self.check_answer((request, answer), change, &mut touched)?;
        }
        for id in before.view.jobs.keys().chain(after.view.jobs.keys()).filter(|id| !touched.contains(*id)) {
            change.stays(id)?;
        }
        Ok(())
    }

    /// A repeated batch has its first answer, without removed records, or that it is late. Either changes nothing.
    fn is_repeated(&mut self, request: &ModelRequest, answer: &ModelAnswer) -> Result<bool, String> {
        let Some((by, number)) = request.batch() else { return Ok(false) };
        let mut kept = answer.clone();
        if let ModelAnswer::Commanded(BatchAnswer::Done(outcomes)) = &mut kept {
            outcomes.iter_mut().for_each(|outcome| outcome.removed = None);
        }
        let late = matches!(
            answer,
            ModelAnswer::Added(BatchAnswer::Late)
                | ModelAnswer::Commanded(BatchAnswer::Late)
                | ModelAnswer::Changed(BatchAnswer::Late)
                | ModelAnswer::Set(BatchAnswer::Late)
        );
        if late || *answer == ModelAnswer::Draining {
            return Ok(true);
        }
        match self.answers.insert((by.clone(), number), kept.clone()) {
            Some(first) => same("the answer to a repeated batch", &(&first, &kept), &(&kept, answer)).map(|()| true),
            None => Ok(false),
        }
    }

    fn check_answer(
        &mut self,
        (request, answer): (&ModelRequest, &ModelAnswer),
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        match (request, answer) {
            (ModelRequest::Add(_, batch), ModelAnswer::Added(BatchAnswer::Done(outcomes))) => {
                self.check_adds(batch.items.iter().zip(outcomes), change, touched)
            }
            (ModelRequest::Command(_, batch), ModelAnswer::Commanded(BatchAnswer::Done(outcomes))) => {
                self.check_commands(batch.items.iter().zip(outcomes), change, touched)
            }
            (ModelRequest::Change(_, batch), ModelAnswer::Changed(BatchAnswer::Done(outcomes))) => {
                batches::check_changes(&batch.items.iter().zip(outcomes).collect::<Vec<_>>(), change, touched)
            }
            (ModelRequest::Step(node, request), ModelAnswer::Step(answer)) => {
                self.check_step(node, (request, answer), change, touched)
            }
            _ => Ok(()),
        }
    }

    fn check_sweep(
        &mut self,
        node: &NodeId,
        (request, done): (&step::Sweep, &step::Swept),
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        self.check_claims(node, (&done.claims, Event::Swept), change, touched)?;
        let mut pruned = BTreeMap::from([(State::Dead, 0), (State::Done, 0)]);
        let gone = change.before.view.jobs.iter().filter(|(id, _)| change.is(id).is_none());
        let kept = change.after.view.jobs.values().filter(|job| job.state == State::Done).count();
        let are_too_many = request.done_most.is_some_and(|most| kept >= most);
        for (id, was) in gone {
            same("what a sweep leaves of a job", &None, &moved(was, Event::Pruned)?)?;
            let early = was.state == State::Done && was.at > Some(change.after.now()) && !are_too_many;
            same("whether a DONE job goes before its retention ends", &false, &early)?;
            *pruned.entry(was.state).or_default() += 1;
            touched.insert(id.clone());
        }
        same(
            "how many jobs a sweep prunes",
            &[done.pruned_dead, done.pruned_done],
            &[pruned[&State::Dead], pruned[&State::Done]],
        )
    }

    fn check_step(
        &mut self,
        node: &NodeId,
        (request, answer): (&Request, &Answer),
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        match (request, answer) {
            (Request::Transfer(request), Answer::Transfer(Sequenced::Done(done))) => {
                let latest = change.after.now().after(request.lookahead);
                self.check_claims(node, (&done.claims, Event::Transferred), change, touched)?;
                let due = |job: &&JobView| job.state == State::Delayed && job.at.is_some_and(|at| at <= latest);
                let left = change.after.view.jobs.values().any(|job| due(&job));
                let early = done.claims.iter().any(|claim| claim.token.due > latest);
                same("whether a claim is early", &false, &early)?;
                let hidden = left && !done.more && !change.after.is_held;
                same("whether a due job is left and the answer does not tell it", &false, &hidden)
            }
            (Request::Sweep(request), Answer::Sweep(Sequenced::Done(done))) => {
                self.check_sweep(node, (request, done), change, touched)
            }
            (Request::Settle(request), Answer::Settle(settled)) => {
                self.check_settle(node, request.outcomes.iter().zip(&settled.verdicts), change, touched)
            }
            (Request::Reclaim(request), Answer::Reclaim(answer)) => {
                self.check_reclaim((request, answer), change, touched)
            }
            (Request::Isolate(request), Answer::Isolate(isolated)) => {
                let notes = isolated.notes.iter().flatten();
                for ((id, _), _) in request.runs.iter().zip(notes).filter(|(_, note)| **note == NoteVerdict::Done) {
                    let was = change.was(id)?;
                    let row = was.row.clone().map(|row| Row { isolation: request.isolation.or(row.isolation), ..row });
                    change.becomes(id, Some(&JobView { row, ..was.clone() }))?;
                    touched.insert(id.clone());
                }
                Ok(())
            }
            (Request::Note(step::Note { id, token, number, .. }), Answer::Note(noted))
                if noted.note == NoteVerdict::Done && self.is_late(id, *token, *number) =>
            {
                change.stays(id)
            }
            (
                Request::Exhaust(step::Exhaust { id, metadata, .. })
                | Request::Note(step::Note { id, what: Noting::State(metadata), .. }),
                Answer::Exhaust(noted) | Answer::Note(noted),
            ) if noted.note == NoteVerdict::Done => {
                let was = change.was(id)?;
                let record = runs::written(&was.record, Some(metadata), was.record.fixed().parked_by);
                touched.insert(id.clone());
                change.becomes(id, Some(&JobView { record, ..was.clone() }))
            }
            (Request::Publish(_), Answer::Publish(published)) => {
                let (before, after) = (&change.before.view.broadcasts, &change.after.view.broadcasts);
                let gone = || before.iter().filter(|(id, _)| !after.contains_key(*id));
                let early = gone().any(|(_, (due, _))| *due > change.after.now());
                same("whether a broadcast is published early", &false, &early)?;
                same(
                    "how many broadcasts a publish removes",
                    &(published.published + published.dropped),
                    &gone().count(),
                )
            }
            _ => Ok(()),
        }
    }

    /// Each claimed job runs, under a new fence and with the time that it had.
    fn check_claims(
        &mut self,
        node: &NodeId,
        (claims, event): (&[Claim], Event),
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        for claim in claims {
            let was = change.was(&claim.id)?;
            same("whether the fence grows", &true, &(claim.token.fence > self.fence))?;
            let shown = (Some(claim.token.due), &claim.record, claim.crashes);
            same(&format!("the claim of {}", claim.id), &(was.at, &was.record, was.crashes), &shown)?;
            let row = Row { node: node.clone(), token: claim.token, isolation: None };
            let state = moved(was, event)?.unwrap_or(State::Done);
            change.becomes(&claim.id, Some(&JobView { state, at: None, row: Some(row), ..was.clone() }))?;
            touched.insert(claim.id.clone());
        }
        self.fence = claims.iter().map(|claim| claim.token.fence).fold(self.fence, Fence::max);
        Ok(())
    }

    /// Whether a note of this run comes after one with a higher number; without a number none does.
    fn is_late(&mut self, id: &JobId, token: Token, number: u64) -> bool {
        let last = self.notes.entry((id.clone(), token)).or_default();
        let is_late = number > 0 && number <= *last;
        *last = number.max(*last);
        is_late
    }

    /// The pending end of this run, if it names no other run.
    fn end(&self, id: &JobId, row: &Row, parked_by: Option<Fence>) -> Option<CommandKind> {
        let end = self.ends.get(id);
        end.filter(|(_, fence)| fence.is_none() || *fence == Some(row.token.fence) || *fence == parked_by)
            .map(|(verb, _)| *verb)
    }
}
