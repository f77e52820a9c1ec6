//! A store in front of another store that counts requests and injects faults.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::step::{Sequenced, Settle, Verdict};
use dq::store::{
    Answer, Batch, BatchReply, Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Request, Signals,
    Store, StoreError,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not executed, and the answer says so: `StoreError::Refused`.
    Refused,
    /// It is not executed until an operator acts: `StoreError::WrongType`.
    WrongType,
    /// It is not executed, and the answer leaves that open: `StoreError::Unavailable`.
    Unavailable,
    /// It is not executed, and there is no answer.
    Lost,
    /// It is executed, and there is no answer.
    AnswerLost,
    /// It is executed, and the answer takes this long.
    AnsweredAfter(Duration),
    /// The store panics, which stands for a defect of dq in the task that asks.
    Panics,
    /// Of a `settle`: it is executed except for its first outcome, which the answer reports as failed. Any other request is
    /// [`Refused`](Self::Refused).
    Unsettled,
}

type Rule = Box<dyn Fn(&str) -> Option<Fault> + Send>;

/// Whether the store panics at a request, or the task that reads an answer does.
type Poison<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// Controls a [`FaultyStore`]: counts its requests and decides which of the next ones fail.
pub struct Faults {
    inner: Arc<dyn Store>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: BTreeMap<&'static str, usize>,
    rule: Option<Rule>,
    without_signals: bool,
    /// Queries fail, too.
    is_away: bool,
    /// The most bytes of records that an answer carries in time.
    carried: Option<usize>,
    poisoned_request: Option<Poison<Request>>,
    poisoned_answer: Option<Poison<Answer>>,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(&self.state.lock().unwrap().requests).finish()
    }
}

impl Faults {
    /// Returns the store behind the faulty one, which does not fail.
    pub fn inner(&self) -> Arc<dyn Store> {
        self.inner.clone()
    }

    /// From now on `rule` decides what happens to a request, by the name of its step.
    pub fn fail_when(&self, rule: impl Fn(&str) -> Option<Fault> + Send + 'static) {
        self.state.lock().unwrap().rule = Some(Box::new(rule));
    }

    /// From now on every request fails like this.
    pub fn fail_all(&self, fault: Fault) {
        self.fail_when(move |_| Some(fault));
    }

    /// From now on this step fails like this.
    pub fn fail_only(&self, step: &'static str, fault: Fault) {
        self.fail_when(move |asked| (asked == step).then_some(fault));
    }

    /// Only the next request for this step fails like this.
    pub fn fail_next(&self, step: &'static str, fault: Fault) {
        let left = Mutex::new(1_u8);
        self.fail_when(move |asked| {
            let mut left = left.lock().unwrap();
            (asked == step && *left > 0).then(|| {
                *left -= 1;
                fault
            })
        });
    }

    /// From now on nobody reaches the store: requests fail, and so do queries.
    pub fn go_away(&self) {
        self.fail_all(Fault::Unavailable);
        self.state.lock().unwrap().is_away = true;
    }

    /// From now on no request fails.
    pub fn clear(&self) {
        let mut state = self.state.lock().unwrap();
        (state.rule, state.is_away) = (None, false);
    }

    /// From now on no signal arrives, and no subscriber learns of that.
    pub fn lose_signals(&self) {
        self.state.lock().unwrap().without_signals = true;
    }

    /// From now on an answer with more bytes of records than these never comes.
    pub fn carry_at_most(&self, bytes: usize) {
        self.state.lock().unwrap().carried = Some(bytes);
    }

    /// From now on a link panics at such a request, before the store has it.
    pub fn panic_at_request(&self, is_poisoned: impl Fn(&Request) -> bool + Send + Sync + 'static) {
        self.state.lock().unwrap().poisoned_request = Some(Arc::new(is_poisoned));
    }

    /// From now on a task panics that reads such an answer from a link.
    pub fn panic_at_answer(&self, is_poisoned: impl Fn(&Answer) -> bool + Send + Sync + 'static) {
        self.state.lock().unwrap().poisoned_answer = Some(Arc::new(is_poisoned));
    }

    /// Returns the number of requests for this step.
    pub fn requests_for(&self, step: &str) -> usize {
        self.state.lock().unwrap().requests.get(step).copied().unwrap_or_default()
    }

    /// Returns the number of all requests.
    pub fn requests(&self) -> usize {
        self.state.lock().unwrap().requests.values().sum()
    }

    fn ask(&self, step: &'static str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        *state.requests.entry(step).or_default() += 1;
        state.rule.as_ref().and_then(|rule| rule(step))
    }

    fn answer<T: Send + 'static>(&self, step: &'static str, send: impl FnOnce() -> Pending<T>) -> Pending<T> {
        under(self.ask(step), step, send)
    }
}

fn under<T: Send + 'static>(fault: Option<Fault>, step: &'static str, send: impl FnOnce() -> Pending<T>) -> Pending<T> {
    match fault {
        None => send(),
        Some(Fault::AnswerLost) => {
            drop(send());
            pending().boxed()
        }
        Some(Fault::AnsweredAfter(latency)) => {
            let answer = send();
            async move {
                tokio::time::sleep(latency).await;
                answer.await
            }
            .boxed()
        }
        Some(fault) => no_answer(step, fault),
    }
}

