//! What follow-ups do in their topics, and how an outbox keeps that: as what `postcard` encodes (rule 18). The script parts `ends` and `job_set` write
//! the same.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::change::Due;
use super::error::StoreError;
use super::job_set::{
    ACKED_HEADER, DEAD_HEADER, LEFT_HEADER, MAX_MEMBERS_AT_ONCE, Membership, SetChange, SetCounts, SetOutcome,
    SetRefusal, SetVerb,
};
use super::outbox::{FollowUpBatches, FollowUpOutcome, MAX_FOLLOW_UPS, OutboxEntry, Packed};
use super::producer::{AddOutcome, CommandOutcome, NewJob, OnDuplicate};
use crate::job::limits::{OverLimit, POSITION};
use crate::job::{JobId, Metadata, TopicName};
use crate::time::Timestamp;

/// What an outcome wants of one topic, as one step does it there. A store keeps the numbers of the variants, so a new one comes last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowUpBatch {
    /// Adds these jobs. A delay counts from the outcome.
    Add(Vec<NewJob>),
    /// Deletes the jobs with these ids.
    Delete(Vec<JobId>),
    /// Changes a job set that lives there.
    Set(SetChange),
    /// Adds members of a job set. The ends of those that are refused go back to it.
    Members(Membership, Vec<NewJob>),
}

impl FollowUpBatches {
    /// Adds a batch behind the others.
    pub fn push(&mut self, target: TopicName, batch: &FollowUpBatch) {
        self.count += batch.len();
        self.parts.push((target, batch.packed()));
    }

    /// What this version of dq can read of it.
    pub(super) fn batches(&self) -> impl Iterator<Item = FollowUpBatch> {
        self.parts.iter().filter_map(|(_, packed)| packed.batch().ok())
    }

    /// Adds a batch about one job behind the others, as an outbox keeps it.
    pub(super) fn push_packed(&mut self, target: TopicName, batch: Packed) {
        self.count += 1;
        self.parts.push((target, batch));
    }
}

impl Packed {
    /// What it does. Delays still count from a time that it does not have: [`OutboxEntry::batch`] has them right.
    ///
    /// # Errors
    /// [`StoreError::Other`] if another program wrote it, or a later version of dq.
    pub fn batch(&self) -> Result<FollowUpBatch, StoreError> {
        let unknown = || StoreError::Other {
            operation: "relay",
            source: "this version of dq cannot read the follow-up: use the version that wrote it".into(),
        };
        match postcard::take_from_bytes(&self.0) {
            Ok((entry, [])) => Ok(Entry::batch(entry)),
            _ => Err(unknown()),
        }
    }
}

/// What an entry of an outbox does.
#[derive(Serialize, Deserialize)]
enum Entry<'a> {
    Batch(Cow<'a, FollowUpBatch>),
    /// Adds the last job of a set of which so many members were acked, became DEAD, and left.
    Last([u64; 3], Box<NewJob>),
}

impl Entry<'_> {
    fn batch(self) -> FollowUpBatch {
        match self {
            Self::Batch(batch) => batch.into_owned(),
            Self::Last(counts, mut job) => {
                // A record that does not decode stays as it is; its job becomes DEAD (rule 5).
                if let Ok(metadata) = job.record.metadata() {
                    job.record = job.record.with_metadata(&counted(metadata, counts));
                }
                FollowUpBatch::Add(vec![*job])
            }
        }
    }
}

impl OutboxEntry {
    /// Why it is sent to no target, whatever that would answer: this version of dq cannot read it, or its position is over the limit.
    pub(crate) fn unfit(&self) -> Option<StoreError> {
        POSITION.check_kept(self.position.at).map_err(StoreError::from).and_then(|()| self.batch().map(drop)).err()
    }

