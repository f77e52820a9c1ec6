//! What the steps of the store do to job sets, and what comes over outboxes to the topics of a run (rule 18).
//!
//! The ledger notes the end of a member where it happens, in its topic, and so knows of each set what home is told later.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;

use super::altered::answer_of;
use super::checker::{Checker, Did};
use super::rules::without;
use super::set_ledger::{Ended, SetName};
use super::sim::Sim;
use super::sync::lock;
use super::version::version;
use dq::job::{JobId, ProducerId, Record, State, TopicKey};
use dq::store::step::{Change, Verdict};
use dq::store::{
    ACKED_HEADER, AddOutcome, BatchAnswer, Command, CommandKind, CommandOutcome, DEAD_HEADER, FollowUpBatch,
    FollowUpBatches, FollowUpOutcome, LEFT_HEADER, MemberEnd, NewJob, OnDead, OutboxEntry, Producer, SetChange,
    SetOutcome, SetVerb, SetsRequest, Store as _, StoreError,
};
use dq::testing::seam::{JobView, View};

/// What the id of the last job of a set begins with.
pub(super) const LAST: &str = "last-";

impl Sim {
    /// A caller changes a set. Without `remembered` home has forgotten a set that has ended.
    pub(super) fn change_set(
        self: &Arc<Self>,
        key: &TopicKey,
        inner: &dyn Producer,
        (number, change): (u64, SetChange),
    ) -> Result<BatchAnswer<SetOutcome>, StoreError> {
        let (set, mut asked) = ((key.topic.clone(), change.set.clone()), change.clone());
        if without("remembered") && lock(&self.ledger).sets.has_come(&set) {
            asked.set = JobId::new(format!("{}-again", change.set)).expect("it is a short name");
        }
        let answer = answer_of(inner.job_set(number, asked))?;
        if let BatchAnswer::Done(outcomes) = &answer
            && self.settings().sets
            && outcomes.iter().all(|outcome| matches!(outcome, SetOutcome::Done(_)))
        {
            self.note_change_of(&set, &change.what);
        }
        self.check(key, Did::Nothing);
        Ok(answer)
    }

    fn note_change_of(&self, set: &SetName, what: &SetVerb) {
        let sets = &mut lock(&self.ledger).sets;
        match what {
            SetVerb::Add(_, jobs) => {
                sets.registers(set, jobs.iter().map(|(topic, job)| (topic.clone(), job.id.clone())));
            }
            SetVerb::Close(_) => sets.closes(set),
            SetVerb::End(..) => {}
        }
    }

    /// A topic of this run gets an entry.
    pub(super) fn bring_to_topic(
        self: &Arc<Self>,
        (key, checker): (&TopicKey, &Mutex<Checker>),
        (inner, id): (&dyn Producer, &ProducerId),
        entry: OutboxEntry,
    ) -> Result<BatchAnswer<FollowUpOutcome>, StoreError> {
        let (batch, position) = (entry.batch()?, entry.position);
        let is_new = !lock(checker).is_repeated(id, position, false);
        let answer = answer_of(inner.relay(self.altered_entry(key, entry, &batch)));
        let outcomes = match &answer {
            Ok(BatchAnswer::Done(outcomes)) if is_new => outcomes,
            Err(StoreError::Draining { .. }) => {
                self.check(key, Did::RefuseAdd);
                return answer;
            }
            _ => return answer,
        };
        lock(checker).executed(id, position);
        match batch {
            FollowUpBatch::Add(jobs) => {
                let fell = lock(checker).fell;
                jobs.iter().for_each(|job| self.last_job_comes(key, job, fell));
                self.check_brought((key, checker), jobs, outcomes);
            }
            FollowUpBatch::Members(of, jobs) => {
                let known: Vec<_> = jobs.iter().map(|job| job.id.clone()).zip(outcomes.clone()).collect();
                self.check_brought((key, checker), jobs, outcomes);
                let (set, sets) = ((of.home, of.set), &mut lock(&self.ledger).sets);
                for (id, outcome) in known {
                    sets.comes(&(key.topic.clone(), id), &set, of.on_dead, outcome == FollowUpOutcome::Done);
                }
            }
            FollowUpBatch::Delete(ids) => {
                let outcome = |id: &JobId| {
                    let found = lock(checker).before.jobs.get(id).map(|job| job.state);
                    CommandOutcome { found, changed: found.is_some(), removed: None, other_version: None }
                };
                let outcomes: Vec<_> = ids.iter().map(outcome).collect();
                self.check(key, Did::Command { items: ids.into_iter().map(delete).zip(outcomes).collect() });
            }
            FollowUpBatch::Set(change) => {
                let set = (key.topic.clone(), change.set);
                if let SetVerb::Add(_, jobs) = &change.what {
                    let members = jobs.iter().map(|(topic, job)| (topic.clone(), job.id.clone()));
                    lock(&self.ledger).sets.keeps_promise(&set, members);
                }
                if outcomes.iter().all(|outcome| *outcome == FollowUpOutcome::Done) {
                    self.note_change_of(&set, &change.what);
                }
                self.check(key, Did::Nothing);
            }
        }
        answer
    }

