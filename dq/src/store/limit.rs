//! The limits of a topic that callers change for all nodes and producers while these run (rule 29).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::error::StoreError;
use super::rate::Rate;
use crate::job::{GroupName, InvalidValue, JobDefaults, Record, Weight};
use crate::time::Timestamp;

/// The most jobs that [`Limit::ClusterConcurrency`] may let run at a time.
pub const MAX_CONCURRENCY: usize = 1_000_000;

/// The most jobs of a group that [`Limit::GroupConcurrency`] may let run at a time.
pub const MAX_GROUP_CONCURRENCY: usize = 100;

/// The most jobs that [`Limit::MaxWaiting`] may let wait.
pub const MAX_WAITING: usize = 1_000_000_000;

/// A limit of a topic. It overrides the setting in the code of nodes and producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Limit {
    /// How many jobs run at a time on all nodes together, 1 to [`MAX_CONCURRENCY`].
    ClusterConcurrency(usize),
    /// How many jobs all nodes together start within a period.
    #[serde(serialize_with = "as_text")]
    Rate(Rate),
    /// How many jobs wait before adds are refused, 1 to [`MAX_WAITING`].
    MaxWaiting(usize),
    /// How many jobs of a group run at a time on all nodes together, 1 to [`MAX_GROUP_CONCURRENCY`].
    GroupConcurrency(usize),
    /// How many jobs of each group all nodes together start within a period.
    #[serde(serialize_with = "as_text")]
    GroupRate(Rate),
    /// How many jobs of each group wait for a seat or for their due time before adds are refused, 1 to [`MAX_WAITING`].
    GroupMaxWaiting(usize),
    /// How many more jobs of a group run while no other job of the topic is due, 0 to [`MAX_GROUP_CONCURRENCY`].
    GroupBurst(usize),
}

fn as_text<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(rate)
}

/// As many jobs of a topic, or of one of its groups, wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicFull {
    /// How many wait.
    pub waiting: usize,
    /// How many may.
    pub limit: usize,
}

impl TopicFull {
    /// Whether so many jobs more have no room.
    pub(crate) fn of(waiting: usize, limit: usize, more: usize) -> Option<Self> {
        (more > 0 && waiting.saturating_add(more) > limit).then_some(Self { waiting, limit })
    }
}

impl fmt::Display for TopicFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jobs wait, and {} may", self.waiting, self.limit)
    }
}

/// A job is heavier than all that its rate, or the rate of its group, allows in a period, so no period has room for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooHeavy {
    /// The weight of the job.
    pub weight: Weight,
    /// The rate.
    pub rate: Rate,
    /// The group whose rate it is; `None`: the rate of the topic.
    pub group: Option<GroupName>,
}

impl TooHeavy {
    /// Whether the job of this record is, under the rate of its topic and the rate of each group.
    pub(crate) fn of(record: &Record, rate: Option<Rate>, group_rate: Option<Rate>) -> Option<Self> {
        let weight = record.weight();
        let is_over = |rate: &Rate| u32::from(weight.get()) > rate.most();
        if let Some(rate) = rate.filter(is_over) {
            return Some(Self { weight, rate, group: None });
        }
        let rate = group_rate.filter(is_over)?;
        let group = record.group().and_then(|(_, name)| GroupName::new(name).ok())?;
        Some(Self { weight, rate, group: Some(group) })
    }
}

impl fmt::Display for TooHeavy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weight, rate, group } = self;
        write!(f, "its weight is {weight}, and the rate {rate} of its ")?;
        match group {
            None => f.write_str("topic")?,
            Some(group) => write!(f, "group {group}")?,
        }
        write!(f, " allows {} in a period", rate.most())
    }
}

/// How many jobs may wait, as the code of a producer says. A [limit](Limit) that is set in the store overrides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxWaiting {
    /// Of the topic; `None`: any number.
    pub topic: Option<usize>,
    /// Of each group; `None`: any number.
    #[serde(skip)] // no full group refuses a follow-up
    pub group: Option<usize>,
}

impl MaxWaiting {
    /// `None` if both are.
    pub(crate) fn of(defaults: &JobDefaults) -> Option<Self> {
        let (topic, group) = (defaults.max_waiting, defaults.group_max_waiting);
        topic.or(group).map(|_| Self { topic, group })
    }
}

/// What a [`Limit`] limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub enum LimitKind {
    /// [`Limit::ClusterConcurrency`].
    ClusterConcurrency,
    /// [`Limit::Rate`].
    Rate,
    /// [`Limit::MaxWaiting`].
    MaxWaiting,
    /// [`Limit::GroupConcurrency`].
    GroupConcurrency,
    /// [`Limit::GroupRate`].
    GroupRate,
    /// [`Limit::GroupMaxWaiting`].
    GroupMaxWaiting,
    /// [`Limit::GroupBurst`].
    GroupBurst,
}

/// A limit that a caller has set for a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Written")]
pub struct TopicLimit {
    /// The limit.
    pub limit: Limit,
    /// Why; empty if the caller did not say.
    pub reason: String,
    /// Who set it.
    pub by: String,
    /// When, by the store's clock.
    pub since: Timestamp,
}

/// A limit as it serializes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TopicLimit))]
pub(super) struct Written {
    /// What it limits.
    kind: LimitKind,
    /// How many jobs; for a rate a text such as `100/s`.
    #[cfg_attr(feature = "schema", schema(value_type = LimitValue))]
    value: Limit,
    /// Why; empty if the caller did not say.
    reason: String,
    /// Who set it.
    by: String,
    /// When, by the store's clock.
    since: Timestamp,
}

