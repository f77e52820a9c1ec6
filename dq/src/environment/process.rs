//! The process that handlers run in: which of them run now, and whether one runs alone (rule 19).
//!
//! A process dies as a whole, so *alone* counts every handler of dq in it: of all topics and contexts, broadcast listeners
//! included. A job that must be alone takes turns with all others: nothing starts until the handlers that run have returned,
//! and afterwards others may start for as long as they waited, unless nothing else was due. If the handlers take longer than the wait,
//! which is short at first, others start again for as long as it lasted, and the next wait is twice as long.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Boottime, Clock};

/// The first wait for running handlers to return.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait for running handlers to return.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// How many jobs whose group has died may run at once.
const SMALL_GROUP: usize = 8;

/// The handlers that run in one process.
pub struct Process {
    clock: Arc<dyn Clock>,
    state: Mutex<ProcessState>,
    /// Those to wake after a change, in the order in which they came: a simulation must repeat it.
    waiting: Mutex<BTreeMap<u64, Arc<Notify>>>,
}

#[derive(Debug, Default)]
struct ProcessState {
    /// The number of the last ticket.
    last: u64,
    /// The handlers that run, and those that are about to start, in places that are used again.
    entries: Vec<Option<Running>>,
    free: Vec<usize>,
    in_small_groups: usize,
    holder: Option<Holder>,
    /// The tickets of jobs that wait to run alone, in order.
    tickets: VecDeque<u64>,
    /// Since when nothing starts, because the first of them waits for the running handlers to return.
    waiting_since: Option<Duration>,
    /// How often in a row that took too long.
    waits: u32,
    /// Until when others may start before the next wait.
    open_until: Duration,
    /// Something else wanted to start since nothing does.
    is_refusing: bool,
    /// How many topics hold a [`Refused`].
    refused: usize,
    /// The time until `open_until` is owed to a job that wanted to start, or was due.
    is_owed: bool,
}

#[derive(Debug)]
struct Running {
    /// From then on the handler runs for so long that no job waits for it.
    too_long_at: Duration,
    is_in_small_group: bool,
}

/// The job that runs alone.
#[derive(Debug)]
struct Holder {
    /// Since when nothing else has started.
    since: Duration,
    /// It gives way when another handler wants to start.
    gives_way: bool,
    /// Another handler wants to start.
    is_wanted: bool,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

impl Process {
    /// A process of its own, for tests and simulations.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default(), waiting: Mutex::default() })
    }

    /// The process of this program.
    pub(super) fn current() -> Arc<Self> {
        static CURRENT: OnceLock<Arc<Process>> = OnceLock::new();
        Arc::clone(CURRENT.get_or_init(|| Self::new(Arc::new(Boottime))))
    }

    /// Changes whenever a handler that could not start may be able to, and whenever it may be the time of a job that must run alone.
    pub(crate) fn changes(self: &Arc<Self>) -> Changes {
        let mut waiting = self.waiting();
        let number = waiting.last_key_value().map_or(0, |(last, _)| last + 1);
        let changed = Arc::<Notify>::default();
        waiting.insert(number, Arc::clone(&changed));
        Changes { process: Arc::clone(self), number, changed }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        self.waiting().values().for_each(|changed| changed.notify_one());
    }

    /// Lets a handler start, unless a job runs alone or is about to. After `too_long` no job waits for it any more.
    pub(crate) fn enter(self: &Arc<Self>, too_long: Duration) -> Option<ProcessEntry> {
        self.enter_as(too_long, false)
    }

    /// Lets code of a run that has ended start, unless a job runs alone. A job that is about to waits for it.
    pub(crate) fn enter_unless_alone(self: &Arc<Self>, too_long: Duration) -> Option<ProcessEntry> {
        let now = self.clock.now();
        let mut state = self.state();
        if state.holder.is_some() {
            state.is_refusing = true;
            return None;
        }
        Some(self.entry(&mut state, now, too_long, false))
    }

    /// Lets a job start whose group has died. Few of them run at once.
    pub(crate) fn enter_small_group(self: &Arc<Self>, too_long: Duration) -> Option<ProcessEntry> {
        self.enter_as(too_long, true)
    }

    fn enter_as(self: &Arc<Self>, too_long: Duration, is_in_small_group: bool) -> Option<ProcessEntry> {
        let now = self.clock.now();
        let mut state = self.state();
        if state.is_closed() {
            state.is_refusing = true;
            let is_news = state.want();
            drop(state);
            if is_news {
                self.announce();
            }
            return None;
        }
        if is_in_small_group && state.in_small_groups >= SMALL_GROUP {
            return None;
        }
        Some(self.entry(&mut state, now, too_long, is_in_small_group))
    }

