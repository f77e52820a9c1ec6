//! The names, numbers and states of jobs. The trait of payloads is [`DelayJob`](trait@crate::DelayJob), at the root of
//! the crate.
//!
//! What is hidden here belongs to the contract of stores (`dq::store`) or to the macros, and may change with every
//! version.

mod checked;
mod crashes;
mod delay_job;
mod group;
mod id;
mod ident;
mod json;
mod kept;
#[doc(hidden)]
pub mod limits;
mod metadata;
mod msgpack;
mod node;
mod priority;
mod progress;
mod record;
#[doc(hidden)]
pub mod state;
mod text;
mod weight;

#[doc(inline)]
pub use dq_grammar::{InvalidName, InvalidValue, RetryPolicy};

pub use delay_job::{Delivery, ToJobId};
pub use group::GroupName;
pub use id::JobId;
pub(crate) use id::SCHEDULE_PREFIX;
pub use ident::{AppName, Fence, TopicName};
pub(crate) use json::{check_json, to_json};
pub use kept::{KeptState, StateError};
pub use limits::OverLimit;
pub use metadata::{Cause, InvalidRecord, Metadata};
#[doc(hidden)]
pub use metadata::{FIELDS, Kind};
#[doc(hidden)]
pub use msgpack::Value;
pub use priority::Priority;
pub use progress::Progress;
pub use record::Codec;
pub use state::{JobState, State};
pub use weight::Weight;

#[doc(hidden)]
pub use crashes::{Charge, Isolation, Suspicion};
#[doc(hidden)]
pub use delay_job::{DelayJob, JobDefaults, Payload};
#[doc(hidden)]
pub use ident::{InvalidToken, NodeId, ProducerId, Sequence, Token, TopicKey};
#[doc(hidden)]
pub use record::Record;
