//! The stored form of a job: its metadata, then the codec, then the payload.
//!
//! A node that changes a running job sends new [`Metadata`], and the payload stays. Only a caller changes the payload, of a job
//! that does not run.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::metadata::{FieldPlace, InvalidRecord, Metadata, after_fields, field_of, group_of};
use super::priority::Priority;
use super::weight::Weight;

/// A job as a store keeps it: metadata and payload. Cheap to clone.
///
/// Another program may have damaged the record in the store, so every read of it can fail. A store keeps and moves a
/// record that it cannot read.
#[derive(Clone, PartialEq, Eq)]
pub struct Record(Bytes);

/// Shows the length, never the payload.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({} bytes)", self.0.len())
    }
}

impl Record {
    /// Makes a record.
    #[doc(hidden)]
    pub fn new(metadata: &Metadata, codec: Codec, payload: &[u8]) -> Self {
        Self::joined(metadata, &[codec.byte()], payload)
    }

    /// Allocates exactly what the record needs: a store keeps it for as long as the job waits.
    fn joined(metadata: &Metadata, codec: &[u8], payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(metadata.encoded_length() + codec.len() + payload.len());
        metadata.encode(&mut bytes);
        bytes.extend_from_slice(codec);
        bytes.extend_from_slice(payload);
        Self(bytes.into())
    }

    /// Makes a record from the bytes that a store kept.
    #[doc(hidden)]
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The bytes that a store keeps.
    #[doc(hidden)]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads the metadata.
    ///
    /// # Errors
    /// [`InvalidRecord`] if this version of dq cannot read the record.
    pub fn metadata(&self) -> Result<Metadata, InvalidRecord> {
        Metadata::decode(&self.0).and_then(with_payload).map(|(metadata, _)| metadata)
    }

    /// Reads the metadata that a store itself acts on, without any text, so that it is cheap: the group, the retry policy, the headers, the
    /// error, the state and the result are missing. If the bytes are not a record, it returns the default.
    #[doc(hidden)]
    pub fn fixed(&self) -> Metadata {
        Metadata::decode_numbers(&self.0).and_then(with_payload).map(|(fixed, _)| fixed).unwrap_or_default()
    }

    /// The priority of the job, which a store needs for its indexes.
    #[doc(hidden)]
    pub fn priority(&self) -> Priority {
        field_of(&self.0, FieldPlace::priority)
    }

    /// The weight of the job, which a store needs to keep a rate.
    #[doc(hidden)]
    pub fn weight(&self) -> Weight {
        field_of(&self.0, FieldPlace::weight)
    }

    /// How long a store keeps the job once it is acked.
    #[doc(hidden)]
    pub fn retain(&self) -> Duration {
        self.split().map(|(metadata, _)| field_of(metadata, FieldPlace::retain)).unwrap_or_default()
    }

    /// The group of the job and the order of the job in it, which a store needs for its indexes.
    #[doc(hidden)]
    pub fn group(&self) -> Option<(u64, &str)> {
        group_of(&self.0)
    }

    /// The encoding of the payload, and its bytes.
    ///
    /// # Errors
    /// [`InvalidRecord`] if this version of dq cannot read the record, or does not know its codec.
    pub fn payload(&self) -> Result<(Codec, &[u8]), InvalidRecord> {
        let (codec, payload) = self.split()?.1.split_first().ok_or(InvalidRecord::TooShort)?;
        Ok((Codec::from_byte(*codec).ok_or(InvalidRecord::UnknownCodec(*codec))?, payload))
    }

    /// How long the payload is.
    pub(crate) fn payload_length(&self) -> u64 {
        self.split().map_or(&*self.0, |(_, kept)| &kept[1..]).len() as u64
    }

    /// The codec and the payload, as they are stored; if the bytes are not a record, all of them.
    #[cfg(feature = "redis")]
    pub(crate) fn payload_bytes(&self) -> &[u8] {
        self.split().map_or(&self.0, |(_, rest)| rest)
    }

    /// The metadata, and codec and payload.
    pub(super) fn split(&self) -> Result<(&[u8], &[u8]), InvalidRecord> {
        let kept = after_fields(&self.0, |_, _| {})?;
        with_payload((&self.0[..self.0.len() - kept.len()], kept))
    }

    /// The bytes of the metadata; `None` if the bytes are not a record.
    pub(crate) fn metadata_bytes(&self) -> Option<&[u8]> {
        self.split().ok().map(|(metadata, _)| metadata)
    }

