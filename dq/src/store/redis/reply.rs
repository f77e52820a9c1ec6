//! Reads the answers of scripts, as the client library reads lists, numbers and bytes. An answer of another form is an error that names
//! the step, never a panic.

use std::str::FromStr;
use std::vec;

use bytes::Bytes;
use redis::{FromRedisValue, ParsingError, Value};

use super::packed::Packed;
use crate::job::{JobId, NodeId, Record, Sequence, State};
use crate::store::step::{LeaseStatus, NoteVerdict, Noted};
use crate::store::{BatchAnswer, HolderSeen, StoreError, TopicCounts};
use crate::time::Timestamp;

/// The values of an answer, which a caller reads one by one.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) operation: &'static str,
    values: vec::IntoIter<Value>,
}

/// Reads a whole answer: a list as a tuple, or as a `Vec`, whose tuples may follow one another without a list for each.
pub(super) fn read<T: FromRedisValue>(operation: &'static str, answer: Value) -> Result<T, StoreError> {
    let found = kind(&answer);
    redis::from_redis_value(answer).map_err(|_| malformed(operation, &format!("{found} is not what belongs there")))
}

impl Reply {
    /// The values of an answer that is a list.
    pub(super) fn list(operation: &'static str, value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(values) => Ok(Self { operation, values: values.into_iter() }),
            other => Err(malformed(operation, &format!("expected a list, got {}", kind(&other)))),
        }
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        self.values.next().ok_or_else(|| malformed(self.operation, "it ends too early"))
    }

    /// Reads the next value.
    pub(super) fn read<T: FromRedisValue>(&mut self) -> Result<T, StoreError> {
        read(self.operation, self.next()?)
    }

    /// Reads all that is left.
    pub(super) fn whole<T: FromRedisValue>(self) -> Result<T, StoreError> {
        read(self.operation, Value::Array(self.values.collect()))
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// What `read` makes of the values that are left, until there are none.
    pub(super) fn each<T, C: FromIterator<T>>(
        mut self,
        mut read: impl FnMut(&mut Self) -> Result<Option<T>, StoreError>,
    ) -> Result<C, StoreError> {
        std::iter::from_fn(|| (self.len() > 0).then(|| read(&mut self))).filter_map(Result::transpose).collect()
    }

    pub(super) fn nested(&mut self) -> Result<Self, StoreError> {
        let value = self.next()?;
        Self::list(self.operation, value)
    }

    pub(super) fn count(&mut self) -> Result<usize, StoreError> {
        self.read()
    }

    pub(super) fn is_set(&mut self) -> Result<bool, StoreError> {
        self.read()
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        self.read()
    }

    /// Bytes, or none if the script answers `false`.
    pub(super) fn bytes_or_nothing(&mut self) -> Result<Bytes, StoreError> {
        self.read::<Option<_>>().map(Option::unwrap_or_default)
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        self.read().map(|Text(text)| text)
    }

    /// The ids of a list, or none if the script answers `false`. What is not an id is left out.
    pub(super) fn ids(&mut self) -> Result<Vec<JobId>, StoreError> {
        self.read().map(readable)
    }

    pub(super) fn node(&mut self) -> Result<NodeId, StoreError> {
        self.read()
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.read()
    }

    /// Reads the answer to a batch of this kind: it is late, or `read` makes the outcomes of the codes and of what follows them.
    pub(super) fn batch<T>(
        mut self,
        kind: char,
        read: impl FnOnce(&str, &mut Self) -> Result<Vec<T>, StoreError>,
    ) -> Result<BatchAnswer<T>, StoreError> {
        if self.text()? == "late" {
            return Ok(BatchAnswer::Late);
        }
        let text = self.text()?;
        read(codes(&text, kind, self.operation)?, &mut self).map(BatchAnswer::Done)
    }

    pub(super) fn lease_status(&mut self) -> Result<LeaseStatus, StoreError> {
        Ok(LeaseStatus { sequence: self.read()?, rows: self.read()? })
    }
}

/// A string. Only another program writes bytes that are not UTF-8; what stands for them is then read as any other string.
#[derive(Debug)]
pub(super) struct Text(pub(super) String);

