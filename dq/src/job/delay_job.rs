//! A payload bound to its topic at compile time.

use std::fmt::Display;
use std::time::Duration;

use dq_grammar::BadName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::id::JobId;

/// The payload of a topic. Derive it:
///
/// ```
/// # use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "order-timeout", delay = "30m")]
/// struct CloseOrder {
///     #[job(id)]
///     order_id: u64,
/// }
/// assert_eq!(CloseOrder::TOPIC, "order-timeout");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a delay job",
    label = "this payload has no topic",
    note = "derive it: `#[derive(Serialize, Deserialize, DelayJob)] #[job(topic = \"..\")]`; a type of another crate needs a newtype of yours"
)]
pub trait DelayJob: Payload + Send + Sync + 'static {
    /// The topic; one payload type serves one topic.
    const TOPIC: &'static str;

    /// What `#[job(..)]` says of every job of this type.
    const DEFAULTS: JobDefaults = JobDefaults::NONE;

    /// The id, where a field is marked `#[job(id)]`; `None` has one generated.
    fn job_id(&self) -> Option<Result<JobId, BadName>> {
        None
    }
}

/// What can be stored as a payload: anything that serde writes and reads.
pub trait Payload: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Payload for T {}

/// Defaults of a payload; whatever an `add` says goes before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobDefaults {
    /// The delay; zero: due at once.
    pub delay: Duration,
    /// The retry policy as text: it holds where the listener and the settings of its node say nothing. `None`: the default.
    pub retry: Option<&'static str>,
    /// How long after its first due time a job is still worth running.
    pub expires_after: Option<Duration>,
    /// How long a job is kept as DONE after its ack; zero: not at all.
    pub retain: Duration,
    /// Where a due job goes.
    pub deliver: Deliver,
}

impl JobDefaults {
    /// No delay, no retry policy of its own, no expiry, not retained, to the queue.
    pub const NONE: Self = Self {
        delay: Duration::ZERO,
        retry: None,
        expires_after: None,
        retain: Duration::ZERO,
        deliver: Deliver::Queue,
    };

    /// What the derive writes.
    #[doc(hidden)]
    pub const fn new(
        delay: Duration,
        retry: Option<&'static str>,
        expires_after: Option<Duration>,
        retain: Duration,
        deliver: Deliver,
    ) -> Self {
        Self { delay, retry, expires_after, retain, deliver }
    }
}

/// Where a due job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Deliver {
    /// To one listener of its topic.
    #[default]
    Queue,
    /// To every connected node that listens to the broadcast channel named as the topic, at most once each.
    Broadcast,
    /// One of each, added, replaced and deleted together.
    Both,
}

/// What can be the id of a job: anything that can be displayed, as numbers, text, `Uuid`, `IpAddr` or a newtype of yours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the id of a job",
    label = "must be `Display`",
    note = "take a number, a text, a `Uuid` or a type of yours that implements `Display`; of several fields write `#[job(id = \"{{a}}:{{b}}\")]` above the type"
)]
pub trait ToJobId {
    /// The id.
    ///
    /// # Errors
    /// [`BadName`] when the text is empty, over 256 bytes or has a control character.
    fn to_job_id(&self) -> Result<JobId, BadName>;
}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> ToJobId for T {
    fn to_job_id(&self) -> Result<JobId, BadName> {
        JobId::new(self.to_string())
    }
}
