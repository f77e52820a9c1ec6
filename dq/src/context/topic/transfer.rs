//! Transfer: claims due jobs for this node, never more than can start soon.

use std::time::Duration;

use super::pipeline::RequestKind;
use super::{HeldJob, Mode, Stage, Topic, earliest};
use crate::job::{Cause, Metadata};
use crate::listener::Failure;
use crate::store::step::{Change, Claim, Role, Sequenced, Transfer, Transferred, Wake};
use crate::time::Timestamp;

impl Topic {
    /// Sends a transfer when one is due. A node that has a role and no room gives the role up and wakes others.
    pub(super) fn transfer(&mut self, now: Duration) -> Option<Duration> {
        if self.takes_no_more()
            || !self.reconciliation.is_settled()
            || self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep])
        {
            return None;
        }
        if !self.sleep.is_awake(now) {
            return Some(self.sleep.wakes_at());
        }
        let wanted = self.wanted(&[], now);
        let limit = self.asks_for(wanted);
        if limit == 0 {
            return earliest([self.ask_for_state(now), self.give_up_role(now)]);
        }
        if !self.pipeline.can_send(RequestKind::Transfer, now) {
            return self.pipeline.pause_end(RequestKind::Transfer, now);
        }
        self.send_transfer(limit);
        None
    }

    /// While more is due, sends the next transfer before the node takes in what the last one claimed: so the store and the node
    /// work at the same time. Not if topics share their permits, because others may need these more; and not if a quarantined job
    /// waits, because its `isolate` goes out while no transfer is in flight.
    fn transfer_on(&mut self, claimed: &[Claim], now: Duration) {
        if self.takes_no_more()
            || self.pausing.is_on()
            || !self.reconciliation.is_settled()
            || self.permits.is_shared()
            || self.held.quarantined_waiting() > 0
            || claimed.iter().any(|claim| claim.crashes > 0)
            || !self.pipeline.can_send(RequestKind::Transfer, now)
        {
            return;
        }
        let limit = self.wanted(claimed, now);
        if limit > 0 {
            self.send_transfer(limit);
        }
    }

    fn send_transfer(&mut self, limit: usize) {
        let fallback = self.fallback();
        self.sleep.sent(fallback);
        self.pipeline.send(Transfer {
            last_seen: self.pipeline.last_seen,
            limit,
            bytes: self.budgets.claims.bytes(),
            lease: self.parts.node.lease,
            fallback,
            lookahead: self.parts.topic.lookahead,
        });
    }

    /// The period of the fallback scan. After anything else than a whole sleep it is up to a fifth shorter, at random: nodes that
    /// were woken together go apart, and then stay so.
    fn fallback(&self) -> Duration {
        let period = self.parts.node.fallback_scan;
        if self.sleep.slept_out() { period } else { period - self.parts.environment.random_below(period / 5) }
    }

    fn give_up_role(&mut self, now: Duration) -> Option<Duration> {
        if self.held.ordinary_waiting() > 0 && self.active_runs() < self.permits.granted() && !self.is_held_up() {
            return None;
        }
        let at = self.sleep.may_call_wake_at()?;
        if now < at || !self.pipeline.can_send(RequestKind::Wake, now) {
            return Some(at).filter(|at| *at > now).or_else(|| self.pipeline.pause_end(RequestKind::Wake, now));
        }
        self.sleep.called_wake(now);
        self.pipeline.send(Wake);
        None
    }

    pub(super) fn on_transferred(&mut self, sequenced: Sequenced<Transferred>, sent: Duration, now: Duration) {
        let answer = match sequenced {
            Sequenced::Done(answer) => answer,
            Sequenced::Reconcile(_) => return self.reconciliation.need(),
        };
        self.pipeline.last_seen = answer.lease_status.sequence;
        self.sleep.answered(&answer, now);
        self.on_state(answer.state, Some(answer.left), answer.clock, true);
        if !answer.claims.is_empty() || answer.role != Some(Role::Watcher) {
            self.may_have_jobs();
        }
        if let Some((_, end)) = &answer.foreign_lease {
            self.reclaims.scan_at(now + end.since(answer.clock) + Duration::from_millis(1));
        }
        for id in &answer.dropped {
            tracing::error!(topic = %self.parts.key.topic, job.id = %id, "the store has lost the record of this job; the job is dropped");
            self.parts.stats.dropped(1);
        }
        let span = tracing::debug_span!(
            "dq.claim", topic = %self.parts.key.topic, jobs = answer.claims.len(), more = answer.more
        );
        let _claim = span.entered();
        if answer.more {
            self.transfer_on(&answer.claims, now);
        }
        self.admit(answer.claims, Mode::Due, answer.clock);
        if answer.lease_status.rows > 0 {
            self.lease.renewed(sent);
        }
        self.compare_rows(answer.lease_status);
        if answer.more && !self.pipeline.busy(&[RequestKind::Transfer]) && self.wanted(&[], now) == 0 {
            self.give_up_role(now);
        }
    }

    /// Takes in the claimed jobs. The older run of a job that is held already is given up first (rule 9).
    pub(super) fn admit(&mut self, claims: Vec<Claim>, mode: Mode, clock: Timestamp) {
        for claim in claims {
            self.drop_held(&claim.id);
            let (metadata, stage) = self.first_stage(&claim, mode, clock);
            tracing::debug!(job.id = %claim.id, attempt = metadata.attempts, fence = claim.token.fence.0, "claimed");
            self.parts.stats.claimed(clock.since(claim.token.due));
            let mut job = HeldJob::new(claim.token, claim.record, metadata, claim.crashes, mode, stage);
            job.starts_at = self.starts_at(claim.token.due, mode, clock);
            job.suspicion = self.suspicion(&job);
            self.held.insert(claim.id, job);
        }
    }

    /// The metadata and the first stage of a claimed job: undecodable and expired jobs go to DEAD without a run.
    fn first_stage(&mut self, claim: &Claim, mode: Mode, clock: Timestamp) -> (Metadata, Stage) {
        let clock = if mode == Mode::Due { clock.max(claim.token.due) } else { clock };
        let give_up = |metadata: Metadata, cause, error: String| {
            let error = Some(Failure::new(cause, error).message);
            let metadata = Metadata { cause: Some(cause), exhausted: true, error, ..metadata };
            (metadata, Stage::settling(Change::Dead))
        };
        match claim.record.metadata() {
            Err(bad) => give_up(Metadata::default(), Cause::Decode, bad.to_string()),
            Ok(metadata)
                if mode == Mode::Due && !metadata.exhausted && metadata.expires_at.is_some_and(|at| at < clock) =>
            {
                let error = format!("the job expired at {}", metadata.expires_at.unwrap_or_default());
                give_up(metadata, Cause::Expired, error)
            }
            Ok(metadata) if self.takes_no_more() && self.parts.node.crash_rollback => {
                (metadata, Stage::settling(Change::Rollback))
            }
            Ok(metadata) => (metadata, self.tick_of(claim, clock).unwrap_or(Stage::Waiting)),
        }
    }
}
