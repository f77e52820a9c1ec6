//! The state of a topic as a whole: whether it is paused, whether it drains, its default delay (rule 29), and how many of its jobs run at
//! a time on all nodes (rule 29).

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::due::Due;
use super::error::{StoreError, limited};
use crate::job::{JobId, NodeId};
use crate::time::Timestamp;

/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 1_024;

/// The longest name of who changed the state of a topic, in bytes.
pub const LONGEST_AUTHOR: usize = 256;

/// How many jobs a step counts at most that a draining topic still has to run.
pub const MOST_LEFT: usize = 10_000;

/// The most jobs that [`TopicChange::Concurrency`] may let run at a time.
pub const MOST_CONCURRENCY: usize = 1_000_000;

/// A topic is paused: no node claims its jobs, and its broadcasts wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Pause {
    /// Why.
    pub reason: String,
    /// When it ends by itself, by the store's clock; `None`: with a resume.
    pub until: Option<Timestamp>,
    /// Who paused the topic, or last changed the pause.
    pub by: String,
    /// Since when it is paused, by the store's clock. A call that changes the pause leaves it.
    pub since: Timestamp,
}

/// A topic drains: it takes no new jobs, and nodes run only what was due when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DefaultDelay))]
pub struct TopicDelay {
    /// The delay of jobs that are added without `after` and `at`, in whole milliseconds.
    #[serde(serialize_with = "duration_millis")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub delay: Duration,
    /// Who set it.
    pub by: String,
    /// When, by the store's clock.
    pub since: Timestamp,
}

/// How many jobs of a topic run at a time on all nodes together, as somebody has set it. It outweighs what the code of the nodes says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ClusterConcurrency))]
pub struct TopicConcurrency {
    /// How many, at least 1.
    pub limit: usize,
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
    /// How many of its jobs run at a time on all nodes; `None`: as many as the code of the nodes says.
    pub concurrency: Option<TopicConcurrency>,
}

/// A change of the state of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicChange {
    /// Pauses the topic, or changes its pause.
    Pause {
        /// Why.
        reason: String,
        /// When the pause ends by itself; `None`: with a resume.
        until: Option<Due>,
    },
    /// Ends the pause.
    Resume,
    /// Drains the topic, or changes the reason.
    Drain {
        /// Why.
        reason: String,
    },
    /// Ends the draining.
    Undrain,
    /// Sets the default delay; `None`: the topic has none any more.
    Delay(Option<Duration>),
    /// Sets how many jobs run at a time on all nodes, 1 to [`MOST_CONCURRENCY`]; `None`: what the code of the nodes says counts again.
    Concurrency(Option<usize>),
}

/// Request of the step `set`: a change, and who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetTopic {
    /// Who: text of at most [`LONGEST_AUTHOR`] bytes.
    pub by: String,
    /// What changes.
    pub change: TopicChange,
}

/// Answer of the step `set`. Both states have only what the change was about; the rest is empty.
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

impl TopicState {
    /// Whether nobody has set anything.
    pub const fn is_default(&self) -> bool {
        self.pause.is_none() && self.drain.is_none() && self.delay.is_none() && self.concurrency.is_none()
    }

    /// The state that counts at this time: a pause that has ended by itself is none.
    #[must_use]
    pub fn at(mut self, clock: Timestamp) -> Self {
        self.pause.take_if(|pause| pause.until.is_some_and(|until| until <= clock));
        self
    }

    /// The same, boxed; `None` where nobody has set anything.
    pub(crate) fn told(&self, clock: Timestamp) -> Option<Box<Self>> {
        (!self.is_default()).then(|| Box::new(self.clone().at(clock))).filter(|state| !state.is_default())
    }

    /// What nodes may take at this time.
    pub(crate) fn gate(&self, clock: Timestamp) -> Gate {
        match (&self.pause, &self.drain) {
            (Some(pause), _) if pause.until.is_none_or(|until| clock < until) => Gate::Closed(pause.until),
            (_, Some(drain)) => Gate::Until(drain.since),
            _ => Gate::Open,
        }
    }

