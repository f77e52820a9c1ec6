//! What follow-ups do in their topics, and how an outbox keeps that: as bytes (rule 18).

use std::time::Duration;

use bytes::{BufMut, Bytes};

use super::due::Due;
use super::error::StoreError;
use super::limit::MaxWaiting;
use super::outbox::{FollowUpOutcome, FollowUps, OutboxEntry, Packed};
use super::producer::{AddOutcome, CommandOutcome, NewJob, OnDuplicate};
use crate::job::{Deliver, JobId, Record, TopicName};
use crate::time::Timestamp;

/// What an outcome wants of one topic, as one step does it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowUpBatch {
    /// Adds these jobs. A delay counts from the outcome.
    Add(Vec<NewJob>),
    /// Deletes the jobs with these ids.
    Delete(Vec<JobId>),
}

impl FollowUps {
    /// Adds a batch behind the others.
    pub fn push(&mut self, target: TopicName, batch: &FollowUpBatch) {
        self.count += batch.len();
        self.parts.push((target, batch.packed()));
    }
}

impl OutboxEntry {
    /// What the target does, with delays that count from the outcome.
    ///
    /// # Errors
    /// [`StoreError::Other`] if another program wrote the entry, or a later version of dq.
    pub fn batch(&self) -> Result<FollowUpBatch, StoreError> {
        let unknown = || StoreError::Other {
            operation: "relay",
            source: "this version of dq cannot read the follow-up: use the version that wrote it".into(),
        };
        let written = Timestamp::ceil_micros(self.position);
        let mut batch = read(&self.batch.0).ok_or_else(unknown)?;
        if let FollowUpBatch::Add(jobs) = &mut batch {
            for job in jobs {
                if let Due::After(delay) = job.due {
                    job.due = Due::At(written.after(delay));
                }
            }
        }
        Ok(batch)
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
                AddOutcome::Refused(cause) => cause,
                _ => "another follow-up of the same run has this id".to_owned(),
            };
            Self::Refused { id, cause }
        };
        known.into_iter().zip(outcomes).map(outcome).collect()
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
        }
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn packed(&self) -> Packed {
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
        }
        Packed(bytes.into())
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.put_u32_le(u32::try_from(text.len()).expect("a record is bounded by the payload limit"));
    bytes.put_slice(text);
}

/// A number, or nothing, which is 0.
fn write_some(bytes: &mut Vec<u8>, number: Option<u64>) {
    bytes.put_u64_le(number.map_or(0, |number| number.saturating_add(1)));
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn write_job(bytes: &mut Vec<u8>, job: &NewJob) {
    write_text(bytes, job.id.as_str().as_bytes());
    let (due, time) = match job.due {
        Due::After(delay) => (0, micros(delay)),
        Due::At(at) => (1, at.as_millis()),
        Due::Usual(delay) => (2, micros(delay)),
    };
    let known = match job.on_duplicate {
        OnDuplicate::Reject => 0,
        OnDuplicate::Keep => 1,
        OnDuplicate::Replace => 2,
        OnDuplicate::Extend { .. } => 3,
    };
    bytes.put_slice(&[u8::from(job.generated), due, known, job.deliver.letter() as u8]);
    bytes.put_u64_le(time);
    let at_most = match job.on_duplicate {
        OnDuplicate::Extend { at_most } => at_most,
        _ => None,
    };
    for time in [at_most, job.expires_after, job.unique_for] {
        write_some(bytes, time.map(micros));
    }
    // A full group refuses no follow-up.
    write_some(bytes, job.max_waiting.and_then(|most| most.topic).map(|most| most as u64));
    write_text(bytes, job.record.as_bytes());
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

    fn some(&mut self) -> Option<Option<u64>> {
        self.number().map(|number| number.checked_sub(1))
    }

    fn time(&mut self) -> Option<Option<Duration>> {
        self.some().map(|time| time.map(Duration::from_micros))
    }

    fn text(&mut self) -> Option<Bytes> {
        let length = u32::from_le_bytes(self.take(4)?.as_ref().try_into().ok()?);
        self.take(length as usize)
    }

    fn id(&mut self) -> Option<JobId> {
        JobId::new(std::str::from_utf8(&self.text()?).ok()?).ok()
    }

    fn job(&mut self) -> Option<NewJob> {
        let id = self.id()?;
        let (generated, due, known) = (self.byte()? != 0, self.byte()?, self.byte()?);
        let letter = char::from(self.byte()?);
        let deliver = Deliver::of_letter(letter)?;
        let time = self.number()?;
        let due = match due {
            0 => Due::After(Duration::from_micros(time)),
            1 => Due::At(Timestamp::from_millis(time)),
            2 => Due::Usual(Duration::from_micros(time)),
            _ => return None,
        };
        let (at_most, expires_after, unique_for) = (self.time()?, self.time()?, self.time()?);
        let on_duplicate = match known {
            0 => OnDuplicate::Reject,
            1 => OnDuplicate::Keep,
            2 => OnDuplicate::Replace,
            3 => OnDuplicate::Extend { at_most },
            _ => return None,
        };
        let max_waiting = self
            .some()?
            .map(|most| MaxWaiting { topic: Some(usize::try_from(most).unwrap_or(usize::MAX)), group: None });
        let record = Record::from_bytes(self.text()?);
        Some(NewJob { id, generated, due, expires_after, record, on_duplicate, deliver, max_waiting, unique_for })
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
        _ => None,
    }
}
