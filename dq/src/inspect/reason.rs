//! Why a job has not run, in plain English.

use std::fmt;

use humantime::format_duration;
use serde::Serialize;

use super::groups::GroupSeat;
use super::topic::NodeSummary;
use crate::job::{Cause, GroupName, JobId, NodeId, Priority, TopicName};
use crate::store::Transition;
use crate::time::Timestamp;

/// One reason why a job has not run, or has not run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub enum NotRunReason {
    /// The topic has no job with this id.
    Unknown,
    /// As many jobs of the topic wait as may, so adds of new ones are refused.
    TopicFull {
        /// How many wait.
        waiting: usize,
        /// How many may.
        limit: usize,
    },
    /// There is no job with this id any more; the history of its topic says what became of it.
    Gone {
        /// When it ended.
        at: Timestamp,
        /// How.
        #[cfg_attr(feature = "schema", schema(value_type = super::history::described::Ended))]
        how: Transition,
        /// Who asked for that, if anybody did.
        by: Option<String>,
    },
    /// The id stays taken for the `unique_for` of its add, so an add of it adds no job, unless it replaces.
    IdTaken {
        /// Until then.
        until: Timestamp,
    },
    /// Follow-ups of another topic have not arrived in this one, and the job may be one of them.
    FollowUpsWait {
        /// That topic.
        from: TopicName,
        /// Of how many outcomes.
        waiting: usize,
        /// When the first of them was written.
        since: Timestamp,
    },
    /// Its due time has not come.
    NotDueYet {
        /// When it is due.
        due: Timestamp,
        /// The store's clock.
        now: Timestamp,
    },
    /// It has failed, and waits for its next attempt.
    RetryWaits {
        /// When it is due.
        due: Timestamp,
        /// Failed runs so far.
        attempts: u16,
        /// Why the last one failed.
        cause: Option<Cause>,
        /// The last error.
        error: Option<String>,
    },
    /// The topic is paused: no node takes its jobs.
    Paused {
        /// Why.
        because: String,
        /// Who paused it.
        by: String,
        /// Since when.
        since: Timestamp,
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// The topic drains, and this job became due after the drain began.
    Draining {
        /// Why.
        because: String,
        /// Who drained it.
        by: String,
        /// Since when.
        since: Timestamp,
    },
    /// No node listens to the topic.
    NoListener {
        /// The node that listened last, if the store still knows it.
        last: Option<NodeId>,
        /// Until when that node was expected.
        until: Option<Timestamp>,
    },
    /// As many jobs of the topic run on all nodes as may.
    NoSlot {
        /// How many run.
        running: usize,
        /// How many may run.
        limit: usize,
    },
    /// The topic has spent its rate.
    RateSpent {
        /// When the rate lets the next job start.
        opens: Timestamp,
        /// The store's clock.
        now: Timestamp,
    },
    /// As many jobs of its group have a seat as may.
    GroupFull {
        /// The group.
        group: GroupName,
        /// The jobs that have a seat.
        seats: Vec<GroupSeat>,
    },
    /// Its group is paused: no node takes its jobs.
    GroupPaused {
        /// The group.
        group: GroupName,
        /// Why.
        because: String,
        /// Who paused it.
        by: String,
        /// Since when.
        since: Timestamp,
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// Its group has spent its rate.
    GroupRateSpent {
        /// The group.
        group: GroupName,
        /// When the rate lets the next job of the group start.
        opens: Timestamp,
        /// The store's clock.
        now: Timestamp,
    },
    /// Its group waits for a job that does not run by itself.
    GroupStopped {
        /// The group.
        group: GroupName,
        /// That job.
        by: JobId,
    },
    /// Jobs of a higher priority are due, and nodes take those first unless they became due later by the `priority_ageing` of the topic.
    Overtaken {
        /// The priority of this job.
        priority: Priority,
        /// How many due jobs have a higher one.
        higher: usize,
    },
    /// Other jobs have been due for longer, and nodes take those first.
    Behind {
        /// How many.
        earlier: usize,
        /// `false`: the number is an estimate.
        is_exact: bool,
    },
    /// Every node that listens is busy with other jobs. The store does not know how many permits a node has.
    Busy {
        /// The nodes and how many jobs of the topic each holds.
        nodes: Vec<NodeSummary>,
    },
    /// Processes died while they ran it. Once it was in `max_crashes` − 1 crashes, it is quarantined: it runs in a small group or
    /// alone, and may have to wait for that.
    Crashed {
        /// How often.
        crashes: u32,
    },
    /// It expired, and becomes DEAD as soon as a node looks at it.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// It is due, and nothing stands in its way: a node is about to take it.
    Next {
        /// When it was due.
        due: Timestamp,
    },
    /// A node runs it now.
    Running {
        /// The node, if the read found it.
        node: Option<NodeId>,
        /// When the lease of the node ends if it does not renew it.
        lease: Option<Timestamp>,
    },
    /// The lease of the node that held it has run out: another node takes the job over.
    LeaseRanOut {
        /// The node.
        node: NodeId,
        /// When its lease ended.
        at: Timestamp,
    },
    /// Its handler parked it: it waits for an ack or a requeue.
    Unacked {
        /// Since when.
        since: Timestamp,
    },
    /// No attempt is left.
    Dead {
        /// Since when.
        since: Timestamp,
        /// Failed runs.
        attempts: u16,
        /// Why.
        cause: Option<Cause>,
        /// The last error.
        error: Option<String>,
    },
    /// It has run.
    Done {
        /// When the store removes it.
        until: Timestamp,
    },
}

impl fmt::Display for NotRunReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(
                "the topic has no job with this id: it has never been added, or it has run or was deleted, and was not kept",
            ),
            Self::TopicFull { waiting, limit } => {
                write!(f, "{waiting} jobs of the topic wait, and {limit} may, so adds of new jobs are refused")
            }
            Self::Gone { at, how, by } => gone(f, *at, how, by.as_deref()),
            Self::IdTaken { until } => write!(f, "its id is taken until {until} (`unique_for`); only an add that replaces it is accepted"),
            Self::FollowUpsWait { from, waiting, since } => follow_ups(f, from, *waiting, *since),
            Self::NotDueYet { due, now } => {
                write!(f, "it is not due yet: it is due at {due}, in {}", format_duration(due.since(*now)))
            }
            Self::RetryWaits { due, attempts, cause, error } => {
                write!(f, "it has failed {}", times(*attempts))?;
                because(f, *cause, error.as_deref())?;
                write!(f, "; its next attempt is due at {due}")
            }
            Self::Paused { because, by, since, until } => {
                paused(f, "the topic has been paused", *since, *until, by, because)
            }
            Self::GroupPaused { group, because, by, since, until } => {
                paused(f, &format!("the group {group} has been paused"), *since, *until, by, because)
            }
            Self::Draining { because, by, since } => {
                write!(f, "the topic has been draining since {since}, by {by}, and this job became due later: {because}; resume it to end the drain")
            }
            Self::NoListener { last: None, .. } => f.write_str("no node listens to the topic; start one with a listener for it"),
            Self::NoListener { last: Some(node), until } => {
                write!(f, "no node listens to the topic; the last one was {node}")?;
                until.map_or(Ok(()), |until| write!(f, ", which did not come back by {until}"))
            }
            Self::NoSlot { running, limit } => {
                write!(f, "the topic runs {running} of {limit} jobs on all nodes together, so this one waits until one of them has ended; raise the limit to run more")
            }
            Self::RateSpent { opens, now } => spent(f, "topic", *opens, *now),
            Self::GroupRateSpent { group, opens, now } => spent(f, &format!("group {group}"), *opens, *now),
            Self::GroupFull { group, seats } => full(f, group, seats),
            Self::GroupStopped { group, by } => {
                write!(f, "the group {group} is stopped by job {by}, which does not run by itself: requeue it or delete it, or resume the group")
            }
            Self::Overtaken { priority, higher } => overtaken(f, *priority, *higher),
            Self::Behind { earlier, is_exact } => {
                let about = if *is_exact { "" } else { "about " };
                let (jobs, have) = if *earlier == 1 { ("job", "has") } else { ("jobs", "have") };
                write!(f, "{about}{earlier} other {jobs} {have} been due for longer and will run first")
            }
            Self::Busy { nodes } => busy(f, nodes),
            Self::Crashed { crashes } => {
                let died = if *crashes == 1 { "a process died".into() } else { format!("{crashes} processes died") };
                write!(f, "{died} while it ran; a job that was in too many crashes is quarantined, and waits until it can run alone; look for the fault in its handler")
            }
            Self::Expired { at } => write!(f, "it expired at {at}, and becomes DEAD as soon as a node looks at it"),
            Self::Next { due } => write!(f, "it has been due since {due}, and a node is about to take it"),
            Self::Running { node: None, .. } => f.write_str("a node runs it now"),
            Self::Running { node: Some(node), lease } => {
                write!(f, "{node} runs it now")?;
                lease.map_or(Ok(()), |lease| write!(f, "; its lease ends at {lease} unless it renews it"))
            }
            Self::LeaseRanOut { node, at } => {
                write!(f, "{node} held it, and its lease ended at {at}: another node that listens takes it over")
            }
            Self::Unacked { since } => {
                write!(f, "its handler parked it at {since}, and it waits for an ack; requeue it to run it again")
            }
            Self::Dead { since, attempts, cause, error } => dead(f, *since, *attempts, *cause, error.as_deref()),
            Self::Done { until } => write!(f, "it has run; the store keeps it until {until}"),
        }
    }
}

