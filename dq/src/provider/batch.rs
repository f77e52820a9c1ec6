//! A numbered batch and the callers that wait for it.
//!
//! `unheard` counts the copies under the batch's number whose answer was not read: while it is not zero, the batch may have
//! been executed, or may still be, and who must be answered now is told *unknown*. At zero it is certain that nothing was
//! done; what is given up then leaves the batch, so that a repeat cannot do it after all.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::Reason;
use super::lane::{Adds, Entry, Failed, Kind, Reply, Withdrawals};
use crate::store::{BatchAnswer, Numbered, Pending, Producer, StoreError};

/// The most bytes of a batch, unless one job alone has more.
pub(super) const BATCH_BYTES: usize = 1 << 20;

struct Slot<K: Kind> {
    item: K::Item,
    /// `None` once it was answered.
    reply: Option<Reply<K::Outcome>>,
}

pub(super) struct Load<K: Kind> {
    slots: Vec<Slot<K>>,
    answer: Option<Pending<BatchAnswer<K::Outcome>>>,
    unheard: u32,
    error: Option<Arc<StoreError>>,
}

/// What was read about a batch.
#[derive(Debug)]
pub(super) enum Heard {
    /// Everybody was answered.
    Answered,
    /// It was not executed under its number and never will be.
    Late,
    /// No proper answer.
    Failed(Arc<StoreError>),
}

impl<K: Kind> Load<K> {
    const fn new(slots: Vec<Slot<K>>) -> Self {
        Self { slots, answer: None, unheard: 0, error: None }
    }

    fn send(&mut self, way: &dyn Producer, number: u64) {
        let items = self.slots.iter().map(|slot| slot.item.clone()).collect();
        self.unheard += 1;
        self.answer = Some(K::send(way, Numbered { number, items }));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Heard> {
        let Some(answer) = &mut self.answer else { return Poll::Pending };
        let Poll::Ready(heard) = answer.as_mut().poll(cx) else { return Poll::Pending };
        self.answer = None;
        Poll::Ready(match heard {
            Ok(BatchAnswer::Done(outcomes)) => {
                for (slot, outcome) in self.slots.iter_mut().zip(outcomes) {
                    if let Some(reply) = slot.reply.take() {
                        reply.send(Ok(outcome));
                    }
                }
                Heard::Answered
            }
            Ok(BatchAnswer::Late) => {
                self.unheard = 0;
                Heard::Late
            }
            Err(error) => {
                let error = Arc::new(error);
                if error.nothing_done() {
                    self.unheard -= 1;
                }
                self.error = Some(Arc::clone(&error));
                Heard::Failed(error)
            }
        })
    }

    fn failure(&self, otherwise: Reason) -> Failed {
        let reason = self.error.clone().map_or(otherwise, Reason::Store);
        if self.unheard > 0 { Failed::Unknown(reason) } else { Failed::NotDone(reason) }
    }

    /// Answers whose time is over.
    fn give_up(&mut self, now: Duration, failure: &Failed) {
        for slot in &mut self.slots {
            if let Some(reply) = slot.reply.take_if(|reply| reply.deadline <= now) {
                reply.send(Err(failure.clone()));
            }
        }
        if self.unheard == 0 {
            self.slots.retain(|slot| slot.reply.is_some());
        }
    }

    fn earliest(&self) -> Option<Duration> {
        self.slots.iter().filter_map(|slot| slot.reply.as_ref()).map(|reply| reply.deadline).min()
    }

    fn drop_abandoned(&mut self) {
        self.slots.retain(|slot| slot.reply.as_ref().is_some_and(|reply| !reply.is_abandoned()));
    }
}

/// Only when the coalescer itself is dropped, or an answer was too short, is anybody left to answer here.
impl<K: Kind> Drop for Load<K> {
    fn drop(&mut self) {
        let failure = self.failure(Reason::Stopped);
        for reply in self.slots.iter_mut().filter_map(|slot| slot.reply.take()) {
            reply.send(Err(failure.clone()));
        }
    }
}

enum Work {
    Adds(Load<Adds>),
    Withdrawals(Load<Withdrawals>),
}

macro_rules! load {
    ($batch:expr, $load:ident => $do:expr) => {
        match $batch {
            Work::Adds($load) => $do,
            Work::Withdrawals($load) => $do,
        }
    };
}

/// A batch; it has a number once it was sent.
pub(super) struct Batch {
    /// The order in which batches were begun; a new number does not change it.
    pub(super) order: u64,
    /// Its number, once it has one.
    pub(super) number: u64,
    bytes: usize,
    work: Work,
}

impl Batch {
    pub(super) fn new(order: u64, first: Entry, spare: &mut Spare) -> Self {
        let work = match &first {
            Entry::Add(..) => Work::Adds(Load::new(std::mem::take(&mut spare.adds))),
            Entry::Withdraw(..) => Work::Withdrawals(Load::new(std::mem::take(&mut spare.withdrawals))),
        };
        let mut batch = Self { order, number: 0, bytes: 0, work };
        batch.push(first);
        batch
    }

