//! The version of a job: the number by which the checker tells jobs apart.
//!
//! In dq's own simulation the version is the payload, and its lowest bits say how the handler of the job behaves. Behind a
//! user's JSON payload the version is written as spaces and tabs, which every JSON parser skips: handlers see what was added.
//! A schedule has the version of the payload that its jobs get, and the job of each tick one of its own.

use super::random::hash;
use dq::job::{Codec, JobId, Record};
use dq::schedule::Definition;
use dq::store::step::Tick;

/// The handler of the job kills its node.
pub(super) const KILLER: u64 = 1;
/// The handler runs longer than a lease.
pub(super) const SLOW: u64 = 2;
/// The handler fails every time.
pub(super) const FAILING: u64 = 4;

/// The job is that of a tick.
const OF_TICK: u64 = 1 << 62;

const DIGITS: usize = 32;

/// The version of a job: the number that is its payload, or the one written behind a user's payload.
pub(super) fn version(record: &Record) -> u64 {
    let Ok((_, payload)) = record.payload() else { return 0 };
    let digits = payload.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A large payload is not read whole. A user's payload has a line feed in this place.
    let is_own = digits > 0 && payload.get(digits).is_none_or(|next| *next == b' ');
    let text = if is_own { &payload[..digits] } else { payload };
    let text = std::str::from_utf8(text).unwrap_or_default();
    if is_own { text.parse().unwrap_or_default() } else { version_behind(text).unwrap_or_else(|| of_schedule(record)) }
}

fn of_schedule(record: &Record) -> u64 {
    Definition::read(record).map_or(0, |schedule| version(&schedule.job.record))
}

/// The version of the job of a tick: no other job has it, and its handler behaves as the schedule says.
fn version_of_tick(schedule: u64, id: &JobId) -> u64 {
    const FLAGS: u64 = KILLER | SLOW | FAILING;
    OF_TICK | (hash(schedule, id.as_str().bytes()) >> 3 & !FLAGS) | (schedule & FLAGS)
}

/// Whether the handler of the job leaves a result. It is no draw, so the seeds of other findings stay. A tick that comes again, as after a
/// clock that jumped back, takes the place of a DONE job, which the checker would have to know.
pub(super) const fn leaves_result(version: u64) -> bool {
    version < OF_TICK && version / 8 % 4 == 1
}

/// Gives the jobs of a tick of dq's own workload their versions.
pub(super) fn stamp_tick(tick: &mut Tick) {
    for job in &mut tick.jobs {
        let stamped = version_of_tick(version(&job.record), &job.id);
        job.record = with_payload(&job.record, &stamped.to_string());
    }
}

/// The record with another payload.
pub(super) fn with_payload(record: &Record, payload: &str) -> Record {
    let codec = record.payload().map_or(Codec::Json, |(codec, _)| codec);
    record.metadata().map_or_else(|_| record.clone(), |metadata| Record::new(&metadata, codec, payload.as_bytes()))
}

/// How many blanks stand behind the version: they tell updates apart.
pub(super) fn mark(record: &Record) -> usize {
    record.payload().map_or(0, |(_, payload)| payload.iter().rev().take_while(|byte| **byte == b' ').count())
}

/// The payload of a job of dq's own workload: its version, and blanks up to a size in bytes.
pub(super) fn payload(version: u64, size: usize) -> String {
    let digits = version.to_string();
    let blanks = size.saturating_sub(digits.len());
    digits + &" ".repeat(blanks)
}

pub(super) fn with_version(record: &Record, version: u64) -> Option<Record> {
    let (metadata, (codec, payload)) = (record.metadata().ok()?, record.payload().ok()?);
    if codec != Codec::Json {
        return None;
    }
    let digit = |place| if version >> place & 1 == 1 { b'\t' } else { b' ' };
    let marked: Vec<u8> = payload.iter().copied().chain([b'\n']).chain((0..DIGITS).map(digit)).collect();
    Some(Record::new(&metadata, codec, &marked))
}

/// The version written behind a payload.
fn version_behind(payload: &str) -> Option<u64> {
    let (_, digits) = payload.rsplit_once('\n')?;
    let of = |digit| match digit {
        b' ' => Some(0),
        b'\t' => Some(1),
        _ => None,
    };
    let digits: Option<Vec<u64>> = digits.bytes().map(of).collect();
    digits
        .filter(|digits| digits.len() == DIGITS)
        .map(|digits| digits.iter().rev().fold(0, |sum, digit| sum * 2 + digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dq::job::Metadata;

    #[test]
    fn a_version_follows_a_payload_and_leaves_its_value_alone() {
        let record = Record::new(&Metadata::default(), Codec::Json, br#"{"order":7}"#);
        let marked = with_version(&record, 1_000_003).unwrap();
        let payload = std::str::from_utf8(marked.payload().unwrap().1).unwrap();
        assert_eq!(version_behind(payload), Some(1_000_003));
        assert_eq!(serde_json::from_str::<serde_json::Value>(payload).unwrap(), serde_json::json!({ "order": 7 }));
        assert_eq!(version_behind("8"), None);
    }
}
