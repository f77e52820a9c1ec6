//! Whether records, payloads and schedules can be read, whether nodes could decode the payloads, and whether dq has panicked at a job.

use super::finding::Finding;
use crate::job::{Cause, Codec, InvalidRecord, State, TopicName, check_json};
use crate::schedule::{Definition, checked, schedule_name};
use crate::store::{FindingCode, GiveUp, Stored};

/// What does not decode in a job, if anything. The payload of a DEAD job may be what made it DEAD.
pub(super) fn examined(topic: &TopicName, stored: Stored) -> Option<Finding> {
    if let Some(error) = defect_of(&stored) {
        return Some(Finding::of_defect(topic.clone(), &stored.id, &error));
    }
    let Some((code, error)) = wrong_in(&stored) else { return unread_schedule(topic, &stored) };
    let job = GiveUp { id: stored.id, record: stored.record, error };
    Some(Finding::of_job(code, topic.clone(), job))
}

/// A schedule that this program cannot read; `None`: it can, or it is no schedule.
fn unread_schedule(topic: &TopicName, stored: &Stored) -> Option<Finding> {
    let is_schedule = schedule_name(&stored.id).is_some() && stored.place.state() != State::Dead;
    let bad = is_schedule.then(|| Definition::read(&stored.record).err()).flatten()?;
    Some(Finding::of_schedule(topic.clone(), &stored.id, &bad))
}

/// Where dq panicked at this DEAD job; `None`: it did not.
fn defect_of(stored: &Stored) -> Option<String> {
    let metadata = stored.record.metadata().ok().filter(|_| stored.place.state() == State::Dead)?;
    (metadata.cause == Some(Cause::Defect)).then(|| metadata.error.unwrap_or_default())
}

fn wrong_in(stored: &Stored) -> Option<(FindingCode, String)> {
    let is_dead = stored.place.state() == State::Dead;
    let checked = if is_dead { stored.record.metadata() } else { checked(&stored.id, &stored.record) };
    let (codec, payload) = match checked.and_then(|_| stored.record.payload()) {
        Ok(read) => read,
        Err(InvalidRecord::UnknownCodec(_)) if is_dead => return None,
        Err(error @ InvalidRecord::OverLimit(_)) => return Some((FindingCode::OverLimit, error.to_string())),
        Err(error) => return Some((FindingCode::MangledRecord, error.to_string())),
    };
    if codec != Codec::Json || is_dead {
        return None;
    }
    error_in(payload).map(|error| (FindingCode::NotJson, error))
}

/// Why a payload is not JSON; `None`: it is. The error says where, and quotes nothing.
fn error_in(payload: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(payload).map_err(|error| error.to_string());
    text.and_then(|text| check_json(text).map_err(|error| error.to_string())).err()
}

/// The DEAD jobs of a topic with payloads that are JSON, and that the nodes which claimed them could not decode.
#[derive(Debug, Clone, Default)]
pub(super) struct Undecoded {
    jobs: usize,
    /// The id and the error of the first one.
    first: Option<(String, String)>,
}

impl Undecoded {
    /// Counts a job whose payload is JSON and did not decode.
    pub(super) fn add(&mut self, job: &Stored) {
        if job.place.state() != State::Dead {
            return;
        }
        let (Ok(metadata), Ok((Codec::Json, payload))) = (job.record.metadata(), job.record.payload()) else { return };
        if metadata.cause == Some(Cause::Decode) && error_in(payload).is_none() {
            self.jobs += 1;
            self.first.get_or_insert_with(|| (job.id.to_string(), metadata.error.unwrap_or_default()));
        }
    }

    /// What to say of them, if there are any.
    pub(super) fn finding(self, topic: &TopicName) -> Option<Finding> {
        let (id, error) = self.first?;
        let jobs = if self.jobs == 1 { "1 DEAD job has".to_owned() } else { format!("{} DEAD jobs have", self.jobs) };
        let text = format!("{jobs} a payload that no node could decode, {id} for example: {error}");
        Some(Finding::new(FindingCode::SchemaDifference, Some(topic.clone()), text))
    }
}