fn full(f: &mut fmt::Formatter<'_>, group: &GroupName, seats: &[GroupSeat]) -> fmt::Result {
    write!(f, "the group {group} has no free seat:")?;
    for (n, seat) in seats.iter().enumerate() {
        write!(f, "{} job {} {seat}", if n == 0 { "" } else { "," }, seat.id)?;
    }
    Ok(())
}

fn spent(f: &mut fmt::Formatter<'_>, what: &str, opens: Timestamp, now: Timestamp) -> fmt::Result {
    let wait = format_duration(opens.since(now));
    write!(f, "the {what} has spent its rate, which lets the next job start in {wait}")
}

fn paused(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    since: Timestamp,
    until: Option<Timestamp>,
    by: &str,
    because: &str,
) -> fmt::Result {
    write!(f, "{what} since {since} by {by}: {because}")?;
    match until {
        None => f.write_str("; resume it"),
        Some(until) => write!(f, "; the pause ends at {until}"),
    }
}

fn busy(f: &mut fmt::Formatter<'_>, nodes: &[NodeSummary]) -> fmt::Result {
    f.write_str("the nodes that listen are busy with other jobs:")?;
    for (n, NodeSummary { node, jobs, .. }) in nodes.iter().enumerate() {
        write!(f, "{} {node} holds {jobs}", if n == 0 { "" } else { "," })?;
    }
    Ok(())
}

