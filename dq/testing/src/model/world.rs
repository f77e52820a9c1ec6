//! The reference topic and those who use it: it turns a [`Step`] into a request, and says what the answer must be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::exchange::{Answer, Exchange, Request};
use super::reference::{Choice, Topic};
use super::step::{self, By, JOBS, NODES, Number, PRODUCERS, Seen, Step};
use dq::job::{JobId, NodeId, ProducerId, Token, Turn};
use dq::store::step::{
    Age, Begin, Cast, Exhaust, Hold, MOST_JOBS, Reclaim, Reconcile, Release, Settle, Standing, Transfer, Turned,
};
use dq::store::{NewJob, Numbered, Withdrawal};
use dq::time::Timestamp;

/// What the clock shows first.
pub(super) const START: u64 = 1_763_000_000_000_000;

/// What it shows last before the end of the history.
const LATEST: u64 = START + 25 * 60 * 1_000_000;

const FALLBACK: Duration = Duration::from_secs(15);

/// The topic, and what its nodes and callers remember.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) topic: Topic,
    heard: BTreeMap<NodeId, Turn>,
    tokens: BTreeMap<JobId, Vec<Token>>,
    leases: BTreeMap<NodeId, Vec<Timestamp>>,
    sent: BTreeMap<ProducerId, Vec<Batch>>,
}

/// A batch as it was sent.
#[derive(Debug, Clone)]
enum Batch {
    Add(Numbered<NewJob>),
    Withdraw(Numbered<Withdrawal>),
}

impl Batch {
    const fn number(&self) -> u64 {
        match self {
            Self::Add(batch) => batch.number,
            Self::Withdraw(batch) => batch.number,
        }
    }
}

pub(super) fn job(n: u8) -> JobId {
    JobId::new(["a", "b", "c", "d"][usize::from(n % JOBS)]).expect("the ids of the model are short")
}

pub(super) fn node(n: u8) -> NodeId {
    NodeId::new(["m", "n", "o"][usize::from(n % NODES)])
}

pub(super) fn producer(n: u8) -> ProducerId {
    ProducerId::new(["p", "q"][usize::from(n % PRODUCERS)])
}

pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The last but `back`.
fn last<T: Clone>(all: Option<&Vec<T>>, back: u8) -> Option<T> {
    all.and_then(|all| all.iter().rev().nth(usize::from(back))).cloned()
}

impl World {
    /// A new topic. Its nodes have sent nothing yet.
    pub(super) fn new() -> Self {
        let mut topic = Topic::default();
        topic.micros = START;
        let (heard, tokens, leases, sent) = Default::default();
        Self { topic, heard, tokens, leases, sent }
    }

    /// The request that this step is now.
    pub(super) fn resolve(&self, step: &Step) -> Exchange {
        let lost = match step {
            Step::Add { lost, .. }
            | Step::Withdraw { lost, .. }
            | Step::Transfer { lost, .. }
            | Step::Settle { lost, .. }
            | Step::Reconcile { lost, .. } => *lost,
            _ => false,
        };
        Exchange { request: self.clock(step).or_else(|| self.call(step)).unwrap_or_else(|| self.ask(step)), lost }
    }

    fn clock(&self, step: &Step) -> Option<Request> {
        let now = self.topic.micros;
        let at = match step {
            Step::End => return Some(Request::Clock(now.max(LATEST) + 30 * 60 * 1_000_000)),
            Step::Forward(by) if now > LATEST => return Some(Request::Clock(now + by)),
            Step::Forward(by) => now + by,
            Step::Back(by) => now - by * 1_000,
            Step::PastLease(n) => {
                let end = self.topic.leases.get(&node(*n)).map_or(0, |end| (end.as_millis() + 1) * 1_000);
                now.max(end)
            }
            Step::ToDue { early } => {
                let due = self.topic.counts().head.map_or(0, |due| due.as_millis() * 1_000);
                now.max(due.saturating_sub(u64::from(*early)))
            }
            _ => return None,
        };
        // Answers of calls are kept for an hour: no history is longer, its end included.
        Some(Request::Clock(at.min(LATEST)))
    }

    fn call(&self, step: &Step) -> Option<Request> {
        match step {
            Step::Add { producer: by, number, jobs, .. } => {
                let number = self.number(*by, *number);
                let items = jobs.iter().enumerate().map(|(n, job)| self.new_job(*by, number, n, job)).collect();
                Some(Request::Add(producer(*by), Numbered { number, items }))
            }
            Step::Withdraw { producer: by, number, items, .. } => {
                let number = self.number(*by, *number);
                let mut named = Vec::new();
                let mut once = |item: &&step::Withdrawing| {
                    !named.contains(&job(item.job)) && {
                        named.push(job(item.job));
                        true
                    }
                };
                let items: Vec<_> = items.iter().filter(|item| once(item)).map(|item| self.withdrawal(item)).collect();
                Some(Request::Withdraw(producer(*by), Numbered { number, items }))
            }
            Step::Repeat { producer: by, back } => {
                let by = producer(*by);
                Some(match last(self.sent.get(&by), *back) {
                    Some(Batch::Add(batch)) => Request::Add(by, batch),
                    Some(Batch::Withdraw(batch)) => Request::Withdraw(by, batch),
                    None => Request::Anew(node(0), by),
                })
            }
            Step::Anew { node: n, producer: by } => Some(Request::Anew(node(*n), producer(*by))),
            _ => None,
        }
    }

