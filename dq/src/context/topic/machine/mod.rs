//! The machine of a topic: what it does at an event, without I/O and without a clock.
//!
//! [`on`](Machine::on) takes in an event, [`admit`](Machine::admit) the jobs that it has brought, and [`due`](Machine::due) lets each owner
//! do what is due. All three only change state: what is to be sent waits in the [`Flight`], what is to run waits in [`Runs`], and the task
//! of the topic (`event_loop.rs`) performs both. So no step is ever interrupted, and there is no lock.
//!
//! The four owners know nothing of each other. This file passes them what they need, and hands on their [`Effect`]s.

mod answers;
mod panics;
mod stop;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::Parts;
use super::claims::{Claims, Load};
use super::flight::{Asked, Flight};
use super::held::Held;
use super::lease::Lease;
use super::moment::{Effect, Moment};
use super::outcomes::Outcomes;
use super::run::{RunEvent, Tasks};
use super::runs::Runs;
use super::slab::{HeldId, RunId};
use super::stage::{HeldJob, Mode, Stage};
use crate::context::condition::Warned;
use crate::job::{Metadata, Record};
use crate::store::step::{Change, Claim, LeaseStatus, Role};
use crate::store::{Answer, RequestKind, Signal, StoreError};
use crate::time::Timestamp;
use panics::LostClaim;
use stop::Stopping;

/// What happens to a topic.
#[derive(Debug)]
pub(super) enum Event {
    /// A request was answered, or failed. The store has dropped so many jobs that no answer reports.
    Answered(Asked, Result<Answer, StoreError>, usize),
    /// The oldest request had no answer for so long.
    Unanswered(Duration),
    /// The store signals.
    Signal(Signal),
    /// The task of a run reports.
    Run(RunEvent),
}

/// The event that the machine takes in, where that says more than its step.
#[derive(Debug, Default)]
enum TakingIn {
    #[default]
    Nothing,
    Answer(RequestKind),
    /// What the task of this run has reported.
    Run(RunId),
}

/// The claims of an answer, which was asked for by a request that was sent then.
#[derive(Debug)]
struct Claimed {
    claims: Vec<Claim>,
    mode: Mode,
    clock: Timestamp,
    lease_status: LeaseStatus,
    sent: Duration,
    /// More is due.
    more: bool,
}

/// All state of a topic.
pub(super) struct Machine {
    parts: Arc<Parts>,
    claims: Claims,
    runs: Runs,
    outcomes: Outcomes,
    lease: Lease,
    moment: Moment,
    /// Jobs that were claimed just now. What that answer lets send goes out before they are admitted.
    claimed: Option<Claimed>,
    stopping: Stopping,
    /// The kind of request that the store refuses until an operator fixes the cause.
    stopped_by: Option<RequestKind>,
    taking_in: TakingIn,
    lost_claim: Option<LostClaim>,
    /// The store has done something for this topic.
    progressed: bool,
    /// The log has named a panic.
    panicked: Warned,
}

/// Lets an owner do what is due, and returns when it wants to be asked again.
type Step = fn(&mut Machine) -> Option<Duration>;

/// Everything that may be due, in this order. One comes after those whose work it watches: timeouts after starts, the heartbeat after all
/// that renews the lease. A step that panics rests, and the others continue; no kind of request has one of these names.
const STEPS: [(&str, Step); 16] = [
    ("connecting", |machine| machine.moment.flight.reconnect(machine.moment.now)),
    ("stopping", Machine::stop),
    ("comparing", |machine| machine.lease.reconcile(&mut machine.moment)),
    ("pausing", Machine::pause),
    ("lookahead", |machine| machine.start_early()),
    ("starting", Machine::start),
    ("expiry", Machine::expire_lease),
    ("timeouts", Machine::check_runs),
    ("rests", |machine| machine.moment.held.end_rests(machine.moment.now)),
    ("commands", Machine::read_commands),
    ("noting", |machine| machine.outcomes.note(&mut machine.moment)),
    ("exhausting", |machine| machine.outcomes.exhaust(&mut machine.moment)),
    ("settling", |machine| machine.outcomes.settle(&mut machine.moment)),
    ("renewing", |machine| machine.lease.renew(&mut machine.moment)),
    ("claiming", Machine::claim),
    ("others", Machine::look_after_others),
];

