//! Outages: all parts of a node tell one [`Outage`] how the store treats them, and the log hears of an outage once.
//!
//! It begins with the first failure of any [`Party`], and is over when the store has answered somebody and nobody still fails. The
//! log has one line at each end, at most one warning a minute, and one of each outage that lasts for five seconds, however many topics,
//! channels and providers there are; what each of them meets is at DEBUG.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use humantime::format_duration;
use tokio::sync::Notify;

use super::StoreError;
use crate::environment::Environment;
use crate::telemetry::{Counter, Gauge, counter, describe, gauge, table};
use crate::time::floor_millis;

/// How long after a warning the next one comes at the earliest, unless an outage lasts for [`LONG`].
pub(crate) const WARNING_PAUSE: Duration = Duration::from_secs(60);
/// An outage that has lasted so long is a warning, whatever was warned of before it began.
const LONG: Duration = Duration::from_secs(5);

/// What a process measures of the outages of its store.
#[derive(Debug)]
struct OutageMeter {
    outages: Counter,
    seconds: Counter,
    goes_on: Gauge,
}

impl OutageMeter {
    fn new() -> Self {
        describe();
        let goes_on = gauge(&table::OUT_OF_REACH, &[]);
        goes_on.set(0.0);
        Self { outages: counter(&table::OUTAGES, &[]), seconds: counter(&table::OUTAGE_SECONDS, &[]), goes_on }
    }

    fn began(&self) {
        self.outages.increment(1);
        self.goes_on.set(1.0);
    }

    fn ended(&self, after: Duration) {
        self.seconds.increment(after.as_secs_f64().round() as u64);
        self.goes_on.set(0.0);
    }
}

/// The outages of one store, as one node and its provider see them. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Outage(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    environment: Environment,
    /// The store, without secrets.
    store: String,
    /// Notified when an outage ends.
    changed: Arc<Notify>,
    /// Whether an outage goes on: all that an answer costs while none does.
    goes_on: AtomicBool,
    /// How many outages have begun.
    number: AtomicU64,
    meter: OutageMeter,
    state: Mutex<OutageState>,
}

#[derive(Debug, Default)]
struct OutageState {
    /// Since when the outage goes on.
    since: Option<Duration>,
    /// How many parties fail.
    failing: usize,
    /// When one failed last.
    failed: Duration,
    /// When the last warning was logged, in whichever outage.
    warned: Option<Duration>,
    /// The last error, if it means that nobody reaches the store.
    unreachable: Option<String>,
}

impl OutageState {
    /// Whether an outage that began at `since` must be warned of at `now`: it is long, and every warning is older.
    fn is_unwarned(&self, since: Duration, now: Duration) -> bool {
        now.saturating_sub(since) >= LONG && self.warned.is_none_or(|warned| warned < since)
    }
}

impl Shared {
    /// An outage begins.
    fn begin(&self) {
        self.number.fetch_add(1, Relaxed);
        self.goes_on.store(true, Relaxed);
        self.meter.began();
    }

    /// The state is valid after every line that changes it, so dq ignores that a lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outage {
    /// No outage yet. `store` names the store in the log.
    pub(crate) fn new(environment: Environment, store: String) -> Self {
        let (changed, state) = (Arc::default(), Mutex::default());
        let (goes_on, number) = (AtomicBool::new(false), AtomicU64::new(0));
        let meter = OutageMeter::new();
        Self(Arc::new(Shared { environment, store, changed, goes_on, number, meter, state }))
    }

    /// Begins with an outage of which the log knows: the start of the node has said that it waits for the store.
    pub(crate) fn was_told(&self) {
        let now = self.0.environment.now();
        let mut state = self.0.lock();
        (state.since, state.failed, state.warned) = (Some(now), now, Some(now));
        self.0.begin();
    }

    /// Something that asks the store.
    pub(crate) fn party(&self) -> Party {
        let (failed_in, answered_in) = (AtomicU64::new(0), AtomicU64::new(0));
        Party { shared: Arc::clone(&self.0), fails: AtomicBool::new(false), failed_in, answered_in }
    }

    /// Notified when an outage ends, and by those who wait for other changes.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.changed)
    }
}

/// Something that asks the store: a topic, a channel, a subscription, or a provider for one topic. Dropping it takes it out.
#[derive(Debug)]
pub(crate) struct Party {
    shared: Arc<Shared>,
    fails: AtomicBool,
    /// The number of the last outage in which it failed.
    failed_in: AtomicU64,
    /// The number of the last outage during which the store answered it.
    answered_in: AtomicU64,
}

