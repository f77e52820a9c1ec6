//! The metadata of a record: what a store and a node need to know of a job without reading its payload.
//!
//! All numbers are little-endian. The first eight bytes are always present. A later field is present only if its flag
//! is set. Fields have the order of the flags, so a script can find and patch a fixed field without decoding text.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | format version, 1 |
//! | 1, 2 | length of the metadata |
//! | 3, 4 | flags |
//! | 5, 6 | attempts: failed runs so far |
//! | 7 | cause of the last failure, 0 = none |
//! | 6, if `DELAY` | original delay, ms |
//! | 6, if `EXPIRES` | absolute expiry, ms since the Unix epoch |
//! | 6, if `RETAIN` | how long to keep the job as DONE, ms |
//! | 8, if `PARKED` | fence of the run that parked the job |
//! | 2 + n, if `RETRY` | retry policy of this job, as text |
//! | 2 + n, if `HEADERS` | headers: for each 2 + n of name and 2 + n of value |
//! | 2 + n, if `ERROR` | last error, as text |
//!
//! `EXHAUSTED` is a flag without a field: only `final_retry` will run.

use std::fmt;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};

use super::ident::Fence;
use crate::time::{Timestamp, millis_ceil};

const VERSION: u8 = 1;

const DELAY: u16 = 1;
const EXPIRES: u16 = 1 << 1;
const RETAIN: u16 = 1 << 2;
const PARKED: u16 = 1 << 3;
const RETRY: u16 = 1 << 4;
const HEADERS: u16 = 1 << 5;
const ERROR: u16 = 1 << 6;
const EXHAUSTED: u16 = 1 << 7;
const KNOWN: u16 = (1 << 8) - 1;

/// What dq stores of a job besides its payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Failed runs so far. A rejoin does not change this.
    pub attempts: u16,
    /// Why the last run failed, or why no attempt is left.
    pub cause: Option<Cause>,
    /// No attempt is left: the next run calls only `final_retry`.
    pub exhausted: bool,
    /// The delay that the job was added with, in whole milliseconds. A rejoin without a time uses it.
    pub delay: Duration,
    /// After this time the job becomes DEAD without a run.
    pub expires_at: Option<Timestamp>,
    /// How long the job is kept as DONE after its ack, in whole milliseconds; zero means not at all.
    pub retain: Duration,
    /// The fence of the run that parked the job.
    pub parked_by: Option<Fence>,
    /// The retry policy of this job, as text, if its add named one.
    pub retry: Option<String>,
    /// The headers, in the order in which they were added.
    pub headers: Vec<(String, String)>,
    /// The last error, cut to 4 KiB.
    pub error: Option<String>,
}

/// The fields that a store itself acts on. Reading them decodes no text, so it is cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FixedMetadata {
    /// See [`Metadata::exhausted`].
    pub exhausted: bool,
    /// See [`Metadata::delay`].
    pub delay: Duration,
    /// See [`Metadata::expires_at`].
    pub expires_at: Option<Timestamp>,
    /// See [`Metadata::retain`].
    pub retain: Duration,
    /// See [`Metadata::parked_by`].
    pub parked_by: Option<Fence>,
}

impl FixedMetadata {
    pub(super) fn decode(record: &[u8]) -> Result<Self, BadRecord> {
        let mut bytes = record.get(3..metadata_length(record)?).ok_or(BadRecord::TooShort)?;
        if bytes.len() < Metadata::SHORTEST - 3 {
            return Err(BadRecord::Damaged("length"));
        }
        let flags = bytes.get_u16_le();
        bytes.advance(3);
        Self::read(flags, &mut bytes)
    }

    fn read(flags: u16, bytes: &mut &[u8]) -> Result<Self, BadRecord> {
        let mut number = |flag, size| match flags & flag != 0 {
            true if bytes.len() < size => Err(BadRecord::TooShort),
            true => Ok(Some(bytes.get_uint_le(size))),
            false => Ok(None),
        };
        Ok(Self {
            exhausted: flags & EXHAUSTED != 0,
            delay: number(DELAY, 6)?.map(Duration::from_millis).unwrap_or_default(),
            expires_at: number(EXPIRES, 6)?.map(Timestamp::from_millis),
            retain: number(RETAIN, 6)?.map(Duration::from_millis).unwrap_or_default(),
            parked_by: number(PARKED, 8)?.map(Fence),
        })
    }
}

