//! How metadata become bytes.
//!
//! All numbers are little-endian. The first two bytes are always present, and everything else only where the value is not
//! the default. Fixed fields come in the order of their flags, before all texts, so a script can find and patch them without
//! decoding text.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | format and priority in the upper four bits: 9, 10 (high) or 11 (low) (no text begins with such a byte); in the lower four n, 0 to 6, or 7 if the job has another weight than 1, where n is 6; and 8 if it has a group |
//! | 1 | flags |
//! | 6, if `EXPIRES` | absolute expiry, ms since the Unix epoch |
//! | 6, if `RETAIN` | how long to keep the job as DONE, ms |
//! | 8, if `PARKED` | fence of the run that parked the job |
//! | 3, if `FAILED` | attempts: failed runs so far; then the cause of the last failure, 0 = none, and 128 if exhausted: only `final_retry` will run |
//! | 10, if `CHANGED` | version: how often the job was changed (4 bytes); when `add_or_extend` first added it, ms since the Unix epoch, 0 = never (6 bytes) |
//! | 2, if there is a weight | weight |
//! | n | original delay, ms |
//! | 9 + n, if there is a group | length of its name; order of the job in it (8 bytes); the name |
//! | 2, if there is a text, a state or a result | length of all that follows; 65,535: the length is in the next 4 bytes |
//! | 2 + n, if `RETRY` | retry policy of this job, as text |
//! | 2 + n, if `HEADERS` | headers: for each 2 + n of name and 2 + n of value |
//! | 2 + n, if `ERROR` | last error, as text |
//! | what is left | codec of the state or result, and its bytes; without any text, `HEADERS` says that there is no header |

use std::time::Duration;

use bytes::{Buf, BufMut};

use super::super::codec::Codec;
use super::super::group::GroupName;
use super::super::ident::Fence;
use super::super::kept::KeptState;
use super::super::limits::{self, Limit, cut};
use super::super::priority::Priority;
use super::super::weight::Weight;
use super::{BadRecord, Cause, Metadata};
use crate::time::{Timestamp, millis_ceil};

pub(super) const FORMAT: u8 = 9;

const EXPIRES: u8 = 1;
const RETAIN: u8 = 1 << 1;
const PARKED: u8 = 1 << 2;
const FAILED: u8 = 1 << 3;
const RETRY: u8 = 1 << 4;
const HEADERS: u8 = 1 << 5;
const ERROR: u8 = 1 << 6;
const CHANGED: u8 = 1 << 7;
const TEXTS: u8 = RETRY | HEADERS | ERROR;

/// A bit of the byte that has the cause.
const EXHAUSTED: u8 = 1 << 7;

const MOST_DELAY_BYTES: usize = 6;

/// What the first byte says in place of the length of the delay if there is a weight. The delay then has all its bytes.
const WEIGHED: u8 = 7;

/// The bytes of a weight.
const WEIGHT_BYTES: usize = 2;

/// A bit of the first byte.
const GROUP: u8 = 1 << 3;

/// What precedes the name of a group: its length, and the order of the job.
const GROUP_HEAD: usize = 9;

/// The priorities, by what they add to the format in the first byte.
const PRIORITIES: [Priority; 3] = [Priority::Normal, Priority::High, Priority::Low];

/// The priority in the first byte of a record, even of one whose rest does not decode.
pub(crate) fn priority_of(record: &[u8]) -> Option<Priority> {
    let above = (record.first()? >> 4).checked_sub(FORMAT)?;
    PRIORITIES.get(usize::from(above)).copied()
}

/// The weight of a record, without the rest of the metadata.
pub(crate) fn weight_of(record: &[u8]) -> Option<Weight> {
    let head = Head::of(record).ok().filter(|head| head.weight_bytes > 0)?;
    let from = head.numbers_length() - MOST_DELAY_BYTES - WEIGHT_BYTES;
    Weight::new(record.get(from..)?.try_get_u16_le().ok()?).ok()
}

/// The group of a record and the order of the job in it, without the rest of the metadata.
pub(crate) fn group_of(record: &[u8]) -> Option<(u64, &str)> {
    let head = Head::of(record).ok().filter(|head| head.has_group)?;
    let mut field = record.get(head.numbers_length()..)?;
    let (length, order) = (field.try_get_u8().ok()?, field.try_get_u64_le().ok()?);
    let name = std::str::from_utf8(field.get(..usize::from(length))?).ok()?;
    GroupName::is_valid(name).then_some((order, name))
}

