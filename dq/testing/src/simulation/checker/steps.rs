//! A step, compared with what the checker knows, and what nodes and callers report.

use std::time::Duration;

use super::super::version::{mark, version};
use super::record::{AddResult, Checker, Did, End, HandlerKind, Run};
use dq::job::{Delivery, Fence, Isolation, JobId, NodeId, ProducerId, State, Token};
use dq::schedule::schedule_name;
use dq::store::step::{Change, Claim, NoteVerdict, RejoinDue, Verdict};
use dq::store::{AddOutcome, Command, CommandKind, Due, NewJob, OnDuplicate, OutboxPosition};
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

/// How long a node sleeps at most while nothing wakes it, in ms.
const FALLBACK: u64 = 15_000;

impl Checker {
    /// The checker of a topic whose handlers have this timeout, in µs.
    pub(in crate::simulation) fn of(timeout_micros: u64) -> Self {
        Self { timeout_micros, ..Self::default() }
    }

    pub(in crate::simulation) fn bad(&mut self, what: String) {
        self.found.get_or_insert(what);
    }

    pub(in crate::simulation) fn is_repeated(
        &self,
        producer: &ProducerId,
        number: OutboxPosition,
        never: bool,
    ) -> bool {
        !never && self.expected.executed.contains(&(producer.clone(), number))
    }

    pub(in crate::simulation) fn executed(&mut self, producer: &ProducerId, number: OutboxPosition) {
        self.expected.executed.insert((producer.clone(), number));
    }

    pub(in crate::simulation) fn token_of(&self, node: &NodeId, id: &JobId) -> Option<Token> {
        self.before.jobs.get(id)?.row.as_ref().filter(|row| row.node == *node).map(|row| row.token)
    }

    /// Returns whether a node has received this claim.
    pub(in crate::simulation) fn has_received(&self, node: &NodeId, id: &JobId, fence: Fence) -> bool {
        self.delivered.contains_key(&(node.clone(), id.clone(), fence))
    }

    pub(in crate::simulation) fn lease_of(&self, node: &NodeId) -> Option<Timestamp> {
        self.before.leases.get(node).copied()
    }

    /// Returns whether a node has a row whose run it must still hold. A store that falls back may show a row again that was
    /// gone. The node has given that job up, so it need not renew for it, and a reclaim of it takes nothing from the node.
    pub(in crate::simulation) fn holds(&self, node: &NodeId) -> bool {
        let rows = self.before.jobs.iter().filter(|(_, job)| job.row.as_ref().is_some_and(|row| row.node == *node));
        let mut runs = rows.filter_map(|(id, _)| self.expected.rows.get(&(node.clone(), id.clone())));
        runs.any(|run| !self.runs[run].over)
    }

    pub(in crate::simulation) fn claims_received(&mut self, node: &NodeId, claims: &[Claim]) {
        for claim in claims {
            let key = (node.clone(), claim.id.clone());
            // The row may be another node's by now, so look for the run with the token of the claim.
            let run = self.expected.rows.get(&key).copied().filter(|run| self.runs[run].token == claim.token);
            let of_token = |(_, run): &(&u64, &Run)| {
                run.node == *node && run.token == claim.token && run.version == version(&claim.record)
            };
            let run = run.or_else(|| self.runs.iter().rev().find(of_token).map(|(number, _)| *number));
            if let Some(run) = run {
                self.delivered.insert((node.clone(), claim.id.clone(), claim.token.fence), run);
            }
        }
    }

    /// Checks the store after a step.
    pub(in crate::simulation) fn check_step(&mut self, did: &Did, after: View, micros: u64) {
        self.steps += 1;
        let before = std::mem::take(&mut self.before);
        if !after.consistent {
            self.bad("[2] records and places differ".into());
        }
        self.check_order(did, &before, micros);
        self.check_turns(did, &before, micros);
        self.note(did, &before, micros);
        self.note_ticks(did, &before, &after);
        self.check_waiting_broadcasts(did, &before, &after, micros);
        let (mut old, mut new) = (before.jobs.iter().peekable(), after.jobs.iter().peekable());
        while let Some(id) = old.peek().into_iter().chain(new.peek()).map(|(id, _)| *id).min() {
            let was = old.next_if(|(other, _)| *other == id).map(|(_, job)| job);
            let is = new.next_if(|(other, _)| *other == id).map(|(_, job)| job);
            if !is_same(was, is) {
                self.touch_groups(id, was, is, micros);
                self.check_job(did, id, (was, is), after.broadcasts.get(id), micros);
            }
        }
        self.check_effects(did, &before, &after);
        self.before = after;
    }

