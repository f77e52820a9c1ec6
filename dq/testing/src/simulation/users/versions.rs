//! Versions for payloads of any kind: the judge tells jobs apart by a number of its own.
//!
//! The number stands behind the JSON text as spaces and tabs, which every reader of JSON skips: handlers see what was added.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::super::cluster::lock;
use dq::job::{Codec, ProducerId, Record};
use dq::store::{NewJob, Numbered};

const DIGITS: usize = 32;

/// The numbers that were given. A batch that is sent again keeps its own.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<BTreeMap<(ProducerId, u64, usize), u64>>);

impl Versions {
    /// Numbers the jobs of a batch.
    pub(super) fn stamp(&self, producer: &ProducerId, batch: &mut Numbered<NewJob>) {
        let mut given = lock(&self.0);
        for (place, job) in batch.items.iter_mut().enumerate() {
            let next = given.len() as u64 + 1;
            let version = *given.entry((producer.clone(), batch.number, place)).or_insert(next);
            if let Some(marked) = with_version(&job.record, version) {
                job.record = marked;
            }
        }
    }

    /// How many were given.
    pub(super) fn given(&self) -> u64 {
        lock(&self.0).len() as u64
    }
}

fn with_version(record: &Record, version: u64) -> Option<Record> {
    let (metadata, (codec, payload)) = (record.metadata().ok()?, record.payload().ok()?);
    if codec != Codec::Json {
        return None;
    }
    let digit = |place| if version >> place & 1 == 1 { b'\t' } else { b' ' };
    let marked: Vec<u8> = payload.iter().copied().chain([b'\n']).chain((0..DIGITS).map(digit)).collect();
    Some(Record::new(&metadata, codec, &marked))
}

/// The version behind a payload.
pub(in super::super) fn version_behind(payload: &str) -> Option<u64> {
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
    fn a_version_stands_behind_a_payload_that_reads_as_before() {
        let record = Record::new(&Metadata::default(), Codec::Json, br#"{"order":7}"#);
        let marked = with_version(&record, 1_000_003).unwrap();
        let payload = std::str::from_utf8(marked.payload().unwrap().1).unwrap();
        assert_eq!(version_behind(payload), Some(1_000_003));
        assert_eq!(serde_json::from_str::<serde_json::Value>(payload).unwrap(), serde_json::json!({ "order": 7 }));
        assert_eq!(version_behind("8"), None);
    }
}
