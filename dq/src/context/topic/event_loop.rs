//! The loop of a topic's task: it takes in events, lets every subsystem do what is due, and waits for the next event.

use std::time::Duration;

use super::pipeline::{Answered, RequestKind, Subject};
use super::{Topic, earliest};
use crate::context::timer::Timer;
use crate::store::step::{Role, Transfer};
use crate::store::{Answer, Signal, StoreError};

/// How many signals the topic takes in before it does anything else.
const SIGNALS_AT_ONCE: usize = 256;

impl Topic {
    /// Runs until the node stops.
    pub(in crate::context) async fn run(mut self) {
        let mut timer = Timer::new(self.parts.environment.clone());
        loop {
            let now = self.parts.environment.now();
            self.take_in(now);
            let wait = self.run_subsystems(now);
            if self.stopping.is_over() {
                break;
            }
            tokio::select! {
                biased;
                answer = self.pipeline.next_answer() => self.on_answer(answer),
                Some(event) = self.events.recv() => {
                    let now = self.parts.environment.now();
                    self.on_run_event(event, now);
                }
                () = self.stopping.ordered() => {}
                signal = self.signals.next() => {
                    // The subscription has told of an error; the fallback scan goes on without signals.
                    if let Ok(signal) = signal {
                        self.on_signal(signal);
                    }
                }
                () = self.process_changes.changed() => {} // another topic or context made room
                () = self.permits.freed() => {}
                () = timer.until(wait) => {}
            }
        }
    }

    /// Takes in the events that are there already, before the time decides anything: a handler that has returned has not
    /// timed out, and its outcome counts even if the lease has expired. Signals too, because a busy topic may never wait.
    fn take_in(&mut self, now: Duration) {
        for _ in 0..self.events.len() {
            let Ok(event) = self.events.try_recv() else { break };
            self.on_run_event(event, now);
        }
        for _ in 0..SIGNALS_AT_ONCE {
            let Some(signal) = self.signals.try_next() else { break };
            self.on_signal(signal);
        }
    }

    /// Lets every subsystem do what is due. Returns when the first of them wants to be asked again. A subsystem comes after
    /// those whose work it watches: timeouts after starts, and the call timeout after all requests.
    fn run_subsystems(&mut self, now: Duration) -> Option<Duration> {
        let deadlines = [
            self.reconnect(now),
            self.stop(now),
            self.reconcile(now),
            self.pause(now),
            self.start_early(now),
            self.share_permits(now),
            self.start_quarantined(now),
            self.start_handlers(now),
            self.expire_lease(now),
            self.check_runs(now),
            self.starve(),
            self.exhaust(now),
            self.settle(now),
            self.renew(now),
            self.transfer(now),
            self.sweep(now),
            self.scan_leases(now),
            self.reclaim(now),
            self.audit(now),
            self.pipeline.give_up_at(now),
        ];
        self.hand_over();
        self.update_stats();
        earliest(deadlines)
    }

