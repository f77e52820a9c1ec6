//! What keeps the store from taking steps: a full disk for a while, or a disk that failed, for good.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::journal::JournalError;
use crate::store::StoreError;

#[derive(Debug, Clone)]
enum Kind {
    Full(String),
    Halted(String),
}

/// What keeps the store from taking steps.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    is_there: AtomicBool,
    kind: Mutex<Option<Kind>>,
}

impl Refusal {
    /// Refuses a step, if it must be.
    ///
    /// # Errors
    /// [`StoreError::Full`] until there is room, [`StoreError::Halted`] for good. The step was not done.
    pub(super) fn admit(&self, operation: &'static str) -> Result<(), StoreError> {
        if !self.is_there.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.lock().clone() {
            None => Ok(()),
            Some(Kind::Full(reason)) => Err(StoreError::Full { operation, reason }),
            Some(Kind::Halted(reason)) => Err(StoreError::Halted { operation, reason }),
        }
    }

    /// Notes a failed commit. Returns the reason if nothing will ever be committed again.
    pub(super) fn failed(&self, error: &JournalError) -> Option<String> {
        let mut kind = self.lock();
        if let Some(Kind::Halted(reason)) = &*kind {
            return Some(reason.clone());
        }
        let text = error.to_string();
        if let JournalError::Full(_) = error {
            if kind.is_none() {
                tracing::warn!(error = text, "the disk of the store is full: steps are refused until there is room");
            }
            *kind = Some(Kind::Full(text));
            self.is_there.store(true, Ordering::Release);
            return None;
        }
        if *error == JournalError::Closed {
            *kind = Some(Kind::Halted("it was closed".to_owned()));
        } else {
            let advice = format!("{text}; start the program again once the disk is sound: what was confirmed is on it");
            tracing::error!(
                error = text,
                "the store has stopped, because nobody knows what its disk has; start the program again"
            );
            *kind = Some(Kind::Halted(advice));
        }
        self.is_there.store(true, Ordering::Release);
        let Some(Kind::Halted(reason)) = &*kind else { return None };
        Some(reason.clone())
    }

    /// A commit succeeded.
    pub(super) fn passed(&self) {
        if !self.is_there.load(Ordering::Acquire) {
            return;
        }
        let mut kind = self.lock();
        if let Some(Kind::Full(_)) = &*kind {
            tracing::info!("the disk of the store has room again");
            *kind = None;
            self.is_there.store(false, Ordering::Release);
        }
    }

    /// One assignment is the only change, so a panic in another thread cannot have left it half-changed.
    fn lock(&self) -> MutexGuard<'_, Option<Kind>> {
        self.kind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
