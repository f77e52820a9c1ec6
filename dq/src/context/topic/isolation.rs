//! Isolation: how quarantined jobs run, so that a crash is charged to the job that caused it (rule 19).
//!
//! A job that was in too many crashes first runs in groups, beside ordinary work and on half of the permits at most. If
//! its groups die, it runs alone in its process, in turns with all other work. The store notes how it runs before it starts
//! (`isolate`), so that a reclaimer knows. [`Process`](crate::environment::Process) knows what else runs in this process.

use std::time::Duration;

use super::pipeline::RequestKind;
use super::stats::Quarantine;
use super::{HeldJob, Mode, Stage, Topic, earliest};
use crate::environment::{Alone, Entry, Outlook, Ticket};
use crate::job::{Isolation, JobId, Sequence, Suspicion, Token};
use crate::listener::AckMode;
use crate::store::step::{Isolate, Isolated, NoteVerdict};

/// How many of the quarantined jobs that run `health()` names.
pub(super) const MOST_SHOWN: usize = 16;

/// For how long a quarantined job waits for a handler, or is alone: two timeouts, or ten minutes without one.
pub(super) fn longest_wait(timeout: Option<Duration>) -> Duration {
    timeout.map_or(Duration::from_secs(600), |timeout| timeout * 2)
}

/// What a topic knows of its quarantined jobs, beside what it holds.
#[derive(Debug, Default)]
pub(super) struct Isolations {
    /// The place in the queue of its next job that must run alone.
    ticket: Option<Ticket>,
    /// The job that is alone in the process, unless it is gone since.
    alone: Option<(JobId, Token)>,
    /// With one permit, quarantined and ordinary jobs alternate.
    quarantined_was_last: bool,
    /// What `health()` shows: how many wait, how many run, and which is alone.
    shown: (usize, usize, Option<JobId>),
}

impl Isolations {
    /// Notes that an ordinary job starts.
    pub(super) const fn ordinary_started(&mut self) {
        self.quarantined_was_last = false;
    }
}

impl Topic {
    /// How this job must run. A job that is acked on claim has no row while it runs, so no crash is charged to it.
    pub(super) fn suspicion(&self, job: &HeldJob) -> Suspicion {
        let acked_first = self.parts.topic.ack == AckMode::OnClaim && job.mode == Mode::Due && !job.metadata.exhausted;
        if acked_first { Suspicion::Ordinary } else { Suspicion::of(job.crashes, self.parts.topic.max_crashes) }
    }

    /// Starts quarantined jobs, in groups or alone, and lets others start beside one that was alone for long enough. A
    /// late `isolate` must not take effect, so one is sent only if its sequence number is certain to be the right one.
    pub(super) fn start_quarantined(&mut self, now: Duration) -> Option<Duration> {
        if !self.lease.is_good(now)
            && let Some(id) = self.alone().map(|(id, ..)| id.clone())
        {
            self.held.end_alone(&id); // the store may have convicted the job already, whatever happens now
        }
        let others = [RequestKind::Isolate, RequestKind::Transfer, RequestKind::Sweep, RequestKind::Reconcile];
        if !self.reconciliation.is_settled() || self.pipeline.busy(&others) {
            return None;
        }
        if !self.pipeline.can_send(RequestKind::Isolate, now) {
            return self.pipeline.pause_end(RequestKind::Isolate, now);
        }
        let (alone, is_sent) = self.give_way(now);
        let starts_none = self.takes_no_more() || self.starvation.is_on() || self.pausing.is_on();
        if is_sent || starts_none || !self.lease.is_good(now) {
            return alone;
        }
        let next = self.run_alone();
        if !self.pipeline.busy(&[RequestKind::Isolate]) {
            self.run_in_group();
        }
        earliest([alone, next])
    }

    /// Shows in `health()` which jobs are quarantined, if that changed.
    pub(super) fn update_quarantine(&mut self) {
        let (waiting, running) = (self.held.quarantined_waiting(), self.held.quarantined_running());
        let alone = self.alone().map(|(id, ..)| id.clone());
        let now = (waiting, running, alone);
        if self.isolations.shown == now {
            return;
        }
        let quarantine = (waiting + running > 0).then(|| Quarantine {
            waiting,
            running,
            jobs: self.held.quarantined_ids().take(MOST_SHOWN).map(JobId::to_string).collect(),
            alone: now.2.as_ref().map(JobId::to_string),
        });
        self.parts.stats.set_quarantine(quarantine);
        self.isolations.shown = now;
    }