/// The value of a limit as it serializes.
#[cfg(feature = "schema")]
#[derive(Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it only describes")]
enum LimitValue {
    Jobs(usize),
    Rate(String),
}

impl From<TopicLimit> for Written {
    fn from(TopicLimit { limit, reason, by, since }: TopicLimit) -> Self {
        Self { kind: limit.kind(), value: limit, reason, by, since }
    }
}

impl Limit {
    /// Refuses a limit that is out of its bounds.
    pub(crate) const fn check(self) -> Result<(), StoreError> {
        let (what, size, limit) = match self {
            Self::Rate(_) | Self::GroupRate(_) => return Ok(()),
            Self::ClusterConcurrency(size) => ("the number of jobs that run at a time", size, MAX_CONCURRENCY),
            Self::MaxWaiting(size) | Self::GroupMaxWaiting(size) => ("the number of jobs that wait", size, MAX_WAITING),
            Self::GroupConcurrency(size) => {
                ("the number of jobs of a group that run at a time", size, MAX_GROUP_CONCURRENCY)
            }
            Self::GroupBurst(size) => {
                ("the number of jobs of a group that run beyond its limit", size, MAX_GROUP_CONCURRENCY)
            }
        };
        let is_too_few = size == 0 && !matches!(self, Self::GroupBurst(_));
        let limit = if is_too_few { 1 } else { limit };
        if is_too_few || size > limit { Err(StoreError::OverLimit { what, size, limit }) } else { Ok(()) }
    }
}

/// Its value, as [`LimitKind::read`] reads it.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClusterConcurrency(jobs)
            | Self::MaxWaiting(jobs)
            | Self::GroupConcurrency(jobs)
            | Self::GroupMaxWaiting(jobs)
            | Self::GroupBurst(jobs) => jobs.fmt(f),
            Self::Rate(rate) | Self::GroupRate(rate) => rate.fmt(f),
        }
    }
}

impl Limit {
    /// The value as stores keep it, which scripts read.
    pub(crate) fn stored(self) -> String {
        match self {
            Self::Rate(rate) | Self::GroupRate(rate) => stored_rate(rate),
            other => other.to_string(),
        }
    }
}

/// A rate as stores keep it: jobs, period in ms, and burst.
pub(crate) fn stored_rate(rate: Rate) -> String {
    format!("{}/{}/{}", rate.jobs(), rate.period().as_millis(), rate.burst())
}

/// The rate that stores keep as this text.
pub(crate) fn rate_in(text: &str) -> Option<Rate> {
    let mut parts = text.splitn(3, '/');
    let (jobs, period, burst) = (parts.next()?, parts.next()?, parts.next()?);
    Rate::new(jobs.parse().ok()?, Duration::from_millis(period.parse().ok()?), burst.parse().ok()?).ok()
}

/// A row is a kind of limit: how its value reads, its name, which is the setting in the code, the flag, the kind in JSON and
/// the field in the stores, and what a value counts.
macro_rules! kinds {
    ($($kind:ident $value:ident $name:literal $unit:literal;)+) => {
        impl Limit {
            /// What it limits.
            pub const fn kind(self) -> LimitKind {
                match self { $(Self::$kind(_) => LimitKind::$kind,)+ }
            }
        }

        impl LimitKind {
            /// All kinds, in the order in which [`TopicState::limits`](super::TopicState::limits) has them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// Its name: the setting, the flag on the command line, the kind in JSON, and the field in the stores.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// What a value counts, to stand after the value.
            pub const fn unit(self) -> &'static str {
                match self { $(Self::$kind => $unit,)+ }
            }

            /// The limit of this kind with the value in a text.
            ///
            /// # Errors
            /// [`InvalidValue`]: the text is no such value. Bounds are checked when the limit is set.
            pub fn read(self, text: &str) -> Result<Limit, InvalidValue> {
                Ok(match self { $(Self::$kind => Limit::$kind($value(text)?),)+ })
            }
        }
    };
}

kinds! {
    ClusterConcurrency jobs "cluster_concurrency" "jobs at a time on all nodes";
    Rate rate "rate" "on all nodes";
    MaxWaiting jobs "max_waiting" "waiting jobs";
    GroupConcurrency jobs "group_concurrency" "jobs of a group at a time on all nodes";
    GroupRate rate "group_rate" "of each group on all nodes";
    GroupMaxWaiting jobs "group_max_waiting" "waiting jobs of each group";
    GroupBurst jobs "group_burst" "more jobs of a group while no other job is due";
}

fn jobs(text: &str) -> Result<usize, InvalidValue> {
    text.trim().parse().map_err(|_| is_not(text, "a number of jobs"))
}

fn rate(text: &str) -> Result<Rate, InvalidValue> {
    text.parse().map_err(|_| is_not(text, "a rate such as `100/s` or `1000/h, burst 50`"))
}

fn is_not(text: &str, wanted: &str) -> InvalidValue {
    InvalidValue::new(format!("`{text}` is not {wanted}"))
}

impl LimitKind {
    /// The limit of this kind that a store keeps as this text.
    pub(crate) fn stored(self, text: &str) -> Option<Limit> {
        let limit = match self {
            Self::Rate => rate_in(text).map(Limit::Rate),
            Self::GroupRate => rate_in(text).map(Limit::GroupRate),
            Self::ClusterConcurrency
            | Self::MaxWaiting
            | Self::GroupConcurrency
            | Self::GroupMaxWaiting
            | Self::GroupBurst => self.read(text).ok(),
        };
        limit.filter(|limit| limit.check().is_ok())
    }
}

impl FromStr for LimitKind {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let wanted = "a kind of limit: cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting or group_burst";
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| is_not(text, wanted))
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
