//! A job as a look found it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::job::{BadRecord, Codec, JobId, Metadata, Record, State};
use crate::store::{JobPlace, Stored};

/// A job as it was when it was looked at; it may have moved since. `P` is the type of its payload, which is decoded when
/// asked for.
pub struct Seen<P> {
    /// Its id.
    pub id: JobId,
    /// Where it is, and since or until when.
    pub place: JobPlace,
    /// What is kept of it besides its payload: attempts, cause, last error, headers and so on; an error where these bytes
    /// are no record of this version. Why a job is DEAD is in its `cause` and `error`.
    pub details: Result<Metadata, BadRecord>,
    record: Record,
    payload: PhantomData<fn() -> P>,
}

/// A payload that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadablePayload {
    /// The record is damaged, or of another version.
    #[error(transparent)]
    Record(#[from] BadRecord),
    /// It is not what the type of the topic expects.
    #[error("the payload does not decode")]
    Json(#[from] serde_json::Error),
}

impl<P> Seen<P> {
    pub(super) fn new(stored: Stored) -> Self {
        let details = stored.record.metadata();
        Self { id: stored.id, place: stored.place, details, record: stored.record, payload: PhantomData }
    }

    /// Its state.
    pub const fn state(&self) -> State {
        self.place.state()
    }

    /// The bytes of the payload and how they are encoded.
    ///
    /// # Errors
    /// [`BadRecord`] when these bytes are no record of this version.
    pub fn raw_payload(&self) -> Result<(Codec, &[u8]), BadRecord> {
        self.record.payload()
    }
}

impl<P: DeserializeOwned> Seen<P> {
    /// The payload.
    ///
    /// # Errors
    /// [`UnreadablePayload`].
    pub fn payload(&self) -> Result<P, UnreadablePayload> {
        match self.record.payload()? {
            (Codec::Json, bytes) => Ok(serde_json::from_slice(bytes)?),
        }
    }
}

/// Id and place; never the payload.
impl<P> fmt::Debug for Seen<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("id", &self.id).field("place", &self.place).finish_non_exhaustive()
    }
}
