//! The steps of the store as lines of the account.

use super::super::checker::{Checker, Did};
use super::super::sim::Sim;
use super::super::sync::lock;
use super::program::Program;
use super::trace::{Named, Usual};
use dq::job::{JobId, NodeId, TopicKey};
use dq::store::step::{Change, Verdict};
use dq::store::{AddOutcome, Due};
use dq::testing::seam::View;

impl Program {
    /// Describes what a step did in a topic; the checker still has the state before it.
    pub(super) fn describe(&self, sim: &Sim, key: &TopicKey, did: &Did, checker: &Checker, after: &View) {
        if self.trace.is_none() {
            return;
        }
        let named = |id: &JobId| -> Option<Named> { Some((key.topic.clone(), id.clone())) };
        let topic = &key.topic;
        match did {
            Did::Add { jobs } => {
                for (job, outcome) in jobs {
                    let due = match job.due {
                        Due::After(delay) | Due::Usual(delay) => {
                            format!("due in {}", humantime::format_duration(delay))
                        }
                        Due::At(_) => "due at its time".into(),
                    };
                    let how = how_added(outcome, &due);
                    let usual = (*outcome == AddOutcome::Added).then_some(Usual::Added);
                    self.note(sim, named(&job.id), usual, || format!("{topic}/{} {how}", job.id));
                }
            }
            Did::Settle { node, outcomes } => {
                for (outcome, verdict) in outcomes {
                    let (node, what) = (name_of(sim, node), word(&outcome.change));
                    let how = match verdict {
                        Verdict::Done => "the store has",
                        Verdict::Stale => "the store REFUSES, because that run no longer holds the job,",
                        Verdict::Dropped => "the store has no record left for",
                        Verdict::Later => "the store leaves for later",
                        Verdict::Failed(_) => "the store could not apply",
                    };
                    let is_ack = matches!((&outcome.change, verdict), (Change::Ack, Verdict::Done));
                    let text = || format!("{how} the {what} of {topic}/{} from {node}", outcome.id);
                    self.note(sim, named(&outcome.id), is_ack.then_some(Usual::Acked), text);
                }
            }
            Did::Reclaim { from, .. } => {
                let from = name_of(sim, from);
                for (id, job) in &checker.before.jobs {
                    let kept = after.jobs.get(id).is_some_and(|now| now.row == job.row);
                    if job.row.as_ref().is_some_and(|row| name_of(sim, &row.node) == from) && !kept {
                        self.note(sim, named(id), None, || {
                            format!("{topic}/{id} is reclaimed from {from}, whose lease has expired")
                        });
                    }
                }
            }
            Did::Command { items } => {
                for (item, outcome) in items {
                    self.note(sim, named(&item.id), None, || {
                        format!("{:?} of {topic}/{}: {outcome:?}", item.verb, item.id)
                    });
                }
            }
            Did::Change { items } => {
                for (item, outcome) in items {
                    self.note(sim, named(&item.id), None, || {
                        format!("{:?} of {topic}/{}: {outcome:?}", item.what, item.id)
                    });
                }
            }
            Did::Set { set, .. } => {
                self.note(sim, None, None, || format!("{} changes {topic}: {:?}", set.by, set.change));
            }
            Did::RefuseAdd => self.note(sim, None, None, || format!("{topic} drains, and refuses an add")),
            Did::Claim { .. } | Did::Nothing | Did::Note { .. } | Did::Keep { .. } | Did::Publish { .. } => {}
        }
    }
}

/// What an add came to, for a job that is due so.
fn how_added(outcome: &AddOutcome, due: &str) -> String {
    match outcome {
        AddOutcome::Added => format!("is added, {due}"),
        AddOutcome::Replaced(state) => format!("is added in place of the {state} one, {due}"),
        AddOutcome::ReplacementWaits | AddOutcome::ReplacementIfEnds => "waits to replace the running one".into(),
        AddOutcome::Exists(state) => format!("exists already, {state}"),
        AddOutcome::Deleted => "was deleted, and its id stays taken".into(),
        AddOutcome::Extended { .. } => format!("extends the one that waits, {due} at most"),
        AddOutcome::Later => "has to come in another batch".into(),
        AddOutcome::Repeated => "comes twice in one batch".into(),
        AddOutcome::TopicFull(full) | AddOutcome::GroupFull { full, .. } => format!("is refused: {full}"),
        AddOutcome::TooHeavy(heavy) => format!("is refused: {heavy}"),
        AddOutcome::Refused(why) => format!("is refused: {why}"),
        AddOutcome::Buffered => "waits in a buffer".into(),
    }
}

/// The name of a node's process.
fn name_of(sim: &Sim, node: &NodeId) -> String {
    let nodes = lock(&sim.nodes);
    nodes.iter().find(|at| at.id == *node).map_or_else(|| node.to_string(), |at| at.process.name.clone())
}

const fn word(change: &Change) -> &'static str {
    match change.alone() {
        Change::Ack | Change::Then(..) => "ack",
        Change::Rejoin(_) => "rejoin",
        Change::Retry(_) => "retry",
        Change::Rollback => "rollback",
        Change::Park => "park",
        Change::Dead => "giving up",
        Change::Drop => "drop",
        Change::Tick(_) => "tick",
    }
}
