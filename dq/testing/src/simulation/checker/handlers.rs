//! What a node does with its handlers: which may start beside which (rule 19), and which must stop (rules 9, 10 and 21).

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::rules::without;
use super::crashes::isolation;
use super::record::{Checker, HandlerKind, Run};
use dq::job::{Isolation, JobId, NodeId, Token};
use dq::store::step::{NoteVerdict, is_free_lease};
use dq::time::Timestamp;

/// Tasks need a moment to be polled after a pause, or after a start beside an older run, in µs.
const MOMENT: u64 = 1_000;

impl Checker {
    /// A handler starts: a quarantined job must be isolated, and nothing starts beside an isolated one.
    pub(super) fn check_start(&mut self, node: &NodeId, id: &JobId, number: u64, time: u64) {
        self.check_handler_count(node);
        let (Some(caps), false) = (self.caps, without("19") || self.fell) else { return };
        let Some(job) = self.before.jobs.get(id) else { return };
        let Some(row) = job.row.as_ref().filter(|row| row.token == self.runs[&number].token && row.node == *node)
        else {
            return;
        };
        let (started, must_be_alone) = (isolation(Some(row)), job.crashes > caps.crashes);
        let is_isolated = match started {
            Some(Isolation::Alone) => true,
            Some(Isolation::Grouped) => !must_be_alone,
            None => false,
        };
        if !is_isolated && Self::is_quarantined(job.crashes, caps.crashes) {
            return self.bad(format!("[19] {id} is quarantined, but starts on {node} without being isolated"));
        }
        if let Some(other) = self.alone_on(node, Some(id), time) {
            self.bad(format!("[19] {id} starts on {node} beside {other}, which is isolated"));
        }
        if started == Some(Isolation::Alone) && self.runs_elsewhere {
            self.bad(format!("[19] {id} starts on {node} to be alone, but something of another topic runs there"));
        }
    }

    /// A job of the node, other than `id`, that is to be alone, has run and is not gone. The node counts two timeouts from
    /// its `isolate` on.
    pub(in crate::simulation) fn alone_on(&self, node: &NodeId, id: Option<&JobId>, time: u64) -> Option<JobId> {
        let isolated = self.before.jobs.iter().filter(|(other, job)| {
            let row =
                job.row.as_ref().filter(|row| row.node == *node && isolation(Some(row)) == Some(Isolation::Alone));
            Some(*other) != id && row.is_some()
        });
        let runs = isolated.filter_map(|(other, _)| {
            let run = self.runs.get(self.expected.rows.get(&(node.clone(), other.clone()))?)?;
            let lately = run.since.is_some_and(|since| time < since + self.timeout_micros);
            // Under an unfenced end the node starts nothing of the job any more; its row goes with the outcome.
            let promised = self.expected.promised.get(&run.version);
            let is_ended = promised.is_some_and(|ends| ends.iter().any(|(_, fence)| fence.is_none()));
            let is_over = is_ended && run.ended.len() >= run.started.len();
            (lately && !is_over && !run.made_room).then(|| other.clone())
        });
        runs.into_iter().next()
    }

    /// A node asks to let others start beside runs that were alone. Of a run under an unfenced end the store notes nothing, but
    /// no crash can be charged to its job any more, so others may start all the same.
    pub(super) fn note_room(&mut self, node: &NodeId, runs: &[(JobId, Token, NoteVerdict)]) {
        for (id, token, _) in runs.iter().filter(|(.., verdict)| *verdict == NoteVerdict::Ended) {
            let number = self.expected.rows.get(&(node.clone(), id.clone()));
            if let Some(run) = number.and_then(|number| self.runs.get_mut(number)).filter(|run| run.token == *token) {
                run.made_room = true;
            }
        }
    }

    /// Checks what only shows over time of a node that is neither dead nor, since `awake`, paused or starved.
    pub(in crate::simulation) fn check_handlers(&mut self, node: &NodeId, awake: u64, micros: u64, time: u64) {
        let (floor, length) = (Timestamp::floor_micros(micros), self.node.lease);
        let leased = self.lease_of(node).is_some_and(|end| end > floor);
        let (fell, blocking) = (self.fell || self.jumped, &self.blocking);
        // A job that is acked on claim runs without a row.
        let Some(record) = self.node_records.get_mut(node).filter(|_| !self.acks_on_claim) else { return };
        let mut older = None;
        let mut running: BTreeMap<&JobId, u64> = BTreeMap::new();
        for (number, (id, since)) in record.handlers.iter().filter(|(number, _)| !blocking.contains(number)) {
            let before = running.insert(id, *number).filter(|_| time > since.max(&awake) + MOMENT);
            older = older.or(before.map(|before| (before, id.clone())));
        }
        let lost = !leased && !fell && !running.is_empty();
        record.leaseless = record.leaseless.filter(|_| lost).or(lost.then_some(time)).map(|since| since.max(awake));
        let too_long = record.leaseless.is_some_and(|since| time > since + length.as_micros() as u64 + 1_000 * MOMENT);
        if let Some((number, id)) = older {
            self.bad(format!("[9] {node} runs {id} again, while its run {number} goes on"));
        }
        if too_long {
            self.bad(format!("[21] {node} has had no lease for longer than a lease lasts, but its handlers go on"));
        }
    }

    /// Notes that the handler of this run blocks its thread, so nothing can stop it.
    pub(in crate::simulation) fn blocks(&mut self, number: u64) {
        self.blocking.insert(number);
    }

    /// Checks how long the reclaimer of the jobs of `from` has watched: `watched` µs passed between the creation of its
    /// link and the request, which names `seen` as the end of the lease.
    pub(in crate::simulation) fn check_watch(&mut self, from: &NodeId, seen: Timestamp, watched: u64, micros: u64) {
        if self.caps.is_none() || without("20") {
            return;
        }
        if self.is_calm {
            self.bad(format!("[8] jobs of {from} are reclaimed, though there were only clean stops"));
        }
        // A little less is allowed, because clocks of nodes and of the store need not be equally fast.
        let watch = self.node.heartbeat_interval * 7 / 5;
        let (watched, expired) = (Duration::from_micros(watched), Timestamp::floor_micros(micros).since(seen));
        if !is_free_lease(seen) && (watched < watch || expired < watch && !self.jumped) {
            self.bad(format!(
                "[20] jobs of {from} are reclaimed {expired:?} after the end of its lease by a node that watched for {watched:?}"
            ));
        }
    }
}

impl Run {
    /// A handler of the run starts.
    pub(super) fn starts(&mut self, kind: HandlerKind, time: u64) {
        self.started.push(kind);
        self.since = Some(time);
    }
}