    /// These bytes of metadata, and behind them the last `kept` bytes of the record; `None` if it has fewer.
    pub(crate) fn with_metadata_bytes(&self, metadata: &[u8], kept: usize) -> Option<Self> {
        let from = self.0.len().checked_sub(kept)?;
        Some(Self([metadata, &self.0[from..]].concat().into()))
    }

    /// The same payload under metadata that a store keeps apart from the record, as bytes. Copies nothing if they are the
    /// record's own.
    #[doc(hidden)]
    #[must_use]
    #[cfg(feature = "redis")]
    pub fn under(self, metadata: &[u8]) -> Self {
        if self.0.starts_with(metadata) {
            return self;
        }
        let codec = [Codec::Json.byte()];
        let parts = self.split().map_or([metadata, &codec, &self.0], |(_, kept)| [metadata, kept, &[]]);
        Self(parts.concat().into())
    }

    /// The same payload with other metadata. If the bytes are not a record, all of them become the payload.
    #[doc(hidden)]
    #[must_use]
    pub fn with_metadata(&self, metadata: &Metadata) -> Self {
        match self.split() {
            Ok((_, kept)) => Self::joined(metadata, &[], kept),
            Err(_) => Self::new(metadata, Codec::Json, &self.0),
        }
    }
}

/// The metadata, and codec and payload, which a record has behind them.
fn with_payload<M>((metadata, kept): (M, &[u8])) -> Result<(M, &[u8]), InvalidRecord> {
    if kept.is_empty() { Err(InvalidRecord::TooShort) } else { Ok((metadata, kept)) }
}

/// How a payload, or a state, is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// JSON text.
    Json,
}

impl Codec {
    const fn byte(self) -> u8 {
        match self {
            Self::Json => b'J',
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'J' => Some(Self::Json),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MAX_DELAY;

    #[test]
    fn new_metadata_leaves_the_payload_as_it_is() {
        let record = Record::new(&Metadata::default(), Codec::Json, br#"{"a":1}"#);
        let metadata = Metadata { attempts: 3, retain: Duration::from_secs(9), ..Metadata::default() };
        let patched = record.with_metadata(&metadata);
        assert_eq!(patched.payload(), Ok((Codec::Json, &br#"{"a":1}"#[..])));
        assert_eq!((patched.retain(), patched.metadata()), (metadata.retain, Ok(metadata)));
    }

    /// Redis adds four bytes: with a payload of 100 bytes and a delay of an hour these are then 111, and 112 is a size of its allocator.
    #[test]
    fn a_fresh_record_costs_two_bytes_beyond_its_payload_or_eleven_with_the_longest_delay() {
        let overhead = |delay| {
            let metadata = Metadata { delay, ..Metadata::default() };
            let record = Record::new(&metadata, Codec::Json, &[b'1'; 100]);
            assert_eq!(record.metadata(), Ok(metadata));
            record.as_bytes().len() - 100
        };
        let delays = [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(3_600), MAX_DELAY];
        assert_eq!(delays.map(overhead), [2, 3, 7, 11]);
    }

    #[cfg(feature = "redis")]
    #[test]
    fn metadata_that_are_kept_apart_override_those_of_the_record() {
        let encoded = |metadata: &Metadata| {
            let record = Record::new(metadata, Codec::Json, b"");
            record.as_bytes().slice(..record.as_bytes().len() - 1)
        };
        let metadata = Metadata { attempts: 3, error: Some("no".into()), ..Metadata::default() };
        for payload in [&br#"{"a":1}"#[..], b""] {
            let record = Record::new(&Metadata::default(), Codec::Json, payload);
            assert_eq!(record.clone().under(&encoded(&metadata)), record.with_metadata(&metadata));
            assert_eq!(record.clone().under(&encoded(&Metadata::default())), record);
            assert_eq!(record.clone().under(b""), record);
        }
        let mangled = Record::from_bytes(Bytes::from_static(b"what?"));
        assert_eq!(mangled.clone().under(&encoded(&metadata)), mangled.with_metadata(&metadata));
    }

    #[test]
    fn bytes_that_are_not_a_record_become_the_payload_of_the_next_one() {
        let mangled = Record::from_bytes(Bytes::from_static(b"what?"));
        assert!(mangled.metadata().is_err());
        let kept = mangled.with_metadata(&Metadata::default());
        assert_eq!(kept.payload(), Ok((Codec::Json, &b"what?"[..])));
    }
}
