//! A numbered batch of requests of one kind, and the callers that wait for its answer.
//!
//! `unread_copies` counts the copies sent under the batch's number whose answer the provider has not read. While it is not
//! zero, the store may have executed the batch or may still execute it, so a caller that is answered now receives *unknown*.
//! At zero nothing was done for certain; a request that is given up then leaves the batch, so that a repeat cannot do it
//! after all.

use std::mem::discriminant;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::error::{Failed, Reason};
use super::request::{Deadline, Outcome, Posted, Request};
use crate::store::{self, BatchAnswer, BatchReply, Numbered, Pending, Producer, StoreError, other_kind};
use crate::telemetry::{Counter, Histogram, counter, histogram, label, table};

/// What the provider read about a batch.
#[derive(Debug)]
pub(super) enum Received {
    /// Every caller has its answer.
    Answered,
    /// The store did not execute the batch under its number and never will.
    Late,
    /// No proper answer.
    Failed(Arc<StoreError>),
}

pub(super) struct Batch {
    /// The place of this batch among those of the queue; a new number does not change it.
    pub(super) order: u64,
    /// The call number; 0 until the batch is sent.
    pub(super) number: u64,
    bytes: usize,
    /// How many callers it answers.
    pub(super) callers: usize,
    /// When its last copy was sent.
    pub(super) sent: Duration,
    requests: Vec<Posted>,
    /// How many jobs the store took in its last answer.
    added: u64,
    /// The answer to the last copy, which has not come yet.
    answer: Option<Pending<BatchReply>>,
    unread_copies: u32,
    /// How often in a row the store has refused it for a reason that does not pass by itself.
    refusals: u32,
    /// The last error of the store.
    error: Option<Arc<StoreError>>,
    /// The last one after which the store may have executed the batch.
    doubt: Option<Arc<StoreError>>,
}

impl Batch {
    /// A batch of one request; `spare` is an empty vector to reuse.
    pub(super) fn new(order: u64, first: Posted, spare: Vec<Posted>) -> Self {
        let mut batch = Self {
            order,
            number: 0,
            bytes: 0,
            callers: 0,
            sent: Duration::ZERO,
            requests: spare,
            added: 0,
            answer: None,
            unread_copies: 0,
            refusals: 0,
            error: None,
            doubt: None,
        };
        batch.push(first);
        batch
    }

    /// Whether `posted` is of the same kind and fits. The queue checks that its id is not in the batch.
    pub(super) fn takes(&self, posted: &Posted, most: usize, most_bytes: usize) -> bool {
        let same = self.requests.first().is_some_and(|f| discriminant(&f.request) == discriminant(&posted.request));
        same && self.requests.len() < most && self.bytes + posted.bytes() <= most_bytes
    }

    pub(super) fn push(&mut self, posted: Posted) {
        self.bytes += posted.bytes();
        self.callers += usize::from(posted.leads);
        self.requests.push(posted);
    }

    pub(super) const fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_full(&self, most: usize, most_bytes: usize) -> bool {
        self.requests.len() >= most || self.bytes >= most_bytes
    }

    /// Sends the batch, or sends it again.
    pub(super) fn send(&mut self, producer: &dyn Producer, now: Duration) {
        debug_assert!(self.number > 0, "a batch has a number when it is sent");
        let number = self.number;
        self.unread_copies += 1;
        self.sent = now;
        self.answer = self.requests.first().map(|first| {
            producer.ask(match first.request {
                Request::Add(_) => store::Batch::Add { batch: Numbered { number, items: self.items(Request::job) } },
                Request::Command(_) => {
                    store::Batch::Command { batch: Numbered { number, items: self.items(Request::command) } }
                }
                Request::Change(_) | Request::Update(_) => {
                    store::Batch::Change { batch: Numbered { number, items: self.items(Request::change) } }
                }
            })
        });
    }

    fn items<T: Clone>(&self, item: impl Fn(&Request) -> Option<&T>) -> Vec<T> {
        let mut items = Vec::with_capacity(self.requests.len());
        items.extend(self.requests.iter().filter_map(|posted| item(&posted.request)).cloned());
        items
    }