/// Why a run failed, or why a job is DEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The handler returned an error.
    Error,
    /// The handler panicked.
    Panic,
    /// The handler timed out.
    Timeout,
    /// The payload does not decode into the payload type of the topic.
    Decode,
    /// The job ran alone in a process that crashed, after as many crashes as `max_crashes` allows.
    Crashes,
    /// Its `expires_after` passed before it ran.
    Expired,
    /// Another program removed the job from its place, so that nobody knows when it was due or who ran it. Requeue it to run it
    /// now.
    PlaceLost,
}

impl Cause {
    const ALL: [Self; 7] =
        [Self::Error, Self::Panic, Self::Timeout, Self::Decode, Self::Crashes, Self::Expired, Self::PlaceLost];

    /// The cause as a word, for example `timeout`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Decode => "decode",
            Self::Crashes => "crashes",
            Self::Expired => "expired",
            Self::PlaceLost => "place lost",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The stored bytes are not a record that this version of dq can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRecord {
    /// The record ends too early.
    #[error("the record is cut short")]
    TooShort,
    /// A newer dq wrote the record, or the bytes are not a record.
    #[error("the record has format version {0}, but this version of dq reads format version {VERSION}")]
    UnknownVersion(u8),
    /// Its flags, cause, length or texts are not valid.
    #[error("the record is damaged: bad {0}")]
    Damaged(&'static str),
    /// The payload has an encoding that this version of dq does not know.
    #[error("the payload has the unknown codec {0:#04x}")]
    UnknownCodec(u8),
}

/// Where the metadata ends.
pub(super) fn metadata_length(record: &[u8]) -> Result<usize, BadRecord> {
    match record {
        [VERSION, low, high, ..] => Ok(usize::from(u16::from_le_bytes([*low, *high]))),
        [VERSION, ..] | [] => Err(BadRecord::TooShort),
        [version, ..] => Err(BadRecord::UnknownVersion(*version)),
    }
}

impl Metadata {
    /// The length of the shortest metadata, in bytes.
    #[doc(hidden)]
    pub const SHORTEST: usize = 8;

    /// The bytes of its texts, which are all that makes it long.
    pub(crate) fn text_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        headers + [&self.retry, &self.error].into_iter().flatten().map(String::len).sum::<usize>()
    }

    fn flags(&self) -> u16 {
        let fields = [
            (!self.delay.is_zero(), DELAY),
            (self.expires_at.is_some(), EXPIRES),
            (!self.retain.is_zero(), RETAIN),
            (self.parked_by.is_some(), PARKED),
            (self.retry.is_some(), RETRY),
            (!self.headers.is_empty(), HEADERS),
            (self.error.is_some(), ERROR),
            (self.exhausted, EXHAUSTED),
        ];
        fields.iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_u8(VERSION);
        out.put_u16_le(0);
        out.put_u16_le(self.flags());
        out.put_u16_le(self.attempts);
        out.put_u8(self.cause.map_or(0, |cause| cause as u8 + 1));
        if !self.delay.is_zero() {
            out.put_uint_le(millis_ceil(self.delay), 6);
        }
        if let Some(at) = self.expires_at {
            out.put_uint_le(at.as_millis(), 6);
        }
        if !self.retain.is_zero() {
            out.put_uint_le(millis_ceil(self.retain), 6);
        }
        if let Some(fence) = self.parked_by {
            out.put_u64_le(fence.0);
        }
        if let Some(retry) = &self.retry {
            put_text(out, retry);
        }
        if !self.headers.is_empty() {
            out.put_u16_le(self.headers.iter().map(|(name, value)| 4 + name.len() + value.len()).sum::<usize>() as u16);
            for (name, value) in &self.headers {
                put_text(out, name);
                put_text(out, value);
            }
        }
        if let Some(error) = &self.error {
            put_text(out, error);
        }
        let length = u16::try_from(out.len() - start).expect("headers and error are bounded to 12 KiB together");
        out[start + 1..start + 3].copy_from_slice(&length.to_le_bytes());
    }

    pub(super) fn decode(record: &[u8]) -> Result<Self, BadRecord> {
        let length = metadata_length(record)?;
        if length < Self::SHORTEST {
            return Err(BadRecord::Damaged("length"));
        }
        let mut bytes = record.get(3..length).ok_or(BadRecord::TooShort)?;
        let (flags, attempts, cause) = (bytes.get_u16_le(), bytes.get_u16_le(), bytes.get_u8());
        if flags & !KNOWN != 0 {
            return Err(BadRecord::Damaged("flags"));
        }
        let mut metadata = Self { attempts, ..Self::default() };
        metadata.cause = match cause {
            0 => None,
            number => Some(*Cause::ALL.get(usize::from(number) - 1).ok_or(BadRecord::Damaged("cause"))?),
        };
        let fixed = FixedMetadata::read(flags, &mut bytes)?;
        (metadata.exhausted, metadata.delay, metadata.expires_at) = (fixed.exhausted, fixed.delay, fixed.expires_at);
        (metadata.retain, metadata.parked_by) = (fixed.retain, fixed.parked_by);
        if flags & RETRY != 0 {
            metadata.retry = Some(get_text(&mut bytes)?);
        }
        if flags & HEADERS != 0 {
            let mut block = get_block(&mut bytes)?;
            while !block.is_empty() {
                metadata.headers.push((get_text(&mut block)?, get_text(&mut block)?));
            }
        }
        if flags & ERROR != 0 {
            metadata.error = Some(get_text(&mut bytes)?);
        }
        if bytes.is_empty() { Ok(metadata) } else { Err(BadRecord::Damaged("length")) }
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u16_le(u16::try_from(text.len()).expect("texts of metadata are bounded to 8 KiB"));
    out.put_slice(text.as_bytes());
}

fn get_block<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], BadRecord> {
    if bytes.len() < 2 {
        return Err(BadRecord::TooShort);
    }
    let length = usize::from(bytes.get_u16_le());
    let (block, rest) = bytes.split_at_checked(length).ok_or(BadRecord::TooShort)?;
    *bytes = rest;
    Ok(block)
}

fn get_text(bytes: &mut &[u8]) -> Result<String, BadRecord> {
    let block = get_block(bytes)?;
    std::str::from_utf8(block).map(String::from).map_err(|_| BadRecord::Damaged("text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Metadata {
        Metadata {
            attempts: 7,
            cause: Some(Cause::Expired),
            exhausted: true,
            delay: Duration::from_millis(1_800_000),
            expires_at: Some(Timestamp::from_millis(1_763_000_000_000)),
            retain: Duration::from_secs(60),
            parked_by: Some(Fence(1_763_000_000_000_001)),
            retry: Some("none".into()),
            headers: vec![("traceparent".into(), "00-1-2-01".into()), ("é".into(), String::new())],
            error: Some("boom".into()),
        }
    }

    fn encoded(metadata: &Metadata) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        metadata.encode(&mut bytes);
        bytes.to_vec()
    }

    #[test]
    fn every_field_reads_back() {
        for metadata in [full(), Metadata::default()] {
            assert_eq!(Metadata::decode(&encoded(&metadata)), Ok(metadata));
        }
    }

    #[test]
    fn the_fixed_fields_are_those_of_the_metadata() {
        for metadata in
            [full(), Metadata::default(), Metadata { retain: Duration::from_secs(1), ..Metadata::default() }]
        {
            let fixed = FixedMetadata {
                exhausted: metadata.exhausted,
                delay: metadata.delay,
                expires_at: metadata.expires_at,
                retain: metadata.retain,
                parked_by: metadata.parked_by,
            };
            assert_eq!(FixedMetadata::decode(&encoded(&metadata)), Ok(fixed));
        }
    }

    #[test]
    fn metadata_cut_anywhere_is_an_error_and_never_a_panic() {
        let bytes = encoded(&full());
        for end in 0..bytes.len() {
            assert!(Metadata::decode(&bytes[..end]).is_err(), "cut at {end}");
            assert!(FixedMetadata::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_flipped_bit_is_never_a_panic() {
        let bytes = encoded(&full());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            drop(Metadata::decode(&flipped));
            let _ = FixedMetadata::decode(&flipped);
        }
    }

    #[test]
    fn a_newer_format_is_rejected_with_its_number() {
        assert_eq!(Metadata::decode(&[9, 8, 0, 0, 0, 0, 0, 0]), Err(BadRecord::UnknownVersion(9)));
    }
}
