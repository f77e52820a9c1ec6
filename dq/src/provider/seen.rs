//! A job as a query found it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::job::{BadRecord, Codec, JobId, Metadata, Record, State};
use crate::store::{JobPlace, Stored};

/// A job as a query found it; it may have moved since. `P` is the type of its payload, which [`payload`](Self::payload)
/// decodes.
pub struct Seen<P> {
    /// The job's id.
    pub id: JobId,
    /// Where the job is, and since or until when.
    pub place: JobPlace,
    /// The job's metadata: attempts, cause, last error, headers and so on. An error if the stored bytes are not a record of
    /// this version. `cause` and `error` say why a job is DEAD.
    pub details: Result<Metadata, BadRecord>,
    record: Record,
    payload: PhantomData<fn() -> P>,
}

/// Why a payload cannot be read. No text of it quotes the payload.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum UnreadablePayload {
    /// The record is damaged, or of another version.
    #[error(transparent)]
    Record(#[from] BadRecord),
    /// The payload does not decode as the requested type. The text of this error quotes the payload, so it is no source: match
    /// on it, and show it only where the payload may be shown.
    #[error(
        "the payload does not decode, at line {} column {}; the error in `UnreadablePayload::Json` says why, and quotes the payload",
        .0.line(), .0.column()
    )]
    Json(serde_json::Error),
}

impl fmt::Debug for UnreadablePayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnreadablePayload({self})")
    }
}

impl<P> Seen<P> {
    pub(super) fn new(stored: Stored) -> Self {
        let details = stored.record.metadata();
        Self { id: stored.id, place: stored.place, details, record: stored.record, payload: PhantomData }
    }

    /// The job's state.
    pub const fn state(&self) -> State {
        self.place.state()
    }

    /// The bytes of the payload and their encoding.
    ///
    /// # Errors
    /// [`BadRecord`] if the stored bytes are not a record of this version.
    pub fn raw_payload(&self) -> Result<(Codec, &[u8]), BadRecord> {
        self.record.payload()
    }
}

impl<P: DeserializeOwned> Seen<P> {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`UnreadablePayload`] if the record cannot be read, or the payload is not a `P`.
    pub fn payload(&self) -> Result<P, UnreadablePayload> {
        match self.record.payload()? {
            (Codec::Json, bytes) => serde_json::from_slice(bytes).map_err(UnreadablePayload::Json),
        }
    }
}

/// Shows the id and the place, never the payload.
impl<P> fmt::Debug for Seen<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("id", &self.id).field("place", &self.place).finish_non_exhaustive()
    }
}
