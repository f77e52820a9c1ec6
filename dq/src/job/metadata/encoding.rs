//! How metadata become bytes: a list of MessagePack, in front of the codec and the payload of a record, or alone where a store keeps them apart.
//!
//! The fields come in the order of [`FIELDS`]. A field that is absent is 0, `false`, an empty text or an empty list, never nil, because a script
//! loses the form of a list with a hole. Such fields at the end of the list are left out, so a plain job has a list of its delay. A version that adds a
//! field puts it last; a record with more fields than this version knows is refused. A list begins with 0x90 to 0x9f, or with 0xdc and 0,
//! and no text does. Scripts read and write the same: what they need of this file is [`FIELDS`], which the loader writes into them.

use std::borrow::Cow;
use std::time::Duration;

use super::super::group::GroupName;
use super::super::ident::Fence;
use super::super::kept::KeptState;
use super::super::limits::{self, Limit, TIME, cut};
use super::super::msgpack::Value;
use super::super::priority::Priority;
use super::super::weight::Weight;
use super::{Cause, InvalidRecord, Metadata};
use crate::time::{Timestamp, millis_ceil};

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number up to this one. One that a script would round is a text of its digits.
    Number(u64),
    /// Bytes; UTF-8, but for the state and the result, which are JSON.
    Text,
    /// `true` or `false`.
    Flag,
    /// A list of texts.
    List,
}

impl Kind {
    /// What the field may be, in Lua: the largest number, or the empty value.
    #[doc(hidden)]
    pub fn in_lua(self) -> String {
        match self {
            Self::Number(most) => most.to_string(),
            Self::Text => "''".into(),
            Self::Flag => "false".into(),
            Self::List => "{}".into(),
        }
    }

    /// Takes a value of this kind from the bytes, of a list all of its texts; `None` if they begin with another one.
    fn take<'a>(self, rest: &mut &'a [u8]) -> Option<Value<'a>> {
        let value = Value::take(rest)?;
        match (self, value) {
            (Self::Number(most), _) => whole(value).filter(|number| *number <= most).map(Value::Number),
            (Self::List, Value::List(count)) => {
                let are_texts = (0..count).all(|_| matches!(Value::take(rest), Some(Value::Text(_))));
                are_texts.then_some(value)
            }
            (Self::Text, Value::Text(_)) | (Self::Flag, Value::Flag(_)) => Some(value),
            _ => None,
        }
    }
}

/// A value of a field.
pub(in crate::job) trait Field: Default + PartialEq {
    const KIND: Kind;

    fn put(&self, out: &mut impl FnMut(&[u8]));

