//! Up to where the journal is durable, for those who wait for it.

use tokio::sync::watch;

use super::journal::Position;
use crate::store::StoreError;

#[derive(Debug, Clone)]
enum Reached {
    UpTo(Position),
    /// Nothing more will ever be durable. The reason.
    Never(String),
}

/// Up to where the journal is durable.
#[derive(Debug)]
pub(super) struct Progress(watch::Sender<Reached>);

impl Progress {
    pub(super) fn new(synced: Position) -> Self {
        Self(watch::Sender::new(Reached::UpTo(synced)))
    }

    pub(super) fn reached(&self, synced: Position) {
        self.0.send_if_modified(|now| match now {
            Reached::UpTo(known) if *known < synced => {
                *known = synced;
                true
            }
            _ => false,
        });
    }

    /// Everybody who waits now, or will, gets this reason.
    pub(super) fn ends(&self, reason: String) {
        self.0.send_if_modified(|now| match now {
            Reached::UpTo(_) => {
                *now = Reached::Never(reason);
                true
            }
            Reached::Never(_) => false,
        });
    }

    /// Waits until everything before `position` is durable.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: it may or may not be on the disk.
    pub(super) async fn wait(&self, operation: &'static str, position: Position) -> Result<(), StoreError> {
        let mut now = self.0.subscribe();
        let is_decided = |now: &Reached| !matches!(now, Reached::UpTo(synced) if *synced < position);
        let reason = match now.wait_for(is_decided).await.as_deref() {
            Ok(Reached::UpTo(_)) => return Ok(()),
            Ok(Reached::Never(reason)) => reason.clone(),
            Err(_) => "the store was closed".to_owned(),
        };
        Err(StoreError::Unavailable { operation, reason })
    }
}
