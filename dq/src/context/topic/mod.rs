//! One topic on this node: the only owner of what the node holds of it, and the only user of its link to the store.
//!
//! A topic is one task. Its loop ([`event_loop`]) waits for answers, ends of runs, signals, the stop order and the next
//! deadline, and then lets every subsystem do what is due. A subsystem is a method `fn name(&mut self, now) ->
//! Option<Duration>` in the file of its name: it sends requests, starts handlers, and returns when it wants to be asked again
//! if nothing happens before. So no step is ever interrupted, and there is no lock.
//!
//! | state, which knows nothing of the topic | subsystems |
//! |---|---|
//! | `held`, `stage`: jobs that are not confirmed gone | `transfer`, `sweep`: claim |
//! | `runs`, `run_jobs`, `begin`, `deadlines`: handlers that execute | `permits`, `isolation`, `listener`, `batch`: start handlers and decide their jobs' outcomes |
//! | `run_task`, `batch_task`, `run_report`, `runners`: what runs on the user's runtime | `starvation`, `pause`: give back what does not begin; `retry_delay`: ask the listener |
//! | `pipeline`: requests in flight; `budget`: how much one asks for | `ack`, `retry`: send outcomes, spend attempts |
//! | `smart_sleep`, `prefetch`, `early`: when to claim, and how many; when to start what is not yet due | `reconnect`: a failed link; `shutdown`: the phases of a stop |
//! | `together`: what the log says once for many jobs | `report`: what the log says |
//! | the state in `crash/` | `crash/`: lease, reconcile, reclaim, rollback |
//!
//! Outside of this folder only [`Parts`], [`Topic`] and [`stats`] are visible: the supervisor makes a topic from its parts and
//! runs it, and `health()` reads its counters. A subsystem may use all of the topic. The state types keep their fields to
//! themselves, so that each invariant has one file.
//!
//! Invariant: a job in [`Held`] is every job not yet confirmed gone, unanswered outcomes included. Whatever fails, the topic
//! goes on from what it holds: a failed link is replaced and reconciled, a lost lease cancels handlers, and an outcome is sent
//! until the store has judged it.

mod ack;
mod batch;
mod batch_task;
mod begin;
pub(super) mod budget;
mod crash;
mod deadlines;
mod early;
mod event_loop;
mod held;
mod isolation;
mod lead;
mod listener;
mod meter;
mod pause;
mod permits;
mod pipeline;
mod prefetch;
mod punctuality;
mod reconnect;
mod report;
mod retry;
mod retry_delay;
mod run_jobs;
mod run_report;
mod run_task;
mod runners;
mod runs;
pub(super) mod shutdown;
mod smart_sleep;
mod stage;
mod starvation;
pub(super) mod stats;
mod sweep;
mod ticks;
mod together;
mod transfer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::node_permits::{Permits, Share};
use super::subscription::Subscription;
use crate::config::{NodeSettings, TopicSettings};
use crate::environment::{Changes, Environment};
use crate::job::{JobId, NodeId, TopicKey};
use crate::listener::erased::{ErasedBatches, ErasedListener};
use crate::schedule::Periodic;
use crate::store::{Interest, Outage, Store};
use budget::{Budgets, WaitingBytes, WaitingShare};
use crash::{Audits, Lease, Reclaims, Reconciliation};
use held::Held;
use isolation::Isolations;
use pause::Pausing;
use pipeline::{Pipeline, RequestKind};
use prefetch::Prefetch;
use retry::Next;
use run_report::{RunEvent, Tasks};
use run_task::PreparedRun;
use runners::Runners;
use runs::Runs;
use shutdown::{StopOrder, Stopping};
use smart_sleep::SmartSleep;
use stage::{HeldJob, Mode, Stage};
use starvation::Starvation;
use stats::TopicStats;
use sweep::SWEEP_PERIOD;
use together::Reports;

/// What a topic is made from. The supervisor keeps it, so that the topic can start again after a panic of its task.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) key: TopicKey,
    pub(super) listener: Arc<dyn ErasedListener>,
    pub(super) topic: TopicSettings,
    pub(super) node: NodeSettings,
    pub(super) environment: Environment,
    pub(super) stats: Arc<TopicStats>,
    pub(super) permits: Share,
    /// Shared by all topics of the node.
    pub(super) waiting: WaitingBytes,
    /// The outages of the node.
    pub(super) outage: Outage,
    /// The schedules that the code defines.
    pub(super) schedules: Arc<[Periodic]>,
}

