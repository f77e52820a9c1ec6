//! The line of a topic to its store: requests go out in order over one link, answers are read in order.
//!
//! When an answer does not come in time the link is dropped, and everything that was under way on it: it may be executed
//! later, or never (PROTOCOL.md rule 6). A new link is made after a pause, and the topic reconciles.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::environment::Environment;
use crate::job::{JobId, NodeId, Sequence, Token, TopicKey};
use crate::store::step::{
    Exhaust, Isolate, LeaseStatus, Noted, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Renew, Scan, Scanned,
    Sequenced, Settle, Settled, Sweep, Swept, Transfer, Transferred, Wake,
};
use crate::store::{Link, Store, StoreError};

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::context) enum RequestKind {
    Transfer,
    Settle,
    Renew,
    Isolate,
    Exhaust,
    Reconcile,
    Reclaim,
    Release,
    Sweep,
    Wake,
    Scan,
}

impl RequestKind {
    const COUNT: usize = Self::Scan as usize + 1;
}

/// Answers, with what the question was about.
#[derive(Debug)]
pub(in crate::context) enum Answer {
    Transferred(Sequenced<Transferred>),
    Settled(Vec<(JobId, Token)>, Settled),
    LeaseStatus(LeaseStatus),
    Isolated(JobId, Token, Noted),
    Exhausted(JobId, Token, Noted),
    Reconciled(Sequenced<Reconciled>),
    Reclaimed(NodeId, Reclaimed),
    Released,
    Swept(Sequenced<Swept>),
    Woken,
    Scanned(Scanned),
}

/// An answer, when its question was sent, and the turn it named.
#[derive(Debug)]
pub(in crate::context) struct Answered {
    pub(in crate::context) kind: RequestKind,
    pub(in crate::context) sent: Duration,
    pub(in crate::context) named: Sequence,
    pub(in crate::context) answer: Result<Answer, StoreError>,
}

struct InFlight {
    kind: RequestKind,
    sent: Duration,
    named: Sequence,
    answer: BoxFuture<'static, Result<Answer, StoreError>>,
}

/// The longest wait before a request is sent again that was refused once.
const FIRST_REFUSAL: Duration = Duration::from_millis(500);
/// The longest wait before a refused request is sent again.
const LONGEST_REFUSAL: Duration = Duration::from_secs(2);
/// The longest wait for the first new link.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a new link.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// See the module.
pub(in crate::context) struct Pipeline {
    store: Arc<dyn Store>,
    topic: TopicKey,
    node: NodeId,
    environment: Environment,
    call_timeout: Duration,
    link: Option<Arc<dyn Link>>,
    in_flight: VecDeque<InFlight>,
    /// The last turn whose answer was read.
    pub(in crate::context) last_seen: Sequence,
    /// Not before this is a request of this kind sent again.
    paused: [Duration; RequestKind::COUNT],
    /// How often in a row each kind was refused.
    refused: [u32; RequestKind::COUNT],
    failures: u32,
    pub(in crate::context) reconnect_at: Duration,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("topic", &self.topic)
            .field("under_way", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(in crate::context) fn new(
        store: Arc<dyn Store>,
        topic: TopicKey,
        node: NodeId,
        environment: Environment,
        call_timeout: Duration,
    ) -> Self {
        Self {
            link: Some(store.link(&topic, &node)),
            store,
            topic,
            node,
            environment,
            call_timeout,
            in_flight: VecDeque::new(),
            last_seen: Sequence::default(),
            paused: [Duration::ZERO; RequestKind::COUNT],
            refused: [0; RequestKind::COUNT],
            failures: 0,
            reconnect_at: Duration::ZERO,
        }
    }

    /// The node that asks.
    pub(in crate::context) const fn node(&self) -> &NodeId {
        &self.node
    }

    pub(in crate::context) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Jobs that the store has dropped, and of which no answer tells.
    pub(in crate::context) fn dropped(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.dropped())
    }

    /// Whether a request of one of these kinds is under way.
    pub(in crate::context) fn busy(&self, kinds: &[RequestKind]) -> bool {
        self.in_flight.iter().any(|request| kinds.contains(&request.kind))
    }

    /// Whether a request of this kind can be sent now: connected, none of its kind under way, not paused.
    pub(in crate::context) fn can_send(&self, kind: RequestKind, now: Duration) -> bool {
        self.link.is_some() && now >= self.paused[kind as usize] && !self.busy(&[kind])
    }

    /// Whether a request of this kind can be sent now though some of its kind are under way: connected, fewer than `most`
    /// of them, not paused.
    pub(in crate::context) fn can_send_beside(&self, kind: RequestKind, most: usize, now: Duration) -> bool {
        let in_flight = self.in_flight.iter().filter(|request| request.kind == kind).count();
        self.link.is_some() && now >= self.paused[kind as usize] && in_flight < most
    }