    /// Without `member` home gets no members of runs, without `ended` it learns of no end, and without `counted` one end counts for all.
    fn altered_entry(&self, key: &TopicKey, entry: OutboxEntry, batch: &FollowUpBatch) -> OutboxEntry {
        let FollowUpBatch::Set(SetChange { set, what }) = batch else { return entry };
        let what = match what {
            SetVerb::Add(on_dead, _) if without("member") => SetVerb::Add(*on_dead, Vec::new()),
            SetVerb::End(topic, _) if without("ended") => SetVerb::End(topic.clone(), Vec::new()),
            SetVerb::End(topic, _) if without("counted") => {
                let (store, request) = (self.store(), SetsRequest::One(set.clone(), 1_000));
                let seen = store.job_sets(key, &request).now_or_never().and_then(Result::ok).unwrap_or_default();
                let waits = seen.into_iter().flat_map(|seen| seen.waits_for).filter(|(of, _)| of == topic);
                SetVerb::End(topic.clone(), waits.map(|(_, id)| (id, MemberEnd::Acked)).collect())
            }
            _ => return entry,
        };
        let mut altered = FollowUpBatches::default();
        altered.push(entry.target.clone(), &FollowUpBatch::Set(SetChange { set: set.clone(), what }));
        OutboxEntry { batch: altered.parts()[0].1.clone(), ..entry }
    }

    /// The checker compares what an entry has added. A full topic takes an entry as a whole.
    fn check_brought(
        self: &Arc<Self>,
        (key, checker): (&TopicKey, &Mutex<Checker>),
        jobs: Vec<NewJob>,
        outcomes: &[FollowUpOutcome],
    ) {
        let (after, now) = (self.store().view(key), lock(checker));
        let outcome = |(job, outcome): (&NewJob, &FollowUpOutcome)| {
            let is_it = |waits: &JobView| {
                waits.replacement.as_ref().is_some_and(|(record, _)| version(record) == version(&job.record))
            };
            match (outcome, now.before.jobs.get(&job.id).map(|job| job.state)) {
                (FollowUpOutcome::Refused { cause, .. }, _) => AddOutcome::Refused(cause.clone()),
                _ if after.jobs.get(&job.id).is_some_and(is_it) => AddOutcome::ReplacementWaits,
                (_, Some(state @ (State::Delayed | State::Unacked | State::Dead))) => AddOutcome::Replaced(state),
                _ if now.before.broadcasts.contains_key(&job.id) => AddOutcome::Replaced(State::Delayed),
                _ => AddOutcome::Added,
            }
        };
        let outcomes: Vec<_> = jobs.iter().zip(outcomes).map(outcome).collect();
        drop(now);
        lock(checker).passes_limit = true;
        self.check(key, Did::Add { jobs: jobs.into_iter().zip(outcomes).collect() });
        lock(checker).passes_limit = false;
    }

