//! The trait that binds a payload to its topic at compile time.

use std::fmt::Display;
use std::time::Duration;

use dq_grammar::{InvalidName, InvalidValue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smol_str::ToSmolStr;

use super::group::GroupName;
use super::id::JobId;
use super::priority::Priority;
use super::weight::Weight;

/// The payload of a topic. Derive it with [`#[derive(DelayJob)]`](macro@crate::DelayJob):
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
///
/// A payload is any type that serde can serialize and deserialize. A type of another crate needs a newtype of yours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a delay job",
    label = "this payload has no topic",
    note = "derive it: `#[derive(Serialize, Deserialize, DelayJob)] #[job(topic = \"..\")]`; a type of another crate needs a newtype of yours"
)]
pub trait DelayJob: Payload + Send + Sync + 'static {
    /// The topic; one payload type serves one topic.
    const TOPIC: &'static str;

    /// The defaults in `#[job(..)]`.
    #[doc(hidden)]
    const DEFAULTS: JobDefaults = JobDefaults::NONE;

    /// The id of this job, made of the fields that `#[job(id)]` names. If it is `None`, dq generates an id.
    fn job_id(&self) -> Option<Result<JobId, InvalidName>> {
        None
    }

    /// The group of this job, made of the fields that `#[job(group = "..")]` names. If it is `None`, the job has none.
    fn job_group(&self) -> Option<Result<GroupName, InvalidValue>> {
        None
    }

    /// The weight of this job, made of the fields that `#[job(weight = "..")]` names. If it is `None`, the weight is 1.
    fn job_weight(&self) -> Option<Result<Weight, InvalidValue>> {
        None
    }
}

/// A type that can be stored as a payload: any type that serde can serialize and deserialize.
pub trait Payload: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Payload for T {}

/// The defaults of a payload. The options of an add outweigh them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDefaults {
    /// The delay; zero means due at once.
    pub delay: Duration,
    /// The retry policy as text. It applies if neither the listener nor the settings of its node name one.
    pub retry: Option<&'static str>,
    /// How long after its first due time a job may still start.
    pub expires_after: Option<Duration>,
    /// How long a job is kept as DONE after its ack; zero means not at all.
    pub retain: Duration,
    /// Where a due job goes.
    pub deliver: Delivery,
    /// How many jobs of the topic may wait before an add is refused.
    pub max_waiting: Option<usize>,
    /// How many jobs of the same group may wait before an add is refused.
    pub group_max_waiting: Option<usize>,
    /// Which of the due jobs of the topic go first.
    pub priority: Priority,
    /// For how long after its add the id of a job stays taken.
    pub unique_for: Option<Duration>,
}

impl JobDefaults {
    /// No delay, no retry policy of its own, no expiry, not retained, to the queue, no limit, with the normal priority, its id free once it is gone.
    pub const NONE: Self = Self {
        delay: Duration::ZERO,
        retry: None,
        expires_after: None,
        retain: Duration::ZERO,
        deliver: Delivery::Queue,
        max_waiting: None,
        group_max_waiting: None,
        priority: Priority::Normal,
        unique_for: None,
    };
}

/// Where a due job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// To one listener of its topic.
    #[default]
    Queue,
    /// To every connected node that listens to the broadcast channel with the topic's name, at most once each.
    Broadcast,
    /// To both. dq adds, replaces and deletes the job and its broadcast together.
    Both,
}

#[cfg(feature = "redis")]
impl Delivery {
    /// Its letter in scripts.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Queue => "q",
            Self::Broadcast => "b",
            Self::Both => "t",
        }
    }

    pub(crate) fn of_letter(letter: char) -> Option<Self> {
        [Self::Queue, Self::Broadcast, Self::Both].into_iter().find(|deliver| deliver.letter().starts_with(letter))
    }
}

/// A value that can be the id of a job: any type that implements `Display`, for example a number, a text, a `Uuid` or a
/// newtype of yours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the id of a job",
    label = "must be `Display`",
    note = "take a number, a string, a `Uuid` or a type of yours that implements `Display`; of several fields write `#[job(id = \"{{a}}:{{b}}\")]` above the type"
)]
pub trait ToJobId {
    /// Makes the id.
    ///
    /// # Errors
    /// [`InvalidName`] if the text is empty, is longer than 256 bytes or has a control character.
    fn to_job_id(&self) -> Result<JobId, InvalidName>;
}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> ToJobId for T {
    fn to_job_id(&self) -> Result<JobId, InvalidName> {
        JobId::new(self.to_smolstr()) // no allocation up to 23 bytes
    }
}
