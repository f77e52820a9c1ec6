//! Names, ids and words as text, in answers and in files.

use std::str::FromStr;

use dq_grammar::{InvalidName, InvalidValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::group::GroupName;
use super::id::JobId;
use super::ident::{AppName, NodeId, TopicName};
use super::metadata::Cause;
use super::priority::Priority;
use super::weight::Weight;

/// Types that serialize as the text that they display.
macro_rules! to_text {
    ($($name:ty),+) => { $(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                String::schema()
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
    )+ };
}
to_text!(AppName, TopicName, NodeId, JobId, Cause, Priority, GroupName);

/// Types that check the text of which they are made.
macro_rules! from_text {
    ($($name:ident: $bad:ty),+) => { $(
        impl FromStr for $name {
            type Err = $bad;

            fn from_str(text: &str) -> Result<Self, $bad> {
                Self::new(text)
            }
        }
    )+ };
}
from_text!(AppName: InvalidName, TopicName: InvalidName, JobId: InvalidName, GroupName: InvalidValue);

macro_rules! parsed {
    ($($name:ident),+) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )+ };
}
parsed!(AppName, TopicName, JobId, Cause, Priority, GroupName);

/// A weight is a number in JSON.
impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u16(self.get())
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(u16::deserialize(from)?).map_err(de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for Weight {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        u16::schema()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for Weight {}