    /// Whether `entry` is of the same kind and fits; whether its id is in the batch already is for the caller to know.
    pub(super) fn takes(&self, entry: &Entry, most: usize) -> bool {
        let same = matches!(
            (&self.work, entry),
            (Work::Adds(_), Entry::Add(..)) | (Work::Withdrawals(_), Entry::Withdraw(..))
        );
        same && self.len() < most && self.bytes + entry.bytes() <= BATCH_BYTES
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        match (&mut self.work, entry) {
            (Work::Adds(load), Entry::Add(item, reply)) => load.slots.push(Slot { item, reply: Some(reply) }),
            (Work::Withdrawals(load), Entry::Withdraw(item, reply)) => {
                load.slots.push(Slot { item, reply: Some(reply) });
            }
            _ => debug_assert!(false, "a batch is of one kind, see `takes`"),
        }
    }

    pub(super) fn len(&self) -> usize {
        load!(&self.work, load => load.slots.len())
    }

    pub(super) fn is_full(&self, most: usize) -> bool {
        self.len() >= most || self.bytes >= BATCH_BYTES
    }

    /// Sends it, or sends it again.
    pub(super) fn send(&mut self, way: &dyn Producer) {
        debug_assert!(self.number > 0, "a batch has a number when it is sent");
        load!(&mut self.work, load => load.send(way, self.number));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Heard> {
        load!(&mut self.work, load => load.poll(cx))
    }

    pub(super) fn awaits_answer(&self) -> bool {
        load!(&self.work, load => load.answer.is_some())
    }

    /// The answer of the last copy will not be read.
    pub(super) fn forget_answer(&mut self) {
        load!(&mut self.work, load => load.answer = None);
    }

    /// Answers those whose time is over; says whether nobody is left.
    pub(super) fn give_up(&mut self, now: Duration, waited: Duration) -> bool {
        let never_sent = self.number == 0;
        load!(&mut self.work, load => {
            let otherwise = if never_sent { Reason::NeverSent { waited } } else { Reason::NoAnswer { waited } };
            let failure = load.failure(otherwise);
            load.give_up(now, &failure);
            load.earliest().is_none()
        })
    }

    /// The earliest time at which somebody's time is over.
    pub(super) fn earliest(&self) -> Option<Duration> {
        load!(&self.work, load => load.earliest())
    }

    /// Before it is sent first: leaves out those whose caller went away; says whether nobody is left.
    pub(super) fn drop_abandoned(&mut self) -> bool {
        load!(&mut self.work, load => {
            load.drop_abandoned();
            load.slots.is_empty()
        })
    }

    /// Keeps the vector of a batch that is over.
    pub(super) fn recycle(mut self, spare: &mut Spare) {
        match &mut self.work {
            Work::Adds(load) => spare.adds = emptied(load),
            Work::Withdrawals(load) => spare.withdrawals = emptied(load),
        }
    }
}

fn emptied<K: Kind>(load: &mut Load<K>) -> Vec<Slot<K>> {
    if load.slots.iter().any(|slot| slot.reply.is_some()) {
        return Vec::new();
    }
    let mut slots = std::mem::take(&mut load.slots);
    slots.clear();
    slots
}

/// Vectors of batches that are over.
#[derive(Default)]
pub(super) struct Spare {
    adds: Vec<Slot<Adds>>,
    withdrawals: Vec<Slot<Withdrawals>>,
}
