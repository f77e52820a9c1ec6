//! What follow-ups do in their topics, and how an outbox keeps that: as bytes (rule 18).

use std::mem;

use bytes::{BufMut, Bytes};

use super::due::Due;
use super::error::StoreError;
use super::job_set::{
    ACKED_HEADER, DEAD_HEADER, LEFT_HEADER, MOST_MEMBERS_AT_ONCE, MemberEnd, Membership, OnDead, SetChange, SetCounts,
    SetOutcome, SetRefusal, SetVerb,
};
use super::outbox::{FollowUpOutcome, FollowUps, MOST_FOLLOW_UPS, OutboxEntry, Packed};
use super::producer::{AddOutcome, CommandOutcome, NewJob, OnDuplicate};
use crate::job::limits::{OverLimit, POSITION};
use crate::job::{JobId, Metadata, TopicName};
use crate::time::Timestamp;

/// What an outcome wants of one topic, as one step does it there.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl FollowUps {
    /// Adds a batch behind the others.
    pub fn push(&mut self, target: TopicName, batch: &FollowUpBatch) {
        self.count += batch.len();
        self.parts.push((target, batch.packed()));
    }

    /// What this version of dq can read of it.
    pub(super) fn batches(&self) -> impl Iterator<Item = FollowUpBatch> {
        self.parts.iter().filter_map(|(_, packed)| read(&packed.0))
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
        read(&self.0).ok_or_else(unknown)
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
            Self::Add(_) | Self::Delete(_) => ("the number of follow-ups of an outcome", MOST_FOLLOW_UPS),
            Self::Set(_) | Self::Members(..) => ("the number of members", MOST_MEMBERS_AT_ONCE),
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
        let mut bytes = Vec::new();
        match self {
            Self::Add(jobs) => {
                bytes.put_u8(b'a');
                jobs.iter().for_each(|job| write_job(&mut bytes, job));
            }
            Self::Delete(ids) => {
                bytes.put_u8(b'd');
                ids.iter().for_each(|id| write_text(&mut bytes, id.as_str().as_bytes()));
            }
            Self::Set(SetChange { set, what }) => write_change(&mut bytes, set, what),
            Self::Members(membership, jobs) => {
                bytes.put_slice(&members_of(membership));
                jobs.iter().for_each(|job| write_job(&mut bytes, job));
            }
        }
        Packed(bytes.into())
    }
}

/// A job as an outbox keeps it.
pub(super) fn packed_job(job: &NewJob) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_job(&mut bytes, job);
    bytes
}

/// What an entry with members begins with; the jobs follow.
fn members_of(membership: &Membership) -> Vec<u8> {
    let mut bytes = vec![b'm'];
    write_text(&mut bytes, membership.home.as_str().as_bytes());
    write_text(&mut bytes, membership.set.as_str().as_bytes());
    bytes.put_u8(membership.on_dead.letter());
    bytes
}

/// The metadata of the last job of a set, with what became of the members in the headers.
pub(super) fn counted(mut metadata: Metadata, counts: [u64; 3]) -> Metadata {
    let names = [ACKED_HEADER, DEAD_HEADER, LEFT_HEADER];
    metadata.headers.retain(|(name, _)| !names.contains(&name.as_str()));
    metadata.headers.extend(names.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), count.to_string())));
    metadata
}

/// The entry that adds the last job of a set, whose packed bytes are `job`, with what became of the members in its headers.
pub(super) fn last_job_of_set(counts: &SetCounts, job: &[u8]) -> Packed {
    let mut bytes = vec![b't'];
    [counts.acked, counts.dead, counts.left].into_iter().for_each(|count| bytes.put_u64_le(count));
    bytes.put_slice(job);
    Packed(bytes.into())
}

