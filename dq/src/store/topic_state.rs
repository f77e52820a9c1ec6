//! The state of a topic as a whole: whether it is paused, whether it drains, its default delay and its limits (rule 29).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::Due;
use super::error::{StoreError, limited};
#[cfg(feature = "schema")]
use super::limit::Written;
use super::limit::{Limit, LimitKind, TopicLimit};
use super::rate::Rate;
use crate::job::{GroupName, JobId, NodeId};
use crate::time::{Timestamp, ceil_millis, in_millis};

/// The longest reason, in bytes.
pub const MAX_REASON: usize = 1_024;

/// The longest name of who changed the state of a topic, in bytes.
pub const MAX_AUTHOR: usize = 256;

/// How many jobs a step counts at most that a draining topic still has to run.
pub const MAX_LEFT: usize = 10_000;

/// A topic is paused: no node claims its jobs, and its broadcasts wait. Or a group of it is: no node claims the jobs of the group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Pause {
    /// Why.
    pub reason: String,
    /// When it ends by itself, by the store's clock; `None`: with a resume.
    pub until: Option<Timestamp>,
    /// Who made it, or last changed it.
    pub by: String,
    /// Since when, by the store's clock. A call that changes the pause leaves it.
    pub since: Timestamp,
}

/// A topic drains: it takes no new jobs, and nodes run only what was due when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Drain {
    /// Why.
    pub reason: String,
    /// Who drained the topic, or last changed the reason.
    pub by: String,
    /// Since when it drains, by the store's clock: nodes run the jobs that were due then. A second call leaves it.
    pub since: Timestamp,
}

/// The default delay of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DefaultDelay))]
pub struct TopicDelay {
    /// The delay of jobs that are added without `after` and `at`, in whole milliseconds.
    #[serde(with = "in_millis")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub delay: Duration,
    /// Who set it.
    pub by: String,
    /// When, by the store's clock.
    pub since: Timestamp,
}

/// The state of a topic as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TopicState {
    /// The topic is paused.
    pub pause: Option<Pause>,
    /// The topic drains.
    pub drain: Option<Drain>,
    /// The topic has a default delay.
    pub delay: Option<TopicDelay>,
    /// Its limits, in the order of [`LimitKind::ALL`]; what is missing is as the code of nodes and producers says.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Written>))]
    pub limits: Vec<TopicLimit>,
}

/// A change of the state of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicChange {
    /// Pauses the topic or a group, or changes its pause.
    Pause {
        /// The group; `None`: the topic.
        group: Option<GroupName>,
        /// Why.
        reason: String,
        /// When the pause ends by itself; `None`: with a resume.
        until: Option<Due>,
    },
    /// Ends the pause.
    Resume {
        /// Of this group; `None`: of the topic.
        group: Option<GroupName>,
    },
    /// Drains the topic, or changes the reason.
    Drain {
        /// Why.
        reason: String,
    },
    /// Ends the draining.
    Undrain,
    /// Sets the default delay; `None`: the topic has none any more.
    Delay(Option<Duration>),
    /// Sets a limit.
    Limit {
        /// The limit.
        limit: Limit,
        /// Why; may be empty.
        reason: String,
    },
    /// Clears a limit: what the code says applies again.
    ClearLimit(LimitKind),
}

/// Request of the step `set`: a change, and who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetTopic {
    /// Who: text of at most [`MAX_AUTHOR`] bytes.
    pub by: String,
    /// What changes.
    pub change: TopicChange,
}

/// Answer of the step `set`. Both states have only what the change was about, such as the pause of a group; the rest is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicSet {
    /// What was there before.
    pub before: TopicState,
    /// What is there now.
    pub now: TopicState,
}

/// What the state of a topic lets nodes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Whatever is due.
    Open,
    /// What is due at this time or earlier: the topic drains.
    Until(Timestamp),
    /// Nothing, until this time at least: the topic is paused.
    Closed(Option<Timestamp>),
}

impl Gate {
    /// Up to which due time a step may take something, if `latest` would be the time without a gate.
    pub(crate) fn latest(self, latest: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Open => Some(latest),
            Self::Until(drained) => Some(latest.min(drained)),
            Self::Closed(_) => None,
        }
    }

    /// When there is something to take next, with this head.
    pub(crate) fn opens(self, head: Option<Timestamp>, comes_ahead: Duration) -> Option<Timestamp> {
        match self {
            Self::Open => head.map(|head| head.before(comes_ahead)),
            Self::Until(drained) => head.filter(|head| *head <= drained).map(|head| head.before(comes_ahead)),
            Self::Closed(until) => until,
        }
    }
}

