//! Claims: when this node asks for jobs, and for how many.
//!
//! Two steps claim jobs for this node. Each takes a sequence number, so the two are never in flight together. A transfer claims due jobs,
//! never more than can start soon. A sweep prunes jobs past their retention, and claims jobs that were UNACKED for their age, for
//! `process_unacked`. Only the watcher sweeps, and not while it knows the topic to be empty, unless histories outlive their jobs there.
//!
//! Each running handler has a permit; an abandoned run keeps its permit until it returns. A topic has at most `concurrency` permits, and
//! fewer if it shares those of its node (`node_concurrency`) with topics that need them, too. `runs/` starts the jobs.
//!
//! | file | what |
//! |---|---|
//! | [`smart_sleep`] | when the next transfer is due |
//! | [`store_clock`] | when the store's clock shows a due time |
//! | [`pause`] | what the node knows of a pause, and of the state of the topic |
//!
//! The fields are private to this folder. What the other owners hold comes in as a [`Load`].

mod lead;
mod pause;
mod smart_sleep;
mod store_clock;

use std::sync::Arc;
use std::time::Duration;

use super::flight::CLAIMS;
use super::held::Counts;
use super::moment::Moment;
use super::stage::Mode;
use super::window::{Prefetch, WaitingShare};
use super::{DRIFT, Parts};
use crate::config::TopicSettings;
use crate::context::node_permits::Permits;
use crate::context::topic::runs::Room;
use crate::listener::AckMode;
use crate::store::RequestKind;
use crate::store::step::{Claim, MOST_JOBS, Role, Sweep, Swept, Transfer, Transferred, Wake};
use crate::time::Timestamp;
use pause::Pausing;
use smart_sleep::SmartSleep;

/// The pause between two sweeps. Ages are days, and an idle topic must cost next to nothing.
const SWEEP_PERIOD: Duration = Duration::from_secs(300);

/// The pause after a sweep that could do nothing of what there is to do, because a limit of all nodes lets nothing be claimed.
const LIMITED_PAUSE: Duration = Duration::from_secs(5);