    /// Lets a job run alone if nothing else runs or waits for running alone. It has to give way to others.
    pub(crate) fn enter_alone(self: &Arc<Self>) -> Option<Alone> {
        let now = self.clock.now();
        let mut state = self.state();
        if state.is_closed() || state.runs() || !state.tickets.is_empty() {
            return None;
        }
        state.holder = Some(Holder { since: now, gives_way: true, is_wanted: false });
        Some(Alone { process: Arc::clone(self), since: now })
    }

    /// Queues for running alone.
    pub(crate) fn queue(self: &Arc<Self>) -> Ticket {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.tickets.push_back(number);
        Ticket { process: Arc::clone(self), number }
    }

    /// Whether nothing starts until a job has run alone that need not give way.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_held()
    }

    /// Notes that a topic would claim jobs if this process were not [closed](Self::is_closed), and does not know whether any is due.
    pub(crate) fn refuse_claim(self: &Arc<Self>) -> Refused {
        self.state().refused += 1;
        Refused { process: Arc::clone(self) }
    }

    /// Counts a handler among those that run.
    fn entry(
        self: &Arc<Self>,
        state: &mut ProcessState,
        now: Duration,
        too_long: Duration,
        is_in_small_group: bool,
    ) -> ProcessEntry {
        let place = state.insert(Running { too_long_at: now + too_long, is_in_small_group });
        ProcessEntry { process: Arc::clone(self), place, since: now, too_long }
    }
}

/// The changes of a process since this was made, or since the last one that was awaited.
#[derive(Debug)]
pub(crate) struct Changes {
    process: Arc<Process>,
    number: u64,
    changed: Arc<Notify>,
}

impl Changes {
    /// Waits for a change. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.process.waiting().remove(&self.number);
    }
}

impl ProcessState {
    const fn is_closed(&self) -> bool {
        self.holder.is_some() || self.waiting_since.is_some()
    }

    /// Whether nothing starts until a job has run alone that need not give way.
    fn is_held(&self) -> bool {
        self.waiting_since.is_some() || self.holder.as_ref().is_some_and(|holder| !holder.gives_way)
    }

    /// Whether a handler runs or is about to start.
    const fn runs(&self) -> bool {
        self.free.len() < self.entries.len()
    }

    fn insert(&mut self, running: Running) -> usize {
        self.in_small_groups += usize::from(running.is_in_small_group);
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.entries[place] = Some(running);
        place
    }

    /// Notes that another handler wants to start. Returns whether the job that runs alone has to learn that.
    fn want(&mut self) -> bool {
        let Some(holder) = self.holder.as_mut().filter(|holder| holder.gives_way && !holder.is_wanted) else {
            return false;
        };
        holder.is_wanted = true;
        true
    }

    /// Others may start now, for as long as they could not. If none wanted to, nothing is owed.
    fn open(&mut self, closed_since: Duration, now: Duration) {
        self.waiting_since = None;
        self.is_owed = std::mem::take(&mut self.is_refusing);
        let may_be_owed = self.is_owed || self.refused > 0;
        self.open_until = if may_be_owed { now + now.saturating_sub(closed_since) } else { now };
    }
}

/// A topic was refused a claim, and has not learned since whether anything was due. Dropping it says that nothing was: if that is true
/// of all such topics, others need not start any longer.
#[derive(Debug)]
pub(crate) struct Refused {
    process: Arc<Process>,
}

impl Refused {
    /// Something was due, so the time is owed.
    pub(crate) fn was_due(self) {
        self.process.state().is_owed = true;
    }
}

impl Drop for Refused {
    fn drop(&mut self) {
        let now = self.process.clock.now();
        let mut state = self.process.state();
        state.refused -= 1;
        let ends = state.refused == 0 && !state.is_owed && !state.is_closed() && now < state.open_until;
        if ends {
            state.open_until = now;
        }
        drop(state);
        if ends {
            self.process.announce();
        }
    }
}

/// A handler that runs or is about to start. Dropping it says that the handler has returned.
#[derive(Debug)]
pub(crate) struct ProcessEntry {
    process: Arc<Process>,
    place: usize,
    since: Duration,
    too_long: Duration,
}

