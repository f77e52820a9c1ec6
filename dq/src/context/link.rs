//! The line of a topic to its store: requests go out in order over one link, answers are read in order.
//!
//! When an answer does not come in time the link is dropped, and everything that was under way on it: it may be executed
//! later, or never (PROTOCOL.md rule 6). A new link is made after a pause, and the topic reconciles.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::topic::{Stage, Topic};
use crate::environment::Environment;
use crate::environment::rules::without;
use crate::job::{JobId, NodeId, Token, TopicKey, Turn};
use crate::store::step::{
    Age, Aged, Begin, Exhaust, Hold, Noted, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Scan, Scanned, Settle,
    Settled, Standing, Transfer, Transferred, Turned, Wake,
};
use crate::store::{Link, Store, StoreError};

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) enum Answer {
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
pub(super) struct Answered {
    pub(super) kind: Kind,
    pub(super) sent: Duration,
    pub(super) named: Turn,
    pub(super) answer: Result<Answer, StoreError>,
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
pub(super) struct Line {
    store: Arc<dyn Store>,
    topic: TopicKey,
    node: NodeId,
    environment: Environment,
    call_timeout: Duration,
    link: Option<Arc<dyn Link>>,
    under_way: VecDeque<UnderWay>,
    /// The last turn whose answer was read.
    pub(super) heard: Turn,
    /// Not before this is a request of this kind sent again.
    paused: [Duration; Kind::COUNT],
    /// How often in a row each kind was refused.
    refused: [u32; Kind::COUNT],
    failures: u32,
    reconnect_at: Duration,
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
    pub(super) fn new(
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
    pub(super) const fn node(&self) -> &NodeId {
        &self.node
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Jobs that the store has dropped, and of which no answer tells.
    pub(super) fn dropped(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.dropped())
    }

    /// Whether a request of one of these kinds is under way.
    pub(super) fn busy(&self, kinds: &[Kind]) -> bool {
        self.under_way.iter().any(|request| kinds.contains(&request.kind))
    }

    /// Whether a request of this kind can be sent now: connected, none of its kind under way, not paused.
    pub(super) fn can_send(&self, kind: Kind, now: Duration) -> bool {
        self.link.is_some() && now >= self.paused[kind as usize] && !self.busy(&[kind])
    }

    /// When a pause of this kind ends, if one is on.
    pub(super) fn pause_end(&self, kind: Kind, now: Duration) -> Option<Duration> {
        Some(self.paused[kind as usize]).filter(|end| *end > now && self.link.is_some())
    }

    /// Sends no request of this kind for a while: for half a second at most, then longer each time it is refused, up to two
    /// seconds; or for several.
    pub(super) fn pause(&mut self, kind: Kind, now: Duration, long: bool) {
        let refused = &mut self.refused[kind as usize];
        let pause = if long { LONGEST_PAUSE } else { (FIRST_PAUSE * 5 * 2_u32.pow(*refused)).min(LONGEST_REFUSAL) };
        *refused = (*refused + 1).min(8);
        self.paused[kind as usize] = now + pause / 5 + self.environment.random_below(pause * 4 / 5);
    }

    /// The store has answered a request of this kind: it is reachable.
    pub(super) const fn answered(&mut self, kind: Kind) {
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

    pub(super) fn transfer(&mut self, request: Transfer) {
        self.push(Kind::Transfer, |link| link.transfer(request), Answer::Transferred);
    }

    pub(super) fn settle(&mut self, request: Settle) {
        let asked = request.outcomes.iter().map(|outcome| (outcome.id.clone(), outcome.token)).collect();
        self.push(Kind::Settle, |link| link.settle(request), |settled| Answer::Settled(asked, settled));
    }

    pub(super) fn hold(&mut self, request: Hold) {
        self.push(Kind::Hold, |link| link.hold(request), Answer::Standing);
    }

    pub(super) fn begin(&mut self, request: Begin) {
        let (id, token) = (request.id.clone(), request.token);
        self.push(Kind::Begin, |link| link.begin(request), move |noted| Answer::Begun(id, token, noted));
    }

    pub(super) fn exhaust(&mut self, request: Exhaust) {
        let (id, token) = (request.id.clone(), request.token);
        self.push(Kind::Exhaust, |link| link.exhaust(request), move |noted| Answer::Exhausted(id, token, noted));
    }

    pub(super) fn reconcile(&mut self, request: Reconcile) {
        self.push(Kind::Reconcile, |link| link.reconcile(request), Answer::Reconciled);
    }

    pub(super) fn reclaim(&mut self, request: Reclaim) {
        let node = request.node.clone();
        self.push(Kind::Reclaim, |link| link.reclaim(request), |reclaimed| Answer::Reclaimed(node, reclaimed));
    }

    pub(super) fn release(&mut self) {
        let request = Release { heard: self.heard };
        self.push(Kind::Release, |link| link.release(request), |_| Answer::Released);
    }

    pub(super) fn age(&mut self, request: Age) {
        self.push(Kind::Age, |link| link.age(request), Answer::Aged);
    }

    pub(super) fn wake(&mut self) {
        self.push(Kind::Wake, |link| link.wake(Wake), |()| Answer::Woken);
    }

    pub(super) fn scan(&mut self) {
        self.push(Kind::Scan, |link| link.scan(Scan), Answer::Scanned);
    }

    /// The next answer; waits for ever while nothing is under way. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> Answered {
        let Some(first) = self.under_way.front_mut() else { return std::future::pending().await };
        let answer = (&mut first.answer).await;
        let asked = self.under_way.pop_front().expect("its answer was just read");
        Answered { kind: asked.kind, sent: asked.sent, named: asked.named, answer }
    }

    /// When the oldest request is given up.
    pub(super) fn give_up_at(&self) -> Option<Duration> {
        self.under_way.front().map(|request| request.sent + self.call_timeout)
    }

    fn disconnect(&mut self, now: Duration) {
        self.link = None;
        self.under_way.clear();
        let pause = (FIRST_PAUSE * 2_u32.pow(self.failures.min(10))).min(LONGEST_PAUSE);
        self.failures += 1;
        self.reconnect_at = now + pause / 2 + self.environment.random_below(pause / 2);
    }

    fn connect(&mut self) {
        self.link = Some(self.store.link(&self.topic, &self.node));
    }
}

impl Topic {
    /// Gives up a link that does not answer, and makes a new one after a pause.
    pub(super) fn reconnect(&mut self, now: Duration) -> Option<Duration> {
        if let Some(end) = self.line.give_up_at().filter(|end| now >= *end) {
            let waited = humantime::format_duration(end.saturating_sub(now) + self.parts.node.call_timeout);
            let reason = format!("no answer within {waited} (`call_timeout`): it hangs, or the way to it does");
            self.fail_link(&StoreError::Unavailable { operation: "a request", reason }, now);
        }
        if self.line.is_connected() {
            return None;
        }
        if now < self.line.reconnect_at {
            return Some(self.line.reconnect_at);
        }
        self.line.connect();
        None
    }

    /// Drops the link. What is held stays held; whatever was asked is asked again once the topic has reconciled.
    pub(super) fn fail_link(&mut self, error: &StoreError, now: Duration) {
        tracing::warn!(topic = %self.parts.key, error = %error, "lost the store, trying again");
        self.parts.gauge.trouble(error);
        self.line.disconnect(now);
        if !without(7) {
            self.reconciliation.need();
        }
        self.reclaims.forget();
        self.unask(None);
    }

    /// Forgets that requests (of one kind, or all) are under way, so that they are sent again.
    pub(super) fn unask(&mut self, kind: Option<Kind>) {
        let is = |wanted| kind.is_none_or(|kind| kind == wanted);
        if is(Kind::Reconcile) {
            self.reconciliation.interrupted();
        }
        if is(Kind::Transfer) {
            self.sleep.wake();
        }
        if is(Kind::Scan) {
            self.reclaims.look_at(Duration::ZERO);
        }
        if is(Kind::Age) {
            self.age_at = Duration::ZERO;
        }
        let asked = |stage: &Stage| match stage {
            Stage::Beginning => is(Kind::Begin),
            Stage::Exhausting { asked: true } => is(Kind::Exhaust),
            Stage::Settling { asked: true, .. } => is(Kind::Settle),
            _ => false,
        };
        for id in self.held.ids(asked) {
            let Some(job) = self.held.get(&id) else { continue };
            let stage = match job.stage().clone() {
                Stage::Beginning => Stage::Waiting,
                Stage::Exhausting { .. } => Stage::Exhausting { asked: false },
                Stage::Settling { change, front, then_run, .. } => {
                    Stage::Settling { change, front, then_run, asked: false }
                }
                other => other,
            };
            self.held.set(&id, stage);
        }
    }
}
