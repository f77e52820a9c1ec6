//! One topic on this node: the only owner of what the node holds of it, and the only one that talks to the store about it.
//!
//! A topic is one task, whose loop is in `pump.rs`. It waits for answers of the store, for handlers that end, for signals and
//! for the next point in time at which something is due, and then lets every subsystem do what there is to do. A subsystem
//! is a method `fn subsystem(&mut self, now) -> Option<Duration>` in a file of its own beside this folder: it sends requests,
//! starts handlers, and says when it wants to be asked again if nothing happens before. So nothing is ever cut in the middle,
//! and there is no lock. In this folder is what a topic is made of; none of it knows the topic.
//!
//! Invariant: a job in [`Held`] is everything not yet confirmed gone, unanswered outcomes included. Whatever fails, the
//! topic goes on from what it holds: a failed link is replaced and reconciled (`crash/reconcile.rs`), a lost lease cancels
//! handlers (`crash/lease.rs`), and outcomes are sent until the store has judged each.

mod ack;
mod crash;
mod deadlines;
mod event_loop;
mod held;
mod lease;
mod listener;
mod pipeline;
mod prefetch;
mod reclaims;
mod reconciliation;
mod reconnect;
mod retry;
mod run_end;
mod runs;
mod shutdown;
mod smart_sleep;
pub(super) mod stats;
mod stopping;
mod sweep;
mod timeout;
mod transfer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use deadlines::earliest;
use held::{Held, HeldJob, Mode, Stage};
use runs::{Run, Runs, longest_count};

use lease::Lease;
use pipeline::{Pipeline, RequestKind};
use prefetch::Prefetch;
use reclaims::Reclaims;
use reconciliation::Reconciliation;
use run_end::RunEnd;
use smart_sleep::SmartSleep;
use stats::TopicStats;
use stopping::Stopping;

use super::node::shutdown::StopOrder;
use super::subscription::Subscription;
use crate::config::{NodeSettings, TopicSettings};
use crate::environment::Environment;
use crate::job::{JobId, NodeId, TopicKey};
use crate::listener::erased::ErasedListener;
use crate::store::{Interest, Store};

/// What a topic is made of, kept over a restart of its task.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) key: TopicKey,
    pub(super) listener: Arc<dyn ErasedListener>,
    pub(super) topic: TopicSettings,
    pub(super) node: NodeSettings,
    pub(super) environment: Environment,
    pub(super) stats: Arc<TopicStats>,
}

/// See the module.
pub(super) struct Topic {
    parts: Parts,
    pipeline: Pipeline,
    held: Held,
    runs: Runs,
    lease: Lease,
    sleep: SmartSleep,
    prefetch: Prefetch,
    reconciliation: Reconciliation,
    reclaims: Reclaims,
    stopping: Stopping,
    /// Outcomes that the store could not settle, and when each is sent again.
    unsettled: VecDeque<(Duration, JobId)>,
    /// The runtime of the handlers has shut down: nothing can be started any more.
    handlers_gone: bool,
    /// What the store refuses until somebody changes something.
    stopped_by: Option<RequestKind>,
    /// When to look for aged jobs next.
    age_at: Duration,
    /// Handlers to hand over to the user's runtime.
    starting: Vec<BoxFuture<'static, ()>>,
    /// Shared by all jobs without headers, which are most.
    no_headers: Arc<[(String, String)]>,
    ends: mpsc::UnboundedSender<RunEnd>,
    ended: mpsc::UnboundedReceiver<RunEnd>,
    signals: Subscription,
}

/// How often aged jobs are looked for: ages are days, and an idle topic is to cost less than a request in ten seconds.
const AGE_PERIOD: Duration = Duration::from_secs(300);

impl Topic {
    pub(super) fn new(parts: Parts, store: Arc<dyn Store>, node: NodeId, stop: watch::Receiver<StopOrder>) -> Self {
        let (key, environment, call_timeout) = (&parts.key, &parts.environment, parts.node.call_timeout);
        let interest = Interest { node: Some(node.clone()), broadcasts: false };
        let signals = Subscription::new(store.clone(), key.clone(), interest, environment.clone(), call_timeout);
        let pipeline = Pipeline::new(store, key.clone(), node, environment.clone(), call_timeout);
        let now = parts.environment.now();
        let (ends, ended) = mpsc::unbounded_channel();
        Self {
            held: Held::new(parts.environment.random()),
            runs: Runs::default(),
            lease: Lease::new(parts.node.lease),
            sleep: SmartSleep::new(now),
            prefetch: Prefetch::new(now),
            reconciliation: Reconciliation::needed(),
            reclaims: Reclaims::default(),
            stopping: Stopping::new(stop),
            unsettled: VecDeque::new(),
            handlers_gone: false,
            stopped_by: None,
            age_at: now + parts.environment.random_below(AGE_PERIOD),
            starting: Vec::new(),
            no_headers: Arc::from([]),
            parts,
            pipeline,
            ends,
            ended,
            signals,
        }
    }
}