    /// A number that no other batch has been sent under.
    fn number(&self, by: u8, number: Number) -> u64 {
        let sent = self.sent.get(&producer(by));
        let used = |number: u64| sent.is_some_and(|sent| sent.iter().any(|batch| batch.number() == number));
        let highest = sent.and_then(|sent| sent.iter().map(Batch::number).max()).unwrap_or(0);
        match number {
            Number::Next => highest + 1,
            Number::Gap(gap) => highest + 1 + u64::from(gap),
            Number::Below(below) => {
                let free = |number: &u64| *number > 0 && !used(*number);
                Some(highest.saturating_sub(below.into())).filter(free).unwrap_or(highest + 1)
            }
        }
    }

    fn ask(&self, step: &Step) -> Request {
        let turn = |n: &NodeId, turn: step::Turn| self.turn(n, turn);
        match step {
            Step::Transfer { node: n, turn: t, limit, lease, .. } => {
                let (heard, n) = (turn(&node(*n), *t), node(*n));
                Request::Transfer(n, Transfer { heard, limit: *limit, lease: ms(*lease), fallback: FALLBACK })
            }
            Step::Settle { by, turn: t, outcomes, .. } => {
                let n = self.who(*by, outcomes.first().map_or(0, |first| first.job));
                let mut named = Vec::new();
                let mut once = |it: &&step::Settling| {
                    !named.contains(&job(it.job)) && {
                        named.push(job(it.job));
                        true
                    }
                };
                let outcomes = outcomes.iter().filter(|it| once(it)).map(|it| self.outcome(it)).collect();
                Request::Settle(n.clone(), Settle { heard: turn(&n, *t), lease: ms(15_000), outcomes })
            }
            Step::Hold { node: n, turn: t, lease } => {
                Request::Hold(node(*n), Hold { heard: turn(&node(*n), *t), lease: ms(*lease) })
            }
            Step::Begin { by, turn: t, job: id, token } => {
                let n = self.who(*by, *id);
                let (heard, token, id) = (turn(&n, *t), self.token(*id, *token), job(*id));
                Request::Begin(n, Begin { heard, lease: ms(15_000), id, token })
            }
            Step::Exhaust { by, turn: t, job: id, token } => {
                let n = self.who(*by, *id);
                let (heard, token, id, front) = (turn(&n, *t), self.token(*id, *token), job(*id), self.last_front(*id));
                Request::Exhaust(n, Exhaust { heard, lease: ms(15_000), id, token, front })
            }
            step => self.ask_more(step),
        }
    }

    fn ask_more(&self, step: &Step) -> Request {
        match step {
            Step::Reconcile { node: n, turn, behind, limit, .. } => {
                let (heard, after) = (self.turn(&node(*n), *turn), behind.map(job));
                Request::Reconcile(node(*n), Reconcile { heard, after, limit: *limit })
            }
            Step::Reclaim { node: n, of, seen, limit, max_crashes } => {
                // A node does not reclaim from itself.
                let other = node(if of % NODES == n % NODES { of + 1 } else { *of });
                let first = self.topic.expired().filter(|(of, _)| **of != node(*n)).min_by_key(|(_, end)| *end);
                let of = first.filter(|_| *of == NODES).map_or(other, |(of, _)| of.clone());
                let seen = self.seen(&of, *seen);
                Request::Reclaim(node(*n), Reclaim { node: of, seen, limit: *limit, max_crashes: *max_crashes })
            }
            Step::Release { node: n, turn } => {
                Request::Release(node(*n), Release { heard: self.turn(&node(*n), *turn) })
            }
            Step::Age { node: n, turn, limit, unacked_age, dead_kept, dead_most } => {
                let (heard, limit, dead_most) = (self.turn(&node(*n), *turn), *limit, *dead_most);
                let (unacked_age, dead_kept) = (ms(*unacked_age), ms(*dead_kept));
                Request::Age(node(*n), Age { heard, limit, lease: ms(15_000), unacked_age, dead_kept, dead_most })
            }
            Step::Cast { node: n, limit, expires_after } => {
                let limit = self.topic.cast_limit(*limit).min(MOST_JOBS);
                Request::Cast(node(*n), Cast { limit, fallback: FALLBACK, expires_after: ms(*expires_after) })
            }
            Step::Wake { node: n } => Request::Wake(node(*n)),
            _ => unreachable!("clocks and calls have had their turn"),
        }
    }