/// How many runs wait in the queue of the runners at most.
const MOST_AHEAD: usize = 256;

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
            parts,
        }
    }

    /// Something may be due: transfer at once.
    pub(super) const fn wake(&mut self) {
        self.sleep.wake();
    }

    /// The role that the store gave this node.
    pub(super) const fn role(&self) -> Option<Role> {
        self.sleep.role()
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

    /// When a job that was just claimed may start, by the node's clock; `None`: it is due.
    pub(super) fn starts_at(&self, due: Timestamp, mode: Mode, clock: Timestamp) -> Option<Duration> {
        if mode == Mode::Swept || due <= clock {
            return None;
        }
        let at = self.sleep.reaches(due).expect("an answer has brought the job");
        Some(at + due.since(clock) / DRIFT)
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

    /// Sends a transfer when one is due. A node that has a role and no room gives the role up and wakes others.
    pub(crate) fn transfer(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        if load.is_over || !load.agrees || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if !self.sleep.is_awake(moment.now) {
            return Some(self.sleep.wakes_at());
        }
        let wanted = self.wanted(load, &[], moment);
        // While the topic is paused, the transfer asks whether it still is.
        let limit = if self.is_paused() { wanted.max(1) } else { wanted };
        if limit == 0 {
            let asks_at = self.ask_for_state(load, moment);
            let wakes_at = self.make_way(load, moment);
            return asks_at.into_iter().chain(wakes_at).min();
        }
        if !moment.can_send(RequestKind::Transfer) {
            return moment.pause_end(RequestKind::Transfer);
        }
        self.send_transfer(limit, moment);
        None
    }

    fn send_transfer(&mut self, limit: usize, moment: &mut Moment) {
        let (last_seen, bytes) = (moment.flight.last_seen(), moment.flight.limits(RequestKind::Transfer).1);
        let (lease, fallback, lookahead) = (self.parts.node.lease, self.fallback(), self.parts.topic.lookahead);
        self.sleep.sent(fallback, moment.now);
        moment.send(Transfer { last_seen, limit, bytes, lease, fallback, lookahead });
    }

    /// The period of the fallback scan. After anything else than a whole sleep it is up to a fifth shorter, at random: nodes that
    /// were woken together go apart, and then stay so.
    fn fallback(&self) -> Duration {
        let period = self.parts.node.fallback_scan;
        if self.sleep.slept_out() { period } else { period - self.parts.environment.random_below(period / 5) }
    }

    /// Gives the role up, if this node has one and no room for due jobs. Returns when it may.
    fn make_way(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        if load.jobs.ordinary_waiting() > 0 && self.active_runs(load) < self.permits.granted() && !self.is_held_up() {
            return None;
        }
        let at = self.sleep.may_call_wake_at()?;
        if moment.now < at || !moment.can_send(RequestKind::Wake) {
            return Some(at).filter(|at| *at > moment.now).or_else(|| moment.pause_end(RequestKind::Wake));
        }
        self.give_up_role(moment);
        None
    }

    /// Takes in an answer, but for its claims. While more is due, sends the next transfer before the node takes these in: so the
    /// store and the node work at the same time. Not if topics share their permits, because others may need these more; and not if
    /// a quarantined job waits, because its `isolate` goes out while no transfer is in flight.
    pub(crate) fn on_transferred(&mut self, answer: &mut Transferred, load: Load, moment: &mut Moment) {
        self.sleep.answered(answer, moment.now);
        self.on_state(answer.state.take(), Some(answer.left), answer.clock, true, moment.now);
        if !answer.more
            || load.is_over
            || self.is_paused()
            || !load.agrees
            || self.permits.is_shared()
            || load.jobs.quarantined_waiting > 0
            || answer.claims.iter().any(|claim| claim.crashes > 0)
            || !moment.can_send(RequestKind::Transfer)
        {
            return;
        }
        let limit = self.wanted(load, &answer.claims, moment);
        if limit > 0 {
            self.send_transfer(limit, moment);
        }
    }

    /// The claims of an answer are taken in. If more was due and there is no room for it, others should claim it.
    pub(crate) fn on_admitted(&mut self, more: bool, load: Load, moment: &mut Moment) {
        if more && !moment.flight.busy(&[RequestKind::Transfer]) && self.wanted(load, &[], moment) == 0 {
            self.make_way(load, moment);
        }
    }

    /// Sends a sweep when one is due, unless the topic `has_nothing` to sweep.
    pub(crate) fn sweep(&mut self, load: Load, has_nothing: bool, moment: &mut Moment) -> Option<Duration> {
        let is_watcher = self.role() == Some(Role::Watcher);
        if load.is_over || !is_watcher || has_nothing || !load.agrees || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if moment.now < self.sweep_at {
            return Some(self.sweep_at);
        }
        let limit = self.wanted(load, &[], moment);
        if limit == 0 {
            return None;
        }
        if !moment.can_send(RequestKind::Sweep) {
            return moment.pause_end(RequestKind::Sweep);
        }
        self.sweep_at = moment.now + SWEEP_PERIOD;
        let (last_seen, bytes) = (moment.flight.last_seen(), moment.flight.limits(RequestKind::Sweep).1);
        let TopicSettings { unacked_age, dead_kept, dead_most, done_most, .. } = self.parts.topic;
        let lease = self.parts.node.lease;
        moment.send(Sweep { last_seen, limit, bytes, lease, unacked_age, dead_kept, dead_most, done_most });
        None
    }

    /// Takes in an answer, but for its claims.
    pub(crate) fn on_swept(&mut self, swept: &mut Swept, now: Duration) {
        if swept.pruned_dead > 0 {
            tracing::info!(topic = %self.parts.key.topic, jobs = swept.pruned_dead, "removed DEAD jobs past their retention");
        }
        self.on_state(swept.state.take(), None, swept.clock, false, now);
        if swept.more {
            let is_limited = swept.claims.is_empty() && swept.pruned_dead + swept.pruned_done == 0;
            self.sweep_at = if is_limited { now + LIMITED_PAUSE } else { now };
        }
    }

    /// The topic was empty, and may have a job from now on: the sweep comes within its usual time.
    pub(crate) fn sweep_later(&mut self, now: Duration) {
        self.sweep_at = self.sweep_at.max(now + SWEEP_PERIOD);
    }

    /// How many handlers may run now.
    pub(crate) const fn permits(&self) -> usize {
        self.permits.granted()
    }

    /// How many jobs wait for a permit, in the queue of the runners or beside it.
    pub(crate) fn waiting_for_permits(&self, load: Load) -> usize {
        load.jobs.waiting + load.without_permit(self.permits.granted())
    }

    /// How many runs have a permit and may be executing.
    pub(crate) fn active_runs(&self, load: Load) -> usize {
        load.active.saturating_sub(load.without_permit(self.permits.granted()))
    }

    /// How many runs there is room for. Beyond the permits that are as many as ended lately. None where others may have a better
    /// claim to the next permit: another topic, or a quarantined job. None if a job that is handed over can not go back. And no
    /// batch: until a permit is free it may still grow.
    pub(crate) fn room(&mut self, load: Load, now: Duration) -> Room {
        let granted = self.permits.granted();
        let is_wanted_elsewhere = self.permits.is_shared() || load.jobs.quarantined() > 0;
        let ahead = match is_wanted_elsewhere || self.parts.topic.ack == AckMode::OnClaim || self.takes_batches {
            true => 0,
            false => self.ahead(now).min(MOST_AHEAD),
        };
        Room { permits: granted, used: load.handed_over - load.without_permit(granted), ahead }
    }

    /// Asks for the permits of the node that this topic wants, and gives back what others may need more. While a claim is in
    /// flight its permits are promised.
    pub(crate) fn share_permits(&mut self, load: Load, moment: &Moment) {
        if !self.permits.is_shared() {
            return;
        }
        let granted = self.permits.granted();
        let used = load.handed_over - load.without_permit(granted);
        let used = if moment.flight.busy(&CLAIMS) { granted.max(used) } else { used };
        let claims_soon = self.sleep.is_awake(moment.now)
            && load.agrees
            && moment.can_send(RequestKind::Transfer)
            && !(load.is_over || self.is_paused() || load.starves || self.is_held_up());
        let held = load.handed_over + load.jobs.waiting.div_ceil(self.batch_size());
        let wanted = if claims_soon { self.permits.most() } else { used.max(held) };
        self.permits.ask(used, wanted);
    }

    /// How many more jobs this node wants: none beyond its free permits while many bytes wait. Zero while it holds enough, and
    /// while a job of its process must run alone. Quarantined jobs that wait do not count, because ordinary ones overtake them.
    /// `arriving` are claimed, and the node has not taken them in yet.
    fn wanted(&mut self, load: Load, arriving: &[Claim], moment: &Moment) -> usize {
        if load.starves || self.parts.environment.process().is_closed_to_claims() {
            return 0;
        }
        let bytes = arriving.iter().map(|claim| claim.record.as_bytes().len()).sum::<usize>();
        self.waiting.set(load.bytes + bytes);
        // With one permit, an ordinary job must be there to run between two quarantined ones.
        let fewest = load.jobs.quarantined().min(1);
        let overtaken = load.jobs.quarantined_waiting.min(MOST_JOBS);
        let (granted, asked) = (self.permits.granted(), moment.flight.limits(RequestKind::Transfer).0);
        let (free, waiting, most) = if self.takes_batches {
            // As many as fill the batches that can start, in one claim or two, and those that are taken ahead. While many bytes
            // wait or are in batches: none, or one if this topic runs nothing.
            let free = granted.saturating_sub(load.handed_over);
            let room = if self.waiting.is_full() {
                usize::from(load.handed_over == 0)
            } else {
                (free * self.batch_size()).min(MOST_JOBS) + self.ahead(moment.now).max(fewest)
            };
            let waiting = load.jobs.waiting - overtaken + arriving.len();
            (room.saturating_sub(waiting), waiting, room)
        } else {
            let ahead = if self.waiting.is_full() { 0 } else { self.ahead(moment.now) }.max(fewest);
            let most = granted + ahead;
            let wanting = load.jobs.needing_permits() - overtaken + load.without_job + arriving.len();
            let waiting = load.jobs.ordinary_waiting() + load.without_permit(granted) + arriving.len();
            (most.saturating_sub(wanting), waiting, most)
        };
        // Each transfer costs a round trip, so while jobs wait for a permit, the node claims only a quarter of its limit or more.
        let free = free.min(asked);
        if waiting > 0 && free < asked.min(most / 4) { 0 } else { free }
    }

    /// How many jobs the node takes beyond its permits. None where all nodes together are limited: they would hold slots that another node
    /// could use, and start later than their rate counts them.
    fn ahead(&mut self, now: Duration) -> usize {
        if self.is_limited { 0 } else { self.prefetch.ahead(now) }
    }

    /// How many jobs share a permit at most.
    fn batch_size(&self) -> usize {
        if self.takes_batches { self.parts.topic.batch } else { 1 }
    }

    /// Whether nothing that is claimed now could start soon, because a job of this process must run alone.
    fn is_held_up(&self) -> bool {
        self.parts.environment.process().is_closed()
    }
}
