//! What the checker records: of a step, of runs, of nodes, and of what the store must have.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::gate::Gate;
use super::groups::Groups;
use super::takeovers::Takeovers;
use dq::config::NodeSettings;
use dq::job::{Fence, Isolation, JobId, KeptState, NodeId, ProducerId, Token};
use dq::store::step::{Change, Claim, NoteVerdict, Outcome, Verdict};
use dq::store::{
    AddOutcome, ChangeOutcome, Command, CommandKind, CommandOutcome, JobChange, NewJob, OutboxPosition, SetTopic,
    TopicSet,
};
use dq::testing::seam::View;
use dq::time::Timestamp;

/// What a step did.
#[derive(Debug, Clone)]
pub(in crate::simulation) enum Did {
    /// Nothing that moves jobs.
    Nothing,
    Claim {
        node: NodeId,
        claims: Vec<Claim>,
        aged: bool,
    },
    Settle {
        node: NodeId,
        outcomes: Vec<(Outcome, Verdict)>,
    },
    Reclaim {
        from: NodeId,
        /// The lease end that the request named.
        seen: Timestamp,
        /// The age of the link when the request was sent, in µs.
        watched: u64,
        charged: bool,
    },
    Add {
        jobs: Vec<(NewJob, AddOutcome)>,
    },
    /// `isolate` if there is an isolation, otherwise `exhaust`.
    Note {
        node: NodeId,
        runs: Vec<(JobId, Token, NoteVerdict)>,
        isolation: Option<Isolation>,
        /// The state with which a job is exhausted. It may be one whose checkpoint has had no answer.
        state: Option<KeptState>,
    },
    /// A run has saved its state, under this number.
    Keep {
        id: JobId,
        token: Token,
        number: u64,
        state: Option<KeptState>,
    },
    Command {
        items: Vec<(Command, CommandOutcome)>,
    },
    Change {
        items: Vec<(JobChange, ChangeOutcome)>,
    },
    Set {
        set: SetTopic,
        answer: Box<TopicSet>,
    },
    /// An add was refused, because the topic drains.
    RefuseAdd,
    Publish {
        /// How long after its due time a broadcast without an expiry of its own is dropped.
        expires_after: Duration,
    },
}

/// How a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulation) enum End {
    Acked,
    Rejoined,
    Parked,
    Failed,
    FinalOver,
    Dropped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulation) enum HandlerKind {
    OnDue,
    Final,
    Swept,
}

/// A claim that the store executed.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) node: NodeId,
    pub(super) token: Token,
    pub(super) version: u64,
    /// The group of its job.
    pub(super) group: Option<String>,
    /// When it was claimed, in µs on the store's clock.
    pub(super) claimed_at: u64,
    pub(super) aged: bool,
    pub(super) started: Vec<HandlerKind>,
    /// The handlers that were polled.
    pub(super) polled: Vec<HandlerKind>,
    /// Its node gave the job back.
    pub(super) given_back: bool,
    /// When its last handler started.
    pub(super) since: Option<u64>,
    pub(super) ended: Vec<End>,
    /// What its handler decided within its timeout.
    pub(super) decided: Option<Change>,
    /// The job had expired when it was claimed.
    pub(super) expired: bool,
    /// The row was gone once, perhaps in a lost part of the store's history, so the node need not hold the job any more.
    pub(super) over: bool,
    /// It was acked; under `ack = "on_claim"` before its handler ran.
    pub(super) acked: bool,
    /// Its node asked to let others start beside it, and the store answered that an unfenced end came before.
    pub(super) made_room: bool,
}

/// What the checker expects of the store. It falls back with the store.
#[derive(Debug, Clone, Default)]
pub(in crate::simulation) struct Expected {
    pub(super) effected: BTreeSet<u64>,
    pub(super) ended: BTreeMap<u64, &'static str>,
    /// The ends that callers were promised for a running version, some of them for one run only.
    pub(super) promised: BTreeMap<u64, Vec<(CommandKind, Option<Fence>)>>,
    /// The exact time at which a version that was added must be due, in µs on the store's clock.
    pub(super) due: BTreeMap<u64, u64>,
    /// When a version became DELAYED, in ms on the store's clock.
    pub(super) put: BTreeMap<u64, u64>,
    pub(super) rows: BTreeMap<(NodeId, JobId), u64>,
    pub(super) finals: BTreeSet<u64>,
    pub(super) parked: BTreeSet<u64>,
    pub(super) executed: BTreeSet<(ProducerId, OutboxPosition)>,
    /// For each version that was charged a crash: how its run had run.
    pub(super) charged: BTreeMap<u64, Crashed>,
    /// For each version that was acked on claim: the run that was acked.
    pub(super) claimed: BTreeMap<u64, u64>,
    pub(super) broadcasts: Broadcasts,
    pub(super) gate: Gate,
    pub(super) groups: Groups,
    /// How many blanks stand behind the payload of a version that was updated.
    pub(super) marks: BTreeMap<u64, usize>,
    /// Until when ids are taken.
    pub(super) taken: BTreeMap<JobId, Timestamp>,
    /// The state that a run of a version has left last.
    pub(super) states: BTreeMap<u64, Option<KeptState>>,
    /// The highest number of a note of each run.
    pub(super) notes: BTreeMap<(JobId, Token), u64>,
    /// The results of the step that is being checked.
    pub(super) results: BTreeMap<u64, KeptState>,
}