    /// Records what a step says it did, before the checker compares.
    pub(super) fn note(&mut self, did: &Did, before: &View, micros: u64) {
        match did {
            Did::Add { jobs } => {
                self.check_waiting(jobs, before);
                for (job, outcome) in jobs {
                    self.note_add(job, outcome, before, micros);
                }
            }
            Did::Command { items } => {
                for (item, _) in items.iter().filter(|(_, outcome)| outcome.other_version.is_none()) {
                    self.note_command(item, before.jobs.get(&item.id));
                }
            }
            Did::Change { items } => {
                for (item, outcome) in items {
                    self.note_change(item, outcome, before, micros);
                }
            }
            Did::Claim { node, claims, aged } => {
                for claim in claims {
                    self.check_may_take(&claim.id, (!aged).then_some(claim.token.due), micros);
                    self.note_claim(node, claim, *aged, micros);
                }
                if !aged {
                    self.check_no_tick_waits(claims, before, micros);
                    self.note_lost_turns(before, micros);
                }
            }
            Did::Set { set, answer } => self.note_set(set, &answer.now, micros),
            Did::RefuseAdd => self.check_drains(true),
            Did::Settle { node, outcomes } => {
                for (outcome, verdict) in outcomes {
                    if *verdict == Verdict::Done {
                        self.note_outcome(node, outcome, before.jobs.get(&outcome.id));
                        self.note_state_of(outcome, before.jobs.get(&outcome.id));
                        self.note_result_of(outcome, before.jobs.get(&outcome.id));
                        if let Change::Rejoin(RejoinDue::BackOff(delay)) = outcome.change {
                            let group = before.jobs.get(&outcome.id).and_then(|job| job.record.group());
                            self.note_back_off(node, &outcome.id, group.map(|(_, name)| name), delay, micros);
                        }
                    }
                }
            }
            Did::Note { node, runs, isolation: Some(Isolation::Grouped), .. } => self.note_room(node, runs),
            Did::Note { runs, isolation: None, state, .. } => {
                for (id, token, _) in runs.iter().filter(|(.., note)| *note == NoteVerdict::Done) {
                    self.note_state(id, *token, state.clone(), before.jobs.get(id));
                }
            }
            Did::Keep { id, token, number, state } => {
                if self.is_next_note(id, *token, *number) {
                    self.note_state(id, *token, state.clone(), before.jobs.get(id));
                }
            }
            Did::Nothing | Did::Note { .. } | Did::Reclaim { .. } | Did::Publish { .. } => {}
        }
    }

    fn note_add(&mut self, job: &NewJob, outcome: &AddOutcome, before: &View, micros: u64) {
        let version = version(&job.record);
        let took_effect = outcome.is_taken();
        self.check_taken(job, outcome, took_effect, micros);
        if !took_effect {
            // A store that fell back may have lost its answer, and then a copy that comes late is no repeat.
            if self.expected.effected.contains(&version) && !self.fell {
                self.bad(format!("[18] the add of {version} is answered that its own job exists"));
            }
            return;
        }
        self.check_drains(false);
        if !self.expected.effected.insert(version) {
            self.bad(format!("[18] the add of {version} ({}) took effect twice", job.id));
        }
        // A store that fell back may have lost its answer, and then takes a copy of the call that comes late.
        if self.not_added.contains(&version) && !self.fell {
            self.bad(format!("[18] the add of {version} took effect after its caller got NotAdded"));
        }
        let now = micros / 1000 * 1000;
        let after = |delay: Duration| if delay.is_zero() { now } else { micros + delay.as_micros() as u64 };
        let due = match job.due {
            Due::Usual(usual) => after(self.usual(usual)),
            Due::After(delay) => after(delay),
            Due::At(at) => now.max(at.as_millis() * 1000),
        };
        if let AddOutcome::Extended { due, .. } = outcome {
            return self.note_extension(job, version, *due, (before, micros));
        }
        self.expected.due.insert(version, due);
        if job.deliver != Delivery::Queue {
            self.expected.broadcasts.added(version, due, job.deliver == Delivery::Both);
        }
    }

