//! Isolation: how quarantined jobs run, so that a crash is charged to the job that caused it (rule 19).
//!
//! A job that was in too many crashes first runs in groups, beside ordinary work and on half of the permits at most. If
//! its groups die, it runs alone in its process, in turns with all other work. The store notes how it runs before it starts
//! (`isolate`), so that a reclaimer knows. [`Process`](crate::environment::Process) knows what else runs in this process.

use std::time::Duration;

use super::listener::Room;
use super::{Runs, longest_wait};
use crate::context::topic::held::Held;
use crate::context::topic::moment::Moment;
use crate::context::topic::slab::HeldId;
use crate::context::topic::stage::{HeldJob, Stage};
use crate::context::topic::stats::Quarantine;
use crate::environment::{Alone, Outlook, ProcessEntry, Ticket};
use crate::job::{Isolation, JobId, Suspicion, Token};
use crate::provider::MAX_SHOWN;
use crate::store::RequestKind;
use crate::store::step::{Isolate, MAX_JOBS, NoteVerdict};

/// What a topic knows of its quarantined jobs, beside what it holds.
#[derive(Debug, Default)]
pub(super) struct Isolations {
    /// The place in the queue of its next job that must run alone.
    pub(super) ticket: Option<Ticket>,
    /// The job that is alone in the process, unless it is gone since.
    alone: Option<HeldId>,
    /// With one permit, quarantined and ordinary jobs alternate.
    pub(super) quarantined_was_last: bool,
    /// What `health()` shows: how many wait, how many run, and which is alone.
    shown: (usize, usize, Option<JobId>),
}

impl Runs {
    /// Asks the store whether the jobs were cancelled of which signals say so.
    pub(crate) fn read_commands(&mut self, moment: &mut Moment) -> Option<Duration> {
        self.cancels
            .retain(|id, asked| *asked || moment.held.find(id).and_then(|job| moment.held.run_of(job)).is_some());
        if self.cancels.values().all(|asked| *asked) {
            return None;
        }
        if !moment.can_send(RequestKind::Isolate) {
            return moment.pause_end(RequestKind::Isolate);
        }
        let new = self.cancels.iter_mut().filter(|(_, asked)| !**asked).take(MAX_JOBS);
        let runs = new.filter_map(|(id, asked)| {
            *asked = true;
            let job = moment.held.get(moment.held.find(id)?)?;
            Some((id.clone(), job.token))
        });
        let runs = runs.collect();
        self.send_isolate(None, runs, moment);
        None
    }

    /// The lease was provably valid until `good_until`. The store may have renewed it later, and then charges a crash of this process to
    /// the job that is alone. So the job stays alone until the store confirms its outcome, but not longer than any job does: then others
    /// start, because the store may be away for hours. Returns when.
    pub(crate) fn end_alone(&self, good_until: Duration, moment: &mut Moment) -> Option<Duration> {
        let (id, _, alone) = self.alone(&moment.held)?;
        let until = good_until.max(alone.since()) + longest_wait(self.parts.topic.timeout);
        if moment.now < until {
            return Some(until);
        }
        moment.held.end_alone(id);
        None
    }

    /// Nothing of this topic may start for now, so it keeps nothing else from starting: without a lease, or while it is paused, it could not
    /// even see that its turn has come.
    pub(crate) fn leave_queue(&mut self) {
        self.isolations.ticket = None;
    }

    /// Starts quarantined jobs, in groups or alone, unless none `may_start`, and lets others start beside one that was alone for
    /// long enough. A late `isolate` must not take effect, so one is sent only if its sequence number is certain to be the right one.
    pub(crate) fn start_quarantined(&mut self, room: Room, may_start: bool, moment: &mut Moment) -> Option<Duration> {
        if !moment.can_send(RequestKind::Isolate) {
            return moment.pause_end(RequestKind::Isolate);
        }
        let (alone, is_sent) = self.give_way(moment);
        if is_sent || !may_start {
            return alone;
        }
        let next = self.run_alone(room, moment);
        if !moment.flight.busy(&[RequestKind::Isolate]) {
            self.run_in_group(room, moment);
        }
        [alone, next].into_iter().flatten().min()
    }