/// Where the metadata of a record end.
pub(crate) fn metadata_length(record: &[u8]) -> Result<usize, BadRecord> {
    Head::of(record)?.length(record)
}

/// The first two bytes.
#[derive(Clone, Copy)]
struct Head {
    priority: Priority,
    weight_bytes: usize,
    delay_bytes: usize,
    has_group: bool,
    flags: u8,
}

impl Head {
    fn of(record: &[u8]) -> Result<Self, BadRecord> {
        let [first, rest @ ..] = record else { return Err(BadRecord::TooShort) };
        let priority = priority_of(record).ok_or(BadRecord::UnknownVersion(first >> 4))?;
        let (weight_bytes, delay_bytes) = match first & (GROUP - 1) {
            WEIGHED => (WEIGHT_BYTES, MOST_DELAY_BYTES),
            delay_bytes => (0, usize::from(delay_bytes)),
        };
        Ok(Self {
            priority,
            weight_bytes,
            delay_bytes,
            has_group: first & GROUP != 0,
            flags: *rest.first().ok_or(BadRecord::TooShort)?,
        })
    }

    const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Where the fields that are numbers end.
    fn numbers_length(self) -> usize {
        let sizes = [(EXPIRES, 6), (RETAIN, 6), (PARKED, 8), (FAILED, 3), (CHANGED, 10)];
        2 + self.weight_bytes
            + self.delay_bytes
            + sizes.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, size)| size).sum::<usize>()
    }

    /// Where the fixed fields end.
    fn fixed_length(self, record: &[u8]) -> Result<usize, BadRecord> {
        let numbers = self.numbers_length();
        if !self.has_group {
            return Ok(numbers);
        }
        Ok(numbers + GROUP_HEAD + usize::from(*record.get(numbers).ok_or(BadRecord::TooShort)?))
    }

    fn length(self, record: &[u8]) -> Result<usize, BadRecord> {
        let fixed = self.fixed_length(record)?;
        if !self.has(TEXTS) {
            return Ok(fixed);
        }
        let (prefix, texts) = texts_length(&record[fixed.min(record.len())..])?;
        Ok(fixed + prefix + texts)
    }

    /// The fields that are numbers, the name of the group (empty if there is none), and the bytes of the texts behind it. Decodes no
    /// text and allocates nothing.
    fn read(self, record: &[u8]) -> Result<(Metadata, &[u8], &[u8]), BadRecord> {
        let mut bytes = record.get(2..self.length(record)?).ok_or(BadRecord::TooShort)?;
        let mut number = |is_there: bool, size| if is_there { bytes.get_uint_le(size) } else { 0 };
        let expires_at = self.has(EXPIRES).then(|| Timestamp::from_millis(number(true, 6)));
        let retain = Duration::from_millis(number(self.has(RETAIN), 6));
        let parked_by = self.has(PARKED).then(|| Fence(number(true, 8)));
        let attempts = number(self.has(FAILED), 2) as u16;
        let cause = number(self.has(FAILED), 1) as u8;
        let version = number(self.has(CHANGED), 4) as u32;
        let first_added =
            Some(Timestamp::from_millis(number(self.has(CHANGED), 6))).filter(|at| *at > Timestamp::EPOCH);
        let weight = if self.weight_bytes > 0 { number(true, WEIGHT_BYTES) as u16 } else { Weight::ONE.get() };
        let delay = Duration::from_millis(number(self.delay_bytes > 0, self.delay_bytes));
        let group_length = number(self.has_group, 1) as usize;
        let group_order = number(self.has_group, 8);
        let group = bytes.get(..group_length).ok_or(BadRecord::TooShort)?;
        bytes.advance(group_length);
        if self.has(TEXTS) {
            bytes.advance(texts_length(bytes)?.0);
        }
        let exhausted = cause & EXHAUSTED != 0;
        let cause = match cause & !EXHAUSTED {
            0 => None,
            number => Some(*Cause::ALL.get(usize::from(number) - 1).ok_or(BadRecord::Damaged("cause"))?),
        };
        let numbers = Metadata {
            attempts,
            cause,
            exhausted,
            delay,
            expires_at,
            retain,
            parked_by,
            version,
            first_added,
            priority: self.priority,
            weight: Weight::new(weight).map_err(|_| BadRecord::Damaged("weight"))?,
            group_order,
            ..Metadata::default()
        };
        Ok((numbers, group, bytes))
    }
}