    /// An id that is taken is not added again, and one that is free counts as existing only while its job is there.
    fn check_taken(&mut self, job: &NewJob, outcome: &AddOutcome, took_effect: bool, micros: u64) {
        let (id, now) = (&job.id, Timestamp::floor_micros(micros));
        let taken = self.expected.taken.get(id).copied().filter(|until| *until > now);
        let keeps = matches!(job.on_duplicate, OnDuplicate::Reject | OnDuplicate::Keep);
        if took_effect && keeps && taken.is_some() {
            self.bad(format!("[18] {id} is added again, though its id is taken until {taken:?}"));
        }
        if matches!(outcome, AddOutcome::Deleted | AddOutcome::Exists(State::Done)) && taken.is_none() {
            self.bad(format!("[18] {id} counts as existing, though its id is free and its job gone"));
        }
        let until = job.unique_for.map(|time| Timestamp::ceil_micros(micros + time.as_micros() as u64)).max(taken);
        if let Some(until) = until.filter(|_| took_effect) {
            self.expected.taken.insert(id.clone(), until);
        }
    }

    fn note_command(&mut self, item: &Command, job: Option<&JobView>) {
        let Some(job) = job else { return };
        if job.state != State::Running || matches!(item.verb, CommandKind::Requeue | CommandKind::Pass) {
            return;
        }
        let promised = self.expected.promised.entry(version(&job.record)).or_default();
        let ended = promised.iter().any(|(_, fence)| fence.is_none());
        if !ended || item.verb != CommandKind::Ack {
            promised.push((item.verb, item.fence));
        }
    }

    fn note_claim(&mut self, node: &NodeId, claim: &Claim, aged: bool, micros: u64) {
        let version = version(&claim.record);
        let due = claim.token.due.as_millis() * 1000;
        if !aged && micros + self.lookahead < due {
            self.bad(format!("[4] {} ({version}) is claimed {} µs early", claim.id, due - micros));
        }
        if self.expected.marks.get(&version).is_some_and(|wanted| *wanted != mark(&claim.record)) {
            self.bad(format!("[28] {} ({version}) is claimed without the payload of its last update", claim.id));
        }
        let state = claim.record.metadata().ok().and_then(|metadata| metadata.state);
        self.check_state(&claim.id, version, state.as_ref());
        let last = self.fences.entry(claim.id.clone()).or_default();
        let fell = claim.token.fence <= *last;
        *last = claim.token.fence.max(*last);
        if fell && !(self.fell && self.jumped) {
            self.bad(format!("[9] the fence of {} does not grow: {}", claim.id, claim.token.fence));
        }
        let group = claim.record.group().map(|(_, name)| name.to_owned());
        if let (Some(since), Some(put), false) =
            (self.punctual_since, self.expected.put.get(&version), aged || group.is_some())
        {
            let wanted = claim.token.due.as_millis().max(since).max(*put).max(self.lateness_until);
            let gate = &self.expected.gate;
            let is_tick = schedule_name(&claim.id).is_some();
            let wanted = wanted.max(if is_tick { gate.open_for_ticks_since() } else { gate.open_since() });
            let late = (micros / 1000).saturating_sub(wanted);
            // What the nodes have changes with a step of the topic, so after the last one a permit was free, or still none.
            if late > 400 && self.permit_free {
                self.bad(format!("[23] {} ({version}) is claimed {late} ms late without a fault", claim.id));
            }
        }
        let number = self.runs.len() as u64 + 1;
        self.expected.rows.insert((node.clone(), claim.id.clone()), number);
        self.check_slots(&claim.id);
        let fixed = claim.record.fixed();
        let now = Timestamp::floor_micros(micros);
        let now = if aged { now } else { now.max(claim.token.due) }; // it may be claimed before it is due
        let is_over = |at: Timestamp| at < now;
        let run = Run {
            node: node.clone(),
            token: claim.token,
            version,
            group: group.clone(),
            claimed_at: micros,
            aged,
            started: Vec::new(),
            polled: Vec::new(),
            given_back: false,
            since: None,
            ended: Vec::new(),
            decided: None,
            expired: !aged && !fixed.exhausted && fixed.expires_at.is_some_and(is_over),
            over: false,
            acked: false,
            made_room: false,
        };
        self.runs.insert(number, run);
        if let Some(name) = group.filter(|_| !aged && self.group_limit > 0) {
            self.check_group(claim, &name, micros);
        }
    }

