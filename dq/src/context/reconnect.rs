//! A link that failed: it is dropped, everything that was asked on it is asked again over a new one, after a reconcile.

use std::time::Duration;

use super::topic::pipeline::RequestKind;
use super::topic::{Stage, Topic};
use crate::store::StoreError;

impl Topic {
    /// Gives up a link that does not answer, and makes a new one after a pause.
    pub(super) fn reconnect(&mut self, now: Duration) -> Option<Duration> {
        if let Some(end) = self.pipeline.give_up_at().filter(|end| now >= *end) {
            let waited = humantime::format_duration(end.saturating_sub(now) + self.parts.node.call_timeout);
            let reason = format!("no answer within {waited} (`call_timeout`): it hangs, or the way to it does");
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

    /// Drops the link. What is held stays held; whatever was asked is asked again once the topic has reconciled.
    pub(super) fn fail_link(&mut self, error: &StoreError, now: Duration) {
        tracing::warn!(topic = %self.parts.key, error = %error, "lost the store, trying again");
        self.parts.stats.store_error(error);
        self.pipeline.disconnect(now);
        self.reconciliation.need();
        self.reclaims.forget();
        self.unask(None);
    }

    /// Forgets that requests (of one kind, or all) are under way, so that they are sent again.
    pub(super) fn unask(&mut self, kind: Option<RequestKind>) {
        let is = |wanted| kind.is_none_or(|kind| kind == wanted);
        if is(RequestKind::Reconcile) {
            self.reconciliation.interrupted();
        }
        if is(RequestKind::Transfer) {
            self.sleep.wake();
        }
        if is(RequestKind::Scan) {
            self.reclaims.look_at(Duration::ZERO);
        }
        if is(RequestKind::Sweep) {
            self.age_at = Duration::ZERO;
        }
        let asked = |stage: &Stage| match stage {
            Stage::Beginning => is(RequestKind::Isolate),
            Stage::Exhausting { asked: true } => is(RequestKind::Exhaust),
            Stage::Settling { asked: true, .. } => is(RequestKind::Settle),
            _ => false,
        };
        for id in self.held.ids(asked) {
            let Some(job) = self.held.get(&id) else { continue };
            let stage = match job.stage().clone() {
                Stage::Beginning => Stage::Waiting,
                Stage::Exhausting { .. } => Stage::Exhausting { asked: false },
                Stage::Settling { change, metadata, then_run, .. } => {
                    Stage::Settling { change, metadata, then_run, asked: false }
                }
                other => other,
            };
            self.held.set(&id, stage);
        }
    }
}