    /// What the target does, with delays that count from the outcome.
    ///
    /// # Errors
    /// [`StoreError::Other`] if another program wrote the entry, or a later version of dq.
    pub fn batch(&self) -> Result<FollowUpBatch, StoreError> {
        // No entry is written after the time of its position.
        let written = Timestamp::ceil_micros(self.position.written.min(self.position.at));
        let mut batch = self.batch.batch()?;
        let mut by_topic: &mut [(TopicName, NewJob)] = &mut [];
        let mut jobs: &mut [NewJob] = &mut [];
        match &mut batch {
            FollowUpBatch::Add(added) | FollowUpBatch::Members(_, added) => jobs = added,
            FollowUpBatch::Set(SetChange { what: SetVerb::Add(_, added), .. }) => by_topic = added,
            FollowUpBatch::Set(_) | FollowUpBatch::Delete(_) => {}
        }
        for job in jobs.iter_mut().chain(by_topic.iter_mut().map(|(_, job)| job)) {
            if let Due::After(delay) = job.due {
                job.due = Due::At(written.after(delay));
            }
        }
        Ok(batch)
    }
}

/// What a target does of an entry, and what of it is over a limit of the format (rule 18).
#[derive(Debug)]
pub(super) struct Sifted {
    /// The sound part.
    pub(super) batch: FollowUpBatch,
    /// The jobs that the target refuses for good, each with its place in the entry.
    pub(super) over: Vec<(usize, JobId, OverLimit)>,
}

impl OutboxEntry {
    /// As [`batch`](Self::batch), without jobs over a limit of the format. Of an entry that is over a limit itself nothing is done.
    ///
    /// # Errors
    /// See [`batch`](Self::batch).
    pub(super) fn sifted(&self) -> Result<Sifted, StoreError> {
        let mut batch = self.batch()?;
        let over = batch.check_count().err().zip(batch.first()).map(|(over, first)| (0, first.clone(), over));
        if let Some(over) = over {
            return Ok(Sifted { batch: FollowUpBatch::Add(Vec::new()), over: vec![over] });
        }
        let mut over = Vec::new();
        if let FollowUpBatch::Add(jobs) | FollowUpBatch::Members(_, jobs) = &mut batch {
            let mut place = 0;
            jobs.retain(|job| {
                let checked = job.check();
                over.extend(checked.err().map(|bad| (place, job.id.clone(), bad)));
                place += 1;
                checked.is_ok()
            });
        }
        Ok(Sifted { batch, over })
    }
}

/// The outcomes of an entry from the outcomes of its sound part.
pub(super) fn with_those_over(
    over: Vec<(usize, JobId, OverLimit)>,
    mut outcomes: Vec<FollowUpOutcome>,
) -> Vec<FollowUpOutcome> {
    for (place, id, over) in over {
        outcomes.insert(place.min(outcomes.len()), FollowUpOutcome::Refused { id, cause: over.to_string() });
    }
    outcomes
}

#[cfg(feature = "redis")]
impl OutboxEntry {
    /// Whether these bytes are a job as an outbox keeps it.
    pub(super) fn is_job(bytes: &[u8]) -> bool {
        postcard::take_from_bytes::<NewJob>(bytes).is_ok_and(|(_, left)| left.is_empty())
    }
}

impl FollowUpOutcome {
    /// What became of the jobs that were added: `known` are the ids, and what was to become of jobs with the same id.
    pub(super) fn of_adds(known: Vec<(JobId, OnDuplicate)>, outcomes: Vec<AddOutcome>) -> Vec<Self> {
        let outcome = |((id, on_duplicate), outcome): ((JobId, OnDuplicate), AddOutcome)| {
            let cause = match outcome {
                AddOutcome::Exists(_) | AddOutcome::Deleted if on_duplicate == OnDuplicate::Keep => return Self::Done,
                outcome if outcome.is_taken() => return Self::Done,
                AddOutcome::Exists(state) => format!("a job with this id exists, and is {state}"),
                AddOutcome::Deleted => "the job with this id was deleted, and its id stays taken".to_owned(),
                AddOutcome::TopicFull(full) => format!("the topic is full: {full}"),
                AddOutcome::GroupFull { group, full } => format!("the group {group} is full: {full}"),
                AddOutcome::TooHeavy(heavy) => heavy.to_string(),
                AddOutcome::Refused(cause) => cause,
                _ => "another follow-up of the same run has this id".to_owned(),
            };
            Self::Refused { id, cause }
        };
        known.into_iter().zip(outcomes).map(outcome).collect()
    }