impl ProcessEntry {
    /// The handler starts now. If it has waited since this was made, only from now on it runs for long.
    pub(crate) fn begins(&self, now: Duration) {
        if now.saturating_sub(self.since) < self.too_long / 8 {
            return; // most do not wait, and this takes a lock
        }
        if let Some(running) = &mut self.process.state().entries[self.place] {
            running.too_long_at = now + self.too_long;
        }
    }
}

impl Drop for ProcessEntry {
    fn drop(&mut self) {
        let mut state = self.process.state();
        let ended = state.entries[self.place].take();
        state.free.push(self.place);
        let left_small_group = ended.is_some_and(|ended| ended.is_in_small_group);
        state.in_small_groups -= usize::from(left_small_group);
        let is_news = state.waiting_since.is_some() || left_small_group;
        drop(state);
        if is_news {
            self.process.announce();
        }
    }
}

/// The right to run alone. Others start again when it is dropped.
#[derive(Debug)]
pub(crate) struct Alone {
    process: Arc<Process>,
    since: Duration,
}

impl Alone {
    /// Lets the handler of the job start.
    pub(crate) fn enter(&self, too_long: Duration) -> ProcessEntry {
        let now = self.process.clock.now();
        self.process.entry(&mut self.process.state(), now, too_long, false)
    }

    /// Whether the job has to give way, because another handler wants to start.
    pub(crate) fn is_wanted(&self) -> bool {
        self.process.state().holder.as_ref().is_some_and(|holder| holder.is_wanted)
    }

    /// Since when nothing else has started.
    pub(crate) const fn since(&self) -> Duration {
        self.since
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let now = self.process.clock.now();
        let mut state = self.process.state();
        if let Some(holder) = state.holder.take() {
            state.waits = 0;
            // A job that gave way owes the others nothing.
            let since = if holder.gives_way { now } else { holder.since };
            state.open(since, now);
        }
        drop(state);
        self.process.announce();
    }
}

/// What a job that must run alone may do now.
#[derive(Debug)]
pub(crate) enum Outlook {
    /// Run alone.
    Alone(Alone),
    /// Run beside handlers that have run for too long to wait for them.
    Beside(ProcessEntry),
    /// Wait, until this time at the latest if there is one.
    Wait(Option<Duration>),
}

/// A place in the queue of those that must run alone. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Ticket {
    process: Arc<Process>,
    number: u64,
}

impl Ticket {
    /// What the job may do now. After `too_long` no job waits for it any more.
    pub(crate) fn outlook(&mut self, too_long: Duration) -> Outlook {
        let now = self.process.clock.now();
        let mut state = self.process.state();
        if state.tickets.front() != Some(&self.number) {
            return Outlook::Wait(None);
        }
        if state.holder.is_some() {
            let is_news = state.want();
            drop(state);
            if is_news {
                self.process.announce();
            }
            return Outlook::Wait(None);
        }
        if state.waiting_since.is_none() && now < state.open_until {
            return Outlook::Wait(Some(state.open_until));
        }
        let since = *state.waiting_since.get_or_insert(now);
        let too_long_at = state.entries.iter().flatten().map(|entry| entry.too_long_at).filter(|at| *at > now).min();
        let Some(too_long_at) = too_long_at else {
            state.tickets.pop_front();
            state.waiting_since = None;
            if !state.runs() {
                state.holder = Some(Holder { since, gives_way: false, is_wanted: false });
                return Outlook::Alone(Alone { process: Arc::clone(&self.process), since });
            }
            let entry = self.process.entry(&mut state, now, too_long, false);
            state.waits = 0;
            state.open(since, now);
            drop(state);
            self.process.announce();
            return Outlook::Beside(entry);
        };
        let wait = super::doubled(FIRST_WAIT, MAX_WAIT, state.waits);
        if now < since + wait {
            return Outlook::Wait(Some(too_long_at.min(since + wait)));
        }
        state.waits += 1;
        state.open(since, now);
        let until = state.open_until;
        drop(state);
        self.process.announce();
        Outlook::Wait(Some(until))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let now = self.process.clock.now();
        let mut state = self.process.state();
        let was_first = state.tickets.front() == Some(&self.number);
        state.tickets.retain(|number| *number != self.number);
        if was_first && let Some(since) = state.waiting_since {
            state.open(since, now);
        }
        drop(state);
        if was_first {
            self.process.announce();
        }
    }
}

#[cfg(test)]
mod tests;