fn write_change(bytes: &mut Vec<u8>, set: &JobId, what: &SetVerb) {
    let verb = match what {
        SetVerb::Add(..) => b's',
        SetVerb::Close(_) => b'c',
        SetVerb::End(..) => b'e',
    };
    bytes.put_u8(verb);
    write_text(bytes, set.as_str().as_bytes());
    match what {
        SetVerb::Add(on_dead, jobs) => {
            bytes.put_u8(on_dead.letter());
            for (topic, job) in jobs {
                write_text(bytes, topic.as_str().as_bytes());
                write_job(bytes, job);
            }
        }
        SetVerb::Close(then) => write_job(bytes, then),
        SetVerb::End(topic, ends) => {
            write_text(bytes, topic.as_str().as_bytes());
            for (id, end) in ends {
                bytes.put_u8(end.letter());
                write_text(bytes, id.as_str().as_bytes());
            }
        }
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.put_u32_le(u32::try_from(text.len()).expect("a record is bounded by the payload limit"));
    bytes.put_slice(text);
}

/// A job says itself where it ends.
fn write_job(bytes: &mut Vec<u8>, job: &NewJob) {
    *bytes = postcard::to_extend(job, mem::take(bytes)).expect("every job has an encoding");
}

/// Reads what was written from the front.
struct Reader<'a>(&'a Bytes, usize);

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Option<Bytes> {
        let end = self.1.checked_add(length).filter(|end| *end <= self.0.len())?;
        let taken = self.0.slice(self.1..end);
        self.1 = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.as_ref().try_into().ok()?))
    }

    fn text(&mut self) -> Option<Bytes> {
        let length = u32::from_le_bytes(self.take(4)?.as_ref().try_into().ok()?);
        self.take(length as usize)
    }

    fn id(&mut self) -> Option<JobId> {
        JobId::new(std::str::from_utf8(&self.text()?).ok()?).ok()
    }

    fn job(&mut self) -> Option<NewJob> {
        let (job, left) = postcard::take_from_bytes(self.0.get(self.1..)?).ok()?;
        self.1 = self.0.len() - left.len();
        Some(job)
    }

    fn topic(&mut self) -> Option<TopicName> {
        TopicName::stored(std::str::from_utf8(&self.text()?).ok()?).ok()
    }

    fn on_dead(&mut self) -> Option<OnDead> {
        self.byte().and_then(OnDead::of_letter)
    }

    fn member(&mut self) -> Option<(TopicName, NewJob)> {
        Some((self.topic()?, self.job()?))
    }

    fn end(&mut self) -> Option<(JobId, MemberEnd)> {
        let end = self.byte().and_then(MemberEnd::of_letter)?;
        Some((self.id()?, end))
    }

    fn change(&mut self, verb: u8) -> Option<SetChange> {
        let set = self.id()?;
        let what = match verb {
            b's' => SetVerb::Add(self.on_dead()?, self.all(Self::member)?),
            b'c' => SetVerb::Close(Box::new(self.job()?)),
            _ => SetVerb::End(self.topic()?, self.all(Self::end)?),
        };
        Some(SetChange { set, what })
    }

    /// The last job of a set, with what became of the members in its headers.
    fn last_job(&mut self) -> Option<NewJob> {
        let counts = [self.number()?, self.number()?, self.number()?];
        let mut job = self.job()?;
        // A record that does not decode stays as it is; its job becomes DEAD (rule 5).
        if let Ok(metadata) = job.record.metadata() {
            job.record = job.record.with_metadata(&counted(metadata, counts));
        }
        Some(job)
    }

    fn all<T>(&mut self, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while self.1 < self.0.len() {
            items.push(item(self)?);
        }
        Some(items)
    }
}

fn read(bytes: &Bytes) -> Option<FollowUpBatch> {
    let mut reader = Reader(bytes, 0);
    match reader.byte()? {
        b'a' => reader.all(Reader::job).map(FollowUpBatch::Add),
        b'd' => reader.all(Reader::id).map(FollowUpBatch::Delete),
        verb @ (b's' | b'c' | b'e') => reader.change(verb).map(FollowUpBatch::Set),
        b'm' => {
            let (home, set, on_dead) = (reader.topic()?, reader.id()?, reader.on_dead()?);
            Some(FollowUpBatch::Members(Membership { home, set, on_dead }, reader.all(Reader::job)?))
        }
        b't' => Some(FollowUpBatch::Add(vec![reader.last_job()?])),
        _ => None,
    }
}