    /// Reads the answer and passes the outcomes on to the callers.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let Some(answer) = &mut self.answer else { return Poll::Pending };
        let answer = ready!(answer.as_mut().poll(cx));
        Poll::Ready(match (answer, self.requests.first().map(|posted| &posted.request)) {
            (Ok(BatchReply::Add(answer)), Some(Request::Add(_))) => {
                if let BatchAnswer::Done(outcomes) = &answer {
                    self.added = outcomes.iter().filter(|outcome| outcome.is_taken()).count() as u64;
                }
                self.receive(Ok(answer), Outcome::Add)
            }
            (Ok(BatchReply::Command(answer)), Some(Request::Command(_))) => self.receive(Ok(answer), Outcome::Command),
            (Ok(BatchReply::Change(answer)), Some(Request::Change(_) | Request::Update(_))) => {
                self.receive(Ok(answer), Outcome::Change)
            }
            (Ok(_), _) => self.receive(Err(other_kind("batch")), Outcome::Add),
            (Err(error), _) => self.receive(Err(error), Outcome::Add),
        })
    }

    fn receive<O>(&mut self, answer: Result<BatchAnswer<O>, StoreError>, outcome: impl Fn(O) -> Outcome) -> Received {
        self.answer = None;
        match answer {
            Ok(BatchAnswer::Done(outcomes)) => {
                for (posted, of_request) in self.requests.iter_mut().zip(outcomes) {
                    posted.answer(Ok(outcome(of_request)));
                }
                Received::Answered
            }
            Ok(BatchAnswer::Late) => {
                self.unread_copies = 0;
                self.doubt = None;
                Received::Late
            }
            Err(error) => {
                let error = Arc::new(error);
                self.refusals = if error.passes() { 0 } else { self.refusals + 1 };
                if error.nothing_done() {
                    self.unread_copies -= 1;
                } else {
                    self.doubt = Some(Arc::clone(&error));
                }
                self.error = Some(Arc::clone(&error));
                Received::Failed(error)
            }
        }
    }

    /// Tells of adds that the store has answered.
    pub(super) fn measure(&self, meter: &AddMeter, now: Duration) {
        let is_of_adds = |posted: &Posted| posted.request.job().is_some();
        if self.requests.first().is_some_and(is_of_adds) {
            meter.added.increment(self.added);
            self.requests.iter().for_each(|posted| meter.time.record(posted.deadline.asked_before(now).as_secs_f64()));
        }
    }

    pub(super) const fn awaits_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether no repeat is worth it after this error: nobody waits, no repeat can mend it, or the store has refused the batch
    /// twice for a reason that passes only when somebody acts.
    pub(super) fn is_over(&self, error: &StoreError) -> bool {
        let lasts = self.refusals > 1 && self.unread_copies == 0;
        !error.is_outage() || lasts || !self.has_callers()
    }

    /// Drops the answer of the last copy unread.
    pub(super) fn forget_answer(&mut self) {
        self.answer = None;
    }

    /// What a caller receives whose request has no outcome; `otherwise` is the reason if the store gave none. The reason of
    /// *unknown* is not that of a later copy of which nothing was done.
    fn failure(&self, otherwise: Reason) -> Failed {
        match (self.unread_copies, &self.doubt, &self.error) {
            (0, _, error) => Failed::NotDone(error.clone().map_or(otherwise, Reason::Store)),
            (_, Some(doubt), _) => Failed::Unknown(Reason::Store(Arc::clone(doubt))),
            (_, None, Some(_)) => Failed::Unknown(Reason::Unanswered),
            (_, None, None) => Failed::Unknown(otherwise),
        }
    }

    /// Whether a caller without an answer has reached its deadline.
    pub(super) fn is_given_up(&self, now: Duration) -> bool {
        self.earliest_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Whether somebody waits for an answer.
    pub(super) fn has_callers(&self) -> bool {
        self.requests.iter().any(|posted| !posted.is_answered())
    }

    /// Answers the callers whose deadline has passed; `otherwise` makes the reason if the store gave none. Returns whether no
    /// caller is left.
    pub(super) fn give_up(&mut self, now: Duration, otherwise: impl Fn(&Deadline) -> Reason) -> bool {
        for at in 0..self.requests.len() {
            let posted = &self.requests[at];
            if posted.deadline.at <= now && !posted.is_answered() {
                let failure = self.failure(otherwise(&posted.deadline));
                self.requests[at].answer(Err(failure));
            }
        }
        if self.unread_copies == 0 {
            self.requests.retain(|posted| !posted.is_answered());
        }
        !self.has_callers()
    }

    /// The earliest deadline of a caller that has no answer.
    pub(super) fn earliest_deadline(&self) -> Option<Duration> {
        self.requests.iter().filter(|posted| !posted.is_answered()).map(|posted| posted.deadline.at).min()
    }

    /// Before the first copy is sent: leaves out requests whose caller went away. Returns whether no request is left.
    pub(super) fn drop_abandoned(&mut self) -> bool {
        self.requests.retain(|posted| !posted.is_answered() && !posted.is_abandoned());
        self.requests.is_empty()
    }

    /// Ends the batch and returns its emptied vector.
    pub(super) fn into_spare(mut self) -> Vec<Posted> {
        self.fail_the_rest();
        let mut requests = std::mem::take(&mut self.requests);
        requests.clear();
        requests
    }

    /// After a panic of the coalescer: the requests, if certainly none was done and none will be. Otherwise their callers
    /// receive *unknown*.
    pub(super) fn into_unsent(mut self) -> Vec<Posted> {
        if self.unread_copies > 0 {
            self.answer_all(&Failed::Unknown(Reason::Panicked));
        }
        let mut requests = std::mem::take(&mut self.requests);
        requests.retain(|posted| !posted.is_answered());
        requests
    }

    /// Callers are left only if the coalescer is dropped, or if the store sent too few outcomes or a final error.
    fn fail_the_rest(&mut self) {
        let failure = match (std::thread::panicking(), self.unread_copies) {
            (true, 0) => Failed::NotDone(Reason::Panicked),
            (true, _) => Failed::Unknown(Reason::Panicked),
            (false, _) => self.failure(Reason::Stopped),
        };
        self.answer_all(&failure);
    }

    fn answer_all(&mut self, failure: &Failed) {
        for posted in &mut self.requests {
            posted.answer(Err(failure.clone()));
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.fail_the_rest();
    }
}

/// What a provider measures of the adds of one topic.
#[derive(Debug)]
pub(super) struct AddMeter {
    added: Counter,
    time: Histogram,
}

impl AddMeter {
    pub(super) fn new(topic: &str) -> Self {
        let topic = label(topic);
        Self { added: counter(&table::ADDED, &[topic]), time: histogram(&table::ADD, &[topic]) }
    }
}
