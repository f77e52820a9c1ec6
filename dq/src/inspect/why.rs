//! Finds out why a job has not run.

use std::fmt;

use serde::Serialize;

use super::groups::InspectedGroup;
use super::history::{PastMove, end_of};
use super::job::InspectedJob;
use super::reason::Reason;
use super::topic::{DueByPriority, InspectedNode, InspectedTopic};
use crate::job::{JobId, Priority, State};
use crate::store::{DueCount, GroupSeen, Pause};
use crate::time::Timestamp;

/// Why a job has not run. It displays as one line for each reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Why {
    /// The job; `None` if there is none.
    pub job: Option<InspectedJob>,
    /// The reasons, the decisive one first. Each of them alone keeps the job from running.
    pub reasons: Vec<Reason>,
    /// What happened to it so far, oldest first; empty where the topic keeps no histories. It may be there although the job is gone.
    pub history: Vec<PastMove>,
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
    topic: &InspectedTopic,
    history: &[PastMove],
    taken: Option<Timestamp>,
    follow_ups: Vec<Reason>,
) -> Vec<Reason> {
    let gone = end_of(history).map_or(Reason::Unknown, |(at, how, by)| Reason::Gone { at, how, by });
    let full = topic.state.waiting().filter(|_| topic.is_full());
    let taken = taken.map(|until| Reason::IdTaken { until });
    std::iter::once(gone)
        .chain(follow_ups)
        .chain(taken)
        .chain(full.map(|limit| Reason::TopicFull { waiting: topic.delayed, limit }))
        .collect()
}

/// The reasons, from what the store has. `earlier` says how many jobs were due before this one, and `grouped` why its group does not let it
/// run.
pub(super) fn reasons(
    topic: &InspectedTopic,
    job: &InspectedJob,
    earlier: DueCount,
    grouped: Option<Reason>,
) -> Vec<Reason> {
    let at = job.at.unwrap_or_default();
    match job.state {
        State::Delayed => waits(topic, job, at, earlier, grouped),
        State::Running => std::iter::once(runs(topic, job)).chain(crashed(job)).collect(),
        State::Unacked => vec![Reason::Unacked { since: at }],
        State::Dead => {
            let (attempts, cause, error) = (job.attempts, job.cause, job.error.clone());
            vec![Reason::Dead { since: at, attempts, cause, error }]
        }
        State::Done => vec![Reason::Done { until: at }],
    }
}

fn waits(
    topic: &InspectedTopic,
    job: &InspectedJob,
    due: Timestamp,
    earlier: DueCount,
    grouped: Option<Reason>,
) -> Vec<Reason> {
    let now = topic.clock;
    let mut reasons = Vec::new();
    if now < due && job.attempts > 0 {
        let (attempts, cause, error) = (job.attempts, job.cause, job.error.clone());
        reasons.push(Reason::RetryWaits { due, attempts, cause, error });
    } else if now < due {
        reasons.push(Reason::NotDueYet { due, now });
    }
    if let Some(pause) = &topic.state.pause {
        let (because, by) = (pause.reason.clone(), pause.by.clone());
        reasons.push(Reason::Paused { because, by, since: pause.since, until: pause.until });
    }
    if let Some(drain) = topic.state.drain.as_ref().filter(|drain| drain.since < due) {
        let (because, by) = (drain.reason.clone(), drain.by.clone());
        reasons.push(Reason::Draining { because, by, since: drain.since });
    }
    if !topic.has_listener() {
        let last = topic.watchers.iter().chain(&topic.nodes).max_by_key(|node| node.until);
        reasons
            .push(Reason::NoListener { last: last.map(|seen| seen.node.clone()), until: last.map(|seen| seen.until) });
    }
    if let Some(limit) = topic.shut.filter(|limit| due <= now && topic.running >= *limit) {
        reasons.push(Reason::NoSlot { running: topic.running, limit });
    }
    reasons.extend(grouped);
    if let Some(at) = job.expires_at.filter(|at| *at < now) {
        reasons.push(Reason::Expired { at });
    }
    let may_run = reasons.is_empty();
    reasons.extend(topic.opens.filter(|_| due <= now && may_run).map(|opens| Reason::RateSpent { opens, now }));
    if may_run {
        let DueByPriority { high, normal, low } = topic.due;
        let (higher, lower) = match job.priority {
            Priority::High => (0, normal + low),
            Priority::Normal => (high, low),
            Priority::Low => (high + normal, 0),
        };
        let priority = job.priority;
        reasons.extend((due <= now && higher > 0).then_some(Reason::Overtaken { priority, higher }));
        // Lower jobs that have been due for longer go first only if that is longer by the ageing.
        let jobs = earlier.jobs.saturating_sub(lower);
        let is_exact = earlier.is_exact && lower == 0;
        reasons.extend((jobs > 0).then_some(Reason::Behind { earlier: jobs, is_exact }));
        let busy: Vec<InspectedNode> = topic.nodes.iter().filter(|node| node.jobs > 0).cloned().collect();
        reasons.extend((!busy.is_empty()).then_some(Reason::Busy { nodes: busy }));
    }
    reasons.extend(crashed(job).filter(|_| due <= now));
    if reasons.is_empty() {
        reasons.push(Reason::Next { due });
    }
    reasons
}

/// Why a job of a group that is due does not run yet, as far as its group says it.
pub(super) fn of_group(seen: GroupSeen, id: &JobId, now: Timestamp) -> Option<Reason> {
    let is_full = seen.is_full;
    let InspectedGroup { group, seats, stopped_by, pause, opens, .. } = InspectedGroup::new(seen);
    if let Some(Pause { reason: because, until, by, since }) = pause {
        return Some(Reason::GroupPaused { group, because, by, since, until });
    }
    if let Some(opens) = opens.filter(|_| is_full) {
        return Some(Reason::GroupRateSpent { group, opens, now });
    }
    match stopped_by {
        _ if !is_full || seats.iter().any(|seat| seat.id == *id) => None,
        Some(by) => Some(Reason::GroupStopped { group, by }),
        None => Some(Reason::GroupFull { group, seats }),
    }
}

fn crashed(job: &InspectedJob) -> Option<Reason> {
    (job.crashes > 0).then_some(Reason::Crashed { crashes: job.crashes })
}

fn runs(topic: &InspectedTopic, job: &InspectedJob) -> Reason {
    let holder = job.node.as_ref().and_then(|node| topic.nodes.iter().find(|seen| seen.node == *node));
    match holder {
        Some(holder) if holder.until <= topic.clock && !topic.hides_leases => {
            Reason::LeaseRanOut { node: holder.node.clone(), at: holder.until }
        }
        _ => Reason::Running {
            node: job.node.clone(),
            lease: holder.filter(|_| !topic.hides_leases).map(|holder| holder.until),
        },
    }
}