impl Pause {
    /// Whether it has not ended by itself at this time.
    pub(crate) fn is_at(&self, clock: Timestamp) -> bool {
        self.until.is_none_or(|until| clock < until)
    }
}

impl TopicState {
    /// Whether nobody has set anything.
    pub const fn is_default(&self) -> bool {
        self.pause.is_none() && self.drain.is_none() && self.delay.is_none() && self.limits.is_empty()
    }

    /// The limit of this kind, if a caller has set one.
    pub fn limit(&self, kind: LimitKind) -> Option<&TopicLimit> {
        self.limits.iter().find(|set| set.limit.kind() == kind)
    }

    /// How many jobs may run at a time on all nodes, if a caller has set that.
    pub fn concurrency(&self) -> Option<usize> {
        self.limits
            .iter()
            .find_map(|set| if let Limit::ClusterConcurrency(jobs) = set.limit { Some(jobs) } else { None })
    }

    /// How many jobs of a group may run at a time on all nodes, if a caller has set that.
    pub fn group_concurrency(&self) -> Option<usize> {
        let of = |set: &TopicLimit| if let Limit::GroupConcurrency(jobs) = set.limit { Some(jobs) } else { None };
        self.limits.iter().find_map(of)
    }

    /// How many more jobs of a group may run while no other job is due, if a caller has set that.
    pub fn group_burst(&self) -> Option<usize> {
        self.limits.iter().find_map(|set| if let Limit::GroupBurst(jobs) = set.limit { Some(jobs) } else { None })
    }

    /// The rate, if a caller has set one.
    pub fn rate(&self) -> Option<Rate> {
        self.limits.iter().find_map(|set| if let Limit::Rate(rate) = set.limit { Some(rate) } else { None })
    }

    /// The rate of each group, if a caller has set one.
    pub fn group_rate(&self) -> Option<Rate> {
        self.limits.iter().find_map(|set| if let Limit::GroupRate(rate) = set.limit { Some(rate) } else { None })
    }

    /// Whether a caller has limited what all nodes together claim.
    pub(crate) fn limits_claims(&self) -> bool {
        let is_of_adds = |kind| matches!(kind, LimitKind::MaxWaiting | LimitKind::GroupMaxWaiting);
        self.limits.iter().any(|set| !is_of_adds(set.limit.kind()))
    }

    /// How many jobs may wait, if a caller has set that.
    pub fn waiting(&self) -> Option<usize> {
        self.limits.iter().find_map(|set| if let Limit::MaxWaiting(jobs) = set.limit { Some(jobs) } else { None })
    }

    /// How many jobs of each group may wait, if a caller has set that.
    pub fn group_waiting(&self) -> Option<usize> {
        self.limits.iter().find_map(|set| if let Limit::GroupMaxWaiting(jobs) = set.limit { Some(jobs) } else { None })
    }

    /// Puts a limit, or nothing, in the place of the one of this kind, which it returns.
    pub(crate) fn replace_limit(&mut self, kind: LimitKind, set: Option<TopicLimit>) -> Vec<TopicLimit> {
        let (former, mut limits): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.limits).into_iter().partition(|set| set.limit.kind() == kind);
        limits.extend(set);
        limits.sort_by_key(|set| set.limit.kind());
        self.limits = limits;
        former
    }

    /// The state that counts at this time: a pause that has ended by itself is none.
    #[must_use]
    pub fn at(mut self, clock: Timestamp) -> Self {
        self.pause.take_if(|pause| !pause.is_at(clock));
        self
    }

    /// The same, boxed; `None` where nobody has set anything.
    pub(crate) fn told(&self, clock: Timestamp) -> Option<Box<Self>> {
        (!self.is_default()).then(|| Box::new(self.clone().at(clock))).filter(|state| !state.is_default())
    }

    /// What nodes may take at this time.
    pub(crate) fn gate(&self, clock: Timestamp) -> Gate {
        match (&self.pause, &self.drain) {
            (Some(pause), _) if pause.is_at(clock) => Gate::Closed(pause.until),
            (_, Some(drain)) => Gate::Until(drain.since),
            _ => Gate::Open,
        }
    }

    /// Applies a change at this time. `until`: the time that a `Due` means.
    pub(crate) fn set(&mut self, clock: Timestamp, set: SetTopic, until: impl Fn(Due) -> Timestamp) -> TopicSet {
        let SetTopic { by, change } = set;
        if matches!(change, TopicChange::Pause { .. } | TopicChange::Resume { .. }) {
            *self = std::mem::take(self).at(clock);
        }
        let mut answer = TopicSet::default();
        match change {
            TopicChange::Pause { reason, until: end, .. } => {
                let since = self.pause.as_ref().map_or(clock, |pause| pause.since);
                answer.now.pause = Some(Pause { reason, until: end.map(until), by, since });
                answer.before.pause = std::mem::replace(&mut self.pause, answer.now.pause.clone());
            }
            TopicChange::Resume { .. } => answer.before.pause = self.pause.take(),
            TopicChange::Drain { reason } => {
                let since = self.drain.as_ref().map_or(clock, |drain| drain.since);
                answer.now.drain = Some(Drain { reason, by, since });
                answer.before.drain = std::mem::replace(&mut self.drain, answer.now.drain.clone());
            }
            TopicChange::Undrain => answer.before.drain = self.drain.take(),
            TopicChange::Delay(delay) => {
                answer.now.delay = delay.map(|delay| TopicDelay { delay: ceil_millis(delay), by, since: clock });
                answer.before.delay = std::mem::replace(&mut self.delay, answer.now.delay.clone());
            }
            TopicChange::Limit { limit, reason } => {
                let set = TopicLimit { limit, reason, by, since: clock };
                answer.before.limits = self.replace_limit(limit.kind(), Some(set.clone()));
                answer.now.limits.push(set);
            }
            TopicChange::ClearLimit(kind) => answer.before.limits = self.replace_limit(kind, None),
        }
        answer
    }
}