    fn on_answer(&mut self, answered: Answered) {
        let now = self.parts.environment.now();
        let Answered { kind, subject, sent, named, is_in_order, answer } = answered;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.on_error(kind, &error, now),
        };
        self.pipeline.answered(kind);
        self.parts.stats.called(kind, now.saturating_sub(sent));
        self.budgets.answered(kind);
        self.parts.stats.dropped(self.pipeline.dropped());
        // A store with a full disk or memory still renews and tells: that is no sign that it does again what it refused.
        let changes_nothing = matches!(
            kind,
            RequestKind::Renew | RequestKind::Reconcile | RequestKind::Scan | RequestKind::Audit | RequestKind::Wake
        );
        let says_little = changes_nothing && self.pipeline.is_refused();
        let works = self.stopped_by.is_none_or(|refused| refused == kind || !self.asks_again(refused));
        if !self.handlers_gone && !says_little && works {
            self.stopped_by = None;
            self.parts.stats.contact();
        }
        match (answer, subject) {
            (Answer::Transfer(transferred), _) => self.on_transferred(transferred, sent, now),
            (Answer::Settle(settled), Subject::Runs(runs)) => self.on_settled(runs, settled, sent, named, now),
            (Answer::Renew(lease_status), _) => self.on_renewed(lease_status, sent, named, is_in_order),
            (Answer::Isolate(isolated), Subject::Runs(runs)) => self.on_isolated(runs, isolated, sent, named, now),
            (Answer::Exhaust(noted), Subject::Run(id, token)) => self.on_exhausted(&id, token, noted, sent, named, now),
            (Answer::Reconcile(reconciled), _) => self.on_reconciled(reconciled),
            (Answer::Reclaim(reclaimed), Subject::Node(node)) => self.on_reclaimed(&node, reclaimed),
            (Answer::Release(_), _) => self.stopping.released(),
            (Answer::Sweep(swept), _) => self.on_swept(swept, sent, now),
            (Answer::Scan(scanned), _) => self.on_scanned(scanned, now),
            (Answer::Audit(page), _) => self.on_audited(page, now),
            (Answer::Recover(recovered), _) => self.on_recovered(&recovered),
            (Answer::Wake(()), _) => {}
            _ => {
                let source = "the store answered a request of another kind".into();
                self.on_error(kind, &StoreError::Other { operation: kind.name(), source }, now);
            }
        }
    }

    /// Whether the topic still has a reason for a request of this kind, which the store refused. Where the reason has gone, because
    /// another node has the job or did the work, no answer to such a request will ever show that the topic works.
    fn asks_again(&self, refused: RequestKind) -> bool {
        match refused {
            RequestKind::Settle => self.held.settling() > 0,
            RequestKind::Exhaust => self.held.is_exhausting(),
            RequestKind::Isolate => self.held.quarantined() > 0,
            RequestKind::Renew => !self.held.is_empty(),
            RequestKind::Reclaim => self.reclaims.knows_expired(),
            RequestKind::Audit | RequestKind::Recover => self.audits.asks(refused),
            RequestKind::Sweep => self.sleep.role() == Some(Role::Watcher),
            RequestKind::Wake => false,
            _ => true,
        }
    }

    /// An error decides nothing about a job. Tokens and sequence numbers judge what the store may still execute. A request
    /// that the store certainly did not execute is sent again after a pause, a long one if an operator must act first.
    fn on_error(&mut self, kind: RequestKind, error: &StoreError, now: Duration) {
        if !error.nothing_done() || error.ends_connection() {
            // What is behind a request that was not done was not done either; but `renew` goes another way.
            if !error.nothing_done() || kind == RequestKind::Renew {
                self.held.unanswered();
            }
            return self.fail_link(error, now);
        }
        if !error.is_outage() {
            self.stopped_by = Some(kind);
        }
        self.parts.stats.store_error(error);
        tracing::debug!(topic = %self.parts.key.topic, ?kind, %error, "the store refused a request; dq sends it again");
        self.pipeline.pause(kind, now, !error.is_outage());
        self.send_again(Some(kind));
    }

    fn on_signal(&mut self, signal: Signal) {
        if matches!(signal, Signal::Due(_) | Signal::Resubscribed) {
            self.may_have_jobs();
        }
        match signal {
            Signal::Due(Some(head)) => {
                self.sleep.head_is(head.before(Transfer::comes_ahead(self.parts.topic.lookahead)));
            }
            Signal::Due(None) => self.sleep.wake(),
            Signal::StateChanged | Signal::Resubscribed => {
                self.pausing.may_have_changed();
                self.sleep.wake();
            }
            Signal::Paused => self.on_paused(),
            Signal::Command(kind, id) => self.on_command(kind, &id),
            Signal::BroadcastDue
            | Signal::Broadcast(_)
            | Signal::Moves(_)
            | Signal::MovesMissed(_)
            | Signal::Interrupted(_) => {}
        }
    }

    fn update_stats(&mut self) {
        self.update_quarantine();
        self.waiting.set(self.bytes_held_up());
        let stats = &self.parts.stats;
        stats.set_current(self.held.len(), self.active_runs(), self.waiting_for_permits(), self.held.settling());
    }
}
