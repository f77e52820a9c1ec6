//! The pipeline of a topic: requests go out in order over one link, and their answers are read in that order. Only `renew`
//! is apart, because it must not wait behind a large answer: it may go over another connection, and its answer is read
//! when it comes.
//!
//! When an answer does not come in time, the pipeline drops the link and everything in flight on it, which may be executed
//! later, or never (rule 6). After a pause it opens a new link, and the topic reconciles. An answer that is still arriving
//! is in time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{JobId, NodeId, Sequence, Token, TopicKey};
use crate::store::{Answer, Link, LinkOptions, Pending, Request, Store, StoreError};

pub(super) use crate::store::RequestKind;

/// What a request was about, for the subsystem that handles its answer.
#[derive(Debug)]
pub(super) enum Subject {
    /// The topic as a whole.
    Topic,
    /// These runs.
    Runs(Vec<(JobId, Token)>),
    /// This run.
    Run(JobId, Token),
    /// Another node.
    Node(NodeId),
}

impl Subject {
    fn of(request: &Request) -> Self {
        match request {
            Request::Settle(settle) => {
                Self::Runs(settle.outcomes.iter().map(|outcome| (outcome.id.clone(), outcome.token)).collect())
            }
            Request::Isolate(isolate) => Self::Runs(isolate.runs.clone()),
            Request::Exhaust(exhaust) => Self::Run(exhaust.id.clone(), exhaust.token),
            Request::Reclaim(reclaim) => Self::Node(reclaim.node.clone()),
            _ => Self::Topic,
        }
    }
}

/// An answer and what the request was.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) kind: RequestKind,
    pub(super) subject: Subject,
    /// When the request was sent.
    pub(super) sent: Duration,
    /// The sequence number that the request named.
    pub(super) named: Sequence,
    /// Whether the lease status in the answer is what the node expects. Not for a `renew` with anything else in flight
    /// between its sending and its answer: the store may have executed them in any order.
    pub(super) is_in_order: bool,
    pub(super) answer: Result<Answer, StoreError>,
}

struct InFlight {
    kind: RequestKind,
    subject: Subject,
    sent: Duration,
    named: Sequence,
    answer: Pending<Answer>,
}

/// The longest wait before a request is sent again that was refused once.
const FIRST_REFUSAL: Duration = Duration::from_millis(500);
/// The longest wait before a refused request is sent again.
const LONGEST_REFUSAL: Duration = Duration::from_secs(2);
/// The longest wait for the first new link.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a new link, unless [`longest_pause`] is shorter.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long a node without a link, or with a refused request, waits at most before it tries again: a renewal interval, so that it
/// is back before others take it for dead (rule 20), but no less than half a second and no more than five.
pub(super) fn longest_pause(renewal: Duration) -> Duration {
    renewal.clamp(FIRST_REFUSAL, LONGEST_PAUSE)
}

/// The requests of a topic that are in flight over its link, in order.
pub(super) struct Pipeline {
    store: Arc<dyn Store>,
    topic: TopicKey,
    node: NodeId,
    environment: Environment,
    call_timeout: Duration,
    longest_pause: Duration,
    /// Whether the topic counts what the steps of the link do.
    counts: bool,
    link: Option<Arc<dyn Link>>,
    in_flight: VecDeque<InFlight>,
    /// The `renew` in flight, and how many other requests had been sent before it.
    renewal: Option<(InFlight, u64)>,
    /// How many requests other than `renew` have been sent.
    sent: u64,
    /// The last seen sequence number.
    pub(super) last_seen: Sequence,
    /// Whether the store has reported, in an answer to `renew`, that it executed the claim in flight.
    claim_reported: bool,
    /// The time before which no request of this kind is sent again.
    paused: [Duration; RequestKind::COUNT],
    /// How often in a row the store refused each kind.
    refused: [u32; RequestKind::COUNT],
    failures: u32,
    pub(super) reconnect_at: Duration,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("topic", &self.topic)
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(super) fn new(
        store: Arc<dyn Store>,
        topic: TopicKey,
        node: NodeId,
        environment: Environment,
        settings: &NodeSettings,
        counts: bool,
    ) -> Self {
        Self {
            link: Some(made(&*store, &topic, &node, counts)),
            counts,
            store,
            topic,
            node,
            environment,
            call_timeout: settings.call_timeout,
            longest_pause: longest_pause(settings.renewal),
            in_flight: VecDeque::new(),
            renewal: None,
            sent: 0,
            claim_reported: false,
            last_seen: Sequence::default(),
            paused: [Duration::ZERO; RequestKind::COUNT],
            refused: [0; RequestKind::COUNT],
            failures: 0,
            reconnect_at: Duration::ZERO,
        }
    }

