//! Rules 28 and 29 taken away: the store gets other changes than the checker knows of, or a topic that is open for a moment.

use std::sync::Arc;
use std::time::Duration;

use super::altered::answer_of;
use super::node::UNACKED_AGE;
use super::rules::{is_any_away, without};
use super::sim::Sim;
use super::sync::lock;
use super::version::{version, with_payload};
use dq::environment::StoreClock as _;
use dq::job::{ProducerId, State, TopicKey};
use dq::store::{
    AddOutcome, BatchAnswer, ChangeKind, Due, JobChange, LimitKind, NewJob, Numbered, Producer, RequestKind, SetTopic,
    StoreError, TopicChange, TopicLimit, TopicState,
};
use dq::time::Timestamp;

/// Without `version` a change names none, and without `update` it brings no payload.
pub(super) fn ignore_versions(items: &mut [JobChange]) {
    for item in items {
        if without("version") {
            item.if_version = None;
        }
        if let ChangeKind::Update(record) = &mut item.what
            && without("update")
        {
            *record = with_payload(record, &version(record).to_string());
        }
    }
}

/// What lifts a limit of the topic, and what sets it again.
fn lifted(state: &TopicState, kind: LimitKind) -> Option<(TopicChange, TopicChange)> {
    let TopicLimit { limit, reason, .. } = state.limit(kind)?.clone();
    Some((TopicChange::ClearLimit(kind), TopicChange::Limit { limit, reason }))
}

impl Sim {
    /// Without `usual` the default delay of a topic counts for no job, and without `unique` no id stays taken.
    pub(super) fn ignore_usual(&self, jobs: &mut [NewJob]) {
        jobs.iter_mut().filter(|_| without("unique")).for_each(|job| job.unique_for = None);
        for job in jobs.iter_mut().filter(|_| without("usual")) {
            if let Due::Usual(delay) = job.due {
                job.due = Due::After(delay);
            }
        }
    }

    /// Adds a batch; without `drain` also to a topic that drains, and without `full` to one that is full.
    pub(super) fn add_over_gates(
        self: &Arc<Self>,
        key: &TopicKey,
        producer: &dyn Producer,
        batch: Numbered<NewJob>,
    ) -> Result<BatchAnswer<AddOutcome>, StoreError> {
        let state = lock(&self.checker_of(key)).state().clone();
        let waiting = || lifted(&state, LimitKind::MaxWaiting).or_else(|| lifted(&state, LimitKind::GroupMaxWaiting));
        let (open, close) = if without("drain")
            && let Some(drain) = state.drain.clone()
        {
            (TopicChange::Undrain, TopicChange::Drain { reason: drain.reason })
        } else if without("full")
            && let Some(changes) = waiting()
        {
            changes
        } else {
            return answer_of(producer.add(batch));
        };
        self.set_unnoticed(key, open);
        let answer = answer_of(producer.add(batch));
        self.set_unnoticed(key, close);
        answer
    }

    /// Opens a topic before a step that finds something to take: without `29` and `slots` a transfer, without `swept` a sweep and without
    /// `published` a publish of a paused topic, and without `drained` a transfer of one that drains; without `held` and `quota` a group for a
    /// transfer; without `passed` pauses one whose limits are reached while a tick is due; and without `turn` closes the group whose job has
    /// been due the longest. Returns what ends that again.
    pub(super) fn open_for(self: &Arc<Self>, key: &TopicKey, kind: RequestKind) -> Option<TopicChange> {
        if !is_any_away() {
            return None;
        }
        let checker = self.checker_of(key);
        let checker = lock(&checker);
        let (state, clock) = (checker.state(), Timestamp::floor_micros(self.clock.micros()));
        let waits = |place, age| {
            let is_over = |at: Timestamp| at.after(age) <= clock;
            checker.before.jobs.values().any(|job| job.state == place && job.at.is_some_and(is_over))
        };
        if kind == RequestKind::Transfer && without("passed") {
            let closes = checker.holds_a_tick_up(self.clock.micros());
            drop(checker);
            let open = TopicChange::Pause { group: None, reason: "a limit".into(), until: None };
            return closes.then(|| self.set_unnoticed(key, open)).map(|()| TopicChange::Resume { group: None });
        }
        // A full topic claims no job, whatever else it sees.
        if kind == RequestKind::Transfer && !without("slots") && checker.is_full() {
            return None;
        }
        let paused = || {
            let pause = state.pause.clone()?;
            let close = TopicChange::Pause { group: None, reason: pause.reason, until: pause.until.map(Due::At) };
            Some((TopicChange::Resume { group: None }, close))
        };
        let (open, close) = match kind {
            RequestKind::Transfer if without("29") && waits(State::Delayed, Duration::ZERO) => paused()?,
            RequestKind::Transfer if without("drained") && waits(State::Delayed, Duration::ZERO) => {
                (TopicChange::Undrain, TopicChange::Drain { reason: state.drain.clone()?.reason })
            }
            RequestKind::Transfer if without("slots") && waits(State::Delayed, Duration::ZERO) => {
                lifted(state, LimitKind::ClusterConcurrency)?
            }
            RequestKind::Transfer
                if without("rate")
                    && checker.is_spent(self.clock.micros())
                    && waits(State::Delayed, Duration::ZERO) =>
            {
                lifted(state, LimitKind::Rate)?
            }
            RequestKind::Transfer if without("quota") && checker.has_spent_group(self.clock.micros()) => {
                lifted(state, LimitKind::GroupRate)?
            }
            RequestKind::Transfer if without("held") => {
                let (name, until) = checker.held_group(clock)?;
                let (group, until) = (Some(name), Some(Due::At(until)));
                let close = TopicChange::Pause { group: group.clone(), reason: String::new(), until };
                (TopicChange::Resume { group }, close)
            }
            RequestKind::Transfer if without("turn") => {
                let group = Some(checker.first_group(clock)?);
                let open = TopicChange::Resume { group: group.clone() };
                (TopicChange::Pause { group, reason: String::new(), until: None }, open)
            }
            RequestKind::Sweep if without("swept") && waits(State::Unacked, UNACKED_AGE) => paused()?,
            RequestKind::Publish
                if without("published") && checker.before.broadcasts.values().any(|(due, _)| *due <= clock) =>
            {
                paused()?
            }
            _ => return None,
        };
        drop(checker);
        self.set_unnoticed(key, open);
        Some(close)
    }

    /// Changes the state of a topic without the checker.
    pub(super) fn set_unnoticed(self: &Arc<Self>, key: &TopicKey, change: TopicChange) {
        let producer = self.producer(key, &ProducerId::new("away"));
        drop(answer_of(producer.set(self.next_number(), SetTopic { by: "nobody".into(), change })));
    }
}