    /// A node dies. It may have been the watcher, and the only one that knew of the head: what waits then waits for the
    /// fallback of another node, and so does what is added behind it.
    pub(in crate::simulation) fn node_dies(&mut self, node: &NodeId, time: u64, micros: u64) {
        let record = self.node_records.entry(node.clone()).or_default();
        (record.dead, record.died_at) = (true, time);
        if self.before.jobs.values().any(|job| job.state == State::Delayed) {
            self.lateness_until = self.lateness_until.max(micros / 1000 + FALLBACK);
        }
    }

    /// Records that the task of a topic panics on this node. What its handlers have decided may be lost: then the jobs go back.
    pub(in crate::simulation) fn node_panics(&mut self, node: &NodeId) {
        self.node_records.entry(node.clone()).or_default().panics += 1;
        self.runs.values_mut().filter(|run| run.node == *node).for_each(|run| run.decided = None);
    }

    /// Records that a handler starts, and returns the number of its run.
    pub(in crate::simulation) fn started(
        &mut self,
        node: &NodeId,
        id: &JobId,
        fence: Fence,
        kind: HandlerKind,
        now: (u64, u64),
    ) -> u64 {
        let (micros, time) = now;
        self.handled += 1;
        let Some(number) = self.delivered.get(&(node.clone(), id.clone(), fence)).copied() else {
            self.bad(format!("a handler of {id} starts on {node} under fence {fence}, which it never received"));
            return 0;
        };
        let Run { version, expired, .. } = self.runs[&number];
        self.check_starts_under(id, micros);
        if schedule_name(id).is_some() {
            self.bad(format!("[30] a handler of the schedule {id} ({version}) starts"));
        }
        if kind == HandlerKind::OnDue && expired {
            self.bad(format!("[4] on_due of {id} ({version}), which had expired when it was claimed"));
        }
        if let Some(run) = self.runs.get_mut(&number) {
            run.starts(kind, time);
        }
        self.node_records.entry(node.clone()).or_default().handlers.insert(number, (id.clone(), time.max(1)));
        self.check_start(node, id, number, time);
        let lease = self.lease_of(node).unwrap_or_default();
        let acked_before = self.acks_on_claim && kind == HandlerKind::OnDue;
        if acked_before {
            self.check_acked(id, number);
        }
        if !(self.jumped || self.fell || acked_before) && lease.as_millis() * 1000 <= micros {
            self.bad(format!("[21] {node} starts a handler of {id} without a lease"));
        }
        let current = self.expected.rows.get(&(node.clone(), id.clone())) == Some(&number);
        if current && kind == HandlerKind::OnDue && self.expected.finals.contains(&version) {
            self.bad(format!("[15] on_due of {id} ({version}) after its on_exhausted"));
        }
        if current && kind == HandlerKind::OnDue && self.expected.parked.contains(&version) {
            self.bad(format!("[25] on_due of {id} ({version}), which is parked"));
        }
        // The store need not know of a run that belongs to a lost part of its history.
        if kind == HandlerKind::Final && (current || !self.fell) {
            self.expected.finals.insert(version);
        }
        number
    }

    /// The handler of a run is polled for the first time, at this time of the store's clock.
    pub(in crate::simulation) fn begins(&mut self, number: u64, kind: HandlerKind, micros: u64) {
        let Some(run) = self.runs.get_mut(&number) else { return };
        run.polled.push(kind);
        let (version, given_back) = (run.version, run.given_back);
        let early = (run.token.due.as_millis() * 1000).saturating_sub(micros);
        let is_early = early > 0 && !run.aged;
        if kind == HandlerKind::Final {
            self.crash_records.entry(version).or_default().final_polled = true;
        }
        if self.is_slow {
            self.check_once(number, kind);
        }
        if is_early && !self.jumped {
            self.bad(format!("[4] run {number} of {version} begins {early} µs early"));
        }
        if given_back {
            self.bad(format!("[14] run {number} of {version} begins, though its node gave the job back"));
        }
    }

