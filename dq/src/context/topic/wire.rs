//! The wire of a topic: it sends the requests of the [`Flight`] in order over one link, and reads their answers in that order.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::Parts;
use super::flight::Flight;
use crate::store::{Answer, Link, LinkOptions, Pending, RequestKind, StoreError};

/// The link of a topic, and the answers that it awaits.
pub(super) struct Wire {
    parts: Arc<Parts>,
    link: Option<Arc<dyn Link>>,
    answers: VecDeque<Pending<Answer>>,
    renewal: Option<Pending<Answer>>,
    /// Reading an answer has panicked: whether it was that of the `renew`.
    panicked: Option<bool>,
}

impl Wire {
    pub(super) const fn new(parts: Arc<Parts>) -> Self {
        Self { parts, link: None, answers: VecDeque::new(), renewal: None, panicked: None }
    }

    /// How many jobs the store has dropped that no answer reports.
    pub(super) fn dropped(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.dropped())
    }

    /// Follows the flight: drops a lost link, makes a new one, and sends what waits. Returns whether it sent anything.
    pub(super) fn follow(&mut self, flight: &mut Flight) -> bool {
        if !flight.is_connected() {
            self.link = None;
            self.answers.clear();
            self.renewal = None;
            return false;
        }
        let Self { parts, link, answers, renewal, .. } = self;
        let options = LinkOptions {
            counts: parts.topic.statistics,
            concurrency: parts.topic.cluster_concurrency,
            rate: parts.topic.rate,
            ageing: parts.topic.ageing,
            group_concurrency: parts.topic.group_concurrency,
            group_burst: parts.topic.group_burst,
            group_rate: parts.topic.group_rate,
            on_blocked: parts.topic.on_blocked,
        };
        let link = link.get_or_insert_with(|| parts.store.link_with(&parts.key, &parts.id, options));
        let mut sends = false;
        while let Some(request) = flight.next_outgoing() {
            sends = true;
            let is_renewal = request.kind() == RequestKind::Renew;
            let answer = link.ask(request);
            if is_renewal {
                *renewal = Some(answer);
            } else {
                answers.push_back(answer);
            }
        }
        sends
    }

    /// Which answer the task was reading when it panicked: whether it is that of the `renew`. `None`: none.
    pub(super) const fn take_reading(&mut self) -> Option<bool> {
        self.panicked.take()
    }

    /// Returns the next answer, and whether it is that of the `renew`. Waits forever while nothing is in flight. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> (bool, Result<Answer, StoreError>) {
        let (is_renewal, read) = tokio::select! {
            biased;
            answer = answer_of(self.answers.front_mut()) => (false, answer),
            answer = answer_of(self.renewal.as_mut()) => (true, answer),
        };
        let answer = read.unwrap_or_else(|panic| {
            self.panicked = Some(is_renewal);
            resume_unwind(panic)
        });
        if is_renewal {
            self.renewal = None;
        } else {
            self.answers.pop_front();
        }
        (is_renewal, answer)
    }

    /// When the oldest request is given up: when neither its answer nor any byte over its connection has come for the
    /// call timeout.
    pub(super) fn give_up_at(&self, flight: &Flight, now: Duration) -> Option<Duration> {
        let call_timeout = self.parts.node.call_timeout;
        let give_up_at = |(kind, sent)| {
            let at = sent + call_timeout;
            if now < at {
                return at;
            }
            let silent_for = self.link.as_ref().and_then(|link| link.silent_for(kind));
            at.max(now + silent_for.map_or(Duration::ZERO, |silence| call_timeout.saturating_sub(silence)))
        };
        flight.oldest().map(give_up_at).min()
    }
}

/// The answer to a request, or the panic of reading it; never, if there is none. Cancel safe.
async fn answer_of(request: Option<&mut Pending<Answer>>) -> Result<Result<Answer, StoreError>, Box<dyn Any + Send>> {
    let Some(answer) = request else { return std::future::pending().await };
    AssertUnwindSafe(answer).catch_unwind().await
}
