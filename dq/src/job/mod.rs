//! A job: its names, its places, its stored form, and how a payload is bound to a topic.

mod delay_job;
mod front;
mod id;
mod ident;
mod record;
pub mod state;

pub use dq_grammar::{BadName, BadRetry, RetryPolicy};

pub use delay_job::{DelayJob, Deliver, JobDefaults, Payload, ToJobId};
pub use front::{BadRecord, Cause, FixedMetadata, Front};
pub use id::JobId;
pub use ident::{AppName, BadToken, Fence, NodeId, ProducerId, Token, TopicKey, TopicName, Turn};
pub use record::{Codec, Record};
pub use state::State;
