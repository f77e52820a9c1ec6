//! The stored form of a job: a front, then the codec, then the payload.
//!
//! The payload stays where it is and stays readable; whoever changes a running job sends a new [`Metadata`].

use bytes::{BufMut, Bytes, BytesMut};

use super::metadata::{BadRecord, FixedMetadata, Metadata, metadata_length};

/// How a payload is encoded: one byte of the record, so that a reader refuses what it cannot decode.
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

    const fn from_byte(byte: u8) -> Result<Self, BadRecord> {
        match byte {
            b'J' => Ok(Self::Json),
            other => Err(BadRecord::UnknownCodec(other)),
        }
    }
}

/// A job as a store keeps it. Cheap to clone.
///
/// A record may come from a store that another program mangled: everything that reads it can fail, and a store keeps
/// and moves what it cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(Bytes);

impl Record {
    /// A record of these parts.
    pub fn new(metadata: &Metadata, codec: Codec, payload: &[u8]) -> Self {
        let mut bytes = BytesMut::with_capacity(Metadata::SHORTEST + 64 + payload.len());
        metadata.encode(&mut bytes);
        bytes.put_u8(codec.byte());
        bytes.put_slice(payload);
        Self(bytes.freeze())
    }

    /// The record with these bytes, as a store kept it.
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The bytes to keep.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Everything but the payload.
    ///
    /// # Errors
    /// [`BadRecord`] when these bytes are no record of this version.
    pub fn metadata(&self) -> Result<Metadata, BadRecord> {
        Metadata::decode(&self.0)
    }

    /// What a store itself needs of the front, without decoding a text; of bytes that are no record, that of a plain one.
    pub fn fixed(&self) -> FixedMetadata {
        FixedMetadata::decode(&self.0).unwrap_or_default()
    }

    /// The codec and the payload.
    ///
    /// # Errors
    /// [`BadRecord`] when these bytes are no record of this version, or the codec is unknown.
    pub fn payload(&self) -> Result<(Codec, &[u8]), BadRecord> {
        let start = metadata_length(&self.0)?;
        let codec = Codec::from_byte(*self.0.get(start).ok_or(BadRecord::TooShort)?)?;
        Ok((codec, &self.0[start + 1..]))
    }

    /// The same payload behind another front. Of bytes that are no record, all become the payload.
    #[must_use]
    pub fn with_metadata(&self, metadata: &Metadata) -> Self {
        let kept = metadata_length(&self.0).ok().and_then(|start| self.0.get(start..)).filter(|rest| !rest.is_empty());
        let Some(kept) = kept else { return Self::new(metadata, Codec::Json, &self.0) };
        let mut bytes = BytesMut::with_capacity(Metadata::SHORTEST + 64 + kept.len());
        metadata.encode(&mut bytes);
        bytes.put_slice(kept);
        Self(bytes.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_metadata_leaves_the_payload_as_it_is() {
        let record = Record::new(&Metadata::default(), Codec::Json, br#"{"a":1}"#);
        let metadata = Metadata { attempts: 3, error: Some("no".into()), ..Metadata::default() };
        let patched = record.with_metadata(&metadata);
        assert_eq!(patched.payload(), Ok((Codec::Json, &br#"{"a":1}"#[..])));
        assert_eq!(patched.metadata(), Ok(metadata));
    }

    #[test]
    fn a_plain_record_costs_nine_bytes_beyond_its_payload() {
        assert_eq!(Record::new(&Metadata::default(), Codec::Json, b"").as_bytes().len(), 9);
    }

    #[test]
    fn bytes_that_are_no_record_become_the_payload_of_the_next_one() {
        let mangled = Record::from_bytes(Bytes::from_static(b"what?"));
        assert!(mangled.metadata().is_err());
        let kept = mangled.with_metadata(&Metadata::default());
        assert_eq!(kept.payload(), Ok((Codec::Json, &b"what?"[..])));
    }
}
