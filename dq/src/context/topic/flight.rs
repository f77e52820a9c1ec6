//! Flight: which requests of a topic are in flight, in order, and when one of each kind may be sent again.
//!
//! It is the pipeline without I/O: the owners hand their requests over here, and the wire of the task (in `event_loop.rs`) sends what is
//! in `outbox` and reads the answers in the order of `in_flight`. Only `renew` is apart, because it must not wait behind a large answer: it may
//! use another connection, and its answer is read when it arrives.
//!
//! When an answer does not arrive in time, everything in flight is forgotten. The store may execute it later, or never (rule 6).
//! After a pause there is a new link, and the topic reconciles.

use std::collections::VecDeque;
use std::time::Duration;

use super::slab::HeldId;
use super::window::Window;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{JobId, NodeId, Sequence, Token};
use crate::store::{Request, RequestKind};

/// What a request was about, for the owner that takes in its answer.
#[derive(Debug)]
pub(super) enum Subject {
    /// The topic as a whole.
    Topic,
    /// The outcomes of these jobs.
    Outcomes(Vec<HeldId>),
    /// These runs.
    Runs(Vec<(JobId, Token)>),
    /// What callers ask of these runs: signals have told of commands.
    Commands(Vec<(JobId, Token)>),
    /// This run.
    Run(JobId, Token),
    /// Another node.
    Node(NodeId),
}

impl Subject {
    /// The jobs of the runs, of which those that are held have these ids.
    pub(super) fn into_jobs(self, id_of: impl Fn(HeldId) -> Option<JobId>) -> Vec<JobId> {
        match self {
            Self::Outcomes(jobs) => jobs.into_iter().filter_map(id_of).collect(),
            Self::Runs(runs) | Self::Commands(runs) => runs.into_iter().map(|(id, _)| id).collect(),
            Self::Run(id, _) => vec![id],
            Self::Topic | Self::Node(_) => Vec::new(),
        }
    }

    fn of(request: &Request) -> Self {
        match request {
            Request::Isolate(isolate) if isolate.isolation.is_none() => Self::Commands(isolate.runs.clone()),
            Request::Isolate(isolate) => Self::Runs(isolate.runs.clone()),
            Request::Exhaust(exhaust) => Self::Run(exhaust.id.clone(), exhaust.token),
            Request::Note(note) => Self::Run(note.id.clone(), note.token),
            Request::Reclaim(reclaim) => Self::Node(reclaim.node.clone()),
            _ => Self::Topic,
        }
    }
}

/// A request whose answer has arrived.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) kind: RequestKind,
    pub(super) subject: Subject,
    /// When the request was sent.
    pub(super) sent: Duration,
    /// The sequence number that the request named.
    pub(super) named: Sequence,
    /// Whether the lease status in the answer is what the node expects. Not for a `renew` with anything else in flight
    /// between its sending and its answer: the store may have executed them in any order.
    pub(super) is_in_order: bool,
}

/// The kinds that claim jobs.
pub(super) const CLAIMS: [RequestKind; 2] = [RequestKind::Transfer, RequestKind::Sweep];
/// The longest wait before a request is sent again that was refused once.
const FIRST_REFUSAL: Duration = Duration::from_millis(500);
/// The longest wait before a refused request is sent again.
const MAX_REFUSAL: Duration = Duration::from_secs(2);
/// The longest wait for the first new link.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a new link, unless [`longest_pause`] is shorter.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// How long a node without a link, or with a refused request, waits at most before it tries again: a renewal interval, so that it
/// is back before others take it for dead (rule 20), but no less than half a second and no more than five.
pub(super) fn longest_pause(renewal: Duration) -> Duration {
    renewal.clamp(FIRST_REFUSAL, MAX_PAUSE)
}

/// The window of all requests that have none of their own.
const OUTCOMES: usize = 1;

/// The window of a request of this kind: records that the store answers; metadata that the node sends, and replacements that the
/// store moves; rows that the store answers.
const fn window_of(kind: RequestKind) -> Option<usize> {
    match kind {
        RequestKind::Transfer | RequestKind::Sweep => Some(0),
        RequestKind::Settle | RequestKind::Reclaim => Some(OUTCOMES),
        RequestKind::Reconcile => Some(2),
        _ => None,
    }
}