impl Party {
    /// The node's clock.
    pub(crate) fn now(&self) -> Duration {
        self.shared.environment.now()
    }

    /// The store has not answered, or has refused a request.
    pub(crate) fn failed(&self, error: &StoreError) {
        let now = self.now();
        let mut state = self.shared.lock();
        // One that nobody met for long is another one: those who met it have gone without an answer.
        let is_over = state.failing == 0 && now >= state.failed + WARNING_PAUSE;
        let is_new = state.since.is_none() || is_over;
        if is_new {
            (state.since, state.unreachable) = (Some(now), None);
            self.shared.begin();
        }
        state.failed = now;
        self.failed_in.store(self.shared.number.load(Relaxed), Relaxed);
        if !self.fails.swap(true, Relaxed) {
            state.failing += 1;
        }
        if error.is_unreachable() {
            state.unreachable = Some(error.to_string());
        }
        let since = state.since.unwrap_or(now);
        let is_time = state.warned.is_none_or(|warned| now >= warned + WARNING_PAUSE);
        let may_warn = is_time || state.is_unwarned(since, now);
        if may_warn {
            state.warned = Some(now);
        }
        drop(state);
        self.shared.report(error, may_warn, is_new, now.saturating_sub(since));
    }

    /// The store has answered. Returns at once while there is no outage. A store that refuses some requests goes on answering
    /// others, so then only those who failed can tell that it is over.
    pub(crate) fn answered(&self) {
        if !self.shared.goes_on.load(Relaxed) {
            return;
        }
        let number = self.shared.number.load(Relaxed);
        self.answered_in.store(number, Relaxed);
        let mut state = self.shared.lock();
        self.leave(&mut state);
        let can_tell = state.unreachable.is_some() || self.failed_in.load(Relaxed) == number;
        if state.failing > 0 || !can_tell {
            return;
        }
        let Some(since) = state.since.take() else { return };
        state.unreachable = None;
        self.shared.goes_on.store(false, Relaxed);
        let now = self.now();
        let is_unwarned = state.is_unwarned(since, now);
        if is_unwarned {
            state.warned = Some(now);
        }
        drop(state);
        let lasted = now.saturating_sub(since);
        self.shared.meter.ended(lasted);
        let outage = format_duration(floor_millis(lasted));
        match is_unwarned {
            true => tracing::warn!(store = self.shared.store, %outage, "the store answers again"),
            false => tracing::info!(store = self.shared.store, %outage, "the store answers again"),
        }
        self.shared.changed.notify_waiters();
    }

    /// It asks the store nothing for now, so its failure holds up no end.
    pub(crate) fn rests(&self) {
        if self.fails.load(Relaxed) {
            self.leave(&mut self.shared.lock());
        }
    }

    fn leave(&self, state: &mut OutageState) {
        if self.fails.swap(false, Relaxed) {
            state.failing -= 1;
        }
    }

    /// Why it cannot reach the store, if others found that out and it has had no answer since.
    pub(crate) fn cut_off(&self) -> Option<String> {
        let knows_better = self.answered_in.load(Relaxed) == self.shared.number.load(Relaxed);
        if !self.shared.goes_on.load(Relaxed) || knows_better {
            return None;
        }
        self.shared.lock().unreachable.clone()
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        self.rests();
    }
}

impl Shared {
    fn report(&self, error: &StoreError, may_warn: bool, is_new: bool, lasted: Duration) {
        let (store, lasted) = (&self.store, format_duration(floor_millis(lasted)));
        match (may_warn, is_new, error.is_outage()) {
            (true, true, true) => {
                tracing::warn!(store, %error, "the store does not answer, or refuses what it is asked; dq tries again until it answers, and jobs wait");
            }
            (true, true, false) => {
                tracing::warn!(store, %error, "the store does not serve this program until the cause is fixed; dq keeps asking, and jobs wait");
            }
            (true, false, _) => {
                tracing::warn!(store, %error, %lasted, "the store still does not answer, or refuses what it is asked; dq keeps asking");
            }
            (false, true, _) => {
                tracing::info!(store, %error, "the store does not answer again, soon after it did; dq keeps asking");
            }
            (false, false, _) => {}
        }
    }
}