    /// Shows in `health()` which jobs are quarantined, if that changed.
    pub(crate) fn show_quarantine(&mut self, held: &Held) {
        let (waiting, running) = (held.counts().quarantined_waiting, held.counts().quarantined_running);
        let alone = self.alone(held).map(|(_, job, _)| job.id.clone());
        let now = (waiting, running, alone);
        if self.isolations.shown == now {
            return;
        }
        let quarantine = (waiting + running > 0).then(|| Quarantine {
            waiting,
            running,
            jobs: held.quarantined_ids().take(MAX_SHOWN).map(JobId::to_string).collect(),
            alone: now.2.as_ref().map(JobId::to_string),
        });
        self.parts.stats.set_quarantine(quarantine);
        self.isolations.shown = now;
    }

    /// The job of this topic that is alone in the process.
    fn alone<'a>(&self, held: &'a Held) -> Option<(HeldId, &'a HeldJob, &'a Alone)> {
        let id = self.isolations.alone?;
        let job = held.get(id)?;
        Some((id, job, job.alone.as_ref()?))
    }

    /// Ends the isolation of a job that has to give way: the store notes it first. Returns when to ask again, and whether a
    /// request was sent.
    fn give_way(&self, moment: &mut Moment) -> (Option<Duration>, bool) {
        let Some((_, job, alone)) = self.alone(&moment.held) else { return (None, false) };
        let until = alone.since() + longest_wait(self.parts.topic.timeout);
        let runs = matches!(job.stage, Stage::Running(_) | Stage::Exhausting);
        if !runs || (moment.now < until && !alone.is_wanted()) {
            return (Some(until).filter(|until| *until > moment.now), false);
        }
        let runs = vec![(job.id.clone(), job.token)];
        self.send_isolate(Some(Isolation::Grouped), runs, moment);
        (None, true)
    }

    /// Lets the next job run alone that must: its process may start nothing else until then.
    fn run_alone(&mut self, room: Room, moment: &mut Moment) -> Option<Duration> {
        let too_long = longest_wait(self.parts.topic.timeout);
        if let Some((id, job, alone)) = self.alone(&moment.held)
            && job.stage == Stage::Waiting
        {
            // Its `isolate` was not answered, or its `on_exhausted` waits. It may be noted as alone, so it stays so.
            let again = vec![(id, alone.enter(too_long))];
            self.isolate(again, None, moment);
            return None;
        }
        let Some((id, job)) = moment.held.next_to_start(Suspicion::Alone) else {
            self.isolations.ticket = None;
            return None;
        };
        if room.used >= room.permits {
            return None;
        }
        let ticket = self.isolations.ticket.get_or_insert_with(|| self.parts.environment.process().queue());
        match ticket.outlook(too_long) {
            Outlook::Wait(until) => return until,
            Outlook::Beside(entry) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %job.id, "this job may have killed its process and should run alone, but another handler has run for so long that it runs beside that one");
                self.isolate(vec![(id, entry)], None, moment);
            }
            Outlook::Alone(alone) => {
                let entry = alone.enter(too_long);
                self.isolate(vec![(id, entry)], Some(alone), moment);
            }
        }
        self.isolations.ticket = None;
        None
    }

    /// Starts as many jobs in a group as half of the permits allow. If nothing else wants to run, the job runs alone: a crash
    /// then proves more.
    fn run_in_group(&mut self, room: Room, moment: &mut Moment) {
        let free = room.permits.saturating_sub(room.used);
        // One by one, if the task may have panicked at one of them.
        let most = if moment.held.defects.has_accused() { 1 } else { (room.permits / 2).max(1) };
        let most = most.min(free + moment.held.counts().quarantined_running);
        let alternates = room.permits == 1 && moment.held.counts().ordinary_waiting() > 0;
        if alternates && self.isolations.quarantined_was_last {
            return;
        }
        let too_long = longest_wait(self.parts.topic.timeout);
        let process = self.parts.environment.process().clone();
        let mut group = Vec::new();
        while moment.held.counts().quarantined_running < most {
            let Some((id, job)) = moment.held.next_to_start(Suspicion::Group) else { break };
            let is_small = job.suspicion == Suspicion::SmallGroup;
            if group.is_empty()
                && moment.held.counts().waiting == 1
                && let Some(alone) = process.enter_alone()
            {
                let entry = alone.enter(too_long);
                return self.isolate(vec![(id, entry)], Some(alone), moment);
            }
            let entry = if is_small { process.enter_small_group(too_long) } else { process.enter(too_long) };
            let Some(entry) = entry else { break };
            moment.held.set(id, Stage::Isolating);
            group.push((id, entry));
        }
        if !group.is_empty() {
            self.isolate(group, None, moment);
        }
    }

    /// Lets these jobs start once the store has noted how they run.
    fn isolate(&mut self, group: Vec<(HeldId, ProcessEntry)>, mut alone: Option<Alone>, moment: &mut Moment) {
        self.isolations.quarantined_was_last = true;
        let mut runs = Vec::with_capacity(group.len());
        let mut isolation = Isolation::Grouped;
        for (id, entry) in group {
            let Some(job) = moment.held.at(id) else { continue };
            runs.push((job.id.clone(), job.token));
            moment.held.set(id, Stage::Isolating);
            moment.held.admit(id, entry, alone.take());
            if moment.held.get(id).is_some_and(|job| job.alone.is_some()) {
                self.isolations.alone = Some(id);
                isolation = Isolation::Alone;
            }
        }
        self.log_isolated(isolation, &runs, moment);
        self.send_isolate(Some(isolation), runs, moment);
    }

    /// At WARN once a minute: a process that dies again and again is nothing that dq can mend.
    fn log_isolated(&mut self, isolation: Isolation, runs: &[(JobId, Token)], moment: &Moment) {
        let jobs = || runs.iter().filter_map(|(id, _)| moment.held.get(moment.held.find(id)?));
        let crashes = jobs().map(|job| job.crashes).max().unwrap_or_default();
        let must_be_alone = jobs().any(|job| job.suspicion == Suspicion::Alone);
        let how = match isolation {
            Isolation::Grouped => "in a group, on half of the permits at most",
            Isolation::Alone if must_be_alone => "alone in the process",
            Isolation::Alone => "alone in the process, until another job wants to run",
        };
        let ids: Vec<_> = runs.iter().take(MAX_SHOWN).map(|(id, _)| id.as_str()).collect();
        let topic = &self.parts.key.topic;
        if self.crashed.is_due(moment.now) {
            tracing::warn!(%topic, jobs = runs.len(), ?ids, crashes, "jobs that ran in processes that died may be the cause, so they run {how}");
        } else {
            tracing::info!(%topic, jobs = runs.len(), ?ids, crashes, "jobs that ran in processes that died may be the cause, so they run {how}");
        }
    }

    /// Without an isolation the store only answers under which ends the runs are.
    fn send_isolate(&self, isolation: Option<Isolation>, runs: Vec<(JobId, Token)>, moment: &mut Moment) {
        let last_seen = moment.flight.last_seen();
        moment.send(Isolate { last_seen, lease: self.parts.node.lease, isolation, runs });
    }

    /// The store has answered how these jobs run; `None`: it noted nothing, because the request was late. A topic that `may_not`
    /// start handlers gives the jobs back.
    pub(crate) fn on_isolated(
        &mut self,
        runs: Vec<(JobId, Token)>,
        notes: Option<Vec<NoteVerdict>>,
        may_not: bool,
        is_good: bool,
        moment: &mut Moment,
    ) {
        let notes = notes.into_iter().flatten().map(Some).chain(std::iter::repeat(None));
        for ((id, token), note) in runs.into_iter().zip(notes) {
            let Some(id) = moment.held.under(&id, token) else { continue };
            let is_isolating = moment.held.at(id).is_some_and(|job| job.stage == Stage::Isolating);
            match note {
                Some(_) if !is_isolating => moment.held.end_alone(id), // it gave way
                _ if !is_isolating => {}
                Some(NoteVerdict::Stale) => moment.held.remove(id),
                Some(NoteVerdict::Ended | NoteVerdict::Cancelled) => moment.held.roll_back(id),
                Some(NoteVerdict::Done) if may_not => moment.held.roll_back(id),
                Some(NoteVerdict::Done) if is_good => match moment.held.take_entry(id) {
                    Some(entry) => self.start_held(id, entry, moment),
                    None => moment.held.set(id, Stage::Waiting),
                },
                Some(NoteVerdict::Done) | None => moment.held.set(id, Stage::Waiting),
            }
        }
    }
}
