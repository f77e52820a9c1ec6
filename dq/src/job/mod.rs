//! A job: its names, its places, its stored form, and how a payload is bound to a topic.

mod delay_job;
mod id;
mod ident;
mod metadata;
mod record;
pub mod state;

pub use dq_grammar::{BadName, BadRetry, RetryPolicy};

pub use delay_job::{DelayJob, Deliver, JobDefaults, Payload, ToJobId};
pub use id::JobId;
pub use ident::{AppName, BadToken, Fence, NodeId, ProducerId, Sequence, Token, TopicKey, TopicName};
pub use metadata::{BadRecord, Cause, FixedMetadata, Metadata};
pub use record::{Codec, Record};
pub use state::State;