/// The requests of a topic that are in flight over its link, in order.
#[derive(Debug)]
pub(super) struct Flight {
    environment: Environment,
    longest_pause: Duration,
    /// `None` while there is no link, until this time.
    reconnect_at: Option<Duration>,
    outbox: VecDeque<Request>,
    /// What the wire is at: the kind of the request that it hands to the link.
    asking: Option<RequestKind>,
    in_flight: VecDeque<Asked>,
    /// The `renew` in flight, and how many other requests had been sent before it.
    renewal: Option<(Asked, u64)>,
    /// How many requests other than `renew` have been sent.
    sent: u64,
    last_seen: Sequence,
    /// Whether the store has reported, in an answer to `renew`, that it executed the claim in flight.
    claim_reported: bool,
    /// The time before which no request of this kind is sent again.
    paused: [Duration; RequestKind::COUNT],
    /// How often in a row the store refused each kind.
    refused: [u32; RequestKind::COUNT],
    failures: u32,
    /// How much a request asks for: claims, outcomes, rows.
    windows: [Window; 3],
}

impl Flight {
    /// A claim asks for so many jobs at most, or for as many as a step moves at most otherwise.
    pub(super) fn new(environment: Environment, settings: &NodeSettings, most_claims: usize) -> Self {
        Self {
            environment,
            longest_pause: longest_pause(settings.heartbeat_interval),
            reconnect_at: None,
            outbox: VecDeque::new(),
            asking: None,
            in_flight: VecDeque::new(),
            renewal: None,
            sent: 0,
            last_seen: Sequence::default(),
            claim_reported: false,
            paused: [Duration::ZERO; RequestKind::COUNT],
            refused: [0; RequestKind::COUNT],
            failures: 0,
            windows: [Window::of(most_claims), Window::default(), Window::default()],
        }
    }

    /// The last seen sequence number.
    pub(super) const fn last_seen(&self) -> Sequence {
        self.last_seen
    }

    /// An answer has shown this sequence number.
    pub(super) const fn saw(&mut self, sequence: Sequence) {
        self.last_seen = sequence;
    }

    fn all(&self) -> impl Iterator<Item = &Asked> {
        self.in_flight.iter().chain(self.renewal.iter().map(|(renewal, _)| renewal))
    }

    /// Whether a request of one of these kinds is in flight.
    pub(super) fn busy(&self, kinds: &[RequestKind]) -> bool {
        self.all().any(|asked| kinds.contains(&asked.kind))
    }

    /// Since when a claim has been in flight: a transfer or a sweep.
    pub(super) fn claiming_since(&self) -> Option<Duration> {
        self.in_flight.iter().find(|asked| CLAIMS.contains(&asked.kind)).map(|claim| claim.sent)
    }

    /// The sequence number for a `renew` to name: the last seen one, or that of the claim in flight once the store has
    /// reported that it executed it. The node still waits for that answer, which may be large (rule 6).
    pub(super) fn renewable(&self) -> Sequence {
        let is_reported = self.claim_reported && self.claiming_since().is_some();
        Sequence(self.last_seen.0.saturating_add(u64::from(is_reported)))
    }

    /// Takes note of the sequence number in an answer to `renew`. Returns whether it is that of the claim in flight.
    pub(super) fn reported(&mut self, sequence: Sequence) -> bool {
        self.claim_reported = self.claiming_since().is_some() && sequence.0.checked_sub(1) == Some(self.last_seen.0);
        self.claim_reported
    }

    /// Whether a request of this kind can be sent now while some of its kind are in flight: connected, fewer than `most`
    /// of them, not paused.
    pub(super) fn can_send_beside(&self, kind: RequestKind, most: usize, now: Duration) -> bool {
        let in_flight = self.all().filter(|asked| asked.kind == kind).count();
        self.reconnect_at.is_none() && now >= self.paused[kind as usize] && in_flight < most
    }

    /// When the pause of this kind ends, if there is one.
    pub(super) fn pause_end(&self, kind: RequestKind, now: Duration) -> Option<Duration> {
        Some(self.paused[kind as usize]).filter(|end| *end > now && self.reconnect_at.is_none())
    }

    /// Pauses requests of this kind: at first for up to half a second, then longer with each refusal, up to two seconds. A
    /// `long` pause takes up to five seconds. None takes longer than [`longest_pause`].
    pub(super) fn pause(&mut self, kind: RequestKind, now: Duration, long: bool) {
        let refused = &mut self.refused[kind as usize];
        let (first, longest) = if long { (MAX_PAUSE, MAX_PAUSE) } else { (FIRST_REFUSAL, MAX_REFUSAL) };
        let longest = longest.min(self.longest_pause);
        self.paused[kind as usize] = now + self.environment.growing_pause(first, longest, *refused, 5);
        *refused = refused.saturating_add(1);
    }

    /// Pauses requests of this kind until then.
    pub(super) fn pause_until(&mut self, kind: RequestKind, until: Duration) {
        self.paused[kind as usize] = until;
    }

