//! Reconnect: a link that failed is dropped. Its requests are sent again over a new one, after a reconcile.

use std::time::Duration;

use super::pipeline::RequestKind;
use super::{Stage, Topic};
use crate::store::StoreError;

impl Topic {
    /// Drops a link that does not answer, and makes a new one after a pause.
    pub(super) fn reconnect(&mut self, now: Duration) -> Option<Duration> {
        if let Some(end) = self.pipeline.give_up_at(now).filter(|end| now >= *end) {
            if let Some(kind) = self.pipeline.next_kind() {
                self.budgets.timed_out(kind);
            }
            let waited = humantime::format_duration(end.saturating_sub(now) + self.parts.node.call_timeout);
            let reason = format!("no answer within {waited} (`call_timeout`): the store or the network hangs");
            self.held.unanswered();
            self.fail_link(&StoreError::Unavailable { operation: "a request", reason }, now);
        }
        if self.pipeline.is_connected() {
            return None;
        }
        if now < self.pipeline.reconnect_at {
            return Some(self.pipeline.reconnect_at);
        }
        self.pipeline.connect();
        None
    }

    /// Drops the link. Held jobs stay held, and the topic reconciles before it sends its requests again.
    pub(super) fn fail_link(&mut self, error: &StoreError, now: Duration) {
        tracing::debug!(topic = %self.parts.key.topic, error = %error, "lost the connection to the store; reconnecting");
        self.parts.stats.store_error(error);
        self.pipeline.disconnect(now);
        self.reconciliation.need();
        self.reclaims.forget();
        self.send_again(None);
    }

    /// Notes that requests (of one kind, or all) will not be answered, so that they are sent again.
    pub(super) fn send_again(&mut self, kind: Option<RequestKind>) {
        let is = |wanted| kind.is_none_or(|kind| kind == wanted);
        if is(RequestKind::Reconcile) {
            self.reconciliation.interrupted();
        }
        if is(RequestKind::Transfer) {
            self.pausing.forget_answer();
            self.sleep.wake();
        }
        if is(RequestKind::Scan) {
            self.reclaims.scan_at(Duration::ZERO);
        }
        if is(RequestKind::Sweep) {
            self.sweep_at = Duration::ZERO;
        }
        let sent = |stage: &Stage| match stage {
            Stage::Isolating => is(RequestKind::Isolate),
            Stage::Exhausting { sent } => *sent && is(RequestKind::Exhaust),
            Stage::Settling { sent, .. } => *sent && is(RequestKind::Settle),
            Stage::Waiting | Stage::Making(_) | Stage::Running(_) => false,
        };
        for id in self.held.ids(sent) {
            self.held.unsent(&id);
        }
    }
}
