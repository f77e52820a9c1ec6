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
use crate::job::{JobId, NodeId, Token, TopicKey, Turn};
use crate::store::step::{
    Age, Aged, Begin, Exhaust, Hold, Noted, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Scan, Scanned, Settle,
    Settled, Standing, Transfer, Transferred, Turned, Wake,
};
use crate::store::{Link, Store, StoreError};

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::context) enum Kind {
    Transfer,
    Settle,
    Hold,
    Begin,
    Exhaust,
    Reconcile,
    Reclaim,
    Release,
    Age,
    Wake,
    Scan,
}

impl Kind {
    const COUNT: usize = Self::Scan as usize + 1;
}

/// Answers, with what the question was about.
#[derive(Debug)]
pub(in crate::context) enum Answer {
    Transferred(Turned<Transferred>),
    Settled(Vec<(JobId, Token)>, Settled),
    Standing(Standing),
    Begun(JobId, Token, Noted),
    Exhausted(JobId, Token, Noted),
    Reconciled(Turned<Reconciled>),
    Reclaimed(NodeId, Reclaimed),
    Released,
    Aged(Turned<Aged>),
    Woken,
    Scanned(Scanned),
}

/// An answer, when its question was sent, and the turn it named.
#[derive(Debug)]
pub(in crate::context) struct Answered {
    pub(in crate::context) kind: Kind,
    pub(in crate::context) sent: Duration,
    pub(in crate::context) named: Turn,
    pub(in crate::context) answer: Result<Answer, StoreError>,
}

struct UnderWay {
    kind: Kind,
    sent: Duration,
    named: Turn,
    answer: BoxFuture<'static, Result<Answer, StoreError>>,
}

/// How long to wait before a refused request is sent again, and before the first new link.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait before a refused request is sent again.
const LONGEST_REFUSAL: Duration = Duration::from_secs(2);
/// The longest wait for a new link.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// See the module.
pub(in crate::context) struct Line {
    store: Arc<dyn Store>,
    topic: TopicKey,
    node: NodeId,
    environment: Environment,
    call_timeout: Duration,
    link: Option<Arc<dyn Link>>,
    under_way: VecDeque<UnderWay>,
    /// The last turn whose answer was read.
    pub(in crate::context) heard: Turn,
    /// Not before this is a request of this kind sent again.
    paused: [Duration; Kind::COUNT],
    /// How often in a row each kind was refused.
    refused: [u32; Kind::COUNT],
    failures: u32,
    pub(in crate::context) reconnect_at: Duration,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("topic", &self.topic)
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}

impl Line {
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
            under_way: VecDeque::new(),
            heard: Turn::default(),
            paused: [Duration::ZERO; Kind::COUNT],
            refused: [0; Kind::COUNT],
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
    pub(in crate::context) fn busy(&self, kinds: &[Kind]) -> bool {
        self.under_way.iter().any(|request| kinds.contains(&request.kind))
    }

    /// Whether a request of this kind can be sent now: connected, none of its kind under way, not paused.
    pub(in crate::context) fn can_send(&self, kind: Kind, now: Duration) -> bool {
        self.link.is_some() && now >= self.paused[kind as usize] && !self.busy(&[kind])
    }

    /// Whether a request of this kind can be sent now though some of its kind are under way: connected, fewer than `most`
    /// of them, not paused.
    pub(in crate::context) fn can_send_beside(&self, kind: Kind, most: usize, now: Duration) -> bool {
        let under_way = self.under_way.iter().filter(|request| request.kind == kind).count();
        self.link.is_some() && now >= self.paused[kind as usize] && under_way < most
    }

    /// When a pause of this kind ends, if one is on.
    pub(in crate::context) fn pause_end(&self, kind: Kind, now: Duration) -> Option<Duration> {
        Some(self.paused[kind as usize]).filter(|end| *end > now && self.link.is_some())
    }

    /// Sends no request of this kind for a while: for half a second at most, then longer each time it is refused, up to two
    /// seconds; or for several.
    pub(in crate::context) fn pause(&mut self, kind: Kind, now: Duration, long: bool) {
        let refused = &mut self.refused[kind as usize];
        let pause = if long { LONGEST_PAUSE } else { (FIRST_PAUSE * 5 * 2_u32.pow(*refused)).min(LONGEST_REFUSAL) };
        *refused = (*refused + 1).min(8);
        self.paused[kind as usize] = now + pause / 5 + self.environment.random_below(pause * 4 / 5);
    }

