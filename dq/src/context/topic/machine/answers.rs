//! What the machine does at an answer of the store, and at the lack of one.

use std::time::Duration;

use super::{Claimed, Machine};
use crate::context::topic::flight::{Asked, Subject};
use crate::context::topic::stage::Mode;
use crate::job::Sequence;
use crate::store::step::{LeaseStatus, Role, Sequenced, Swept, Transferred};
use crate::store::{Answer, RequestKind, StoreError, other_kind};

impl Machine {
    pub(super) fn on_answer(&mut self, asked: Asked, answer: Result<Answer, StoreError>, dropped: usize) {
        let Asked { kind, subject, sent, named, is_in_order } = asked;
        self.parts.stats.count.dropped.add(dropped);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.on_error(kind, &error),
        };
        self.moment.flight.done(kind);
        self.parts.stats.called(kind, self.moment.now.saturating_sub(sent));
        self.note_contact(kind);
        self.progressed |= !matches!(kind, RequestKind::Reconcile | RequestKind::Renew);
        match (answer, subject) {
            (Answer::Transfer(transferred), _) => self.on_transferred(transferred, sent),
            (Answer::Sweep(swept), _) => self.on_swept(swept, sent),
            (Answer::Settle(settled), Subject::Outcomes(jobs)) => {
                self.outcomes.on_settled(jobs, settled.verdicts, &mut self.moment);
                self.route();
                self.on_lease_status(settled.lease_status, sent, named);
            }
            (Answer::Renew(status), _) if is_in_order => self.on_lease_status(status, sent, named),
            (Answer::Renew(status), _) => self.lease.on_overtaking_renewal(status, sent, named, &mut self.moment),
            (Answer::Isolate(isolated), Subject::Runs(runs)) => {
                self.lease.renewed_if(isolated.lease_status, sent, named, &self.moment.held);
                let may_not = self.stopping.is_ordered() || self.claims.is_paused();
                let is_good = self.lease.is_good(self.moment.now);
                self.runs.on_isolated(runs, isolated.notes, may_not, is_good, &mut self.moment);
                self.lease.compare(isolated.lease_status, &self.moment);
            }
            (Answer::Isolate(isolated), Subject::Commands(runs)) => {
                self.lease.renewed_if(isolated.lease_status, sent, named, &self.moment.held);
                self.runs.on_commands_read(runs, isolated.notes, &self.moment.held);
                self.lease.compare(isolated.lease_status, &self.moment);
            }
            (Answer::Exhaust(noted), Subject::Run(id, token)) => {
                self.lease.renewed_if(noted.lease_status, sent, named, &self.moment.held);
                let may_start =
                    self.lease.is_good(self.moment.now) && !self.stopping.is_cancelling() && !self.claims.is_paused();
                self.outcomes.on_exhausted(&id, token, &noted.note, may_start, &mut self.moment);
                self.route();
                self.lease.compare(noted.lease_status, &self.moment);
            }
            (Answer::Note(noted), _) => {
                self.lease.renewed_if(noted.lease_status, sent, named, &self.moment.held);
                self.outcomes.on_noted(noted.note, &mut self.moment.held);
                self.lease.compare(noted.lease_status, &self.moment);
            }
            (Answer::Reconcile(reconciled), _) => self.lease.on_reconciled(reconciled, &mut self.moment),
            (Answer::Reclaim(reclaimed), Subject::Node(node)) => {
                if self.lease.on_reclaimed(&node, reclaimed) {
                    self.claims.wake();
                }
            }
            (Answer::Release(_), _) => self.stopping.released(),
            (Answer::Scan(mut scanned), _) => {
                self.claims.on_state(scanned.state.take(), Some(scanned.left), scanned.clock, false, self.moment.now);
                self.lease.on_scanned(&scanned, &self.parts.id, self.is_watcher(), self.moment.now);
            }
            (Answer::Audit(page), _) => self.lease.on_audited(page, self.moment.now),
            (Answer::Recover(recovered), _) => self.lease.on_recovered(&recovered, self.moment.now),
            (Answer::Wake(()), _) => {}
            _ => self.on_error(kind, &other_kind(kind.name())),
        }
    }

    /// The store has done a request of this kind, which may show that the topic works.
    fn note_contact(&mut self, kind: RequestKind) {
        // A store with a full disk or memory still renews and tells: that is no sign that it does again what it refused.
        let changes_nothing = matches!(
            kind,
            RequestKind::Renew | RequestKind::Reconcile | RequestKind::Scan | RequestKind::Audit | RequestKind::Wake
        );
        let says_little = changes_nothing && self.moment.flight.is_refused();
        let works = self.stopped_by.is_none_or(|refused| refused == kind || !self.asks_again(refused));
        if !self.runs.are_over() && !says_little && works {
            self.stopped_by = None;
            self.parts.stats.condition.contact();
        }
    }

    /// Whether the topic still has a reason for a request of this kind, which the store refused. Where the reason has gone, because
    /// another node has the job or did the work, no answer to such a request will ever show that the topic works.
    fn asks_again(&self, refused: RequestKind) -> bool {
        match refused {
            RequestKind::Sweep => self.is_watcher(),
            RequestKind::Wake | RequestKind::Note => false,
            _ => self.moment.held.asks(refused) && self.lease.asks(refused),
        }
    }

    fn on_lease_status(&mut self, status: LeaseStatus, sent: Duration, named: Sequence) {
        self.lease.renewed_if(status, sent, named, &self.moment.held);
        self.lease.compare(status, &self.moment);
    }

    fn on_transferred(&mut self, sequenced: Sequenced<Transferred>, sent: Duration) {
        let Sequenced::Done(mut answer) = sequenced else {
            return self.lease.need_reconcile();
        };
        self.moment.flight.saw(answer.lease_status.sequence);
        let load = self.load();
        self.claims.on_transferred(&mut answer, load, &mut self.moment);
        if !answer.claims.is_empty() || answer.role != Some(Role::Watcher) {
            self.may_have_jobs();
        }
        let foreign_lease = answer.foreign_lease.as_ref();
        self.lease.transferred(foreign_lease.map(|(_, end)| end.since(answer.clock)), self.moment.now);
        answer.dropped.iter().for_each(|id| self.outcomes.report_dropped(id));
        let Transferred { claims, clock, lease_status, more, .. } = answer;
        self.claimed = Some(Claimed { claims, mode: Mode::Due, clock, lease_status, sent, more });
    }

    fn on_swept(&mut self, sequenced: Sequenced<Swept>, sent: Duration) {
        let Sequenced::Done(mut answer) = sequenced else {
            return self.lease.need_reconcile();
        };
        self.moment.flight.saw(answer.lease_status.sequence);
        self.claims.on_swept(&mut answer, self.moment.now);
        let Swept { claims, clock, lease_status, .. } = answer;
        self.claimed = Some(Claimed { claims, mode: Mode::Swept, clock, lease_status, sent, more: false });
    }

    /// How many jobs wait to be admitted.
    pub(crate) fn claimed(&self) -> usize {
        self.claimed.as_ref().map_or(0, |claimed| claimed.claims.len())
    }

    /// Takes in the jobs that the last event has brought. The older run of a job that is held already is given up first (rule 9).
    pub(crate) fn admit(&mut self) {
        let Some(claimed) = self.claimed.take() else { return };
        self.begin("admitting");
        let Claimed { claims, mode, clock, lease_status, sent, more } = claimed;
        let span = tracing::debug_span!("dq.claim", topic = %self.parts.key.topic, jobs = claims.len(), more);
        let _claim = span.entered();
        let is_over = self.takes_no_more();
        for claim in claims {
            if let Some(older) = self.moment.held.find(&claim.id) {
                self.runs.forget(older, &mut self.moment.held);
            }
            let starts_at = self.claims.starts_at(claim.token.due, mode, clock);
            self.outcomes.admit(claim, mode, clock, starts_at, is_over, &mut self.moment);
        }
        self.on_lease_status(lease_status, sent, lease_status.sequence);
        let load = self.load();
        self.claims.on_admitted(more, load, &mut self.moment);
        self.route();
    }

    /// An error decides nothing about a job. Tokens and sequence numbers judge what the store may still execute. A request
    /// that the store certainly did not execute is sent again after a pause, a long one if an operator must act first.
    fn on_error(&mut self, kind: RequestKind, error: &StoreError) {
        if !error.nothing_done() || error.ends_connection() {
            // What is behind a request that was not done was not done either; but `renew` goes another way.
            if !error.nothing_done() || kind == RequestKind::Renew {
                self.moment.held.unanswered();
            }
            return self.fail_link(error);
        }
        if !error.is_outage() {
            self.stopped_by = Some(kind);
        }
        self.parts.stats.condition.store_error(error);
        tracing::debug!(topic = %self.parts.key.topic, ?kind, %error, "the store refused a request; dq sends it again");
        self.moment.flight.pause(kind, self.moment.now, !error.is_outage());
        self.send_again(Some(kind));
    }

    /// Drops a link that does not answer.
    pub(super) fn on_unanswered(&mut self, waited: Duration) {
        self.moment.flight.timed_out();
        let waited = humantime::format_duration(waited);
        let reason = format!("no answer within {waited} (`call_timeout`): the store or the network hangs");
        self.moment.held.unanswered();
        self.fail_link(&StoreError::Unavailable { operation: "a request", reason });
    }

    /// Drops the link. Held jobs stay held, and the topic reconciles before it sends its requests again.
    fn fail_link(&mut self, error: &StoreError) {
        tracing::debug!(topic = %self.parts.key.topic, error = %error, "lost the connection to the store; reconnecting");
        self.parts.stats.condition.store_error(error);
        self.moment.flight.disconnect(self.moment.now);
        self.lease.lost_link();
        self.send_again(None);
    }

    /// Notes that requests (of one kind, or all) will not be answered, so that they are sent again.
    fn send_again(&mut self, kind: Option<RequestKind>) {
        self.lease.send_again(kind);
        self.claims.send_again(kind);
        self.runs.send_again(kind);
        self.outcomes.send_again(kind);
        self.moment.held.send_again(kind);
    }
}