fn no_answer<T: Send + 'static>(step: &'static str, fault: Fault) -> Pending<T> {
    let reason = String::from("a fault of the test");
    match fault {
        Fault::Refused | Fault::Unsettled => {
            async move { Err(StoreError::Refused { operation: step, reason }) }.boxed()
        }
        Fault::WrongType => {
            async move { Err(StoreError::WrongType { key: "a key of the test".into(), expected: "hash" }) }.boxed()
        }
        Fault::Unavailable => async move { Err(StoreError::Unavailable { operation: step, reason }) }.boxed(),
        Fault::Lost | Fault::AnswerLost | Fault::AnsweredAfter(_) => pending().boxed(),
        Fault::Panics => panic!("a panic of the test"),
    }
}

/// A store that passes requests on to another store unless its [`Faults`] say otherwise.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
}

impl FaultyStore {
    /// Wraps `inner`. Returns the faulty store and its controls.
    pub fn over(inner: Arc<dyn Store>) -> (Arc<dyn Store>, Arc<Faults>) {
        let faults = Arc::new(Faults { inner: inner.clone(), state: Mutex::default() });
        (Arc::new(Self { inner, faults: faults.clone() }), faults)
    }
}

impl Store for FaultyStore {
    fn url(&self) -> String {
        self.inner.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        let fault = match query {
            Query::Open { .. } | Query::Listen { .. } | Query::KeepHistory { .. } => self.faults.ask(query.name()),
            // It asks no server.
            Query::Prepare {} => None,
            _ => self.faults.state.lock().unwrap().is_away.then_some(Fault::Unavailable),
        };
        match fault {
            None => self.inner.ask(query),
            Some(fault) => no_answer(query.name(), fault),
        }
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        Arc::new(FaultyLink { inner: self.inner.link_with(topic, node, options), faults: self.faults.clone() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(FaultyProducer { inner: self.inner.producer(topic, producer), faults: self.faults.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        if let Some(fault) = self.faults.ask("signals") {
            return no_answer("signals", fault);
        }
        let wanted = interest.clone();
        async move {
            let mut upstream = self.inner.signals(topic, interest).await?;
            let (feed, signals) = Signals::channel(&wanted);
            let faults = self.faults.clone();
            tokio::spawn(async move {
                while let Some(signal) = upstream.next().await {
                    let lost = faults.state.lock().unwrap().without_signals;
                    if feed.is_closed() {
                        break;
                    }
                    if !lost {
                        feed.send(signal);
                    }
                }
            });
            Ok(signals)
        }
        .boxed()
    }
}

#[derive(Debug)]
struct FaultyLink {
    inner: Arc<dyn Link>,
    faults: Arc<Faults>,
}

impl Link for FaultyLink {
    /// Under [`Fault::Unsettled`] the first outcome is left out and reported as failed.
    fn ask(&self, request: Request) -> Pending<Answer> {
        let poison = self.faults.state.lock().unwrap().poisoned_request.clone();
        assert!(!poison.is_some_and(|is_poisoned| is_poisoned(&request)), "a poisoned request");
        let poison = self.faults.state.lock().unwrap().poisoned_answer.clone();
        poisoned(self.answer(request), poison)
    }
}

/// Lets the task that reads a poisoned answer panic.
fn poisoned(answer: Pending<Answer>, poison: Option<Poison<Answer>>) -> Pending<Answer> {
    let Some(is_poisoned) = poison else { return answer };
    async move {
        let answer = answer.await?;
        assert!(!is_poisoned(&answer), "a poisoned answer");
        Ok(answer)
    }
    .boxed()
}

/// Lets an answer with too many bytes never come.
fn carry(answer: Pending<Answer>, most: Option<usize>) -> Pending<Answer> {
    let Some(most) = most else { return answer };
    async move {
        let answer = answer.await?;
        let claims = match &answer {
            Answer::Transfer(Sequenced::Done(done)) => &done.claims[..],
            Answer::Sweep(Sequenced::Done(done)) => &done.claims,
            _ => &[],
        };
        if claims.iter().map(|claim| claim.record.as_bytes().len()).sum::<usize>() > most {
            pending::<()>().await;
        }
        Ok(answer)
    }
    .boxed()
}

impl FaultyLink {
    fn answer(&self, request: Request) -> Pending<Answer> {
        let Request::Settle(settle) = request else {
            let carried = self.faults.state.lock().unwrap().carried;
            return self.faults.answer(request.kind().name(), || carry(self.inner.ask(request), carried));
        };
        match self.faults.ask("settle") {
            Some(Fault::Unsettled) => self.leave_one_out(settle),
            fault => under(fault, "settle", || self.inner.ask(settle.into())),
        }
    }

    fn leave_one_out(&self, mut settle: Settle) -> Pending<Answer> {
        settle.outcomes.remove(0);
        let answer = self.inner.step(settle);
        async move {
            let mut settled = answer.await?;
            settled.verdicts.insert(0, Verdict::Failed("a fault of the test".into()));
            Ok(Answer::Settle(settled))
        }
        .boxed()
    }
}

#[derive(Debug)]
struct FaultyProducer {
    inner: Arc<dyn Producer>,
    faults: Arc<Faults>,
}

impl Producer for FaultyProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        self.faults.answer(batch.name(), || self.inner.ask(batch))
    }
}
