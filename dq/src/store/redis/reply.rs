//! Reads the answers of scripts. An answer of another form is an error that names the step, never a panic.

use std::time::Duration;
use std::vec;

use bytes::Bytes;
use redis::{FromRedisValue, Value};

use super::packed::Packed;
use crate::job::{JobId, NodeId, Record, Sequence, State};
use crate::store::step::LeaseStatus;
use crate::store::{BatchAnswer, StoreError};
use crate::time::Timestamp;

/// The values of an answer, which a caller reads one by one.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) operation: &'static str,
    values: vec::IntoIter<Value>,
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

    /// The next value, as the client library reads it.
    fn read<T: FromRedisValue>(&mut self, expected: &str) -> Result<T, StoreError> {
        let value = self.next()?;
        let found = kind(&value);
        let wrong = |_| malformed(self.operation, &format!("expected {expected}, got {found}"));
        redis::from_redis_value(value).map_err(wrong)
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

    /// Strings, in a list or packed.
    pub(super) fn strings(&mut self) -> Result<Strings, StoreError> {
        match self.next()? {
            Value::BulkString(bytes) => match Packed::new(Bytes::from(bytes)) {
                Some(packed) => Ok(Strings::Packed(self.operation, packed)),
                None => Err(malformed(self.operation, "a packed list cannot be read")),
            },
            value => Self::list(self.operation, value).map(Strings::List),
        }
    }

    /// A list, or `None` if the script answers `false`.
    pub(super) fn nested_or_nothing(&mut self) -> Result<Option<Self>, StoreError> {
        match self.next()? {
            Value::Nil => Ok(None),
            value => Self::list(self.operation, value).map(Some),
        }
    }

    /// A number. Another program may have written one with a fraction, or without bounds.
    pub(super) fn int(&mut self) -> Result<i64, StoreError> {
        match self.next()? {
            Value::BulkString(text) => {
                let number = std::str::from_utf8(&text).ok();
                let number =
                    number.and_then(|text| text.parse().ok().or_else(|| Some(text.parse::<f64>().ok()? as i64)));
                number.ok_or_else(|| malformed(self.operation, "expected a number, got a string"))
            }
            Value::Int(number) => Ok(number),
            other => Err(malformed(self.operation, &format!("expected a number, got {}", kind(&other)))),
        }
    }

    pub(super) fn count(&mut self) -> Result<usize, StoreError> {
        Ok(usize::try_from(self.int()?).unwrap_or_default())
    }

    pub(super) fn number(&mut self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.int()?).unwrap_or_default())
    }

    pub(super) fn is_set(&mut self) -> Result<bool, StoreError> {
        Ok(self.int()? != 0)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        self.read("a string")
    }

    /// Bytes, or none if the script answers `false`.
    pub(super) fn bytes_or_nothing(&mut self) -> Result<Bytes, StoreError> {
        self.read::<Option<_>>("a string").map(Option::unwrap_or_default)
    }

    /// A score, which the server tells as a number, or nothing.
    pub(super) fn score_or_nothing(&mut self) -> Result<Option<f64>, StoreError> {
        self.read("a number")
    }

    /// A string. Only another program writes bytes that are not UTF-8; what stands for them is then read as any other string.
    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        Ok(lossy(&self.bytes()?))
    }

    pub(super) fn record(&mut self) -> Result<Record, StoreError> {
        self.bytes().map(Record::from_bytes)
    }

    /// A record, or `None` if the script answers `false`.
    pub(super) fn record_or_nothing(&mut self) -> Result<Option<Record>, StoreError> {
        Ok(self.read::<Option<_>>("a string")?.map(Record::from_bytes))
    }

    /// An id, or its bytes if it is not an id that dq allows: another program wrote it.
    pub(super) fn id(&mut self) -> Result<Result<JobId, Bytes>, StoreError> {
        self.bytes().map(id_of)
    }

    /// The ids of a list, or none if the script answers `false`. What is not an id is left out.
    pub(super) fn ids(&mut self) -> Result<Vec<JobId>, StoreError> {
        let list = self.nested_or_nothing()?;
        list.map_or_else(|| Ok(Vec::new()), |list| list.each(|list| Ok(list.id()?.ok())))
    }

    pub(super) fn node(&mut self) -> Result<NodeId, StoreError> {
        self.text().map(NodeId::new)
    }

    /// The state that the first letter of a text stands for.
    pub(super) fn state(&mut self) -> Result<State, StoreError> {
        let letter = self.text()?.chars().next();
        letter.and_then(state).ok_or_else(|| malformed(self.operation, "the state is unknown"))
    }

    /// A time in ms; a negative one counts as the epoch.
    pub(super) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.number().map(Timestamp::from_millis)
    }

    pub(super) fn micros(&mut self) -> Result<Duration, StoreError> {
        self.number().map(Duration::from_micros)
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
        Ok(LeaseStatus { sequence: Sequence(self.number()?), rows: self.count()? })
    }
}

/// Strings that a caller takes one by one: ids and records.
#[derive(Debug)]
pub(super) enum Strings {
    List(Reply),
    /// Of this operation.
    Packed(&'static str, Packed),
}

impl Strings {
    /// How many are left.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Packed(_, packed) => packed.len(),
        }
    }

    /// An id, or its bytes if it is not an id that dq allows.
    pub(super) fn id(&mut self) -> Result<Result<JobId, Bytes>, StoreError> {
        match self {
            Self::List(list) => list.id(),
            Self::Packed(operation, packed) => unpacked(operation, packed).map(id_of),
        }
    }

    /// A record, which shares no memory with others: a job that runs for long keeps only its own.
    pub(super) fn record(&mut self) -> Result<Record, StoreError> {
        match self {
            Self::List(list) => list.record(),
            Self::Packed(operation, packed) => {
                unpacked(operation, packed).map(|bytes| Record::from_bytes(Bytes::copy_from_slice(&bytes)))
            }
        }
    }
}

fn unpacked(operation: &'static str, packed: &mut Packed) -> Result<Bytes, StoreError> {
    packed.next().ok_or_else(|| malformed(operation, "a packed list ends too early"))
}

/// What another program wrote, as a string.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn id_of(bytes: Bytes) -> Result<JobId, Bytes> {
    let id = std::str::from_utf8(&bytes).ok().and_then(|text| JobId::new(text).ok());
    id.ok_or(bytes)
}

/// The codes of the answer that the store gives, or kept, to a batch of this kind.
pub(super) fn codes<'a>(text: &'a str, kind: char, operation: &'static str) -> Result<&'a str, StoreError> {
    text.strip_prefix(kind).ok_or_else(|| StoreError::Other {
        operation,
        source: "the number of the batch was used for a batch of another kind".into(),
    })
}

/// The state that a letter stands for in the scripts.
pub(super) const fn state(code: char) -> Option<State> {
    match code {
        'd' => Some(State::Delayed),
        'r' => Some(State::Running),
        'u' => Some(State::Unacked),
        'x' => Some(State::Dead),
        'f' => Some(State::Done),
        _ => None,
    }
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
