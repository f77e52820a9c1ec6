//! The batches of a lane that wait for their turn to be sent.
//!
//! Entries keep their order. A batch is of one kind and never has an id twice: what would break that, or what is over the
//! bounds, begins the next batch. Generated ids cannot repeat and are not looked at.

use std::collections::{HashSet, VecDeque};

use foldhash::fast::FixedState;

use super::batch::{Batch, Spare};
use super::inbox::Request;
use crate::job::JobId;
use crate::store::step::MOST_JOBS;

pub(super) struct BatchQueue {
    batches: VecDeque<Batch>,
    /// The chosen ids of the last batch, while it can grow.
    ids: HashSet<JobId, FixedState>,
    /// Whether the last batch can grow.
    open: bool,
    started: u64,
}

impl BatchQueue {
    /// An empty line; `seed` is for the hashes of ids, which others may choose.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            batches: VecDeque::new(),
            ids: HashSet::with_hasher(FixedState::with_seed(seed)),
            open: false,
            started: 0,
        }
    }

    /// Puts an entry behind all others.
    pub(super) fn push(&mut self, entry: Request, spare: &mut Spare) {
        let chosen = match &entry {
            Request::Add(job, _) if job.generated => None,
            Request::Add(job, _) => Some(job.id.clone()),
            Request::SendCommand(command, _) => Some(command.id.clone()),
        };
        if let Some(last) = self.batches.back_mut().filter(|last| self.open && last.takes(&entry, MOST_JOBS))
            && chosen.as_ref().is_none_or(|id| !self.ids.contains(id))
        {
            self.ids.extend(chosen);
            last.push(entry);
            return;
        }
        self.ids.clear();
        self.ids.extend(chosen);
        self.open = true;
        self.started += 1;
        self.batches.push_back(Batch::new(self.started, entry, spare));
    }

    /// Puts a batch that needs a new number where it was in the order of batches.
    pub(super) fn put_back(&mut self, mut batch: Batch) {
        batch.number = 0;
        let place = self.batches.iter().take_while(|other| other.order < batch.order).count();
        if place == self.batches.len() {
            self.open = false;
        }
        self.batches.insert(place, batch);
    }

    /// The next batch that somebody still wants.
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

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether the first batch cannot grow any more.
    pub(super) fn has_closed(&self) -> bool {
        match self.batches.len() {
            0 => false,
            1 => !self.open || self.batches[0].is_full(MOST_JOBS),
            _ => true,
        }
    }

    /// Removes batches of which `over` says that nobody is left.
    pub(super) fn give_up(&mut self, over: impl FnMut(&mut Batch) -> bool) {
        let mut over = over;
        let before = self.batches.back().map(|last| last.order);
        self.batches.retain_mut(|batch| !over(batch));
        if self.batches.back().map(|last| last.order) != before {
            self.open = false;
        }
    }

    pub(super) fn earliest(&self) -> Option<std::time::Duration> {
        self.batches.iter().filter_map(Batch::earliest).min()
    }
}