    /// What became of a change of a set, which was about the job of this id.
    pub(super) fn of_set(change: &SetChange, outcomes: &[SetOutcome]) -> Vec<Self> {
        let outcome = |outcome: &SetOutcome| match (outcome, &change.what) {
            (SetOutcome::Refused(refusal), SetVerb::Add(_, jobs)) if !jobs.is_empty() => {
                let cause = format!("job set `{}`: {refusal}", change.set);
                Self::Refused { id: jobs[0].1.id.clone(), cause }
            }
            (SetOutcome::Refused(refusal @ SetRefusal::Unreadable), _) => {
                Self::Refused { id: change.set.clone(), cause: format!("job set `{}`: {refusal}", change.set) }
            }
            _ => Self::Done,
        };
        outcomes.iter().map(outcome).collect()
    }

    pub(super) fn of_deletes(outcomes: &[CommandOutcome]) -> Vec<Self> {
        vec![Self::Done; outcomes.len()]
    }
}

impl FollowUpBatch {
    /// How many jobs it adds or deletes.
    pub fn len(&self) -> usize {
        match self {
            Self::Add(jobs) => jobs.len(),
            Self::Delete(ids) => ids.len(),
            Self::Set(change) => change.what.len(),
            Self::Members(_, jobs) => jobs.len(),
        }
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first job that it is about.
    fn first(&self) -> Option<&JobId> {
        match self {
            Self::Add(jobs) | Self::Members(_, jobs) => jobs.first().map(|job| &job.id),
            Self::Delete(ids) => ids.first(),
            Self::Set(change) => Some(&change.set),
        }
    }

    fn check_count(&self) -> Result<(), OverLimit> {
        let (what, most) = match self {
            Self::Add(_) | Self::Delete(_) => ("the number of follow-ups of an outcome", MAX_FOLLOW_UPS),
            Self::Set(_) | Self::Members(..) => ("the number of members", MAX_MEMBERS_AT_ONCE),
        };
        let over = OverLimit { what, size: self.len() as u64, limit: most as u64 };
        if self.len() > most { Err(over) } else { Ok(()) }
    }

    /// Checks what an outcome writes into the outbox.
    ///
    /// # Errors
    /// [`OverLimit`].
    pub(super) fn check(&self) -> Result<(), OverLimit> {
        self.check_count()?;
        match self {
            Self::Add(jobs) | Self::Members(_, jobs) => jobs.iter().try_for_each(NewJob::check),
            Self::Set(change) => change.check(),
            Self::Delete(_) => Ok(()),
        }
    }

    pub(crate) fn packed(&self) -> Packed {
        Packed(bytes_of(&Entry::Batch(Cow::Borrowed(self))).into())
    }
}

fn bytes_of(kept: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(kept, Vec::new()).expect("every follow-up has an encoding")
}

/// A job as an outbox keeps it.
pub(super) fn packed_job(job: &NewJob) -> Vec<u8> {
    bytes_of(job)
}

/// The metadata of the last job of a set, with what became of the members in the headers.
pub(super) fn counted(mut metadata: Metadata, counts: [u64; 3]) -> Metadata {
    let names = [ACKED_HEADER, DEAD_HEADER, LEFT_HEADER];
    metadata.headers.retain(|(name, _)| !names.contains(&name.as_str()));
    metadata.headers.extend(names.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), count.to_string())));
    metadata
}

/// The entry that adds the last job of a set, whose packed bytes are `job`, with what became of the members.
pub(super) fn last_job_of_set(counts: &SetCounts, job: &[u8]) -> Packed {
    let mut bytes = bytes_of(&(LAST, [counts.acked, counts.dead, counts.left]));
    bytes.extend_from_slice(job);
    Packed(bytes.into())
}

/// The number of [`Entry::Last`].
const LAST: u32 = 1;
