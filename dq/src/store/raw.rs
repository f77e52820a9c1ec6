//! Bytes within what `postcard` encodes.

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};

use crate::job::Record;

/// Bytes that are read where they are.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl Raw<'_> {
    /// These bytes, copied.
    pub(super) fn copied(self) -> Bytes {
        Bytes::copy_from_slice(self.0)
    }

    /// A record of its own, of these bytes.
    pub(super) fn record(self) -> Record {
        Record::from_bytes(self.copied())
    }
}

/// A record as its bytes, for `#[serde(with)]`.
pub(super) mod record {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Raw;
    use crate::job::Record;

    pub(crate) fn serialize<S: Serializer>(record: &Record, to: S) -> Result<S::Ok, S::Error> {
        Raw(record.as_bytes()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Record, D::Error> {
        Raw::deserialize(from).map(Raw::record)
    }
}
