//! What the memory store shows of the topic, and what nodes and producers remember. [`ClusterState`] turns an [`Operation`] into
//! a request.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::exchange::{Exchange, ModelAnswer, ModelRequest};
use super::operation::{self, By, JOBS, LeaseEnd, NODES, Number, Operation, PRODUCERS, Run};
use dq::job::{Isolation, JobId, Metadata, NodeId, ProducerId, Record, Sequence, State, Token};
use dq::store::step::{
    DEFAULT_BYTES, Exhaust, Isolate, MAX_JOBS, Note, Noting, Publish, Reclaim, Reconcile, Release, Renew, RowCursor,
    Sequenced, Settle, Sweep, Transfer, Wake,
};
use dq::store::{self, Batch, TopicCounts};
use dq::testing::seam::{Row, View};
use dq::time::Timestamp;

/// The store's clock at the start, in µs.
pub(super) const START: u64 = 1_763_000_000_000_000;

/// The latest time before the ending of a history, in µs.
const LATEST: u64 = START + 25 * 60 * 1_000_000;

const FALLBACK: Duration = Duration::from_secs(15);

/// The topic as the memory store has it after a step.
#[derive(Debug, Default)]
pub(super) struct Topic {
    /// The store's clock, µs.
    pub(super) micros: u64,
    pub(super) view: View,
    pub(super) counts: TopicCounts,
    /// Whether nodes may not take everything that is due.
    pub(super) is_held: bool,
}

/// The topic, and what its nodes and producers remember.
#[derive(Debug)]
pub(super) struct ClusterState {
    pub(super) topic: Topic,
    /// The stored sequence numbers, as the answers showed them.
    pub(super) sequences: BTreeMap<NodeId, Sequence>,
    last_seen: BTreeMap<NodeId, Sequence>,
    /// Every token of each job so far, oldest first.
    tokens: BTreeMap<JobId, Vec<Token>>,
    /// Every lease end of each node so far, oldest first.
    leases: BTreeMap<NodeId, Vec<Timestamp>>,
    /// Every batch of each producer so far, with its number, oldest first.
    sent: BTreeMap<ProducerId, Vec<(u64, Batch)>>,
}

impl Topic {
    pub(super) const fn now(&self) -> Timestamp {
        Timestamp::floor_micros(self.micros)
    }

    pub(super) fn row(&self, id: &JobId) -> Option<&Row> {
        self.view.jobs.get(id)?.row.as_ref()
    }

    /// The record that commands and changes mean: a waiting broadcast counts before a DONE job.
    pub(super) fn record(&self, id: &JobId) -> Option<&Record> {
        let broadcast = self.view.broadcasts.get(id).map(|(_, record)| record);
        let job = self.view.jobs.get(id);
        job.filter(|job| job.state != State::Done || broadcast.is_none()).map(|job| &job.record).or(broadcast)
    }

    /// The nodes whose leases have expired.
    pub(super) fn expired(&self) -> impl Iterator<Item = (&NodeId, Timestamp)> {
        self.view.leases.iter().map(|(node, end)| (node, *end)).filter(|(_, end)| *end <= self.now())
    }

    /// The times of the jobs in a place, earliest first.
    fn times(&self, state: State) -> Vec<Timestamp> {
        let jobs = self.view.jobs.values().filter(|job| job.state == state);
        let mut times: Vec<_> = jobs.filter_map(|job| job.at).collect();
        times.sort();
        times
    }
}

/// A limit of about `n` that does not separate equal times, because a store chooses the order of these jobs.
fn whole(n: usize, times: &[Timestamp]) -> usize {
    let last = n.checked_sub(1).and_then(|n| times.get(n));
    last.map_or(n, |last| times.iter().filter(|time| *time <= last).count())
}

