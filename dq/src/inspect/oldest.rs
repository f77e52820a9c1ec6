//! The job that has been in each state for the longest.

use serde::Serialize;

use super::inspector::Inspector;
use crate::job::{JobId, State};
use crate::provider::CallError;
use crate::time::Timestamp;

/// The first job of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OldestJob {
    /// Its id.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// When it is due (DELAYED), since when it is there (UNACKED, DEAD), or until when (DONE).
    pub at: Timestamp,
}

impl Inspector {
    /// Reads the first job of each state of a topic that has any: the next due, the longest UNACKED and the longest DEAD, and the DONE
    /// job that the store removes next. RUNNING jobs have no order of time, so none of them is among these. It costs four commands of
    /// the store.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn oldest(&self, topic: &str) -> Result<Vec<OldestJob>, CallError> {
        let oldest = self.of(topic)?.oldest().await?.into_iter();
        Ok(oldest.filter_map(|(id, place)| Some(OldestJob { id, state: place.state(), at: place.at()? })).collect())
    }
}