    /// The node that asks.
    pub(super) const fn node(&self) -> &NodeId {
        &self.node
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// How many jobs the store has dropped that no answer reports.
    pub(super) fn dropped(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.dropped())
    }

    fn all_in_flight(&self) -> impl Iterator<Item = &InFlight> {
        self.in_flight.iter().chain(self.renewal.iter().map(|(renewal, _)| renewal))
    }

    /// Whether a request of one of these kinds is in flight.
    pub(super) fn busy(&self, kinds: &[RequestKind]) -> bool {
        self.all_in_flight().any(|request| kinds.contains(&request.kind))
    }

    /// Since when a claim has been in flight: a transfer or a sweep.
    pub(super) fn claiming_since(&self) -> Option<Duration> {
        let is_claim = |request: &&InFlight| matches!(request.kind, RequestKind::Transfer | RequestKind::Sweep);
        self.in_flight.iter().find(is_claim).map(|claim| claim.sent)
    }

    /// The sequence number for a `renew` to name: the last seen one, or that of the claim in flight once the store has
    /// reported that it executed it. The node still waits for that answer, which may be large (rule 6).
    pub(super) fn renewable(&self) -> Sequence {
        let is_reported = self.claim_reported && self.claiming_since().is_some();
        Sequence(self.last_seen.0 + u64::from(is_reported))
    }

    /// Takes note of the sequence number in an answer to `renew`. Returns whether it is that of the claim in flight.
    pub(super) fn reported(&mut self, sequence: Sequence) -> bool {
        self.claim_reported = self.claiming_since().is_some() && sequence.0 == self.last_seen.0 + 1;
        self.claim_reported
    }

    /// Whether a request of this kind can be sent now: connected, none of its kind in flight, not paused.
    pub(super) fn can_send(&self, kind: RequestKind, now: Duration) -> bool {
        self.link.is_some() && now >= self.paused[kind as usize] && !self.busy(&[kind])
    }

    /// Whether a request of this kind can be sent now while some of its kind are in flight: connected, fewer than `most`
    /// of them, not paused.
    pub(super) fn can_send_beside(&self, kind: RequestKind, most: usize, now: Duration) -> bool {
        let in_flight = self.all_in_flight().filter(|request| request.kind == kind).count();
        self.link.is_some() && now >= self.paused[kind as usize] && in_flight < most
    }

    /// When the pause of this kind ends, if there is one.
    pub(super) fn pause_end(&self, kind: RequestKind, now: Duration) -> Option<Duration> {
        Some(self.paused[kind as usize]).filter(|end| *end > now && self.link.is_some())
    }

    /// Pauses requests of this kind: at first for up to half a second, then longer with each refusal, up to two seconds. A
    /// `long` pause takes up to five seconds. None takes longer than [`longest_pause`].
    pub(super) fn pause(&mut self, kind: RequestKind, now: Duration, long: bool) {
        let refused = &mut self.refused[kind as usize];
        let first = if long { LONGEST_PAUSE } else { FIRST_REFUSAL };
        let longest = if long { LONGEST_PAUSE } else { LONGEST_REFUSAL };
        let longest = longest.min(self.longest_pause);
        self.paused[kind as usize] = now + self.environment.growing_pause(first, longest, *refused, 5);
        *refused = refused.saturating_add(1);
    }