impl TopicChange {
    /// The limit that it sets or clears.
    pub(crate) const fn limit(&self) -> Option<LimitKind> {
        match self {
            Self::Limit { limit, .. } => Some(limit.kind()),
            Self::ClearLimit(kind) => Some(*kind),
            _ => None,
        }
    }

    /// The group that it is about, if it is not about the topic.
    pub(crate) const fn group(&self) -> Option<&GroupName> {
        match self {
            Self::Pause { group, .. } | Self::Resume { group } => group.as_ref(),
            _ => None,
        }
    }
}

impl TopicState {
    /// A handler of this job backed off: makes a pause until then, unless there is a longer one. Returns whether it changed.
    pub(crate) fn back_off(&mut self, clock: Timestamp, id: &JobId, node: &NodeId, until: Timestamp) -> bool {
        let pause = self.pause.take().filter(|pause| pause.is_at(clock));
        if pause.as_ref().is_some_and(|pause| pause.until.is_none_or(|end| until <= end)) {
            self.pause = pause;
            return false;
        }
        let since = pause.map_or(clock, |pause| pause.since);
        self.pause = Some(Pause { reason: back_off_reason(id), until: Some(until), by: node.to_string(), since });
        true
    }
}

/// The reason of a pause after a handler of this job backed off.
fn back_off_reason(id: &JobId) -> String {
    format!("the handler of job {id} backed off")
}

impl SetTopic {
    /// Refuses texts and limits that are out of their bounds before anything is done.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let reason: &str = match &self.change {
            TopicChange::Limit { limit, reason } => {
                limit.check()?;
                reason
            }
            TopicChange::Pause { reason, .. } | TopicChange::Drain { reason } => reason,
            TopicChange::Resume { .. } | TopicChange::Undrain | TopicChange::Delay(_) | TopicChange::ClearLimit(_) => {
                ""
            }
        };
        check_said(reason, &self.by)
    }
}

/// Refuses a reason or an author that is too long.
pub(crate) fn check_said(reason: &str, by: &str) -> Result<(), StoreError> {
    limited("the size of the reason in bytes", reason.len(), MAX_REASON)?;
    limited("the size of the author in bytes", by.len(), MAX_AUTHOR)
}

/// How many jobs of a topic may be RUNNING on all nodes together (rule 29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    /// `None`: as many as are due.
    limit: Option<usize>,
    running: usize,
}

impl Slots {
    /// What the state of the topic says, or else the code of the node that asks.
    pub(crate) fn of(state: &TopicState, by_code: Option<usize>, running: usize) -> Self {
        Self { limit: state.concurrency().or(by_code), running }
    }

    /// Whether there is a limit.
    pub(crate) const fn are_bounded(self) -> bool {
        self.limit.is_some()
    }

    /// How many of so many jobs may be claimed now.
    pub(crate) fn take(self, wanted: usize) -> usize {
        self.limit.map_or(wanted, |limit| wanted.min(limit.saturating_sub(self.running)))
    }

    /// The limit, if nothing may be claimed once so many jobs more are RUNNING.
    pub(crate) fn shut_by(self, claimed: usize) -> Option<usize> {
        self.limit.filter(|limit| self.running + claimed >= *limit)
    }
}
