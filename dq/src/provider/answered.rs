//! Producers that calls of one change each share, one after another.

use std::sync::{Mutex, PoisonError};

use crate::environment::Environment;
use crate::job::ProducerId;

/// The producers whose last batch of one is answered, with its number. The store remembers each producer for an hour, so calls share them.
#[derive(Debug, Default)]
pub(super) struct Answered(Mutex<Vec<(ProducerId, u64)>>);

impl Answered {
    /// A producer, and the number of its next batch.
    pub(super) fn take(&self, environment: &Environment) -> (ProducerId, u64) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        known.map_or_else(|| (environment.producer_id(), 1), |(id, last)| (id, last + 1))
    }

    pub(super) fn give_back(&self, producer: (ProducerId, u64)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(producer);
    }
}