    /// Notes that the store has done a request of this kind.
    pub(super) fn done(&mut self, kind: RequestKind) {
        self.failures = 0;
        self.refused[kind as usize] = 0;
        if let Some(window) = window_of(kind) {
            self.windows[window].answered();
        }
    }

    /// The oldest request was not answered in time.
    pub(super) fn timed_out(&mut self) {
        if let Some(window) = self.in_flight.front().and_then(|asked| window_of(asked.kind)) {
            self.windows[window].timed_out();
        }
    }

    /// How many jobs and bytes a request of this kind asks for.
    pub(super) fn limits(&self, kind: RequestKind) -> (usize, usize) {
        let window = &self.windows[window_of(kind).unwrap_or(OUTCOMES)];
        (window.jobs(), window.bytes())
    }

    /// Whether the store has refused a request of some kind and has not done one of that kind since.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.iter().any(|refused| *refused > 0)
    }

    /// Sends a request about `subject`, or about what it names. Does nothing while there is no link.
    pub(super) fn send(&mut self, request: Request, subject: Option<Subject>, now: Duration) {
        if self.reconnect_at.is_some() {
            return;
        }
        let (kind, subject) = (request.kind(), subject.unwrap_or_else(|| Subject::of(&request)));
        let is_renewal = kind == RequestKind::Renew;
        let named = if is_renewal { self.renewable() } else { self.last_seen };
        let asked = Asked { kind, subject, sent: now, named, is_in_order: true };
        self.outbox.push_back(request);
        if is_renewal {
            // With a request in flight the count differs when the answer is read.
            let sent = if self.in_flight.is_empty() { self.sent } else { u64::MAX };
            self.renewal = Some((asked, sent));
            return;
        }
        self.claim_reported &= !CLAIMS.contains(&kind);
        self.sent += 1;
        self.in_flight.push_back(asked);
    }

    /// The next request that the wire has not sent yet.
    pub(super) fn next_outgoing(&mut self) -> Option<Request> {
        let request = self.outbox.pop_front();
        self.asking = request.as_ref().map(Request::kind);
        request
    }

    /// The request that the wire was handing to the link when the task panicked.
    pub(super) fn take_asked(&mut self) -> Option<Asked> {
        match self.asking.take()? {
            RequestKind::Renew => self.renewal.take().map(|(renewal, _)| renewal),
            _ => {
                let unsent = self.outbox.iter().filter(|request| request.kind() != RequestKind::Renew).count();
                self.in_flight.remove(self.in_flight.len().checked_sub(unsent + 1)?)
            }
        }
    }

    /// The request whose answer the wire was reading when the task panicked.
    pub(super) fn take_answered(&mut self, is_renewal: bool) -> Option<Asked> {
        if is_renewal { self.renewal.take().map(|(renewal, _)| renewal) } else { self.in_flight.pop_front() }
    }

    /// From now on requests of this kind ask for one job at a time, until some were answered.
    pub(super) fn ask_one_by_one(&mut self, kind: RequestKind) {
        if let Some(window) = window_of(kind) {
            self.windows[window].narrow();
        }
    }

    /// The answer to the oldest request has arrived, or the answer to the `renew`.
    pub(super) fn answered(&mut self, is_renewal: bool) -> Asked {
        if is_renewal {
            let (renewal, sent) = self.renewal.take().expect("its answer was just read");
            Asked { is_in_order: sent == self.sent, ..renewal }
        } else {
            self.in_flight.pop_front().expect("its answer was just read")
        }
    }

    /// The oldest requests, which are answered next: their kinds, and when they were sent.
    pub(super) fn oldest(&self) -> impl Iterator<Item = (RequestKind, Duration)> {
        let renewal = self.renewal.iter().map(|(renewal, _)| renewal);
        self.in_flight.front().into_iter().chain(renewal).map(|asked| (asked.kind, asked.sent))
    }

    /// The link is lost: nothing that is in flight is answered.
    pub(super) fn disconnect(&mut self, now: Duration) {
        self.outbox.clear();
        self.in_flight.clear();
        self.renewal = None;
        self.claim_reported = false;
        let pause = self.environment.growing_pause(FIRST_PAUSE, self.longest_pause, self.failures, 2);
        self.reconnect_at = Some(now + pause);
        self.failures += 1;
    }

    /// Lets a new link be made once the pause is over. Returns when that is.
    pub(super) fn reconnect(&mut self, now: Duration) -> Option<Duration> {
        self.reconnect_at = self.reconnect_at.filter(|at| now < *at);
        self.reconnect_at
    }

    /// Whether there should be a link.
    pub(super) const fn is_connected(&self) -> bool {
        self.reconnect_at.is_none()
    }
}
