//! Follow-ups of runs: what the outbox of a topic has got, and what has come to the topic that they are for (rule 18).
//!
//! No node listens to that topic. What has come is noted and deleted, so what comes a second time shows. In some runs an import leaves the topic a position
//! that is an hour ahead, as a source does whose clock falls back by an hour: nothing may be lost then, and what waits may come twice.

use std::sync::Arc;

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use super::altered::answer_of;
use super::rules::without;
use super::sim::{Sim, key};
use super::sync::lock;
use dq::job::{DelayJob, InvalidName, JobId, ProducerId, TopicKey, TopicName};
use dq::store::step::{Settle, Settled, Verdict};
use dq::store::{
    BatchAnswer, Command, CommandKind, FollowUpBatch, FollowUpBatches, FollowUpOutcome, Numbered, OutboxEntry,
    OutboxPosition, Packed, Producer, Query, QueryReply, Repair, Store as _, StoreError,
};

/// The topic of all follow-ups.
const TARGET: &str = "after";

/// How far ahead an import leaves it, in µs.
const AHEAD: u64 = 3_600_000_000;

/// A follow-up of a run of this version of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FollowUp {
    pub(super) version: u64,
    pub(super) run: u64,
}

impl DelayJob for FollowUp {
    const TOPIC: &'static str = TARGET;

    fn job_id(&self) -> Option<Result<JobId, InvalidName>> {
        Some(JobId::new(format!("after-{}-{}", self.version, self.run)))
    }
}

/// The ids of the jobs that these follow-ups add.
fn ids_of(follow_ups: &FollowUpBatches) -> Vec<JobId> {
    let batch = |(_, batch): &(TopicName, Packed)| match batch.batch() {
        Ok(FollowUpBatch::Add(jobs)) => jobs.into_iter().map(|job| job.id).collect(),
        _ => Vec::new(),
    };
    follow_ups.parts().iter().flat_map(batch).collect()
}

/// An entry in the place of this one, which adds nothing.
fn nothing_for(entry: &OutboxEntry) -> OutboxEntry {
    let mut none = FollowUpBatches::default();
    none.push(entry.target.clone(), &FollowUpBatch::Add(Vec::new()));
    OutboxEntry { batch: none.parts()[0].1.clone(), ..entry.clone() }
}

impl Sim {
    fn target() -> TopicKey {
        key(TARGET)
    }

    /// How many entries wait in the outbox of a topic, if the request has follow-ups.
    pub(super) fn waiting_follow_ups(&self, key: &TopicKey, request: &Settle) -> Option<usize> {
        let has_some = request.outcomes.iter().any(|outcome| outcome.change.follow_ups().is_some());
        has_some.then(|| self.waiting(key))
    }

    fn waiting(&self, key: &TopicKey) -> usize {
        let store = self.store();
        let seen = store.outbox(key, None, 1).now_or_never().and_then(Result::ok).unwrap_or_default();
        seen.first().map_or(0, |seen| seen.waiting)
    }

    /// A settle was executed. Those of its outcomes that took effect have written their follow-ups, unless an end from outside overrode
    /// one of them.
    pub(super) fn note_follow_ups(&self, key: &TopicKey, before: usize, request: &Settle, settled: &Settled) {
        let outcomes = request.outcomes.iter().zip(&settled.verdicts);
        let done = outcomes.filter(|(_, verdict)| **verdict == Verdict::Done);
        let ids: Vec<_> = done.filter_map(|(outcome, _)| outcome.change.follow_ups()).flat_map(ids_of).collect();
        if self.waiting(key) == before + ids.len() {
            lock(&self.ledger).written.extend(ids);
        }
    }

    /// The target gets an entry. Without `position` it keeps none, and without `outbox` it moves the position before the jobs come.
    pub(super) fn bring(
        self: &Arc<Self>,
        inner: &dyn Producer,
        entry: OutboxEntry,
        moves: bool,
    ) -> Result<BatchAnswer<FollowUpOutcome>, StoreError> {
        let FollowUpBatch::Add(jobs) = entry.batch()? else { return answer_of(inner.relay(entry)) };
        if self.imports() {
            let ahead = OutboxEntry {
                position: OutboxPosition::clock(entry.position.at + AHEAD),
                after: OutboxPosition::START,
                ..nothing_for(&entry)
            };
            drop(answer_of(inner.relay(ahead)));
        }
        let again = jobs.iter().any(|job| lock(&self.ledger).come.contains(&job.id));
        let answer = answer_of(inner.relay(entry));
        if answer.is_ok() && (without("position") && again || without("outbox") && moves) {
            let number = self.next_number();
            let other = self.store().producer(&Self::target(), &ProducerId::new(format!("again-{number}")));
            answer_of(other.add(Numbered { number: 1, items: jobs }))?;
        }
        self.note_come();
        answer
    }

    /// Without `outbox` the position moves as soon as the entry is sent for the first time. Returns whether it is.
    pub(super) fn move_position(&self, inner: &dyn Producer, entry: &OutboxEntry) -> bool {
        let moves =
            without("outbox") && entry.target.as_str() == TARGET && lock(&self.ledger).moved.insert(entry.position.at);
        if moves {
            // What it refuses is out of order, and comes again.
            drop(answer_of(inner.relay(nothing_for(entry))));
        }
        moves
    }

    /// Whether an import comes before this entry.
    fn imports(&self) -> bool {
        let mut ledger = lock(&self.ledger);
        ledger.sent += 1;
        let imports = ledger.sent == 3 && self.cluster.random("import", 0).below(3) == 0;
        ledger.imported |= imports;
        imports
    }

    /// Sets a target back. Without `ahead` it stays where it is.
    pub(super) fn set_back(&self, query: &Query<'_>) -> Option<QueryReply> {
        let is_one = matches!(query, Query::Repair { repair: Repair::SetBack { .. }, .. });
        (is_one && without("ahead")).then_some(QueryReply::Repair(false))
    }

    /// Notes what has come to the target, and deletes it there.
    fn note_come(&self) {
        let (key, store) = (Self::target(), self.store());
        let ids: Vec<JobId> = store.view(&key).jobs.into_keys().collect();
        if ids.is_empty() {
            return;
        }
        let twice: Vec<_> =
            ids.iter().filter(|id| !lock(&self.ledger).come.insert(JobId::clone(id))).cloned().collect();
        if let Some(id) = twice.first().filter(|_| !lock(&self.ledger).imported) {
            self.bad(format!("[18] the follow-up {id} has come twice"));
        }
        let producer = store.producer(&key, &ProducerId::new(format!("ledger-{}", self.next_number())));
        let delete = |id| Command::new(CommandKind::Delete, id);
        let items = ids.into_iter().map(delete).collect();
        drop(answer_of(producer.command(Numbered { number: 1, items })));
    }

    /// The follow-ups that have not come; `None`: all have.
    pub(super) fn missing_follow_ups(&self) -> Option<String> {
        let ledger = lock(&self.ledger);
        let missing: Vec<_> = ledger.written.difference(&ledger.come).map(JobId::to_string).collect();
        (!missing.is_empty()).then(|| format!("the follow-ups {} have not come", missing.join(", ")))
    }
}

/// Whether a run with this number has a follow-up.
pub(super) const fn has_follow_up(run: u64) -> bool {
    run.is_multiple_of(2)
}
