//! A numbered batch and the callers that wait for it.
//!
//! `unheard` counts the copies under the batch's number whose answer was not read: while it is not zero, the batch may have
//! been executed, or may still be, and who must be answered now is told *unknown*. At zero it is certain that nothing was
//! done; what is given up then leaves the batch, so that a repeat cannot do it after all.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::Reason;
use super::inbox::{Adds, Commands, Failed, Reply, Request, RequestKind};
use crate::store::{BatchAnswer, Numbered, Pending, Producer, StoreError};

/// The most bytes of a batch, unless one job alone has more.
pub(super) const BATCH_BYTES: usize = 1 << 20;

struct Slot<K: RequestKind> {
    item: K::Item,
    /// `None` once it was answered.
    reply: Option<Reply<K::Outcome>>,
}

pub(super) struct Load<K: RequestKind> {
    slots: Vec<Slot<K>>,
    answer: Option<Pending<BatchAnswer<K::Outcome>>>,
    unheard: u32,
    error: Option<Arc<StoreError>>,
}

/// What was read about a batch.
#[derive(Debug)]
pub(super) enum Received {
    /// Everybody was answered.
    Answered,
    /// It was not executed under its number and never will be.
    Late,
    /// No proper answer.
    Failed(Arc<StoreError>),
}

impl<K: RequestKind> Load<K> {
    const fn new(slots: Vec<Slot<K>>) -> Self {
        Self { slots, answer: None, unheard: 0, error: None }
    }

    fn send(&mut self, producer: &dyn Producer, number: u64) {
        let items = self.slots.iter().map(|slot| slot.item.clone()).collect();
        self.unheard += 1;
        self.answer = Some(K::send(producer, Numbered { number, items }));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let Some(answer) = &mut self.answer else { return Poll::Pending };
        let Poll::Ready(received) = answer.as_mut().poll(cx) else { return Poll::Pending };
        self.answer = None;
        Poll::Ready(match received {
            Ok(BatchAnswer::Done(outcomes)) => {
                for (slot, outcome) in self.slots.iter_mut().zip(outcomes) {
                    if let Some(reply) = slot.reply.take() {
                        reply.send(Ok(outcome));
                    }
                }
                Received::Answered
            }
            Ok(BatchAnswer::Late) => {
                self.unheard = 0;
                Received::Late
            }
            Err(error) => {
                let error = Arc::new(error);
                if error.nothing_done() {
                    self.unheard -= 1;
                }
                self.error = Some(Arc::clone(&error));
                Received::Failed(error)
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
impl<K: RequestKind> Drop for Load<K> {
    fn drop(&mut self) {
        let failure = self.failure(Reason::Stopped);
        for reply in self.slots.iter_mut().filter_map(|slot| slot.reply.take()) {
            reply.send(Err(failure.clone()));
        }
    }
}

enum Batched {
    Adds(Load<Adds>),
    Commands(Load<Commands>),
}

macro_rules! load {
    ($batch:expr, $load:ident => $do:expr) => {
        match $batch {
            Batched::Adds($load) => $do,
            Batched::Commands($load) => $do,
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
    work: Batched,
}

impl Batch {
    pub(super) fn new(order: u64, first: Request, spare: &mut Spare) -> Self {
        let work = match &first {
            Request::Add(..) => Batched::Adds(Load::new(std::mem::take(&mut spare.adds))),
            Request::SendCommand(..) => Batched::Commands(Load::new(std::mem::take(&mut spare.commands))),
        };
        let mut batch = Self { order, number: 0, bytes: 0, work };
        batch.push(first);
        batch
    }

    /// Whether `entry` is of the same kind and fits; whether its id is in the batch already is for the caller to know.
    pub(super) fn takes(&self, entry: &Request, most: usize) -> bool {
        let same = matches!(
            (&self.work, entry),
            (Batched::Adds(_), Request::Add(..)) | (Batched::Commands(_), Request::SendCommand(..))
        );
        same && self.len() < most && self.bytes + entry.bytes() <= BATCH_BYTES
    }

    pub(super) fn push(&mut self, entry: Request) {
        self.bytes += entry.bytes();
        match (&mut self.work, entry) {
            (Batched::Adds(load), Request::Add(item, reply)) => load.slots.push(Slot { item, reply: Some(reply) }),
            (Batched::Commands(load), Request::SendCommand(item, reply)) => {
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
    pub(super) fn send(&mut self, producer: &dyn Producer) {
        debug_assert!(self.number > 0, "a batch has a number when it is sent");
        load!(&mut self.work, load => load.send(producer, self.number));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
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
            Batched::Adds(load) => spare.adds = emptied(load),
            Batched::Commands(load) => spare.commands = emptied(load),
        }
    }
}

fn emptied<K: RequestKind>(load: &mut Load<K>) -> Vec<Slot<K>> {
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
    commands: Vec<Slot<Commands>>,
}
