//! Versions for the payloads of a user's jobs, by which the checker tells jobs apart.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::super::sync::lock;
use super::super::version::with_version;
use dq::job::ProducerId;
use dq::store::{NewJob, Numbered};

/// The versions given so far. A batch that is sent again keeps its versions.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<BTreeMap<(ProducerId, u64, usize), u64>>);

impl Versions {
    /// Gives each job of a batch its version.
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

    /// How many versions were given.
    pub(super) fn given(&self) -> u64 {
        lock(&self.0).len() as u64
    }
}
