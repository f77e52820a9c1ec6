//! One topic on this node: the only owner of what the node holds of it, and the only user of its link to the store.
//!
//! A topic is one task ([`event_loop`]): it waits for answers, ends of runs, signals, the stop order and the next deadline, takes the
//! event in, and performs what follows. What follows is decided by a [`machine`] without I/O, whose state has four owners. Each keeps
//! its fields to itself:
//!
//! | owner | what it owns | its subsystems |
//! |---|---|---|
//! | [`claims`] | smart sleep, prefetch, permits, pause | transfer, sweep |
//! | [`runs`] | handlers and their deadlines | listener, isolation, timeouts, rollback |
//! | [`outcomes`] | what becomes of held jobs | retry (in `decide`), ack, ticks |
//! | [`lease`] | the lease, and what is known of those of others | renew, reconcile, reclaim, audit |
//!
//! An owner does not know the others. It gets what it needs as values, and puts what it wants of another into the [`moment`] as an effect;
//! requests go the same way. Only the jobs ([`held`]) are lent to all: their counters and queues are behind methods.
//!
//! | beside the owners | |
//! |---|---|
//! | [`flight`] | the requests in flight |
//! | [`slab`] | the numbers of held jobs and of runs |
//! | [`relay`] | the task that brings follow-ups to their topics |
//! | [`run`] | what runs on the user's runtime |
//! | [`window`] | how much a request asks for |
//! | [`stats`] | what `health()` and the metrics show |
//!
//! The way of a job through these files: [`event_loop`] brings an answer, `machine/answers.rs` takes it in, `claims/transfer.rs` asks for
//! more, as many as `claims/permits.rs` says, and `outcomes/mod.rs` admits the job, which is in [`held`] from then on. `runs/listener.rs`
//! makes the run, `runs/table.rs` keeps it, `run/runners.rs` and `run/task.rs` execute it, and `runs/listener.rs` takes in how it ended.
//! `outcomes/decide.rs` says what becomes of the job, and `outcomes/ack.rs` sends that through the [`flight`] until the store has judged
//! it. The job leaves [`held`].
//!
//! Outside of this folder only [`Parts`], [`Topic`], [`StopOrder`], [`stats`] and [`takeover`] are visible: the supervisor makes a topic
//! from its parts and runs it, `health()` reads its counters, and the log of a start says within which time others take over.
//!
//! Invariant: a job in [`held`] is every job not yet confirmed gone, unanswered outcomes included. Whatever fails, the topic
//! goes on from what it holds: a failed link is replaced and reconciled, a lost lease cancels handlers, and an outcome is sent
//! until the store has judged it.

mod claims;
mod defects;
mod event_loop;
mod flight;
mod held;
mod lease;
mod machine;
mod meter;
mod moment;
mod outcomes;
mod punctuality;
mod relay;
mod run;
mod runs;
mod slab;
mod stage;
pub(super) mod stats;
mod unread;
mod window;

use std::sync::Arc;
use std::time::Duration;

use crate::config::{NodeSettings, TopicSettings};
use crate::context::node_permits::Share;
use crate::environment::Environment;
use crate::job::{Cause, JobId, NodeId, TopicKey};
use crate::listener::ErasedListener;
use crate::provider::DefinitionsWake;
use crate::schedule::Periodic;
use crate::store::{Outage, Store};
use stats::TopicStats;

pub(super) use event_loop::Topic;
pub(crate) use lease::takeover;
pub(super) use relay::{Relay, RelayWake};
pub(super) use window::WaitingBytes;

/// By how much the clocks of node and store may differ in speed, as a part of the time that passes.
const DRIFT: u32 = 1_000;

/// What the supervisor orders its tasks to do: to stop, and until when of the node's clock handlers may go on; `None`: nothing.
pub(super) type StopOrder = Option<Duration>;

/// What a topic is made from. The supervisor keeps it, so that the topic can start again after a panic of its task.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) key: TopicKey,
    pub(crate) store: Arc<dyn Store>,
    /// The identity of the node.
    pub(crate) id: NodeId,
    pub(crate) listener: Arc<dyn ErasedListener>,
    pub(crate) topic: TopicSettings,
    pub(crate) node: NodeSettings,
    pub(crate) environment: Environment,
    pub(crate) stats: Arc<TopicStats>,
    pub(crate) permits: Share,
    /// Shared by all topics of the node.
    pub(crate) waiting: WaitingBytes,
    /// The outages of the node.
    pub(crate) outage: Outage,
    /// Wakes the relay of the topic.
    pub(crate) relay: RelayWake,
    /// The schedules that the code defines.
    pub(crate) schedules: Arc<[Periodic]>,
    /// Wakes the task that looks after these, and after the other schedules of the topic.
    pub(crate) definitions: DefinitionsWake,
}

impl Parts {
    /// Logs and counts that the handler of a job that was acked on claim has failed.
    pub(super) fn report_lost(&self, id: &JobId, failure: &str, cause: Option<Cause>) {
        tracing::error!(topic = %self.key.topic, job.id = %id, failure, "the handler failed after its job was acked on claim: the job is lost");
        self.stats.failed(cause);
    }
}