    /// When a pause of this kind ends, if one is on.
    pub(in crate::context) fn pause_end(&self, kind: RequestKind, now: Duration) -> Option<Duration> {
        Some(self.paused[kind as usize]).filter(|end| *end > now && self.link.is_some())
    }

    /// Sends no request of this kind for a while: for half a second at most, then longer each time it is refused, up to two
    /// seconds; or for several.
    pub(in crate::context) fn pause(&mut self, kind: RequestKind, now: Duration, long: bool) {
        let refused = &mut self.refused[kind as usize];
        let first = if long { LONGEST_PAUSE } else { FIRST_REFUSAL };
        let longest = if long { LONGEST_PAUSE } else { LONGEST_REFUSAL };
        self.paused[kind as usize] = now + self.environment.growing_pause(first, longest, *refused, 5);
        *refused = refused.saturating_add(1);
    }

    /// The store has answered a request of this kind: it is reachable.
    pub(in crate::context) const fn answered(&mut self, kind: RequestKind) {
        self.failures = 0;
        self.refused[kind as usize] = 0;
    }

    fn push<T: Send + 'static>(
        &mut self,
        kind: RequestKind,
        ask: impl FnOnce(&dyn Link) -> BoxFuture<'static, Result<T, StoreError>>,
        answer: impl FnOnce(T) -> Answer + Send + 'static,
    ) {
        let Some(link) = &self.link else { return };
        let told = ask(&**link);
        let answer = Box::pin(async move { told.await.map(answer) });
        self.in_flight.push_back(InFlight { kind, sent: self.environment.now(), named: self.last_seen, answer });
    }

    pub(in crate::context) fn transfer(&mut self, request: Transfer) {
        self.push(RequestKind::Transfer, |link| link.transfer(request), Answer::Transferred);
    }

    pub(in crate::context) fn settle(&mut self, request: Settle) {
        let asked = request.outcomes.iter().map(|outcome| (outcome.id.clone(), outcome.token)).collect();
        self.push(RequestKind::Settle, |link| link.settle(request), |settled| Answer::Settled(asked, settled));
    }

    pub(in crate::context) fn renew(&mut self, request: Renew) {
        self.push(RequestKind::Renew, |link| link.renew(request), Answer::LeaseStatus);
    }

    pub(in crate::context) fn isolate(&mut self, request: Isolate) {
        let (id, token) = (request.id.clone(), request.token);
        self.push(RequestKind::Isolate, |link| link.isolate(request), move |noted| Answer::Isolated(id, token, noted));
    }

    pub(in crate::context) fn exhaust(&mut self, request: Exhaust) {
        let (id, token) = (request.id.clone(), request.token);
        self.push(RequestKind::Exhaust, |link| link.exhaust(request), move |noted| Answer::Exhausted(id, token, noted));
    }

    pub(in crate::context) fn reconcile(&mut self, request: Reconcile) {
        self.push(RequestKind::Reconcile, |link| link.reconcile(request), Answer::Reconciled);
    }

    pub(in crate::context) fn reclaim(&mut self, request: Reclaim) {
        let node = request.node.clone();
        self.push(RequestKind::Reclaim, |link| link.reclaim(request), |reclaimed| Answer::Reclaimed(node, reclaimed));
    }

    pub(in crate::context) fn release(&mut self) {
        let request = Release { last_seen: self.last_seen };
        self.push(RequestKind::Release, |link| link.release(request), |_| Answer::Released);
    }

    pub(in crate::context) fn sweep(&mut self, request: Sweep) {
        self.push(RequestKind::Sweep, |link| link.sweep(request), Answer::Swept);
    }

    pub(in crate::context) fn wake(&mut self) {
        self.push(RequestKind::Wake, |link| link.wake(Wake), |()| Answer::Woken);
    }

    pub(in crate::context) fn scan(&mut self) {
        self.push(RequestKind::Scan, |link| link.scan(Scan), Answer::Scanned);
    }

    /// The next answer; waits for ever while nothing is under way. Cancel safe.
    pub(in crate::context) async fn next_answer(&mut self) -> Answered {
        let Some(first) = self.in_flight.front_mut() else { return std::future::pending().await };
        let answer = (&mut first.answer).await;
        let asked = self.in_flight.pop_front().expect("its answer was just read");
        Answered { kind: asked.kind, sent: asked.sent, named: asked.named, answer }
    }

    /// When the oldest request is given up.
    pub(in crate::context) fn give_up_at(&self) -> Option<Duration> {
        self.in_flight.front().map(|request| request.sent + self.call_timeout)
    }

    pub(in crate::context) fn disconnect(&mut self, now: Duration) {
        self.link = None;
        self.in_flight.clear();
        self.reconnect_at = now + self.environment.growing_pause(FIRST_PAUSE, LONGEST_PAUSE, self.failures, 2);
        self.failures += 1;
    }

    pub(in crate::context) fn connect(&mut self) {
        self.link = Some(self.store.link(&self.topic, &self.node));
    }
}