    fn last_job_comes(&self, key: &TopicKey, job: &NewJob, fell: bool) {
        let set = job.id.as_str().strip_prefix(LAST).and_then(|set| JobId::new(format!("s{set}")).ok());
        let headers = job.record.metadata().map(|metadata| metadata.headers).unwrap_or_default();
        let count =
            |name: &str| headers.iter().find(|(known, _)| known == name).and_then(|(_, count)| count.parse().ok());
        let [Some(acked), Some(dead), Some(left)] = [ACKED_HEADER, DEAD_HEADER, LEFT_HEADER].map(count) else {
            return self.bad(format!("[18] {} has come without counts", job.id));
        };
        let Some(set) = set else { return };
        let wrong = lock(&self.ledger).sets.last_comes(&(key.topic.clone(), set), [acked, dead, left], fell);
        if let Some(wrong) = wrong {
            self.bad(wrong);
        }
    }

    /// Notes which members a step ends, and which ones the acks of runs bring; the checker still has the state before it.
    pub(super) fn note_members(&self, key: &TopicKey, did: &Did, checker: &Checker, after: &View) {
        if !self.settings().sets {
            return;
        }
        let sets = &mut lock(&self.ledger).sets;
        for (id, on_dead) in sets.present_in(&key.topic) {
            let jobs = [&checker.before, after].map(|view| view.jobs.get(&id));
            let broadcasts = [&checker.before, after].map(|view| view.broadcasts.get(&id).map(|(_, record)| record));
            let member = (key.topic.clone(), id);
            if let [Some(was), Some(is)] = jobs
                && on_dead == OnDead::Wait
                && was.state != is.state
            {
                sets.waits(member.clone(), is.state == State::Dead);
            }
            if let Some(ended) = end_of(did, checker, (&member.1, on_dead), jobs, broadcasts) {
                sets.ends(&member, ended);
            }
        }
        let Did::Settle { outcomes, .. } = did else { return };
        for (outcome, _) in outcomes.iter().filter(|(_, verdict)| *verdict == Verdict::Done) {
            let Some(was) = checker.before.jobs.get(&outcome.id) else { continue };
            let old = version(&was.record);
            let is_ack = *outcome.change.alone() == Change::Ack && !checker.is_deleted(old);
            for (home, batch) in outcome.change.follow_ups().into_iter().flat_map(FollowUpBatches::parts) {
                if let Ok(FollowUpBatch::Set(SetChange { set, what: SetVerb::Add(_, jobs) })) = batch.batch()
                    && (is_ack || !checker.is_promised(old, was))
                {
                    let members = jobs.into_iter().map(|(topic, job)| (topic, job.id));
                    sets.promises(&(home.clone(), set), members);
                }
            }
        }
    }
}

fn delete(id: JobId) -> Command {
    Command::new(CommandKind::Delete, id)
}

/// How a step ends a member; `None`: not, as when another job or a broadcast takes its place.
fn end_of(
    did: &Did,
    checker: &Checker,
    (id, on_dead): (&JobId, OnDead),
    [was, is]: [Option<&JobView>; 2],
    [waited, waits]: [Option<&Record>; 2],
) -> Option<Ended> {
    let is_acked = match did {
        Did::Command { items } => items.iter().any(|(item, _)| item.id == *id && item.verb == CommandKind::Ack),
        _ => false,
    };
    let Some(was) = was else {
        let is_gone = is.is_none() && waited.is_some() && waits.is_none();
        return is_gone.then_some(if is_acked { Ended::Acked } else { Ended::Left });
    };
    let old = version(&was.record);
    match is {
        None if waits.is_some_and(|record| version(record) != old) => None,
        Some(is) if version(&is.record) != old || is.state == was.state => None,
        Some(is) if is.state == State::Done => Some(Ended::Acked),
        Some(is) => (is.state == State::Dead && on_dead != OnDead::Wait).then_some(Ended::Dead),
        None if checker.is_promised(old, was) => Some(if checker.is_deleted(old) { Ended::Left } else { Ended::Acked }),
        None => Some(match did {
            Did::Settle { outcomes, .. }
                if outcomes.iter().any(|(outcome, _)| outcome.id == *id && outcome.change == Change::Drop) =>
            {
                Ended::Left
            }
            Did::Settle { .. } => Ended::Acked,
            _ if is_acked => Ended::Acked,
            Did::Claim { .. } if on_dead != OnDead::Wait => Ended::Dead,
            _ => Ended::Left,
        }),
    }
}