    fn turn(&self, n: &NodeId, turn: step::Turn) -> Turn {
        let stored = self.topic.turns.get(n).copied().unwrap_or_default();
        match turn {
            step::Turn::Right => stored,
            step::Turn::Heard => self.heard.get(n).copied().unwrap_or_default(),
            step::Turn::Off(by) => Turn(stored.0.saturating_add_signed(by.into())),
        }
    }

    fn who(&self, by: By, id: u8) -> NodeId {
        match by {
            By::Holder => self.topic.run(&job(id)).map_or_else(|| node(0), |run| run.node.clone()),
            By::Node(n) => node(n),
        }
    }

    /// A token for this job; of one that never ran, one that cannot be.
    pub(super) fn token(&self, id: u8, token: step::Token) -> Token {
        let none = Token { fence: dq::job::Fence(1), due: Timestamp::from_millis(1) };
        let right = self.topic.run(&job(id)).map(|run| run.token);
        let right = right.or_else(|| last(self.tokens.get(&job(id)), 0)).unwrap_or(none);
        match token {
            step::Token::Right => right,
            step::Token::Old(back) => last(self.tokens.get(&job(id)), back).unwrap_or(none),
            step::Token::OtherDue => Token { due: right.due.after(ms(1)), ..right },
        }
    }

    fn seen(&self, of: &NodeId, seen: Seen) -> Timestamp {
        match seen {
            Seen::Right => self.topic.leases.get(of).copied().unwrap_or_default(),
            Seen::Old(back) => last(self.leases.get(of), back).unwrap_or_default(),
            Seen::Zero => Timestamp::EPOCH,
        }
    }

    /// Does it, and says what the answer must be. What the contract leaves to the store is as `choice` says.
    pub(super) fn execute(&mut self, exchange: &Exchange, choice: Choice<'_>) -> Answer {
        self.remember(&exchange.request);
        let topic = &mut self.topic;
        let answer = match &exchange.request {
            Request::Clock(at) => {
                topic.micros = *at;
                Answer::Nothing
            }
            Request::Anew(..) => Answer::Nothing,
            Request::Add(by, batch) => Answer::Added(topic.add(by, batch)),
            Request::Withdraw(by, batch) => Answer::Withdrawn(topic.withdraw(by, batch)),
            Request::Transfer(by, it) => Answer::Transferred(topic.transfer(by, it, choice)),
            Request::Settle(by, it) => Answer::Settled(topic.settle(by, it)),
            Request::Hold(by, it) => Answer::Standing(topic.hold(by, it)),
            Request::Begin(by, it) => Answer::Noted(topic.begin(by, it)),
            Request::Exhaust(by, it) => Answer::Noted(topic.exhaust(by, it)),
            Request::Reconcile(by, it) => Answer::Reconciled(topic.reconcile(by, it)),
            Request::Reclaim(_, it) => Answer::Reclaimed(topic.reclaim(it, choice)),
            Request::Release(by, it) => Answer::Standing(topic.release(by, it)),
            Request::Age(by, it) => Answer::Aged(topic.age(by, it, choice)),
            Request::Cast(by, it) => Answer::Casted(topic.cast(by, it)),
            Request::Wake(by) => {
                topic.wake(by);
                Answer::Nothing
            }
        };
        topic.cut_leases();
        topic.assert_sound();
        self.look_back();
        if exchange.lost {
            return Answer::Nothing;
        }
        self.hear(&exchange.request, &answer);
        answer
    }

    fn remember(&mut self, request: &Request) {
        let (by, batch) = match request {
            Request::Add(by, batch) => (by, Batch::Add(batch.clone())),
            Request::Withdraw(by, batch) => (by, Batch::Withdraw(batch.clone())),
            _ => return,
        };
        let sent = self.sent.entry(by.clone()).or_default();
        if sent.iter().all(|other| other.number() != batch.number()) {
            sent.push(batch);
        }
    }

    fn look_back(&mut self) {
        for (id, token) in
            (0..JOBS).map(job).filter_map(|id| Some((self.topic.run(&id)?.token, id))).map(|(t, id)| (id, t))
        {
            let tokens = self.tokens.entry(id).or_default();
            if tokens.last() != Some(&token) {
                tokens.push(token);
            }
        }
        for (n, end) in &self.topic.leases {
            let seen = self.leases.entry(n.clone()).or_default();
            if seen.last() != Some(end) {
                seen.push(*end);
            }
        }
    }

    /// The node reads its answer.
    fn hear(&mut self, request: &Request, answer: &Answer) {
        let standing: Option<Standing> = match answer {
            Answer::Transferred(Turned::Done(done)) => Some(done.standing),
            Answer::Reconciled(Turned::Done(done)) => Some(done.standing),
            Answer::Aged(Turned::Done(done)) => Some(done.standing),
            Answer::Standing(standing) if matches!(request, Request::Release(..)) => Some(*standing),
            _ => None,
        };
        let by = match request {
            Request::Transfer(by, _) | Request::Reconcile(by, _) | Request::Age(by, _) | Request::Release(by, _) => by,
            _ => return,
        };
        if let Some(standing) = standing {
            self.heard.insert(by.clone(), standing.turn);
        }
    }
}
