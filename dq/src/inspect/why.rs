//! Finds out why a job has not run.

use std::fmt;

use serde::Serialize;

use super::groups::GroupSummary;
use super::history::{HistoryEntry, end_of};
use super::job::JobSummary;
use super::reason::NotRunReason;
use super::topic::{DueByPriority, NodeSummary, TopicSummary};
use crate::job::{JobId, Priority, State};
use crate::store::{DueCount, GroupSeen, Pause};
use crate::time::Timestamp;

/// Why a job has not run. It displays as one line for each reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Why {
    /// The job; `None` if there is none.
    pub job: Option<JobSummary>,
    /// The reasons, the decisive one first. Each of them alone keeps the job from running.
    pub reasons: Vec<NotRunReason>,
    /// What happened to it so far, oldest first; empty where the topic keeps no histories. It may be there although the job is gone.
    pub history: Vec<HistoryEntry>,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, reason) in self.reasons.iter().enumerate() {
            write!(f, "{}{reason}", if n == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// Why there is no such job, as far as its history and its topic tell.
pub(super) fn missing(
    topic: &TopicSummary,
    history: &[HistoryEntry],
    taken: Option<Timestamp>,
    follow_ups: Vec<NotRunReason>,
) -> Vec<NotRunReason> {
    let gone = end_of(history).map_or(NotRunReason::Unknown, |(at, how, by)| NotRunReason::Gone { at, how, by });
    let full = topic.state.waiting().filter(|_| topic.at_capacity());
    let taken = taken.map(|until| NotRunReason::IdTaken { until });
    std::iter::once(gone)
        .chain(follow_ups)
        .chain(taken)
        .chain(full.map(|limit| NotRunReason::TopicFull { waiting: topic.delayed, limit }))
        .collect()
}

/// The reasons, from what the store has. `earlier` says how many jobs were due before this one, and `grouped` why its group does not let it
/// run.
pub(super) fn reasons(
    topic: &TopicSummary,
    job: &JobSummary,
    earlier: DueCount,
    grouped: Vec<NotRunReason>,
) -> Vec<NotRunReason> {
    let at = job.at.unwrap_or_default();
    match job.state {
        State::Delayed => waits(topic, job, at, earlier, grouped),
        State::Running => std::iter::once(runs(topic, job)).chain(crashed(job)).collect(),
        State::Unacked => vec![NotRunReason::Unacked { since: at }],
        State::Dead => {
            let (attempts, cause, error) = (job.attempts, job.cause, job.error.clone());
            vec![NotRunReason::Dead { since: at, attempts, cause, error }]
        }
        State::Done => vec![NotRunReason::Done { until: at }],
    }
}

fn waits(
    topic: &TopicSummary,
    job: &JobSummary,
    due: Timestamp,
    earlier: DueCount,
    grouped: Vec<NotRunReason>,
) -> Vec<NotRunReason> {
    let now = topic.store_time;
    let mut reasons = Vec::new();
    if now < due && job.attempts > 0 {
        let (attempts, cause, error) = (job.attempts, job.cause, job.error.clone());
        reasons.push(NotRunReason::RetryWaits { due, attempts, cause, error });
    } else if now < due {
        reasons.push(NotRunReason::NotDueYet { due, now });
    }
    if let Some(pause) = &topic.state.pause {
        let (because, by) = (pause.reason.clone(), pause.by.clone());
        reasons.push(NotRunReason::Paused { because, by, since: pause.since, until: pause.until });
    }
    if let Some(drain) = topic.state.drain.as_ref().filter(|drain| drain.since < due) {
        let (because, by) = (drain.reason.clone(), drain.by.clone());
        reasons.push(NotRunReason::Draining { because, by, since: drain.since });
    }
    if !topic.has_listener() {
        let last = topic.watchers.iter().chain(&topic.nodes).max_by_key(|node| node.until);
        reasons.push(NotRunReason::NoListener {
            last: last.map(|seen| seen.node.clone()),
            until: last.map(|seen| seen.until),
        });
    }
    if let Some(limit) = topic.slot_limit_reached.filter(|limit| due <= now && topic.running >= *limit) {
        reasons.push(NotRunReason::NoSlot { running: topic.running, limit });
    }
    reasons.extend(grouped);
    if let Some(at) = job.expires_at.filter(|at| *at < now) {
        reasons.push(NotRunReason::Expired { at });
    }
    let may_run = reasons.is_empty();
    reasons.extend(topic.rate_opens_at.filter(|_| due <= now).map(|opens| NotRunReason::RateSpent { opens, now }));
    if may_run {
        let DueByPriority { high, normal, low } = topic.due;
        let (higher, lower) = match job.priority {
            Priority::High => (0, normal + low),
            Priority::Normal => (high, low),
            Priority::Low => (high + normal, 0),
        };
        let priority = job.priority;
        reasons.extend((due <= now && higher > 0).then_some(NotRunReason::Overtaken { priority, higher }));
        // Lower jobs that have been due for longer go first only if that is longer by the ageing.
        let jobs = earlier.jobs.saturating_sub(lower);
        let is_exact = earlier.is_exact && lower == 0;
        reasons.extend((jobs > 0).then_some(NotRunReason::Behind { earlier: jobs, is_exact }));
        let busy: Vec<NodeSummary> = topic.nodes.iter().filter(|node| node.jobs > 0).cloned().collect();
        reasons.extend((!busy.is_empty()).then_some(NotRunReason::Busy { nodes: busy }));
    }
    reasons.extend(crashed(job).filter(|_| due <= now));
    if reasons.is_empty() {
        reasons.push(NotRunReason::Next { due });
    }
    reasons
}

/// Why a job of a group that is due does not run yet, as far as its group tells.
pub(super) fn of_group(seen: GroupSeen, id: &JobId, now: Timestamp) -> Vec<NotRunReason> {
    let is_full = seen.is_full;
    let GroupSummary { group, seats, stopped_by, pause, rate_opens_at, .. } = GroupSummary::new(seen);
    let paused = pause.map(|Pause { reason: because, until, by, since }| NotRunReason::GroupPaused {
        group: group.clone(),
        because,
        by,
        since,
        until,
    });
    let spent = rate_opens_at.filter(|_| is_full).map(|opens| NotRunReason::GroupRateSpent {
        group: group.clone(),
        opens,
        now,
    });
    let reasons: Vec<_> = paused.into_iter().chain(spent).collect();
    match stopped_by {
        // A pause and a spent rate make a group full too, so its seats say nothing then.
        _ if !reasons.is_empty() => reasons,
        _ if !is_full || seats.iter().any(|seat| seat.id == *id) => Vec::new(),
        Some(by) => vec![NotRunReason::GroupStopped { group, by }],
        None => vec![NotRunReason::GroupFull { group, seats }],
    }
}

fn crashed(job: &JobSummary) -> Option<NotRunReason> {
    (job.crashes > 0).then_some(NotRunReason::Crashed { crashes: job.crashes })
}

fn runs(topic: &TopicSummary, job: &JobSummary) -> NotRunReason {
    let holder = job.node.as_ref().and_then(|node| topic.nodes.iter().find(|seen| seen.node == *node));
    match holder {
        Some(holder) if holder.until <= topic.store_time && !topic.leases_hidden => {
            NotRunReason::LeaseRanOut { node: holder.node.clone(), at: holder.until }
        }
        _ => NotRunReason::Running {
            node: job.node.clone(),
            lease: holder.filter(|_| !topic.leases_hidden).map(|holder| holder.until),
        },
    }
}
