//! The wire of a topic: it sends the requests of the [`Flight`] in order over one link, and reads their answers in that order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Parts;
use super::flight::Flight;
use crate::store::{Answer, Link, LinkOptions, Pending, RequestKind, StoreError};

/// The link of a topic, and the answers that it awaits.
pub(super) struct Wire {
    parts: Arc<Parts>,
    link: Option<Arc<dyn Link>>,
    answers: VecDeque<Pending<Answer>>,
    renewal: Option<Pending<Answer>>,
}

impl Wire {
    pub(super) const fn new(parts: Arc<Parts>) -> Self {
        Self { parts, link: None, answers: VecDeque::new(), renewal: None }
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
        let Self { parts, link, answers, renewal } = self;
        let options = LinkOptions { counts: parts.topic.statistics };
        let link = link.get_or_insert_with(|| parts.store.link_with(&parts.key, &parts.id, options));
        let mut sends = false;
        for request in flight.outgoing() {
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

    /// Returns the next answer, and whether it is that of the `renew`. Waits forever while nothing is in flight. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> (bool, Result<Answer, StoreError>) {
        let Self { answers, renewal, .. } = self;
        tokio::select! {
            biased;
            answer = answer_of(answers.front_mut()) => {
                self.answers.pop_front();
                (false, answer)
            }
            answer = answer_of(renewal.as_mut()) => {
                self.renewal = None;
                (true, answer)
            }
        }
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

/// The answer to a request; never, if there is none. Cancel safe.
async fn answer_of(request: Option<&mut Pending<Answer>>) -> Result<Answer, StoreError> {
    match request {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}