    /// Notes that the store has answered a request of this kind.
    pub(super) const fn answered(&mut self, kind: RequestKind) {
        self.failures = 0;
        self.refused[kind as usize] = 0;
    }

    /// Whether the store has refused a request of some kind and has not done one of that kind since.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.iter().any(|refused| *refused > 0)
    }

    /// Sends a request. Does nothing while there is no link.
    pub(super) fn send(&mut self, request: impl Into<Request>) {
        let Some(link) = &self.link else { return };
        let request = request.into();
        let is_renewal = request.kind() == RequestKind::Renew;
        let in_flight = InFlight {
            kind: request.kind(),
            subject: Subject::of(&request),
            sent: self.environment.now(),
            named: if is_renewal { self.renewable() } else { self.last_seen },
            answer: link.ask(request),
        };
        if is_renewal {
            // With a request in flight the count differs when the answer is read.
            let sent = if self.in_flight.is_empty() { self.sent } else { u64::MAX };
            self.renewal = Some((in_flight, sent));
            return;
        }
        if matches!(in_flight.kind, RequestKind::Transfer | RequestKind::Sweep) {
            self.claim_reported = false;
        }
        self.sent += 1;
        self.in_flight.push_back(in_flight);
    }

    /// Returns the next answer. Waits forever while nothing is in flight. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> Answered {
        let Self { in_flight, renewal, .. } = self;
        let (is_renewal, answer) = tokio::select! {
            biased;
            answer = answer_of(in_flight.front_mut()) => (false, answer),
            answer = answer_of(renewal.as_mut().map(|(renewal, _)| renewal)) => (true, answer),
        };
        let (asked, is_in_order) = if is_renewal {
            let (renewal, sent) = self.renewal.take().expect("its answer was just read");
            (renewal, sent == self.sent)
        } else {
            (self.in_flight.pop_front().expect("its answer was just read"), true)
        };
        let InFlight { kind, subject, sent, named, .. } = asked;
        Answered { kind, subject, sent, named, is_in_order, answer }
    }

    /// The kind of the oldest request.
    pub(super) fn next_kind(&self) -> Option<RequestKind> {
        self.in_flight.front().map(|request| request.kind)
    }

    /// When the oldest request is given up: when neither its answer nor any byte over its connection has come for the
    /// call timeout.
    pub(super) fn give_up_at(&self, now: Duration) -> Option<Duration> {
        let oldest = self.in_flight.front().into_iter().chain(self.renewal.iter().map(|(renewal, _)| renewal));
        let give_up_at = |request: &InFlight| {
            let at = request.sent + self.call_timeout;
            if now < at {
                return at;
            }
            let silent_for = self.link.as_ref().and_then(|link| link.silent_for(request.kind));
            at.max(now + silent_for.map_or(Duration::ZERO, |silence| self.call_timeout.saturating_sub(silence)))
        };
        oldest.map(give_up_at).min()
    }

    pub(super) fn disconnect(&mut self, now: Duration) {
        self.link = None;
        self.in_flight.clear();
        self.renewal = None;
        self.claim_reported = false;
        self.reconnect_at = now + self.environment.growing_pause(FIRST_PAUSE, self.longest_pause, self.failures, 2);
        self.failures += 1;
    }

    pub(super) fn connect(&mut self) {
        self.link = Some(made(&*self.store, &self.topic, &self.node, self.counts));
    }
}

fn made(store: &dyn Store, topic: &TopicKey, node: &NodeId, counts: bool) -> Arc<dyn Link> {
    store.link_with(topic, node, LinkOptions { counts })
}

/// The answer to a request; never, if there is none. Cancel safe.
async fn answer_of(request: Option<&mut InFlight>) -> Result<Answer, StoreError> {
    match request {
        Some(request) => (&mut request.answer).await,
        None => std::future::pending().await,
    }
}
