//! Up to where the journal is durable, for those who wait for it; and what keeps the store from taking steps: a full disk for a while,
//! or a disk that failed, for good.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::journal::{JournalError, Position};
use crate::store::StoreError;

/// Why no step is taken.
#[derive(Debug, Clone)]
enum Refusal {
    /// Until there is room.
    Full(String),
    /// For good: nothing more will ever be durable.
    Halted(String),
}

#[derive(Debug, Clone, Default)]
struct Reached {
    synced: Position,
    refusal: Option<Refusal>,
}

impl Reached {
    fn halted(&self) -> Option<&String> {
        match &self.refusal {
            Some(Refusal::Halted(reason)) => Some(reason),
            _ => None,
        }
    }
}

/// What the disk has done so far.
#[derive(Debug)]
pub(super) struct Progress {
    now: watch::Sender<Reached>,
    is_refusing: AtomicBool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { now: watch::Sender::new(Reached::default()), is_refusing: AtomicBool::new(false) }
    }

    /// Refuses a step, if it must be.
    ///
    /// # Errors
    /// [`StoreError::Full`] until there is room, [`StoreError::Halted`] for good. The step was not done.
    pub(super) fn admit(&self, operation: &'static str) -> Result<(), StoreError> {
        if !self.is_refusing.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.now.borrow().refusal.clone() {
            None => Ok(()),
            Some(Refusal::Full(reason)) => Err(StoreError::Full { operation, reason }),
            Some(Refusal::Halted(reason)) => Err(StoreError::Halted { operation, reason }),
        }
    }

    /// A commit succeeded, up to here.
    pub(super) fn reached(&self, synced: Position) {
        self.now.send_if_modified(|now| {
            if let Some(Refusal::Full(_)) = &now.refusal {
                tracing::info!("the disk of the store has room again");
                now.refusal = None;
                self.is_refusing.store(false, Ordering::Release);
            }
            let is_further = now.synced < synced && now.refusal.is_none();
            if is_further {
                now.synced = synced;
            }
            is_further
        });
    }

    /// A commit failed.
    pub(super) fn failed(&self, error: &JournalError) {
        match error {
            JournalError::Full(_) => self.refuse(Refusal::Full(error.to_string()), |known| {
                if known.is_none() {
                    tracing::warn!(%error, "the disk of the store is full: steps are refused until there is room");
                }
            }),
            JournalError::Closed => self.ends("it was closed"),
            JournalError::Poisoned(_) | JournalError::TooLarge { .. } => {
                let what = "start the program again once the disk is sound: what was confirmed is on it";
                self.refuse(Refusal::Halted(format!("{error}; {what}")), |_| {
                    tracing::error!(
                        %error,
                        "the store has stopped, because it cannot know what its disk has; start the program again"
                    );
                });
            }
        }
    }

    /// Everybody who waits now, or will, gets this reason.
    pub(super) fn ends(&self, reason: &str) {
        self.refuse(Refusal::Halted(reason.to_owned()), |_| {});
    }

    /// Refuses steps from now on, unless they are refused for good already.
    fn refuse(&self, refusal: Refusal, log: impl FnOnce(Option<&Refusal>)) {
        self.now.send_if_modified(|now| {
            let is_new = now.halted().is_none();
            if is_new {
                log(now.refusal.as_ref());
                now.refusal = Some(refusal);
                self.is_refusing.store(true, Ordering::Release);
            }
            is_new
        });
    }

    /// Waits until everything before `position` is durable.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: it may or may not be on the disk.
    pub(super) async fn wait(&self, operation: &'static str, position: Position) -> Result<(), StoreError> {
        let mut now = self.now.subscribe();
        let reason = match now.wait_for(|now| now.synced >= position || now.halted().is_some()).await.as_deref() {
            Ok(now) if now.synced >= position => return Ok(()),
            Ok(now) => now.halted().cloned().unwrap_or_default(),
            Err(_) => "the store was closed".to_owned(),
        };
        Err(StoreError::Unavailable { operation, reason })
    }
}