/// A text that another program may have written; `None` if it is of another kind.
#[derive(Debug)]
pub(super) struct Readable<T>(pub(super) Option<T>);

/// How types are read that the client library does not know. Nothing is an empty text. A number that another program may have written may be
/// negative or have a fraction.
macro_rules! read_as {
    ($($name:ty $(where $of:ident)? as $from:ty: $read:expr;)+) => { $(
        impl $(<$of: FromStr>)? FromRedisValue for $name {
            fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
                <$from>::from_redis_value(value).and_then($read)
            }
        }
    )+ };
}

read_as! {
    Timestamp as f64: |millis| Ok(Self::from_millis(millis as u64));
    Sequence as f64: |number| Ok(Self(number as u64));
    Text as Option<Bytes>: |bytes| Ok(Self(lossy(&bytes.unwrap_or_default())));
    NodeId as Text: |Text(node)| Ok(Self::new(node));
    State as Text: |Text(letter)| letter.chars().next().and_then(State::of_letter).ok_or_else(|| "the state is unknown".into());
    Record as Bytes: |bytes| Ok(Self::from_bytes(bytes));
    Readable<T> where T as Option<Bytes>: |bytes| Ok(Self(parsed(&bytes.unwrap_or_default())));
    NoteVerdict as Text: |Text(letter)| Ok(match &*letter {
        "d" => Self::Done,
        "e" => Self::Ended,
        "c" => Self::Cancelled,
        _ => Self::Stale,
    });
    Noted as (LeaseStatus, NoteVerdict): |(lease_status, note)| Ok(Self { lease_status, note });
    HolderSeen as (NodeId, Timestamp, usize): |(node, lease, jobs)| Ok(Self { node, lease, jobs });
    LeaseStatus as (Sequence, usize): |(sequence, rows)| Ok(Self { sequence, rows });
    TopicCounts as (Timestamp, [usize; 7], Option<Timestamp>): |(clock, counts, head)| {
        let [delayed, ready, running, unacked, dead, done, broadcasts] = counts;
        Ok(Self { clock, delayed, ready, running, unacked, dead, done, broadcasts, head })
    };
}

/// The ids, or other texts, of a list; what another program wrote is left out.
pub(super) fn readable<T>(list: Option<Vec<Readable<T>>>) -> Vec<T> {
    list.into_iter().flatten().filter_map(|Readable(item)| item).collect()
}

/// Strings that a caller takes one by one, ids or records: in a list, or packed.
pub(super) enum Strings {
    List(vec::IntoIter<Bytes>),
    Packed(Packed),
}

impl Iterator for Strings {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::List(list) => list.next(),
            Self::Packed(packed) => packed.next(),
        }
    }
}

impl Strings {
    /// How many are left.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Packed(packed) => packed.len(),
        }
    }

    /// The next record. It shares no memory with others: a job that runs for long keeps only its own.
    pub(super) fn next_record(&mut self) -> Option<Record> {
        let is_shared = matches!(self, Self::Packed(_));
        self.next().map(|bytes| Record::from_bytes(if is_shared { Bytes::copy_from_slice(&bytes) } else { bytes }))
    }
}

impl FromRedisValue for Strings {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::BulkString(bytes) => {
                Packed::new(bytes.into()).map(Self::Packed).ok_or_else(|| "a packed list cannot be read".into())
            }
            list => Vec::from_redis_value(list).map(|list| Self::List(list.into_iter())),
        }
    }
}

/// What another program wrote, as a string.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What these bytes say; `None` if another program wrote them.
pub(super) fn parsed<T: FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// The codes of the answer that the store gives, or kept, to a batch of this kind.
pub(super) fn codes<'a>(text: &'a str, kind: char, operation: &'static str) -> Result<&'a str, StoreError> {
    text.strip_prefix(kind).ok_or_else(|| StoreError::Other {
        operation,
        source: "the number of the batch was used for a batch of another kind".into(),
    })
}

/// The error of an answer that has another form than the script gives it.
pub(super) fn malformed(operation: &'static str, what: &str) -> StoreError {
    StoreError::Other { operation, source: format!("the answer of the script is malformed: {what}").into() }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) => "a string",
        Value::Array(_) => "a list",
        _ => "something else",
    }
}
