//! What the jobs of a store take in memory, and how much they may.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::{MemoryUse, StoreError};

/// What the jobs of all topics take, about.
#[derive(Debug)]
pub(super) struct Budget {
    used: AtomicU64,
    limit: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { used: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) }
    }
}

impl Budget {
    pub(super) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// So many bytes more are used.
    pub(super) fn count(&self, more: u64) {
        self.used.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> MemoryUse {
        MemoryUse {
            bytes: self.used.load(Ordering::Relaxed),
            limit: Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit < u64::MAX),
        }
    }
}

/// What one topic takes of the memory of its store.
#[derive(Debug, Clone, Default)]
pub(super) struct Share {
    budget: Option<Arc<Budget>>,
    counted: u64,
}

impl Share {
    pub(super) const fn of(budget: Arc<Budget>) -> Self {
        Self { budget: Some(budget), counted: 0 }
    }

    /// The topic takes so many bytes now.
    pub(super) fn count(&mut self, bytes: u64) {
        if let Some(budget) = &self.budget
            && bytes != self.counted
        {
            // The sum wraps back: it never counts out more than it has counted in.
            budget.count(bytes.wrapping_sub(self.counted));
            self.counted = bytes;
        }
    }

    /// What all topics of the store take.
    pub(super) fn of_store(&self) -> u64 {
        self.budget.as_ref().map_or(0, |budget| budget.now().bytes)
    }

    /// Refuses a step that needs so many bytes more than there is room for. A step that needs none always passes.
    pub(super) fn take(&self, operation: &'static str, bytes: u64) -> Result<(), StoreError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let now = budget.now();
        if bytes == 0 || now.limit.is_none_or(|limit| now.bytes.saturating_add(bytes) <= limit) {
            return Ok(());
        }
        let reason = format!("the jobs take {now}: raise `max_memory`, or wait until jobs end");
        Err(StoreError::Full { operation, reason })
    }
}