    /// Reads a value of this kind. The values of a list are the first ones in `rest`.
    fn of(value: Value<'_>, rest: &mut &[u8]) -> Option<Self>;
}

macro_rules! fields {
    ($($field:ident)+) => {
        /// Every field, with what it is, in the order in which a list has them.
        #[doc(hidden)]
        pub const FIELDS: &[(&str, Kind)] = &[$((stringify!($field), kind_of(|metadata| metadata.$field))),+];

        /// The place of a field in the list.
        #[derive(Debug, Clone, Copy)]
        #[allow(non_camel_case_types, dead_code, reason = "it is named as the field, and few are asked for alone")]
        pub(in crate::job) enum FieldPlace { $($field),+ }

        impl Metadata {
            /// How many fields a list of them has.
            fn count(&self) -> usize {
                let absent = [$(is_absent(&self.$field)),+];
                absent.iter().rposition(|absent| !absent).map_or(0, |last| last + 1)
            }

            fn put(&self, out: &mut impl FnMut(&[u8])) {
                let mut left = self.count();
                Value::List(left).put(out);
                $(if left > 0 {
                    self.$field.put(out);
                    left -= 1;
                })+
                debug_assert_eq!(left, 0);
            }

            /// The fields, and what is behind them. Without `texts` those that are numbers or flags, which allocates nothing.
            fn take(mut rest: &[u8], texts: bool) -> Result<(Self, &[u8]), InvalidRecord> {
                let (mut metadata, mut left) = (Self::default(), count_of(&mut rest)?);
                $(if left > 0 {
                    metadata.$field = field(&mut rest, texts).ok_or(InvalidRecord::Damaged(stringify!($field)))?;
                    left -= 1;
                })+
                debug_assert_eq!(left, 0);
                Ok((metadata, rest))
            }
        }
    };
}

// What jobs have from their adds comes first, because most jobs have nothing else.
fields! {
    delay group group_order priority weight headers retry expires_at retain
    attempts cause exhausted error parked_by version first_added state result
}

const fn kind_of<F: Field>(_: fn(Metadata) -> F) -> Kind {
    F::KIND
}

fn is_absent<F: Field>(field: &F) -> bool {
    *field == F::default()
}

/// Lua calculates with doubles, which have all whole numbers up to this one.
const LAST_EXACT: u64 = 1 << 53;

macro_rules! numbers {
    ($($type:ty, $most:expr, $number:expr, $value:expr;)+) => {$(
        impl Field for $type {
            const KIND: Kind = Kind::Number($most);

            fn put(&self, out: &mut impl FnMut(&[u8])) {
                let number: fn(&Self) -> u64 = $number;
                match number(self).min($most) {
                    number @ ..=LAST_EXACT => Value::Number(number).put(out),
                    number => Value::Text(number.to_string().as_bytes()).put(out),
                }
            }

            fn of(value: Value<'_>, _: &mut &[u8]) -> Option<Self> {
                let of_number: fn(u64) -> Option<Self> = $value;
                whole(value).and_then(of_number)
            }
        }
    )+};
}

numbers! {
    u16, u16::MAX as u64, |number| (*number).into(), |number| number.try_into().ok();
    u32, u32::MAX as u64, |number| (*number).into(), |number| number.try_into().ok();
    u64, u64::MAX, |number| *number, Some;
    Duration, TIME.most, |period| millis_ceil(*period), |ms| Some(Self::from_millis(ms));
    Option<Timestamp>, TIME.most, |at| at.map_or(0, |at| at.as_millis().max(1)), |ms| Some(some(ms).map(Timestamp::from_millis));
    Option<Fence>, u64::MAX, |fence| fence.map_or(0, |fence| fence.0), |fence| Some(some(fence).map(Fence));
    Option<Cause>, Cause::ALL.len() as u64, |cause| cause.map_or(0, |cause| cause as u64 + 1), |number| match number {
        0 => Some(None),
        _ => Cause::ALL.get(number as usize - 1).map(|cause| Some(*cause)),
    };
    Priority, 2, |priority| PRIORITIES.iter().position(|one| one == priority).unwrap_or_default() as u64,
        |number| PRIORITIES.get(number as usize).copied();
    Weight, Self::MOST as u64, |weight| if *weight == Self::ONE { 0 } else { weight.get().into() },
        |number| if number == 0 { Some(Self::ONE) } else { Self::new(number.try_into().ok()?).ok() };
}

/// The priorities by their numbers.
const PRIORITIES: [Priority; 3] = [Priority::Normal, Priority::High, Priority::Low];

fn some(number: u64) -> Option<u64> {
    Some(number).filter(|number| *number > 0)
}

macro_rules! texts {
    ($($type:ty, $bytes:expr, $value:expr;)+) => {$(
        impl Field for Option<$type> {
            const KIND: Kind = Kind::Text;

            fn put(&self, out: &mut impl FnMut(&[u8])) {
                let bytes: fn(&$type) -> &[u8] = $bytes;
                Value::Text(self.as_ref().map_or(b"", bytes)).put(out);
            }

            fn of(value: Value<'_>, _: &mut &[u8]) -> Option<Self> {
                let of_bytes: fn(&[u8]) -> Option<$type> = $value;
                match value {
                    Value::Text(b"") => Some(None),
                    Value::Text(bytes) => of_bytes(bytes).map(Some),
                    _ => None,
                }
            }
        }
    )+};
}

texts! {
    String, String::as_bytes, |bytes| utf8(bytes).map(String::from);
    GroupName, |group| group.as_str().as_bytes(), |bytes| GroupName::new(utf8(bytes)?).ok();
    KeptState, KeptState::as_bytes, |bytes| Some(KeptState::from_bytes(bytes));
}

fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

impl Field for bool {
    const KIND: Kind = Kind::Flag;

    fn put(&self, out: &mut impl FnMut(&[u8])) {
        Value::Flag(*self).put(out);
    }

    fn of(value: Value<'_>, _: &mut &[u8]) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }
}

/// A list of name, value, name, value.
impl Field for Vec<(String, String)> {
    const KIND: Kind = Kind::List;

    fn put(&self, out: &mut impl FnMut(&[u8])) {
        Value::List(2 * self.len()).put(out);
        self.iter().flat_map(|(name, value)| [name, value]).for_each(|text| Value::Text(text.as_bytes()).put(out));
    }

