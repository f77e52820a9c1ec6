//! Numbered batches of requests of one kind, the callers that wait for their answers, and the batches that have not been sent yet.
//!
//! `unread_copies` counts the copies sent under the batch's number whose answer the provider has not read. While it is not
//! zero, the store may have executed the batch or may still execute it, so a caller that is answered now receives *unknown*.
//! At zero nothing was done for certain; a request that is given up then leaves the batch, so that a repeat cannot do it
//! after all.

use std::collections::{HashSet, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use foldhash::fast::FixedState;

use super::error::{Failed, FailureReason};
use super::request::{Deadline, Outcome, Posted, Request};
use crate::job::JobId;
use crate::store::step::MAX_JOBS;
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
    fn new(order: u64, first: Posted, spare: Vec<Posted>) -> Self {
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

    /// Whether `posted` is of the same kind and fits; [`BatchQueue::push`] looks for its id.
    fn takes(&self, posted: &Posted, most_bytes: usize) -> bool {
        let same = self.requests.first().is_some_and(|f| discriminant(&f.request) == discriminant(&posted.request));
        let has_room = self.requests.len() < MAX_JOBS && self.bytes + posted.bytes() <= most_bytes;
        same && !posted.request.goes_alone() && has_room
    }

    fn push(&mut self, posted: Posted) {
        self.bytes += posted.bytes();
        self.callers += usize::from(posted.leads);
        self.requests.push(posted);
    }

    pub(super) const fn len(&self) -> usize {
        self.requests.len()
    }

    fn is_full(&self, most_bytes: usize) -> bool {
        self.requests.len() >= MAX_JOBS || self.bytes >= most_bytes
    }

    /// Sends the batch, or sends it again.
    pub(super) fn send(&mut self, producer: &dyn Producer, now: Duration) {
        debug_assert!(self.number > 0, "a batch has a number when it is sent");
        let number = self.number;
        self.unread_copies += 1;
        self.sent = now;
        self.answer = self.requests.first().map(|first| {
            producer.ask(match &first.request {
                Request::Add(_) => store::Batch::Add { batch: Numbered { number, items: self.items(Request::job) } },
                Request::Command(_) => {
                    store::Batch::Command { batch: Numbered { number, items: self.items(Request::command) } }
                }
                Request::Change(_) | Request::Update(_) => {
                    store::Batch::Change { batch: Numbered { number, items: self.items(Request::change) } }
                }
                Request::Set(set) => store::Batch::Set { number, set: set.clone() },
                Request::JobSet(change) => store::Batch::JobSet { number, change: change.clone() },
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
            (Ok(BatchReply::Set(answer)), Some(Request::Set(_))) => {
                self.receive(Ok(answer), |set| Outcome::Set(Box::new(set)))
            }
            (Ok(BatchReply::JobSet(answer)), Some(Request::JobSet(_))) => self.receive(Ok(answer), Outcome::JobSet),
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
    fn failure(&self, otherwise: FailureReason) -> Failed {
        match (self.unread_copies, &self.doubt, &self.error) {
            (0, _, error) => Failed::NotDone(error.clone().map_or(otherwise, FailureReason::Store)),
            (_, Some(doubt), _) => Failed::Unknown(FailureReason::Store(Arc::clone(doubt))),
            (_, None, Some(_)) => Failed::Unknown(FailureReason::Unanswered),
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
    pub(super) fn give_up(&mut self, now: Duration, otherwise: impl Fn(&Deadline) -> FailureReason) -> bool {
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
    fn drop_abandoned(&mut self) -> bool {
        self.requests.retain(|posted| !posted.is_answered() && !posted.is_abandoned());
        self.requests.is_empty()
    }

    /// Ends the batch and returns its emptied vector.
    fn into_spare(mut self) -> Vec<Posted> {
        self.fail_the_rest();
        let mut requests = std::mem::take(&mut self.requests);
        requests.clear();
        requests
    }

    /// After a panic of the coalescer: the requests, if certainly none was done and none will be. Otherwise their callers
    /// receive *unknown*.
    pub(super) fn into_unsent(mut self) -> Vec<Posted> {
        if self.unread_copies > 0 {
            self.answer_all(&Failed::Unknown(FailureReason::Panicked));
        }
        let mut requests = std::mem::take(&mut self.requests);
        requests.retain(|posted| !posted.is_answered());
        requests
    }

    /// Callers are left only if the coalescer is dropped, or if the store sent too few outcomes or a final error.
    fn fail_the_rest(&mut self) {
        let failure = match (std::thread::panicking(), self.unread_copies) {
            (true, 0) => Failed::NotDone(FailureReason::Panicked),
            (true, _) => Failed::Unknown(FailureReason::Panicked),
            (false, _) => self.failure(FailureReason::Stopped),
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

/// The batches of a topic that have not been sent yet.
///
/// Requests keep their order. A batch is of one kind and never has an id twice: a request that would break that, or that is
/// over the bounds of the last batch, begins the next one. Generated ids cannot repeat, so the queue does not check them.
pub(super) struct BatchQueue {
    batches: VecDeque<Batch>,
    /// The chosen ids of the last batch, while it can grow.
    ids: HashSet<JobId, FixedState>,
    /// Whether the last batch can grow.
    open: bool,
    /// How many batches were started.
    started: u64,
    /// The emptied vector of a batch, for the next one.
    spare: Vec<Posted>,
}

impl BatchQueue {
    /// An empty queue; `seed` is for the hashes of ids, which users choose.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            batches: VecDeque::new(),
            ids: HashSet::with_hasher(FixedState::with_seed(seed)),
            open: false,
            started: 0,
            spare: Vec::new(),
        }
    }

    /// Appends a request. A batch gets no more than `most_bytes`, unless one job alone has more.
    pub(super) fn push(&mut self, posted: Posted, most_bytes: usize) {
        let chosen = posted.request.chosen_id().cloned();
        if let Some(last) = self.batches.back_mut().filter(|last| self.open && last.takes(&posted, most_bytes))
            && chosen.as_ref().is_none_or(|id| !self.ids.contains(id))
        {
            self.ids.extend(chosen);
            last.push(posted);
            return;
        }
        self.ids.clear();
        self.ids.extend(chosen);
        self.open = true;
        self.started += 1;
        self.batches.push_back(Batch::new(self.started, posted, std::mem::take(&mut self.spare)));
    }

    /// Puts a batch that needs a new number back where it was in the order of batches.
    pub(super) fn put_back(&mut self, mut batch: Batch) {
        batch.number = 0;
        let place = self.batches.iter().take_while(|other| other.order < batch.order).count();
        if place == self.batches.len() {
            self.open = false;
        }
        self.batches.insert(place, batch);
    }

    /// The next batch that a caller still waits for.
    pub(super) fn next(&mut self) -> Option<Batch> {
        loop {
            let mut batch = self.batches.pop_front()?;
            if self.batches.is_empty() {
                self.open = false;
            }
            if !batch.drop_abandoned() {
                return Some(batch);
            }
        }
    }

    /// Every batch, in order.
    pub(super) fn into_batches(self) -> impl Iterator<Item = Batch> {
        self.batches.into_iter()
    }

    /// How many requests the last batch has: all that wait, unless a batch has closed.
    pub(super) fn growing(&self) -> usize {
        self.batches.back().map_or(0, Batch::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether the first batch cannot grow any more.
    pub(super) fn has_closed(&self, most_bytes: usize) -> bool {
        match self.batches.len() {
            0 => false,
            1 => !self.open || self.batches[0].is_full(most_bytes),
            _ => true,
        }
    }

    /// Answers the callers whose deadline has passed, and removes batches that no caller waits for. `last_error` is what kept
    /// the batches from being sent, as far as the store said.
    pub(super) fn give_up(&mut self, now: Duration, last_error: Option<&Arc<StoreError>>) {
        let reason =
            |deadline: &Deadline| last_error.cloned().map_or_else(|| deadline.never_sent(), FailureReason::Store);
        let before = self.batches.back().map(|last| last.order);
        self.batches.retain_mut(|batch| !batch.give_up(now, reason));
        if self.batches.back().map(|last| last.order) != before {
            self.open = false;
        }
    }

    pub(super) fn earliest_deadline(&self) -> Option<Duration> {
        self.batches.iter().filter_map(Batch::earliest_deadline).min()
    }

    /// Keeps the vector of a batch that is over.
    pub(super) fn recycle(&mut self, batch: Batch) {
        self.spare = batch.into_spare();
    }
}

/// The most bytes of a batch, unless one job alone has more.
const MAX_BYTES: usize = 1 << 20;
/// The most bytes of the first batches.
const FIRST_BYTES: usize = 1 << 18;
/// The fewest bytes to which the bound shrinks.
const FEWEST_BYTES: usize = 1 << 14;

/// The bound on the bytes of a batch: what the connection to the store carries in time. A batch that takes longer than `call_timeout`
/// to leave is given up, sent again, and never arrives. So batches begin small, grow while their answers come quickly, and shrink after
/// a time-out. One job is always a batch, whatever its size.
#[derive(Debug)]
pub(super) struct Upload {
    bytes: usize,
    /// An answer within this time lets the bound grow.
    quick: Duration,
}

impl Upload {
    pub(super) fn new(call_timeout: Duration) -> Self {
        Self { bytes: FIRST_BYTES, quick: call_timeout / 8 }
    }

    /// The most bytes of the next batch.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// An answer came this long after its batch was sent.
    pub(super) fn answered_after(&mut self, time: Duration) {
        if time <= self.quick {
            self.bytes = (self.bytes * 2).min(MAX_BYTES);
        }
    }

    /// No answer came in time.
    pub(super) fn timed_out(&mut self) {
        self.bytes = (self.bytes / 2).max(FEWEST_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_with_quick_answers_and_shrink_with_time_outs() {
        let mut upload = Upload::new(Duration::from_secs(2));
        assert_eq!(upload.bytes(), FIRST_BYTES);
        upload.answered_after(Duration::from_millis(251));
        assert_eq!(upload.bytes(), FIRST_BYTES, "the link is no faster than this");
        for _ in 0..9 {
            upload.answered_after(Duration::from_millis(250));
        }
        assert_eq!(upload.bytes(), MAX_BYTES);
        for _ in 0..30 {
            upload.timed_out();
        }
        assert_eq!(upload.bytes(), FEWEST_BYTES);
    }
}