    /// The job of this topic that is alone in the process.
    fn alone(&self) -> Option<(&JobId, &HeldJob, &Alone)> {
        let (id, token) = self.isolations.alone.as_ref()?;
        let job = self.held.under(id, *token)?;
        Some((id, job, job.alone.as_ref()?))
    }

    /// Ends the isolation of a job that has to give way: the store notes it first. Returns when to ask again, and whether a
    /// request was sent.
    fn give_way(&mut self, now: Duration) -> (Option<Duration>, bool) {
        let Some((id, job, alone)) = self.alone() else { return (None, false) };
        let (id, token, until) = (id.clone(), job.token, alone.since() + longest_wait(self.parts.topic.timeout));
        let runs = matches!(job.stage(), Stage::Running(_) | Stage::Exhausting { .. });
        if !runs || (now < until && !alone.is_wanted()) {
            return (Some(until).filter(|until| *until > now), false);
        }
        self.send_isolate(Isolation::Grouped, vec![(id, token)]);
        (None, true)
    }

    /// Lets the next job run alone that must: its process may start nothing else until then.
    fn run_alone(&mut self) -> Option<Duration> {
        if let Some((id, job, _)) = self.alone()
            && *job.stage() == Stage::Waiting
        {
            // Its `isolate` was not answered, or its `final_retry` waits. It may be noted as alone, so it stays so.
            let (id, token, too_long) = (id.clone(), job.token, longest_wait(self.parts.topic.timeout));
            let entry = job.alone.as_ref().map(|alone| alone.enter(too_long))?;
            self.isolate(vec![(id, token, entry)], None);
            return None;
        }
        let Some((id, token)) = self.held.next_to_run_alone() else {
            self.isolations.ticket = None;
            return None;
        };
        if self.permits_used() >= self.permits.granted() {
            return None;
        }
        let too_long = longest_wait(self.parts.topic.timeout);
        let ticket = self.isolations.ticket.get_or_insert_with(|| self.parts.environment.process().queue());
        match ticket.outlook(too_long) {
            Outlook::Wait(until) => return until,
            Outlook::Beside(entry) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %id, "this job may have killed its process and should run alone, but another handler has run for so long that it runs beside that one");
                self.isolate(vec![(id, token, entry)], None);
            }
            Outlook::Alone(alone) => {
                let entry = alone.enter(too_long);
                self.isolate(vec![(id, token, entry)], Some(alone));
            }
        }
        self.isolations.ticket = None;
        None
    }

    /// Starts as many jobs in a group as half of the permits allow. If nothing else wants to run, the job runs alone: a crash
    /// then proves more.
    fn run_in_group(&mut self) {
        let concurrency = self.permits.granted();
        let most = (concurrency / 2)
            .max(1)
            .min(concurrency.saturating_sub(self.permits_used()) + self.held.quarantined_running());
        let alternates = concurrency == 1 && self.held.ordinary_waiting() > 0;
        if alternates && self.isolations.quarantined_was_last {
            return;
        }
        let too_long = longest_wait(self.parts.topic.timeout);
        let process = self.parts.environment.process().clone();
        let mut group = Vec::new();
        while self.held.quarantined_running() < most {
            let Some((id, token)) = self.held.next_to_group() else { break };
            if group.is_empty()
                && self.held.waiting() == 1
                && let Some(alone) = process.enter_alone()
            {
                let entry = alone.enter(too_long);
                return self.isolate(vec![(id, token, entry)], Some(alone));
            }
            let is_small = self.held.get(&id).is_some_and(|job| job.suspicion == Suspicion::SmallGroup);
            let entry = if is_small { process.enter_small_group(too_long) } else { process.enter(too_long) };
            let Some(entry) = entry else { break };
            self.held.set(&id, Stage::Isolating);
            group.push((id, token, entry));
        }
        if !group.is_empty() {
            self.isolate(group, None);
        }
    }

    /// Lets these jobs start once the store has noted how they run.
    fn isolate(&mut self, jobs: Vec<(JobId, Token, Entry)>, alone: Option<Alone>) {
        self.isolations.quarantined_was_last = true;
        let mut alone = alone;
        let mut runs = Vec::with_capacity(jobs.len());
        for (id, token, entry) in jobs {
            self.held.set(&id, Stage::Isolating);
            self.held.admit(&id, entry, alone.take());
            runs.push((id, token));
        }
        let first =
            runs.first().filter(|(id, token)| self.held.under(id, *token).is_some_and(|job| job.alone.is_some()));
        let isolation = if first.is_some() { Isolation::Alone } else { Isolation::Grouped };
        if let Some(first) = first {
            self.isolations.alone = Some(first.clone());
        }
        self.log_isolated(isolation, &runs);
        self.send_isolate(isolation, runs);
    }

    /// At WARN once a minute: a process that dies again and again is nothing that dq can mend.
    fn log_isolated(&mut self, isolation: Isolation, runs: &[(JobId, Token)]) {
        let now = self.parts.environment.now();
        let jobs = || runs.iter().filter_map(|(id, token)| self.held.under(id, *token));
        let crashes = jobs().map(|job| job.crashes).max().unwrap_or_default();
        let must_be_alone = jobs().any(|job| job.suspicion == Suspicion::Alone);
        let how = match isolation {
            Isolation::Grouped => "in a group, on half of the permits at most",
            Isolation::Alone if must_be_alone => "alone in the process",
            Isolation::Alone => "alone in the process, until another job wants to run",
        };
        let ids: Vec<_> = runs.iter().take(MOST_SHOWN).map(|(id, _)| id.as_str()).collect();
        let topic = &self.parts.key.topic;
        if self.reports.crashed.is_due(now) {
            tracing::warn!(%topic, jobs = runs.len(), ?ids, crashes, "jobs that ran in processes that died may be the cause, so they run {how}");
        } else {
            tracing::info!(%topic, jobs = runs.len(), ?ids, crashes, "jobs that ran in processes that died may be the cause, so they run {how}");
        }
    }

    fn send_isolate(&mut self, isolation: Isolation, runs: Vec<(JobId, Token)>) {
        let (last_seen, lease) = (self.pipeline.last_seen, self.parts.node.lease);
        self.pipeline.send(Isolate { last_seen, lease, isolation, runs });
    }

    pub(super) fn on_isolated(
        &mut self,
        runs: Vec<(JobId, Token)>,
        isolated: Isolated,
        sent: Duration,
        named: Sequence,
        now: Duration,
    ) {
        self.lease.renewed_if(isolated.lease_status, sent, named);
        let notes = isolated.notes.map(|notes| notes.into_iter().map(Some)).into_iter().flatten();
        for ((id, token), note) in runs.into_iter().zip(notes.chain(std::iter::repeat(None))) {
            match self.held.under(&id, token).map(HeldJob::stage) {
                Some(Stage::Isolating) => self.on_note(&id, note, now),
                // It gave way.
                Some(_) if note.is_some() => self.held.end_alone(&id),
                _ => {}
            }
        }
        self.compare_rows(isolated.lease_status);
    }

    /// The store has answered for a job that waits to start; `None`: it noted nothing, because the request was late.
    fn on_note(&mut self, id: &JobId, note: Option<NoteVerdict>, now: Duration) {
        match note {
            Some(NoteVerdict::Stale) => drop(self.held.remove(id)),
            Some(NoteVerdict::Ended) => self.roll_back(id),
            Some(NoteVerdict::Done) if self.stopping.is_ordered() || self.pausing.is_on() => {
                self.roll_back(id);
            }
            Some(NoteVerdict::Done) if self.lease.is_good(now) => match self.held.take_entry(id) {
                Some(entry) => self.start_held(id, now, entry),
                None => self.held.set(id, Stage::Waiting),
            },
            Some(NoteVerdict::Done) | None => self.held.set(id, Stage::Waiting),
        }
    }
}