/// How a run that was charged a crash had run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Crashed {
    pub(super) isolated: bool,
    /// No other handler and no broadcast listener of any topic ran in its process.
    pub(super) alone: bool,
}

impl Crashed {
    /// Returns whether the crash may exhaust its job.
    pub(super) const fn convicts(self) -> bool {
        self.isolated && self.alone
    }
}

/// What the checker knows of a node besides what the store shows.
#[derive(Debug, Clone, Default)]
pub(in crate::simulation) struct NodeRecord {
    /// When the node started.
    pub(in crate::simulation) born_at: u64,
    /// When the connection between node and store last failed.
    pub(in crate::simulation) disturbed_at: u64,
    /// Since when the node has had handlers but no lease.
    pub(super) leaseless: Option<u64>,
    /// Since when the node has been connected and reconciled.
    pub(in crate::simulation) settled: Option<u64>,
    pub(in crate::simulation) dead: bool,
    pub(in crate::simulation) died_at: u64,
    /// How often the task of a topic has panicked on it.
    pub(in crate::simulation) panics: u32,
    /// The handlers that run: run number, job and start time. Those that ran when the node died stay.
    pub(in crate::simulation) handlers: BTreeMap<u64, (JobId, u64)>,
    /// The broadcast listeners that run, and since when: name and version of the broadcast. As handlers, they stay.
    pub(in crate::simulation) listening: BTreeMap<(&'static str, u64), u64>,
}

impl NodeRecord {
    /// Returns whether a handler other than that of `run` ran when the node died, or runs. A handler counts for two
    /// timeouts.
    pub(super) fn has_handler_beside(&self, run: u64, timeout: u64) -> bool {
        self.handlers.iter().any(|(other, (_, started))| *other != run && self.counts(*started, timeout))
    }

    /// Returns whether a broadcast listener ran when the node died, or runs. As long as handlers, it counts.
    pub(super) fn has_listener(&self, timeout: u64) -> bool {
        self.listening.values().any(|started| self.counts(*started, timeout))
    }