impl Machine {
    pub(super) fn new(parts: Arc<Parts>, tasks: Tasks, now: Duration) -> Self {
        let takes_batches = parts.listener.clone().batches().is_some();
        let most_claims = if takes_batches { parts.topic.batch_size } else { 1 }; // one claim can fill a batch
        Self {
            moment: Moment {
                now,
                held: Held::new(&parts.environment),
                flight: Flight::new(parts.environment.clone(), &parts.node, most_claims),
                effects: VecDeque::new(),
            },
            outcomes: Outcomes::new(parts.clone()),
            claims: Claims::new(parts.clone(), takes_batches, now),
            lease: Lease::new(parts.clone(), tasks.lease.clone()),
            runs: Runs::new(parts.clone(), tasks),
            parts,
            claimed: None,
            stopping: Stopping::default(),
            stopped_by: None,
            taking_in: TakingIn::Nothing,
            lost_claim: None,
            progressed: false,
            panicked: Warned::default(),
        }
    }

    /// The task begins a step. If it panics there, the machine knows.
    pub(super) fn begin(&mut self, step: &'static str) {
        self.moment.held.defects.begin(step);
    }

    /// Hands on what a panic has left.
    pub(super) fn resume(&mut self) {
        self.begin("resuming");
        self.route();
    }

    /// The requests, for the wire.
    pub(super) const fn flight(&mut self) -> &mut Flight {
        &mut self.moment.flight
    }