impl Metadata {
    fn head(&self) -> Head {
        let delay = millis_ceil(self.delay);
        let (weight_bytes, delay_bytes) = match self.weight {
            Weight::ONE => (0, (8 - delay.leading_zeros() as usize / 8).min(MOST_DELAY_BYTES)),
            _ => (WEIGHT_BYTES, MOST_DELAY_BYTES),
        };
        Head {
            priority: self.priority,
            weight_bytes,
            delay_bytes,
            has_group: self.group.is_some(),
            flags: self.flags(),
        }
    }

    /// How many bytes [`encode`](Self::encode) writes.
    pub(in crate::job) fn encoded_length(&self) -> usize {
        let head = self.head();
        let group = self.group.as_ref().map_or(0, |group| GROUP_HEAD + group.as_str().len());
        let texts = if head.has(TEXTS) { self.texts_length(head) } else { 0 };
        let prefix = if !head.has(TEXTS) { 0 } else { prefix_of(texts) };
        head.numbers_length() + group + prefix + texts
    }

    /// The state, or the result, and the byte that says which.
    pub(in crate::job) fn left(&self) -> Option<(u8, &KeptState)> {
        let result = self.result.as_ref().map(|result| (Codec::RESULT, result));
        result.or_else(|| self.state.as_ref().map(|state| (Codec::Json.byte(), state)))
    }

    /// How many bytes the texts and what is left take.
    fn texts_length(&self, head: Head) -> usize {
        let Texts { retry, headers, error, left } = self.texts();
        let of_headers = if headers.is_empty() { 0 } else { self.headers_length() as usize };
        2 * (head.flags & TEXTS).count_ones() as usize
            + of_headers
            + [retry, error].into_iter().flatten().map(str::len).sum::<usize>()
            + left.map_or(0, |(_, left)| 1 + left.len())
    }