    /// The store has answered a request of this kind: it is reachable.
    pub(in crate::context) const fn answered(&mut self, kind: Kind) {
        self.failures = 0;
        self.refused[kind as usize] = 0;
    }

    fn push<T: Send + 'static>(
        &mut self,
        kind: Kind,
        ask: impl FnOnce(&dyn Link) -> BoxFuture<'static, Result<T, StoreError>>,
        answer: impl FnOnce(T) -> Answer + Send + 'static,
    ) {
        let Some(link) = &self.link else { return };
        let told = ask(&**link);
        let answer = Box::pin(async move { told.await.map(answer) });
        self.under_way.push_back(UnderWay { kind, sent: self.environment.now(), named: self.heard, answer });
    }

    pub(in crate::context) fn transfer(&mut self, request: Transfer) {
        self.push(Kind::Transfer, |link| link.transfer(request), Answer::Transferred);
    }

    pub(in crate::context) fn settle(&mut self, request: Settle) {
        let asked = request.outcomes.iter().map(|outcome| (outcome.id.clone(), outcome.token)).collect();
        self.push(Kind::Settle, |link| link.settle(request), |settled| Answer::Settled(asked, settled));
    }

    pub(in crate::context) fn hold(&mut self, request: Hold) {
        self.push(Kind::Hold, |link| link.hold(request), Answer::Standing);
    }

    pub(in crate::context) fn begin(&mut self, request: Begin) {
        let (id, token) = (request.id.clone(), request.token);
        self.push(Kind::Begin, |link| link.begin(request), move |noted| Answer::Begun(id, token, noted));
    }

    pub(in crate::context) fn exhaust(&mut self, request: Exhaust) {
        let (id, token) = (request.id.clone(), request.token);
        self.push(Kind::Exhaust, |link| link.exhaust(request), move |noted| Answer::Exhausted(id, token, noted));
    }

    pub(in crate::context) fn reconcile(&mut self, request: Reconcile) {
        self.push(Kind::Reconcile, |link| link.reconcile(request), Answer::Reconciled);
    }

    pub(in crate::context) fn reclaim(&mut self, request: Reclaim) {
        let node = request.node.clone();
        self.push(Kind::Reclaim, |link| link.reclaim(request), |reclaimed| Answer::Reclaimed(node, reclaimed));
    }

    pub(in crate::context) fn release(&mut self) {
        let request = Release { heard: self.heard };
        self.push(Kind::Release, |link| link.release(request), |_| Answer::Released);
    }

    pub(in crate::context) fn age(&mut self, request: Age) {
        self.push(Kind::Age, |link| link.age(request), Answer::Aged);
    }

    pub(in crate::context) fn wake(&mut self) {
        self.push(Kind::Wake, |link| link.wake(Wake), |()| Answer::Woken);
    }

    pub(in crate::context) fn scan(&mut self) {
        self.push(Kind::Scan, |link| link.scan(Scan), Answer::Scanned);
    }

    /// The next answer; waits for ever while nothing is under way. Cancel safe.
    pub(in crate::context) async fn next_answer(&mut self) -> Answered {
        let Some(first) = self.under_way.front_mut() else { return std::future::pending().await };
        let answer = (&mut first.answer).await;
        let asked = self.under_way.pop_front().expect("its answer was just read");
        Answered { kind: asked.kind, sent: asked.sent, named: asked.named, answer }
    }

    /// When the oldest request is given up.
    pub(in crate::context) fn give_up_at(&self) -> Option<Duration> {
        self.under_way.front().map(|request| request.sent + self.call_timeout)
    }

    pub(in crate::context) fn disconnect(&mut self, now: Duration) {
        self.link = None;
        self.under_way.clear();
        let pause = (FIRST_PAUSE * 2_u32.pow(self.failures.min(10))).min(LONGEST_PAUSE);
        self.failures += 1;
        self.reconnect_at = now + pause / 2 + self.environment.random_below(pause / 2);
    }

    pub(in crate::context) fn connect(&mut self) {
        self.link = Some(self.store.link(&self.topic, &self.node));
    }
}