    /// Applies a change at this time. `until`: the time that a `Due` means.
    pub(crate) fn set(&mut self, clock: Timestamp, set: SetTopic, until: impl Fn(Due) -> Timestamp) -> TopicSet {
        let SetTopic { by, change } = set;
        if matches!(change, TopicChange::Pause { .. } | TopicChange::Resume) {
            *self = std::mem::take(self).at(clock);
        }
        let mut answer = TopicSet::default();
        match change {
            TopicChange::Pause { reason, until: end } => {
                let since = self.pause.as_ref().map_or(clock, |pause| pause.since);
                answer.now.pause = Some(Pause { reason, until: end.map(until), by, since });
                answer.before.pause = std::mem::replace(&mut self.pause, answer.now.pause.clone());
            }
            TopicChange::Resume => answer.before.pause = self.pause.take(),
            TopicChange::Drain { reason } => {
                let since = self.drain.as_ref().map_or(clock, |drain| drain.since);
                answer.now.drain = Some(Drain { reason, by, since });
                answer.before.drain = std::mem::replace(&mut self.drain, answer.now.drain.clone());
            }
            TopicChange::Undrain => answer.before.drain = self.drain.take(),
            TopicChange::Delay(delay) => {
                answer.now.delay = delay.map(|delay| TopicDelay { delay: whole_millis(delay), by, since: clock });
                answer.before.delay = std::mem::replace(&mut self.delay, answer.now.delay.clone());
            }
            TopicChange::Concurrency(limit) => {
                answer.now.concurrency = limit.map(|limit| TopicConcurrency { limit, by, since: clock });
                answer.before.concurrency = std::mem::replace(&mut self.concurrency, answer.now.concurrency.clone());
            }
        }
        answer
    }
}

impl TopicState {
    /// A handler of this job backed off: pauses the topic until then, unless it is paused for longer. Returns whether it changed.
    pub(crate) fn back_off(&mut self, clock: Timestamp, id: &JobId, node: &NodeId, until: Timestamp) -> bool {
        let pause = self.pause.take().filter(|pause| pause.until.is_none_or(|until| clock < until));
        if pause.as_ref().is_some_and(|pause| pause.until.is_none_or(|end| until <= end)) {
            self.pause = pause;
            return false;
        }
        let since = pause.map_or(clock, |pause| pause.since);
        self.pause = Some(Pause { reason: back_off_reason(id), until: Some(until), by: node.to_string(), since });
        true
    }
}

/// Why a topic is paused after a handler of this job backed off.
fn back_off_reason(id: &JobId) -> String {
    format!("the handler of job {id} backed off")
}

impl SetTopic {
    /// Refuses texts over the limits before anything is done.
    pub(crate) const fn check(&self) -> Result<(), StoreError> {
        let reason = match &self.change {
            TopicChange::Pause { reason, .. } | TopicChange::Drain { reason } => reason.len(),
            TopicChange::Resume | TopicChange::Undrain | TopicChange::Delay(_) | TopicChange::Concurrency(_) => 0,
        };
        if let TopicChange::Concurrency(Some(size)) = self.change
            && (size == 0 || size > MOST_CONCURRENCY)
        {
            let what = "the number of jobs that run at a time (at least 1)";
            return Err(StoreError::OverLimit { what, size, limit: MOST_CONCURRENCY });
        }
        let (what, size, limit) = if reason > LONGEST_REASON {
            ("the size of the reason in bytes", reason, LONGEST_REASON)
        } else {
            ("the size of the author in bytes", self.by.len(), LONGEST_AUTHOR)
        };
        limited(what, size, limit)
    }
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
        Self { limit: state.concurrency.as_ref().map(|set| set.limit).or(by_code), running }
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

/// Rounded up to whole milliseconds.
pub(crate) fn whole_millis(delay: Duration) -> Duration {
    Duration::from_millis(crate::time::millis_ceil(delay))
}

fn duration_millis<S: Serializer>(delay: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(crate::time::millis_ceil(*delay))
}