    /// The texts as they are written. Every door refuses a text over its limit, so all of them are. If one comes this far all the same,
    /// the job loses what is too long of it and keeps everything else.
    fn texts(&self) -> Texts<'_> {
        let fits = |limit: Limit, size: usize| limit.check(size as u64).is_ok();
        Texts {
            retry: self.retry.as_deref().filter(|retry| fits(limits::RETRY, retry.len())),
            headers: if limits::HEADERS.check(self.headers_length()).is_ok() { &self.headers } else { &[] },
            error: self.error.as_deref().map(|error| cut(error, limits::ERROR.most as usize)),
            left: self
                .left()
                .map(|(codec, left)| (codec, left.as_bytes()))
                .filter(|(_, left)| fits(limits::STATE, left.len())),
        }
    }

    fn flags(&self) -> u8 {
        let texts = self.texts();
        let fields = [
            (self.expires_at.is_some(), EXPIRES),
            (!self.retain.is_zero(), RETAIN),
            (self.parked_by.is_some(), PARKED),
            (self.attempts > 0 || self.cause.is_some() || self.exhausted, FAILED),
            (self.version > 0 || self.first_added.is_some(), CHANGED),
            (texts.retry.is_some(), RETRY),
            (!texts.headers.is_empty() || texts.are_none_but_left(), HEADERS),
            (texts.error.is_some(), ERROR),
        ];
        fields.iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag)
    }

    pub(in crate::job) fn encode(&self, out: &mut Vec<u8>) {
        let head = self.head();
        let above = PRIORITIES.iter().position(|priority| *priority == head.priority).unwrap_or_default();
        let group = if head.has_group { GROUP } else { 0 };
        let lengths = if head.weight_bytes > 0 { WEIGHED } else { head.delay_bytes as u8 };
        out.put_u8((FORMAT + above as u8) << 4 | group | lengths);
        out.put_u8(head.flags);
        if let Some(at) = self.expires_at {
            put_time(out, at.as_millis());
        }
        if !self.retain.is_zero() {
            put_time(out, millis_ceil(self.retain));
        }
        if let Some(fence) = self.parked_by {
            out.put_u64_le(fence.0);
        }
        if head.has(FAILED) {
            out.put_u16_le(self.attempts);
            let cause = self.cause.map_or(0, |cause| cause as u8 + 1);
            out.put_u8(if self.exhausted { cause | EXHAUSTED } else { cause });
        }
        if head.has(CHANGED) {
            out.put_u32_le(self.version);
            put_time(out, self.first_added.map_or(0, Timestamp::as_millis));
        }
        if head.weight_bytes > 0 {
            out.put_u16_le(self.weight.get());
        }
        if head.delay_bytes > 0 {
            out.put_uint_le(millis_ceil(self.delay).min(limits::TIME.most), head.delay_bytes);
        }
        if let Some(group) = &self.group {
            out.put_u8(group.as_str().len() as u8);
            out.put_u64_le(self.group_order);
            out.put_slice(group.as_str().as_bytes());
        }
        if head.has(TEXTS) {
            self.encode_texts(head, out);
        }
    }

    fn encode_texts(&self, head: Head, out: &mut Vec<u8>) {
        let Texts { retry, headers, error, left } = self.texts();
        let length = self.texts_length(head);
        out.put_u16_le(length.min(LONG) as u16);
        if prefix_of(length) > 2 {
            out.put_u32_le(length as u32);
        }
        if let Some(retry) = retry {
            put_text(out, retry);
        }
        if head.has(HEADERS) {
            out.put_u16_le(if headers.is_empty() { 0 } else { self.headers_length() as u16 });
            for (name, value) in headers {
                put_text(out, name);
                put_text(out, value);
            }
        }
        if let Some(error) = error {
            put_text(out, error);
        }
        if let Some((codec, left)) = left {
            out.put_u8(codec);
            out.put_slice(left);
        }
    }

    /// The fields that are numbers, and no others.
    pub(in crate::job) fn decode_numbers(record: &[u8]) -> Result<Self, BadRecord> {
        Ok(Head::of(record)?.read(record)?.0)
    }

    pub(in crate::job) fn decode(record: &[u8]) -> Result<Self, BadRecord> {
        let head = Head::of(record)?;
        let (mut metadata, group, mut texts) = head.read(record)?;
        if head.has_group {
            let group = std::str::from_utf8(group).ok().and_then(|name| GroupName::new(name).ok());
            metadata.group = Some(group.ok_or(BadRecord::Damaged("group"))?);
        }
        if head.has(RETRY) {
            metadata.retry = Some(get_text(&mut texts)?);
        }
        if head.has(HEADERS) {
            let mut block = get_block(&mut texts)?;
            while !block.is_empty() {
                metadata.headers.push((get_text(&mut block)?, get_text(&mut block)?));
            }
        }
        if head.has(ERROR) {
            metadata.error = Some(get_text(&mut texts)?);
        }
        match texts.split_first() {
            Some((&Codec::RESULT, result)) => metadata.result = Some(KeptState::from_bytes(result)),
            Some((codec, state)) => {
                let Codec::Json = Codec::from_byte(*codec).ok_or(BadRecord::UnknownCodec(*codec))?;
                metadata.state = Some(KeptState::from_bytes(state));
            }
            None => {}
        }
        metadata.check_texts()?;
        Ok(metadata)
    }
}

/// The texts of metadata, and the state or result with its codec, none of them over its limit.
struct Texts<'a> {
    retry: Option<&'a str>,
    headers: &'a [(String, String)],
    error: Option<&'a str>,
    left: Option<(u8, &'a [u8])>,
}

impl Texts<'_> {
    fn are_none_but_left(&self) -> bool {
        self.left.is_some() && self.retry.is_none() && self.headers.is_empty() && self.error.is_none()
    }
}

/// Says in place of a length that it is in the next four bytes. Without a state no texts are so long.
const LONG: usize = u16::MAX as usize;
const _: () = assert!(limits::HEADERS.most + limits::RETRY.most + limits::ERROR.most + 6 < LONG as u64);

/// How many bytes say this length of texts and state.
const fn prefix_of(length: usize) -> usize {
    if length < LONG { 2 } else { 6 }
}

/// How many bytes the length of the texts and the state takes, and that length.
fn texts_length(mut bytes: &[u8]) -> Result<(usize, usize), BadRecord> {
    let short = usize::from(bytes.try_get_u16_le().map_err(|_| BadRecord::TooShort)?);
    if short < LONG {
        return Ok((2, short));
    }
    let long = bytes.try_get_u32_le().map_err(|_| BadRecord::TooShort)?;
    Ok((6, usize::try_from(long).map_err(|_| BadRecord::Damaged("length"))?))
}

/// Writes a time or a period. One that does not fit becomes the last that does.
fn put_time(out: &mut Vec<u8>, ms: u64) {
    out.put_uint_le(ms.min(limits::TIME.most), 6);
}

/// Writes one of [`Texts`].
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_u16_le(text.len() as u16);
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
mod tests;