    fn of(value: Value<'_>, rest: &mut &[u8]) -> Option<Self> {
        let Value::List(count) = value else { return None };
        let mut text = || match Value::take(rest)? {
            Value::Text(text) => utf8(text).map(String::from),
            _ => None,
        };
        // A count that lies ends with the bytes.
        let pairs: Option<Self> = (0..count / 2).map(|_| Some((text()?, text()?))).collect();
        pairs.filter(|_| count % 2 == 0)
    }
}

/// The number that a value says.
fn whole(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Number(number) => Some(number),
        Value::Text(digits) if digits.iter().all(u8::is_ascii_digit) => utf8(digits)?.parse().ok(),
        _ => None,
    }
}

/// How many fields a list has, whose head is taken.
fn count_of(bytes: &mut &[u8]) -> Result<usize, InvalidRecord> {
    match (*bytes, Value::take(bytes)) {
        ([], _) => Err(InvalidRecord::TooShort),
        ([0x90..=0x9f, ..] | [0xdc, 0, ..], Some(Value::List(count))) if count <= FIELDS.len() => Ok(count),
        _ => Err(InvalidRecord::Unknown),
    }
}

fn field<F: Field>(rest: &mut &[u8], texts: bool) -> Option<F> {
    let mut within = *rest;
    let value = F::KIND.take(rest)?;
    if matches!(F::KIND, Kind::Text | Kind::List) && !texts {
        return Some(F::default());
    }
    _ = Value::take(&mut within);
    F::of(value, &mut within)
}

/// Goes over the fields without making values of them, and returns what follows them.
pub(in crate::job) fn after_fields<'a>(
    record: &'a [u8],
    mut seen: impl FnMut(usize, Value<'a>),
) -> Result<&'a [u8], InvalidRecord> {
    let mut rest = record;
    for (place, (name, kind)) in FIELDS[..count_of(&mut rest)?].iter().enumerate() {
        seen(place, kind.take(&mut rest).ok_or(InvalidRecord::Damaged(name))?);
    }
    Ok(rest)
}

/// A field of a record, if it is there and the metadata decode.
fn one(record: &[u8], wanted: FieldPlace) -> Option<Value<'_>> {
    let mut found = None;
    after_fields(record, |place, value| found = if place == wanted as usize { Some(value) } else { found }).ok()?;
    found
}

/// A field of a record that is no list, without the rest of the metadata.
pub(in crate::job) fn field_of<F: Field>(record: &[u8], place: FieldPlace) -> F {
    one(record, place).and_then(|value| F::of(value, &mut &[][..])).unwrap_or_default()
}

/// The group of a record and the order of the job in it, without the rest of the metadata.
pub(in crate::job) fn group_of(record: &[u8]) -> Option<(u64, &str)> {
    let Value::Text(name) = one(record, FieldPlace::group)? else { return None };
    let name = utf8(name).filter(|name| GroupName::is_valid(name))?;
    Some((field_of(record, FieldPlace::group_order), name))
}

impl Metadata {
    /// How many bytes [`encode`](Self::encode) writes.
    pub(in crate::job) fn encoded_length(&self) -> usize {
        let mut length = 0;
        self.bounded().put(&mut |bytes| length += bytes.len());
        length
    }

    pub(in crate::job) fn encode(&self, out: &mut Vec<u8>) {
        self.bounded().put(&mut |bytes| out.extend_from_slice(bytes));
    }

    /// Every door refuses a text over its limit. If one comes this far all the same, the job loses what is too long of it and keeps everything
    /// else.
    fn bounded(&self) -> Cow<'_, Self> {
        let fits = |limit: Limit, size: usize| limit.check(size as u64).is_ok();
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let (has_headers, has_retry, has_error, has_left) = (
            fits(limits::HEADERS, self.headers_length() as usize),
            fits(limits::RETRY, length(&self.retry)),
            fits(limits::ERROR, length(&self.error)),
            fits(limits::STATE, self.left().map_or(0, |left| left.as_bytes().len())),
        );
        if has_headers && has_retry && has_error && has_left {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            headers: self.headers.clone().into_iter().filter(|_| has_headers).collect(),
            retry: self.retry.clone().filter(|_| has_retry),
            error: self.error.as_deref().map(|error| cut(error, limits::ERROR.most as usize).to_owned()),
            state: self.state.clone().filter(|_| has_left),
            result: self.result.clone().filter(|_| has_left),
            ..self.clone()
        })
    }

    /// The state, or the result.
    pub(in crate::job) fn left(&self) -> Option<&KeptState> {
        self.result.as_ref().or(self.state.as_ref())
    }

    /// Only the fields that are numbers or flags, and the codec and payload behind the metadata.
    pub(in crate::job) fn decode_numbers(record: &[u8]) -> Result<(Self, &[u8]), InvalidRecord> {
        Self::take(record, false)
    }

    /// The metadata, and the codec and payload behind them.
    pub(in crate::job) fn decode(record: &[u8]) -> Result<(Self, &[u8]), InvalidRecord> {
        let (metadata, kept) = Self::take(record, true)?;
        metadata.check_texts()?;
        Ok((metadata, kept))
    }
}

#[cfg(test)]
mod tests;
