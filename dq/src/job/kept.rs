//! The state of a job across runs, and its result: what a run leaves for the next one, or for callers, as JSON like a payload.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;

use super::json::to_json;
use super::limits::STATE;

/// The bytes of a state or a result. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptState(Arc<[u8]>);

/// Shows the length, never the state: it is as private as a payload.
impl fmt::Debug for KeptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptState({} bytes)", self.0.len())
    }
}

/// Why a state or a result cannot be kept or read. No text of it quotes the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It is too large.
    #[error(
        "the state or result has {size} bytes; the limit is {limit}. Keep the data in a store of your own, and only its key in the state or \
         result"
    )]
    TooLarge {
        /// Its size as JSON.
        size: u64,
        /// The largest size.
        limit: u64,
    },
    /// It cannot be written as JSON. The text is that of the serializer.
    #[error(
        "the state or result cannot be written as JSON: {0}. Give it a type that serde writes as JSON and reads back"
    )]
    Encode(String),
    /// What an earlier run left is not a value of the requested type.
    #[error(
        "the state or result of the job does not decode into `{wanted}` (line {line} column {column}). Let the type read what earlier \
         versions of the program have kept, for example with `#[serde(default)]`, or delete the job"
    )]
    Decode {
        /// The requested type.
        wanted: &'static str,
        /// The line in the JSON.
        line: usize,
        /// The column in the JSON.
        column: usize,
    },
}

impl KeptState {
    /// Writes a state.
    ///
    /// # Errors
    /// [`StateError::TooLarge`] and [`StateError::Encode`].
    pub(crate) fn of<S: Serialize + ?Sized>(state: &S) -> Result<Self, StateError> {
        let bytes = to_json(state).map_err(|error| StateError::Encode(error.to_string()))?;
        match STATE.check(bytes.len() as u64) {
            Ok(()) => Ok(Self(bytes.into())),
            Err(over) => Err(StateError::TooLarge { size: over.size, limit: over.limit }),
        }
    }

    /// Reads the state.
    ///
    /// # Errors
    /// [`StateError::Decode`].
    pub fn decode<S: DeserializeOwned>(&self) -> Result<S, StateError> {
        serde_json::from_slice(&self.0).map_err(|error| StateError::Decode {
            wanted: std::any::type_name::<S>(),
            line: error.line(),
            column: error.column(),
        })
    }

    /// The state with these bytes, which are JSON.
    #[doc(hidden)]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The bytes, which are JSON.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for KeptState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_slice(&self.0).map_err(ser::Error::custom)?;
        json.serialize(to)
    }
}

impl<'de> Deserialize<'de> for KeptState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from_bytes(Box::<RawValue>::deserialize(from)?.get().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_over_64_kib_is_refused_with_what_to_do() {
        let most = STATE.most as usize - 2; // the quotes of a JSON string
        assert_eq!(KeptState::of(&"x".repeat(most)).unwrap().decode::<String>().unwrap().len(), most);
        let refused = KeptState::of(&"x".repeat(most + 1)).unwrap_err();
        assert_eq!(refused, StateError::TooLarge { size: STATE.most + 1, limit: STATE.most });
        assert!(refused.to_string().contains("only its key in the state"), "{refused}");
    }

    #[test]
    fn an_error_never_quotes_the_state() {
        let kept = KeptState::of("a secret").unwrap();
        let error = kept.decode::<u32>().unwrap_err();
        assert!(error.to_string().contains("`u32` (line 1 column 10)"), "{error}");
        assert!(!format!("{error} {error:?} {kept:?}").contains("secret"));
    }

    #[test]
    fn what_json_cannot_say_is_no_state() {
        assert!(matches!(KeptState::of(&f64::NAN), Err(StateError::Encode(_))));
    }
}