    /// The tasks that are to run on the user's runtime.
    pub(super) fn tasks(&mut self) -> Vec<BoxFuture<'static, ()>> {
        self.begin("handing over");
        let tasks = self.runs.hand_over(self.claims.permits());
        self.show(); // only now are the runs in the queue counted as waiting
        tasks
    }

    /// Takes in an event.
    pub(super) fn on(&mut self, event: Event, now: Duration) {
        self.moment.now = now;
        match event {
            Event::Answered(asked, answer, dropped) => {
                self.taking_in = TakingIn::Answer(asked.kind);
                self.begin(if answer.is_ok() { asked.kind.name() } else { "error" });
                self.on_answer(asked, answer, dropped);
            }
            Event::Unanswered(waited) => {
                self.begin("no answer");
                self.on_unanswered(waited);
            }
            Event::Signal(signal) => {
                // A signal is a hint: while they make the task panic, the fallback scan does without.
                if self.moment.held.defects.rests("signal", now).is_none() {
                    self.begin("signal");
                    self.on_signal(signal);
                }
            }
            Event::Run(event) => {
                if let RunEvent::Failed(run, _) | RunEvent::JobEnded(run, ..) | RunEvent::Ended(run, _) = &event {
                    self.taking_in = TakingIn::Run(*run);
                }
                self.begin("end of a run");
                self.on_run(event);
            }
        }
        self.route();
        self.taking_in = TakingIn::Nothing;
        self.moment.held.defects.end();
        self.charge_lost_claim();
    }

    /// Lets every owner do what is due. Returns when the first of them wants to be asked again.
    pub(super) fn due(&mut self, now: Duration) -> Option<Duration> {
        self.moment.now = now;
        let deadline = |(step, act): (&'static str, Step)| {
            if let Some(until) = self.moment.held.defects.rests(step, now) {
                return Some(until);
            }
            self.begin(step);
            act(self)
        };
        STEPS.into_iter().filter_map(deadline).min()
    }

    fn start_early(&mut self) -> Option<Duration> {
        let stats = &self.parts.stats;
        self.moment.held.start_early(self.moment.now, |late| stats.late(late))
    }

    /// Hands on what the owners want of each other.
    fn route(&mut self) {
        while let Some(effect) = self.moment.effects.pop_front() {
            let Self { runs, outcomes, moment, .. } = self;
            match effect {
                Effect::Decide(end) => outcomes.decide_run(end, &mut moment.held),
                Effect::RunAcked(id) => {
                    runs.start_acked(id, self.stopping.is_cancelling(), moment);
                    moment.held.remove(id);
                }
                Effect::OnExhausted(id) => runs.start_on_exhausted(id, self.stopping.is_ordered(), moment),
                Effect::Make(id, token, function) => runs.make(id, token, function),
                Effect::Wake => self.claims.wake(),
                Effect::Forgotten => self.claims.forgotten(),
                Effect::Scan => self.lease.scan_at(moment.now),
                Effect::GiveUpRole => self.claims.give_up_role(moment),
                Effect::Unheld(id, token) => {
                    moment.held.defects.at(&id);
                    if let Some(other) = moment.held.find(&id) {
                        runs.forget(other, &mut moment.held);
                    }
                    if let Some(lost) = &mut self.lost_claim {
                        lost.unheld.push(id.clone());
                    }
                    // A row whose claim had no answer: the job goes back as it was, unless dq panicked at it.
                    let sentence = moment.held.defects.sentence(&id, Metadata::default);
                    let stage = Stage::settling(if sentence.is_some() { Change::Dead } else { Change::Rollback });
                    let claim = Claim { id, token, record: Record::from_bytes(Bytes::new()), crashes: 0 };
                    let rests_until = moment.held.defects.rest_of(&claim.id);
                    let job = HeldJob::new(claim, sentence.unwrap_or_default(), Mode::Due, stage);
                    let held = moment.held.insert(job);
                    if let Some(until) = rests_until {
                        moment.held.rest(held, until);
                    }
                }
                Effect::Missing(id) => self.on_missing_row(id),
            }
        }
    }

    /// The store counts no row for this held job: its outcome has arrived, or another node has the job.
    fn on_missing_row(&mut self, id: HeldId) {
        let Some(job) = self.moment.held.get(id) else { return };
        match &job.stage {
            Stage::Settling { .. } => return self.outcomes.forget_unknown(id, &mut self.moment.held),
            Stage::Running(_) => {
                tracing::info!(topic = %self.parts.key.topic, job.id = %job.id, "this node no longer holds the job; its handler is cancelled");
                self.parts.stats.count.lease_lost.add(1);
            }
            _ => {}
        }
        self.runs.forget(id, &mut self.moment.held);
    }

    /// What the owners hold, for those who claim.
    fn load(&self) -> Load {
        let (held, runs) = (&self.moment.held, &self.runs);
        Load {
            jobs: held.counts(),
            bytes: held.counts().waiting_bytes + runs.table().batched_bytes(),
            handed_over: runs.handed_over(held),
            queued: runs.queued(),
            without_job: runs.table().without_job(),
            active: runs.table().active(),
            starves: runs.starve(),
            agrees: self.lease.agrees(),
            is_over: self.takes_no_more(),
        }
    }

    /// Whether nothing is claimed or started any more: the node stops, or its handlers have no runtime.
    fn takes_no_more(&self) -> bool {
        self.runs.are_over() || self.stopping.is_ordered()
    }

    fn is_watcher(&self) -> bool {
        self.claims.role() == Some(Role::Watcher)
    }

    /// Gives back what has not begun while the topic is paused.
    fn pause(&mut self) -> Option<Duration> {
        if !self.claims.is_paused() {
            return None;
        }
        let held = &mut self.moment.held;
        if self.claims.pause_begins() {
            self.runs.take_back_all(held);
        }
        if held.counts().waiting > 0 {
            held.roll_back_waiting();
        }
        self.claims.pause_ends(self.moment.now)
    }

    /// Starts handlers as long as there are permits and the lease is provably valid (rule 21).
    fn start(&mut self) -> Option<Duration> {
        let load = self.load();
        self.claims.share_permits(load, &self.moment);
        let is_good = self.lease.is_good(self.moment.now);
        let ends_alone = match is_good {
            true => None,
            false => self.runs.end_alone(self.lease.good_until(), &mut self.moment),
        };
        let may_start = !(load.is_over || load.starves || self.claims.is_paused());
        if !(may_start && is_good) {
            self.runs.leave_queue();
        }
        let others = [RequestKind::Isolate, RequestKind::Transfer, RequestKind::Sweep, RequestKind::Reconcile];
        let again = if load.agrees && !self.moment.flight.busy(&others) {
            let room = self.claims.room(load, self.moment.now);
            self.runs.start_quarantined(room, may_start && is_good, &mut self.moment)
        } else {
            None
        };
        if may_start {
            let load = self.load();
            let room = self.claims.room(load, self.moment.now);
            self.runs.start_handlers(room, is_good, &mut self.moment);
        }
        ends_alone.into_iter().chain(again).min()
    }

    /// Cancels the handlers of a node that could not renew.
    fn expire_lease(&mut self) -> Option<Duration> {
        if self.runs.table().running() == 0 {
            return None;
        }
        if self.lease.is_good(self.moment.now) {
            return Some(self.lease.good_until());
        }
        self.runs.settings_decide_all(&mut self.moment);
        self.route();
        self.runs.lose_lease(&mut self.moment.held);
        None
    }

    /// Reads the commands of which signals have told: signals are hints.
    fn read_commands(&mut self) -> Option<Duration> {
        if !self.lease.agrees() {
            return None;
        }
        self.runs.read_commands(&mut self.moment)
    }

    fn check_runs(&mut self) -> Option<Duration> {
        let again = self.runs.check(&mut self.moment);
        self.route();
        if self.runs.starve() && self.moment.held.counts().waiting > 0 {
            self.moment.held.roll_back_waiting();
        }
        again.into_iter().chain(self.give_back()).min()
    }

    /// Gives back what waits for a permit, once no handler has returned for so long that another node should have it.
    fn give_back(&mut self) -> Option<Duration> {
        let (load, returned) = (self.load(), self.runs.returned());
        let at = self.claims.gives_back_at(load, returned, self.moment.now)?;
        if self.moment.now < at {
            return Some(at);
        }
        self.claims.gives_back(returned);
        self.runs.take_back_all(&mut self.moment.held);
        self.moment.held.roll_back_waiting();
        None
    }

    /// Claims jobs: due ones, and UNACKED ones for `on_park_timeout`.
    fn claim(&mut self) -> Option<Duration> {
        let load = self.load();
        let transfer = self.claims.transfer(load, &mut self.moment);
        self.route();
        // One that was refused is asked again also without a job: only its answer shows that the topic works.
        let is_refused = self.stopped_by == Some(RequestKind::Sweep);
        // Histories outlive their jobs.
        let has_nothing = self.lease.knows_no_job() && self.parts.topic.history_retention.is_zero() && !is_refused;
        let sweep = self.claims.sweep(load, has_nothing, &mut self.moment);
        transfer.into_iter().chain(sweep).min()
    }

    /// Takes back what nodes that died have left, and what has lost its place.
    fn look_after_others(&mut self) -> Option<Duration> {
        if self.stopping.is_ordered() {
            return None;
        }
        let is_watcher = self.is_watcher();
        let scan = self.lease.scan(is_watcher, &mut self.moment);
        let reclaim = self.lease.reclaim(&mut self.moment);
        let audit = self.lease.audit(&mut self.moment);
        [scan, reclaim, audit].into_iter().flatten().min()
    }

    /// Shows in `health()` what this node holds.
    fn show(&mut self) {
        let load = self.load();
        self.runs.show_quarantine(&self.moment.held);
        self.claims.hold_up(load.bytes);
        let (jobs, claims) = (load.jobs, &self.claims);
        let (running, waiting) = (claims.active_runs(load), claims.waiting_for_permits(load));
        self.parts.stats.set_current(jobs.all, running, waiting, jobs.settling);
    }

    fn on_run(&mut self, event: RunEvent) {
        let Self { claims, runs, outcomes, moment, .. } = self;
        let end = match event {
            RunEvent::JobEnded(run, place, failed, ended) => runs.on_job_end(run, place, failed, ended, moment.now),
            RunEvent::Ended(run, ended) => runs.on_run_end(run, ended, moment),
            RunEvent::Failed(run, failed) => return runs.on_failed(run, failed, moment.now),
            RunEvent::Checkpoint(checkpoint) => return outcomes.on_checkpoint(checkpoint, moment.now),
            RunEvent::Progress(id, token, run) => return outcomes.on_progress(id, token, run, moment.now),
            RunEvent::Made(id, token, made) => return outcomes.on_made(&id, token, made, &mut moment.held),
        };
        if let Some(end) = end {
            claims.ended(end.together, moment.now);
            outcomes.decide_run(end, &mut moment.held);
        }
    }

    fn on_signal(&mut self, signal: Signal) {
        if matches!(signal, Signal::Due(_) | Signal::Lease(..) | Signal::Resubscribed) {
            self.may_have_jobs();
        }
        match signal {
            Signal::Due(Some(head)) => self.claims.head_is(head),
            Signal::Due(None) => self.claims.wake(),
            Signal::Lease(node, lasts) if node != self.parts.id => self.lease.told_of_lease(lasts, self.moment.now),
            Signal::StateChanged | Signal::Resubscribed => self.claims.state_may_have_changed(),
            Signal::Outbox => self.parts.relay.wake(),
            Signal::Paused => self.claims.on_paused(self.moment.flight.busy(&[RequestKind::Transfer]), self.moment.now),
            Signal::Command(kind, id) => self.runs.on_command(kind, id, &mut self.moment.held),
            Signal::Lease(..)
            | Signal::BroadcastDue
            | Signal::Broadcast(_)
            | Signal::Moves(_)
            | Signal::MovesMissed(_)
            | Signal::Interrupted(_) => {}
        }
    }

    /// The topic may have a job from now on: the audit and the sweep come within their usual times.
    fn may_have_jobs(&mut self) {
        if self.lease.knows_no_job() {
            self.claims.sweep_later(self.moment.now);
        }
        self.lease.may_have_jobs(self.moment.now);
    }
}