    /// Records that a handler has ended, or was abandoned and is gone.
    pub(in crate::simulation) fn ended(&mut self, node: &NodeId, number: u64, end: End) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.ended.push(end);
        }
        if let Some(record) = self.node_records.get_mut(node).filter(|record| !record.dead) {
            record.handlers.remove(&number);
        }
    }

    /// After a crash the store may give out a fence again that never left it.
    pub(in crate::simulation) fn forget_unseen_fences(&mut self) {
        self.fences.clear();
        for (_, id, fence) in self.delivered.keys() {
            let last = self.fences.entry(id.clone()).or_default();
            *last = (*last).max(*fence);
        }
    }

    /// After an outage or a fall-back no node is known to agree with the store until it has reconciled. An idle node learns
    /// of a fall-back only with its next request.
    pub(in crate::simulation) fn unsettle(&mut self, now: u64) {
        for record in self.node_records.values_mut() {
            (record.disturbed_at, record.settled) = (now, None);
        }
    }

    pub(in crate::simulation) fn reconciled(&mut self, node: &NodeId, now: u64) {
        self.node_records.entry(node.clone()).or_default().settled.get_or_insert(now);
    }

    /// The adds of these jobs leave their program.
    pub(in crate::simulation) fn sends(&mut self, jobs: &[NewJob]) {
        self.sent.extend(jobs.iter().map(|job| version(&job.record)));
    }

    /// Checks what a caller learns of its add.
    pub(in crate::simulation) fn add_answered(&mut self, version: u64, result: AddResult) {
        match result {
            AddResult::Added if !self.expected.effected.contains(&version) && !self.fell => {
                self.bad(format!("[18] the caller of {version} was answered that it is added, but it is not"));
            }
            AddResult::NotAdded if self.expected.effected.contains(&version) => {
                self.bad(format!("[18] the caller of {version} was answered NotAdded, but it is added"));
            }
            AddResult::NotAdded => drop(self.not_added.insert(version)),
            AddResult::Unknown if !self.sent.contains(&version) => {
                self.bad(format!("[18] the caller of {version} was answered Unknown, but its job was never sent"));
            }
            AddResult::Exists if self.expected.effected.contains(&version) => {
                self.bad(format!("[18] the caller of {version} was answered that another job exists, but it is added"));
            }
            _ => {}
        }
    }

    /// How many versions have ended, including DEAD and DONE jobs.
    pub(in crate::simulation) fn lives(&self) -> u64 {
        let kept = self.before.jobs.values().filter(|job| matches!(job.state, State::Dead | State::Done));
        (self.expected.ended.len() + self.expected.broadcasts.over() + kept.count()) as u64
    }

    /// What has not ended yet.
    pub(in crate::simulation) fn unfinished(&self) -> Option<String> {
        let open = |state| matches!(state, State::Delayed | State::Running | State::Unacked);
        let left: Vec<_> = self.before.jobs.iter().filter(|(_, job)| open(job.state)).collect();
        let text = |(id, job): &(&JobId, &JobView)| format!("{id} {} {:?}", job.state, job.row);
        let broadcasts = self.before.broadcasts.iter().map(|(id, (due, _))| format!("the broadcast {id} due at {due}"));
        let left: Vec<_> = left.iter().map(text).chain(broadcasts).collect();
        (!left.is_empty()).then(|| left.join(", "))
    }
}

/// Returns whether nothing of a job has changed. The bytes of a record that the store did not touch are not compared.
fn is_same(was: Option<&JobView>, is: Option<&JobView>) -> bool {
    let (Some(was), Some(is)) = (was, is) else { return was.is_none() && is.is_none() };
    let (old, new) = (was.record.as_bytes(), is.record.as_bytes());
    let untouched = old.as_ptr() == new.as_ptr() && old.len() == new.len();
    (was.state, was.crashes, was.at) == (is.state, is.crashes, is.at)
        && (&was.row, &was.replacement) == (&is.row, &is.replacement)
        && (untouched || old == new)
}