pub(super) fn metadata(record: &Record) -> Metadata {
    record.metadata().expect("the model adds readable records")
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

/// The last item but `back`.
fn last<T: Clone>(all: Option<&Vec<T>>, back: u8) -> Option<T> {
    all.and_then(|all| all.iter().rev().nth(usize::from(back))).cloned()
}

impl ClusterState {
    /// A new topic. Its nodes have sent nothing yet.
    pub(super) fn new() -> Self {
        let topic = Topic { micros: START, ..Topic::default() };
        let (sequences, last_seen, tokens, leases, sent) = Default::default();
        Self { topic, sequences, last_seen, tokens, leases, sent }
    }

    /// The request that this operation means in the current state.
    pub(super) fn resolve(&self, operation: &Operation) -> Exchange {
        let lost = match operation {
            Operation::Batch { lost, .. }
            | Operation::Transfer { lost, .. }
            | Operation::Settle { lost, .. }
            | Operation::Reconcile { lost, .. } => *lost,
            _ => false,
        };
        Exchange {
            request: self
                .clock_request(operation)
                .or_else(|| self.producer_request(operation))
                .unwrap_or_else(|| self.link_request(operation)),
            lost,
        }
    }

    fn clock_request(&self, operation: &Operation) -> Option<ModelRequest> {
        let now = self.topic.micros;
        let at = match operation {
            Operation::End => return Some(ModelRequest::Clock(now.max(LATEST) + 30 * 60 * 1_000_000)),
            Operation::Forward(by) if now > LATEST => return Some(ModelRequest::Clock(now + by)),
            Operation::Forward(by) => now + by,
            Operation::Back(by) => now - by * 1_000,
            Operation::PastLease(n) => {
                let end = self.topic.view.leases.get(&node(*n)).map_or(0, |end| (end.as_millis() + 1) * 1_000);
                now.max(end)
            }
            Operation::ToDue { early } => {
                let due = self.topic.counts.head.map_or(0, |due| due.as_millis() * 1_000);
                now.max(due.saturating_sub(u64::from(*early)))
            }
            _ => return None,
        };
        // The store keeps the answers to batches for an hour: no history is longer, its ending included.
        Some(ModelRequest::Clock(at.min(LATEST)))
    }

    fn producer_request(&self, operation: &Operation) -> Option<ModelRequest> {
        match operation {
            Operation::Batch { producer: by, number, what, .. } => {
                let number = self.number(*by, *number);
                Some(ModelRequest::Batch(producer(*by), number, self.batch(*by, number, what)))
            }
            Operation::Repeat { producer: by, back } => {
                let by = producer(*by);
                Some(match last(self.sent.get(&by), *back) {
                    Some((number, batch)) => ModelRequest::Batch(by, number, batch),
                    None => ModelRequest::Reconnect(node(0), by),
                })
            }
            Operation::Reconnect { node: n, producer: by } => Some(ModelRequest::Reconnect(node(*n), producer(*by))),
            _ => None,
        }
    }

    /// A number that no other batch of the producer has.
    fn number(&self, by: u8, number: Number) -> u64 {
        let sent = self.sent.get(&producer(by));
        let used = |number: u64| sent.is_some_and(|sent| sent.iter().any(|(sent, _)| *sent == number));
        let highest = sent.and_then(|sent| sent.iter().map(|(number, _)| *number).max()).unwrap_or(0);
        match number {
            Number::Next => highest + 1,
            Number::Gap(gap) => highest + 1 + u64::from(gap),
            Number::Below(below) => {
                let free = |number: &u64| *number > 0 && !used(*number);
                Some(highest.saturating_sub(below.into())).filter(free).unwrap_or(highest + 1)
            }
        }
    }

    fn link_request(&self, operation: &Operation) -> ModelRequest {
        let sequence = |n: &NodeId, sequence: operation::Sequence| self.sequence(n, sequence);
        match operation {
            Operation::Transfer { node: n, sequence: t, limit, lease, lookahead, .. } => {
                let limit = whole(*limit, &self.topic.times(State::Delayed)).min(MAX_JOBS);
                let transfer = Transfer::new(sequence(&node(*n), *t), limit, ms(*lease));
                let transfer = Transfer { fallback: FALLBACK, lookahead: ms(*lookahead), ..transfer };
                ModelRequest::Step(node(*n), transfer.into())
            }
            Operation::Settle { by, sequence: t, outcomes, .. } => {
                let n = self.sender(*by, outcomes.first().map_or(0, |first| first.job));
                let mut named = HashSet::new();
                let outcomes = outcomes.iter().filter(|it| named.insert(job(it.job)));
                let outcomes = outcomes.map(|it| self.outcome(it)).collect();
                ModelRequest::Step(
                    n.clone(),
                    Settle { last_seen: sequence(&n, *t), lease: ms(15_000), bytes: DEFAULT_BYTES, outcomes }.into(),
                )
            }
            Operation::Renew { node: n, sequence: t, lease } => {
                ModelRequest::Step(node(*n), Renew { last_seen: sequence(&node(*n), *t), lease: ms(*lease) }.into())
            }
            Operation::Isolate { run, alone } => {
                let (n, last_seen, id, token) = self.run(*run);
                let isolation = Some(if *alone { Isolation::Alone } else { Isolation::Grouped });
                ModelRequest::Step(
                    n,
                    Isolate { last_seen, lease: ms(15_000), isolation, runs: vec![(id, token)] }.into(),
                )
            }
            Operation::Exhaust(run) => {
                let ((n, last_seen, id, token), metadata) = (self.run(*run), self.last_metadata(run.job));
                ModelRequest::Step(n, Exhaust { last_seen, lease: ms(15_000), id, token, metadata }.into())
            }
            operation => self.rarer_link_request(operation),
        }
    }

    fn rarer_link_request(&self, operation: &Operation) -> ModelRequest {
        match operation {
            Operation::Note { run, number, is_large } => {
                let (n, last_seen, id, token) = self.run(*run);
                let (number, what) = (*number, Noting::State(self.noted_metadata(run.job, *is_large)));
                ModelRequest::Step(n, Note { last_seen, lease: ms(15_000), id, token, number, what }.into())
            }
            Operation::Reconcile { node: n, sequence, behind, limit, .. } => {
                let after = behind.map(|id| RowCursor::behind(&job(id)));
                let last_seen = self.sequence(&node(*n), *sequence);
                ModelRequest::Step(node(*n), Reconcile { last_seen, after, limit: *limit }.into())
            }
            Operation::Reclaim { node: n, of, seen, limit, max_crashes } => {
                // A node does not reclaim from itself.
                let other = node(if of % NODES == n % NODES { of + 1 } else { *of });
                let first = self.topic.expired().filter(|(of, _)| **of != node(*n)).min_by_key(|(_, end)| *end);
                let of = first.filter(|_| *of == NODES).map_or(other, |(of, _)| of.clone());
                let seen = self.lease_end(&of, *seen);
                let reclaim =
                    Reclaim { node: of, seen, limit: *limit, bytes: DEFAULT_BYTES, max_crashes: *max_crashes };
                ModelRequest::Step(node(*n), reclaim.into())
            }
            Operation::Release { node: n, sequence } => {
                ModelRequest::Step(node(*n), Release { last_seen: self.sequence(&node(*n), *sequence) }.into())
            }
            Operation::Sweep { node: n, sequence, limit, park_timeout, dead_retention, most: (dead_max, done_max) } => {
                let last_seen = self.sequence(&node(*n), *sequence);
                let [unacked, dead, done] =
                    [State::Unacked, State::Dead, State::Done].map(|state| self.topic.times(state));
                let kept = |most: usize, times: &[_]| times.len() - whole(times.len().saturating_sub(most), times);
                let (dead_max, done_max) = (kept(*dead_max, &dead), done_max.map(|most| kept(most, &done)));
                let mut limit = *limit;
                while let Some(more) = [&unacked, &dead, &done].map(|times| whole(limit, times)).into_iter().max()
                    && more > limit
                {
                    limit = more;
                }
                let (limit, bytes, lease) = (limit.min(MAX_JOBS), DEFAULT_BYTES, ms(15_000));
                let (park_timeout, dead_retention) = (ms(*park_timeout), ms(*dead_retention));
                let sweep = Sweep { last_seen, limit, bytes, lease, park_timeout, dead_retention, dead_max, done_max };
                ModelRequest::Step(node(*n), sweep.into())
            }
            Operation::Publish { node: n, limit, expires_after } => {
                let mut due: Vec<_> = self.topic.view.broadcasts.values().map(|(due, _)| *due).collect();
                due.sort();
                let limit = whole(*limit, &due).min(MAX_JOBS);
                ModelRequest::Step(
                    node(*n),
                    Publish { limit, bytes: DEFAULT_BYTES, fallback: FALLBACK, expires_after: ms(*expires_after) }
                        .into(),
                )
            }
            Operation::Wake { node: n } => ModelRequest::Step(node(*n), Wake.into()),
            _ => unreachable!("the other operations are resolved before"),
        }
    }

    fn sequence(&self, n: &NodeId, sequence: operation::Sequence) -> Sequence {
        let stored = self.sequences.get(n).copied().unwrap_or_default();
        match sequence {
            operation::Sequence::Right => stored,
            operation::Sequence::LastSeen => self.last_seen.get(n).copied().unwrap_or_default(),
            operation::Sequence::Off(by) => Sequence(stored.0.saturating_add_signed(by.into())),
        }
    }

    fn sender(&self, by: By, id: u8) -> NodeId {
        match by {
            By::Holder => self.topic.row(&job(id)).map_or_else(|| node(0), |row| row.node.clone()),
            By::Node(n) => node(n),
        }
    }

    /// The node that sends a request about a run, the sequence number it names, the job and the token.
    fn run(&self, Run { by, sequence, job: id, token }: Run) -> (NodeId, Sequence, JobId, Token) {
        let n = self.sender(by, id);
        let last_seen = self.sequence(&n, sequence);
        (n, last_seen, job(id), self.token(id, token))
    }

    /// A token of this job; an impossible one if the job never ran.
    pub(super) fn token(&self, id: u8, token: operation::Token) -> Token {
        let none = Token { fence: dq::job::Fence(1), due: Timestamp::from_millis(1) };
        let right = self.topic.row(&job(id)).map(|row| row.token);
        let right = right.or_else(|| last(self.tokens.get(&job(id)), 0)).unwrap_or(none);
        match token {
            operation::Token::Right => right,
            operation::Token::Old(back) => last(self.tokens.get(&job(id)), back).unwrap_or(none),
            operation::Token::OtherDue => Token { due: right.due.after(ms(1)), ..right },
        }
    }

    fn lease_end(&self, of: &NodeId, seen: LeaseEnd) -> Timestamp {
        match seen {
            LeaseEnd::Right => self.topic.view.leases.get(of).copied().unwrap_or_default(),
            LeaseEnd::Old(back) => last(self.leases.get(of), back).unwrap_or_default(),
            LeaseEnd::Zero => Timestamp::EPOCH,
        }
    }

    /// The memory store gave this answer, and shows this topic now. If the answer is lost, the node never receives it.
    pub(super) fn executed(&mut self, exchange: &Exchange, answer: &ModelAnswer, topic: Topic) {
        self.topic = topic;
        for id in (0..JOBS).map(job) {
            let Some(token) = self.topic.row(&id).map(|row| row.token) else { continue };
            let tokens = self.tokens.entry(id).or_default();
            if tokens.last() != Some(&token) {
                tokens.push(token);
            }
        }
        for (n, end) in &self.topic.view.leases {
            let seen = self.leases.entry(n.clone()).or_default();
            if seen.last() != Some(end) {
                seen.push(*end);
            }
        }
        if let ModelRequest::Batch(by, number, batch) = &exchange.request {
            let sent = self.sent.entry(by.clone()).or_default();
            if sent.iter().all(|(other, _)| other != number) {
                sent.push((*number, batch.clone()));
            }
        }
        if let (ModelRequest::Step(by, _), ModelAnswer::Step(answer)) = (&exchange.request, answer)
            && let Some(sequence) = taken_sequence(answer)
        {
            self.sequences.insert(by.clone(), sequence);
            if !exchange.lost {
                self.last_seen.insert(by.clone(), sequence);
            }
        }
    }
}

/// The sequence number that the step took, if it took one.
const fn taken_sequence(answer: &store::Answer) -> Option<Sequence> {
    match answer {
        store::Answer::Transfer(Sequenced::Done(done)) => Some(done.lease_status.sequence),
        store::Answer::Reconcile(Sequenced::Done(done)) => Some(done.lease_status.sequence),
        store::Answer::Sweep(Sequenced::Done(done)) => Some(done.lease_status.sequence),
        store::Answer::Release(lease_status) => Some(lease_status.sequence),
        _ => None,
    }
}