    const fn counts(&self, started: u64, timeout: u64) -> bool {
        !self.dead || self.died_at < started.saturating_add(timeout.saturating_mul(2))
    }
}

/// Everything the checker knows of one topic.
#[derive(Debug, Default)]
pub(in crate::simulation) struct Checker {
    pub(in crate::simulation) expected: Expected,
    pub(in crate::simulation) before: View,
    pub(super) runs: BTreeMap<u64, Run>,
    pub(super) delivered: BTreeMap<(NodeId, JobId, Fence), u64>,
    pub(super) fences: BTreeMap<JobId, Fence>,
    pub(super) not_added: BTreeSet<u64>,
    /// The versions that have left their programs.
    pub(super) sent: BTreeSet<u64>,
    pub(in crate::simulation) node_records: BTreeMap<NodeId, NodeRecord>,
    /// Runs whose handlers block their threads.
    pub(super) blocking: BTreeSet<u64>,
    /// Links are slow, and nothing fails: every job runs once, and soon.
    pub(in crate::simulation) is_slow: bool,
    /// Nothing but handlers of killers crashes a node.
    pub(in crate::simulation) only_jobs_crash: bool,
    /// Something of another topic ran, when it died, in the process of the node whose jobs are being reclaimed.
    pub(in crate::simulation) ran_elsewhere: bool,
    /// Something of another topic runs in the process in which a handler is about to start.
    pub(in crate::simulation) runs_elsewhere: bool,
    /// This run has no faults.
    pub(in crate::simulation) is_calm: bool,
    pub(in crate::simulation) fell: bool,
    /// Runs that count as alone again, because the store fell back.
    pub(super) signs_back: BTreeSet<u64>,
    pub(in crate::simulation) jumped: bool,
    /// How long before they are due nodes claim jobs, in µs.
    pub(in crate::simulation) lookahead: u64,
    /// How many jobs of a group run at a time; 0: no job has a group.
    pub(in crate::simulation) group_limit: usize,
    /// How many more run while nothing else is due.
    pub(in crate::simulation) group_burst: usize,
    /// The nodes have the ageing of the own workload of dq.
    pub(in crate::simulation) has_ageing: bool,
    pub(in crate::simulation) found: Option<String>,
    /// What crashes each job has caused.
    pub(super) crash_records: BTreeMap<u64, CrashRecord>,
    pub(in crate::simulation) steps: u64,
    pub(in crate::simulation) handled: u64,
    /// Ticks of schedules that took effect.
    pub(in crate::simulation) ticks: u64,
    pub(in crate::simulation) timeout_micros: u64,
    pub(in crate::simulation) caps: Option<Caps>,
    /// Jobs are acked before their handlers start.
    pub(in crate::simulation) acks_on_claim: bool,
    /// The first run that called `on_due`, for each version.
    pub(super) isolated: BTreeMap<u64, u64>,
    pub(super) received: Received,
    /// Since when a listener has been connected, in ms on the store's clock; `None` while lateness of broadcasts is
    /// allowed.
    pub(in crate::simulation) broadcasts_since: Option<u64>,
    /// Since when a permit has been free, in ms on the store's clock; `None` while lateness is allowed.
    pub(in crate::simulation) punctual_since: Option<u64>,
    /// A fault allows lateness until then, in ms on the store's clock.
    pub(in crate::simulation) lateness_until: u64,
    pub(in crate::simulation) takeovers: Takeovers,
    /// The settings of the nodes.
    pub(in crate::simulation) node: NodeSettings,
    /// A permit was free after the last step.
    pub(in crate::simulation) permit_free: bool,
    /// What the next step adds, a full topic takes.
    pub(in crate::simulation) passes_limit: bool,
}

/// What a caller learns of its add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulation) enum AddResult {
    Added,
    Exists,
    NotAdded,
    Unknown,
}

/// What crashes a job has caused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CrashRecord {
    /// Those since the last settled outcome, charged or not.
    pub(super) caused: u32,
    /// Its `on_exhausted` has begun.
    pub(super) final_polled: bool,
}

/// The limits of a topic.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulation) struct Caps {
    pub(in crate::simulation) crashes: u32,
    /// Failed runs: one more than there are retries.
    pub(in crate::simulation) attempts: u16,
    /// Handlers at once on a node.
    pub(in crate::simulation) permits: usize,
    /// How long DEAD jobs are kept. There are never so many that `dead_max` counts.
    pub(in crate::simulation) dead_retention: Duration,
}

/// A version that has a broadcast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    /// The exact time before which it must not be published, in µs.
    pub(super) due: u64,
    /// It is a job, too.
    pub(super) both: bool,
    /// When it began to wait, in ms.
    pub(super) put: Option<u64>,
}

/// What falls back with the store.
#[derive(Debug, Clone, Default)]
pub(super) struct Broadcasts {
    pub(super) added: BTreeMap<u64, Added>,
    pub(super) over: BTreeMap<u64, &'static str>,
}

impl Broadcasts {
    pub(super) fn added(&mut self, version: u64, due: u64, both: bool) {
        self.added.insert(version, Added { due, both, put: None });
    }

    /// A broadcast that waits has another due time.
    pub(super) fn moved(&mut self, version: u64, due: u64, at: u64) {
        if let Some(added) = self.added.get_mut(&version) {
            (added.due, added.put) = (due, Some(at));
        }
    }

    /// Returns whether a version is a job, and whether it is a broadcast.
    pub(super) fn parts(&self, version: u64) -> (bool, bool) {
        self.added.get(&version).map_or((true, false), |added| (added.both, true))
    }

    pub(super) fn over(&self) -> usize {
        self.over.len()
    }
}

/// What does not fall back.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) published: BTreeMap<u64, u32>,
    pub(super) received: BTreeMap<(NodeId, &'static str, u64), u32>,
    /// The versions that the last step published.
    pub(super) fresh: Vec<u64>,
    /// Which listener must still receive which version, and since when, in µs of simulated time; only without faults.
    pub(super) awaited: BTreeMap<(NodeId, &'static str, u64), u64>,
}