/// The task of a topic, and all its state.
pub(super) struct Topic {
    parts: Parts,
    pipeline: Pipeline,
    held: Held,
    runs: Runs,
    isolations: Isolations,
    lease: Lease,
    sleep: SmartSleep,
    prefetch: Prefetch,
    budgets: Budgets,
    /// The listener, if it takes batches.
    batches: Option<Arc<dyn ErasedBatches>>,
    waiting: WaitingShare,
    reconciliation: Reconciliation,
    reclaims: Reclaims,
    audits: Audits,
    stopping: Stopping,
    /// Outcomes that the store could not settle, and when each is sent again.
    unsettled: VecDeque<(Duration, JobId)>,
    /// The runtime of the handlers has shut down: nothing can start any more.
    handlers_gone: bool,
    /// The kind of request that the store refuses until an operator fixes the cause.
    stopped_by: Option<RequestKind>,
    /// When to sweep next.
    sweep_at: Duration,
    runners: Runners,
    /// Runs that the runners have not got yet.
    starting: Vec<PreparedRun>,
    /// Tasks that ask `retry_delay` beside the runners, and that the user's runtime has not got yet.
    asking: Vec<BoxFuture<'static, ()>>,
    /// When the log last named a schedule that no code of this program defines.
    strangers: BTreeMap<String, Duration>,
    /// Shared by all jobs without headers, which are most.
    no_headers: Arc<[(String, String)]>,
    /// What the tasks of all runs share.
    tasks: Arc<Tasks>,
    /// What these tasks report.
    events: mpsc::UnboundedReceiver<RunEvent>,
    starvation: Starvation,
    pausing: Pausing,
    reports: Reports,
    permits: Permits,
    signals: Subscription,
    /// Changes when a job may start that could not because of another one.
    process_changes: Changes,
}

impl Topic {
    pub(super) fn new(parts: Parts, store: Arc<dyn Store>, node: NodeId, stop: watch::Receiver<StopOrder>) -> Self {
        let (key, environment, call_timeout) = (&parts.key, &parts.environment, parts.node.call_timeout);
        let interest = Interest { node: Some(node.clone()), broadcasts: false, moves: false };
        let party = parts.outage.party();
        let signals = Subscription::new(store.clone(), key.clone(), interest, environment.clone(), call_timeout, party);
        let pipeline = {
            let counts = parts.topic.statistics;
            Pipeline::new(store, key.clone(), node, environment.clone(), &parts.node, counts)
        };
        let (now, process_changes) = (parts.environment.now(), parts.environment.process().changes());
        parts.stats.set_starved(false); // of the task before this one, if that panicked
        let (report, events) = mpsc::unbounded_channel();
        let lease = Lease::new(parts.node.lease);
        let batches = parts.listener.clone().batches();
        let tasks = Tasks {
            listener: parts.listener.clone(),
            environment: environment.clone(),
            lease: lease.end(),
            events: report,
        };
        Self {
            permits: Permits::new(parts.permits.clone()),
            held: Held::new(parts.environment.random()),
            runs: Runs::default(),
            isolations: Isolations::default(),
            lease,
            sleep: SmartSleep::new(now),
            prefetch: Prefetch::new(now),
            budgets: Budgets::for_batches_of(if batches.is_some() { parts.topic.batch } else { 1 }),
            batches,
            waiting: WaitingShare::new(parts.waiting.clone()),
            reconciliation: Reconciliation::default(),
            reclaims: Reclaims::default(),
            audits: Audits::default(),
            stopping: Stopping::new(stop),
            unsettled: VecDeque::new(),
            handlers_gone: false,
            stopped_by: None,
            sweep_at: now + parts.environment.random_below(SWEEP_PERIOD),
            runners: Runners::new(parts.environment.clone()),
            starting: Vec::new(),
            asking: Vec::new(),
            strangers: BTreeMap::new(),
            no_headers: Arc::from([]),
            parts,
            pipeline,
            tasks: Arc::new(tasks),
            events,
            starvation: Starvation::default(),
            pausing: Pausing::default(),
            reports: Reports::default(),
            signals,
            process_changes,
        }
    }
}

/// The earliest of these times.
fn earliest(times: impl IntoIterator<Item = Option<Duration>>) -> Option<Duration> {
    times.into_iter().flatten().min()
}
