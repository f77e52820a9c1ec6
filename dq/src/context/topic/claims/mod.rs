//! Claims: when this node asks for jobs, and for how many.
//!
//! | file | what |
//! |---|---|
//! | [`transfer`] | claims due jobs; prunes jobs, and claims UNACKED ones for `on_park_timeout` |
//! | [`smart_sleep`] | when the next transfer is due |
//! | [`store_clock`] | when the store's clock shows a due time |
//! | [`permits`] | how many jobs there is room for |
//! | [`pause`] | what the node knows of a pause, and of the state of the topic |
//!
//! The fields are private to this folder. What the other owners hold comes in as a [`Load`].

mod lead;
mod pause;
mod permits;
mod smart_sleep;
mod store_clock;
mod transfer;

use std::sync::Arc;
use std::time::Duration;

use super::Parts;
use super::held::Counts;
use super::moment::Moment;
use super::window::{Prefetch, WaitingShare};
use crate::context::node_permits::Permits;
use crate::environment::Refused;
use crate::store::RequestKind;
use crate::store::step::{Claim, Role, Transfer, Wake};
use crate::time::Timestamp;
use pause::Pausing;
use smart_sleep::SmartSleep;
use transfer::SWEEP_PERIOD;

/// What the other owners hold, and whether they want jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) jobs: Counts,
    /// The bytes of records that wait for a permit, or are in batches that run.
    pub(super) bytes: usize,
    /// Runs that have a permit or wait for one in the queue of the runners.
    pub(super) handed_over: usize,
    /// Runs in that queue, or on their way to it.
    pub(super) queued: usize,
    /// Runs that have a permit but no held job.
    pub(super) without_job: usize,
    /// Runs that may be executing.
    pub(super) active: usize,
    /// Runs starve.
    pub(super) starves: bool,
    /// The node and the store agree on what the node holds.
    pub(super) agrees: bool,
    /// Nothing is claimed or started any more: the node stops, or its handlers have no runtime.
    pub(super) is_over: bool,
}

impl Load {
    /// How many runs wait for a permit in the queue of the runners. The others in the queue only wait for their runtime.
    fn without_permit(&self, granted: usize) -> usize {
        self.handed_over.saturating_sub(granted).min(self.queued)
    }
}

/// When to claim, and how many.
pub(super) struct Claims {
    parts: Arc<Parts>,
    sleep: SmartSleep,
    prefetch: Prefetch,
    waiting: WaitingShare,
    permits: Permits,
    pausing: Pausing,
    /// When to sweep next.
    sweep_at: Duration,
    takes_batches: bool,
    /// How many jobs all nodes together run or start is limited, for all that this node knows.
    is_limited: bool,
    /// A job of this process had to run alone when this node wanted to claim, and no claim was answered since.
    refused: Option<Refused>,
    /// Jobs wait for a permit: since when, and how many handlers had returned then.
    blocked: Option<(Duration, usize)>,
    /// Jobs went back because no handler returned, when so many had. Until another one has, none is taken ahead.
    gave_back: Option<usize>,
    /// The store has lost what it knew of the topic, and the node has not said its definitions again.
    is_forgotten: bool,
}

impl Claims {
    pub(super) fn new(parts: Arc<Parts>, takes_batches: bool, now: Duration) -> Self {
        Self {
            sleep: SmartSleep::new(now),
            prefetch: Prefetch::new(now),
            waiting: WaitingShare::new(parts.waiting.clone()),
            permits: Permits::new(parts.permits.clone()),
            pausing: Pausing::default(),
            sweep_at: now + parts.environment.random_below(SWEEP_PERIOD),
            takes_batches,
            is_limited: parts.topic.is_limited(),
            refused: None,
            blocked: None,
            gave_back: None,
            is_forgotten: false,
            parts,
        }
    }

    /// Something may be due: transfer at once.
    pub(super) const fn wake(&mut self) {
        self.sleep.wake();
    }

    /// A claim has brought these jobs. Time is owed to this topic only if it was refused while it had something due.
    fn has_claimed(&mut self, claims: &[Claim], more: bool) {
        if let Some(refused) = self.refused.take()
            && (more || claims.iter().any(|claim| claim.crashes == 0))
        {
            refused.was_due();
        }
    }

    /// The role that the store gave this node.
    pub(super) const fn role(&self) -> Option<Role> {
        self.sleep.role()
    }

    /// The store has lost what it knew of the topic.
    pub(super) const fn forgotten(&mut self) {
        self.is_forgotten = true;
    }

    /// Gives the role up, and wakes others: they may have room for what is due.
    pub(super) fn give_up_role(&mut self, moment: &mut Moment) {
        self.sleep.called_wake(moment.now);
        moment.send(Wake);
    }

    /// The store has told that the head is due then.
    pub(super) fn head_is(&mut self, head: Timestamp) {
        self.sleep.head_is(head.before(Transfer::comes_ahead(self.parts.topic.lookahead)));
    }

    /// So many jobs have ended.
    pub(super) fn ended(&mut self, jobs: usize, now: Duration) {
        self.prefetch.ended(jobs, now);
    }

    /// Requests (of one kind, or all) will not be answered.
    pub(super) fn send_again(&mut self, kind: Option<RequestKind>) {
        if kind.is_none_or(|kind| kind == RequestKind::Transfer) {
            self.pausing.is_answer_old = false;
            self.sleep.wake();
        }
        if kind.is_none_or(|kind| kind == RequestKind::Sweep) {
            self.sweep_at = Duration::ZERO;
        }
    }

    /// Shows how many bytes wait.
    pub(super) fn hold_up(&mut self, bytes: usize) {
        self.waiting.set(bytes);
    }
}
