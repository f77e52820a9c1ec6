//! The wire of a topic: it sends the requests of the [`Flight`] in order over one link, and reads their answers in that order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::flight::Flight;
use crate::job::{NodeId, TopicKey};
use crate::store::{Answer, Link, LinkOptions, Pending, RequestKind, Store, StoreError};

/// The link of a topic, and the answers that it awaits.
pub(super) struct Wire {
    store: Arc<dyn Store>,
    topic: TopicKey,
    node: NodeId,
    /// Whether the topic counts what the steps of the link do.
    counts: bool,
    call_timeout: Duration,
    link: Option<Arc<dyn Link>>,
    answers: VecDeque<Pending<Answer>>,
    renewal: Option<Pending<Answer>>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(
        store: Arc<dyn Store>,
        topic: TopicKey,
        node: NodeId,
        counts: bool,
        call_timeout: Duration,
    ) -> Self {
        Self { store, topic, node, counts, call_timeout, link: None, answers: VecDeque::new(), renewal: None }
    }

    /// How many jobs the store has dropped that no answer reports.
    pub(super) fn dropped(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.dropped())
    }

    /// Follows the flight: drops a lost link, makes a new one, and sends what waits.
    pub(super) fn follow(&mut self, flight: &mut Flight) {
        if !flight.is_connected() {
            self.link = None;
            self.answers.clear();
            self.renewal = None;
            return;
        }
        let Self { store, topic, node, counts, link, answers, renewal, .. } = self;
        let link = link.get_or_insert_with(|| store.link_with(topic, node, LinkOptions { counts: *counts }));
        for request in flight.outgoing() {
            let is_renewal = request.kind() == RequestKind::Renew;
            let answer = link.ask(request);
            if is_renewal {
                *renewal = Some(answer);
            } else {
                answers.push_back(answer);
            }
        }
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
        let give_up_at = |(kind, sent)| {
            let at = sent + self.call_timeout;
            if now < at {
                return at;
            }
            let silent_for = self.link.as_ref().and_then(|link| link.silent_for(kind));
            at.max(now + silent_for.map_or(Duration::ZERO, |silence| self.call_timeout.saturating_sub(silence)))
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