fn overtaken(f: &mut fmt::Formatter<'_>, priority: Priority, higher: usize) -> fmt::Result {
    let (jobs, are) = if higher == 1 { ("job", "is") } else { ("jobs", "are") };
    write!(
        f,
        "its priority is {priority}, and {higher} {jobs} of a higher one {are} due and will run first, unless this one has been due \
         for longer by the `priority_ageing` of the topic"
    )
}

fn gone(f: &mut fmt::Formatter<'_>, at: Timestamp, how: &Transition, by: Option<&str>) -> fmt::Result {
    let how = match how {
        Transition::Deleted { .. } => "it was deleted",
        Transition::Done { .. } => "it is done",
        Transition::Published => "it was published",
        Transition::Removed => "the time for which it was kept is over, so it was removed",
        Transition::Dropped => "another program removed or mangled its record, so it was dropped",
        other => return write!(f, "it has been gone since {at}: {other}"),
    };
    write!(f, "{how}")?;
    by.map_or(Ok(()), |by| write!(f, " by {by}"))?;
    write!(f, " at {at}")
}

fn dead(
    f: &mut fmt::Formatter<'_>,
    since: Timestamp,
    attempts: u16,
    cause: Option<Cause>,
    error: Option<&str>,
) -> fmt::Result {
    write!(f, "it has been DEAD since {since}")?;
    let advice = match cause {
        Some(Cause::Crashes) => {
            f.write_str(": the process died each time while it ran (crashes)")?;
            "fix its handler, then requeue it"
        }
        Some(Cause::Expired) => {
            f.write_str(": it expired before it ran")?;
            "requeue it to run it anyway"
        }
        Some(Cause::Defect) => {
            f.write_str(": a defect of dq ended its run")?;
            because(f, None, error)?;
            "report that as a bug, and requeue the job once it is fixed"
        }
        _ => {
            write!(f, ", after {}", runs(attempts))?;
            because(f, cause, error)?;
            "requeue it to run it again"
        }
    };
    write!(f, "; {advice}")
}

fn times(n: u16) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

fn runs(n: u16) -> String {
    format!("{n} failed {}", if n == 1 { "run" } else { "runs" })
}

fn follow_ups(f: &mut fmt::Formatter<'_>, from: &TopicName, waiting: usize, since: Timestamp) -> fmt::Result {
    let runs = if waiting == 1 { "run" } else { "runs" };
    write!(f, "follow-ups of {waiting} {runs} of topic `{from}` have waited since {since}, and may add it")
}

fn because(f: &mut fmt::Formatter<'_>, cause: Option<Cause>, error: Option<&str>) -> fmt::Result {
    cause.map_or(Ok(()), |cause| write!(f, " ({cause})"))?;
    error.map_or(Ok(()), |error| write!(f, ": {error}"))
}
