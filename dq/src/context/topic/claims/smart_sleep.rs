//! Smart sleep: when to transfer next. A topic sleeps until its head is due, a signal reports an earlier one, or the fallback
//! ends.
//!
//! The store says how long to sleep (rule 23). A signal to the watcher names the due time of the head, and the store's clock in
//! the last answer says how long that is from now, so the watcher needs no transfer to learn it. All other signals mean: transfer
//! at once. A signal that arrives while a transfer is in flight counts for the next one, because what is known of signals is
//! cleared before the request is sent.
//!
//! The watcher counts the time to its head by the best that it knows of the store's clock (`store_clock`), and leaves a little before
//! its head is due, by what its transfers took on their way (`lead`).

use std::time::Duration;

use super::lead::Lead;
use super::store_clock::{StoreClock, micros};
use crate::schedule::CLOCK_SLACK;
use crate::store::step::{Role, Transferred};
use crate::time::Timestamp;

/// The shortest time between two calls of `wake`.
const WAKE_PAUSE: Duration = Duration::from_millis(10);

/// When the topic transfers next, and the role the store gave it.
#[derive(Debug)]
pub(super) struct SmartSleep {
    woken: bool,
    more: bool,
    until: Duration,
    /// How long the transfer in flight, or the last one, wanted to sleep at most.
    fallback: Duration,
    /// The sleep ends with the fallback, and nothing else has ended it.
    sleeps_out: bool,
    role: Option<Role>,
    called_wake_at: Option<Duration>,
    store_clock: Option<StoreClock>,
    /// When the transfer in flight, or the last one, left.
    sent_at: Duration,
    /// The earliest head that signals have named since the last transfer was sent.
    signalled: Option<Timestamp>,
    lead: Lead,
    /// When the head is due for which the watcher sleeps, by the store's clock, in µs, and how much earlier it wakes.
    aim: Option<(u64, Duration)>,
    /// The same of the transfer in flight, if nothing else woke the node.
    aimed: Option<(u64, Duration)>,
}

impl SmartSleep {
    /// A topic that transfers at once.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            woken: true,
            more: false,
            until: now,
            fallback: Duration::ZERO,
            sleeps_out: false,
            role: None,
            called_wake_at: None,
            store_clock: None,
            sent_at: now,
            signalled: None,
            lead: Lead::default(),
            aim: None,
            aimed: None,
        }
    }

    /// Something may be due: transfer at once.
    pub(super) const fn wake(&mut self) {
        self.woken = true;
        self.sleeps_out = false;
    }

    /// The store has told the watcher that the head is due at this time. A node that does not know that it is the watcher
    /// transfers at once: the store does not know when it comes.
    pub(super) fn head_is(&mut self, due: Timestamp) {
        match self.store_clock {
            Some(store) if self.role == Some(Role::Watcher) => {
                let lead = self.lead.get();
                let at = store.shows_due(due).saturating_sub(lead);
                if at < self.until {
                    self.until = at;
                    self.aim = Some((micros(due), lead));
                    self.sleeps_out = false;
                }
                self.signalled = Some(self.signalled.map_or(due, |known| known.min(due)));
            }
            _ => self.wake(),
        }
    }

    /// When the store's clock certainly shows `due`, by the node's clock and the last answer; `None` before the first one.
    pub(super) fn reaches(&self, due: Timestamp) -> Option<Duration> {
        self.store_clock.map(|store| store.reaches(due))
    }

    pub(super) fn is_awake(&self, now: Duration) -> bool {
        self.woken || self.more || now >= self.until
    }

    /// When the topic wakes without a signal.
    pub(super) const fn wakes_at(&self) -> Duration {
        self.until
    }

    /// Whether the last sleep ended with the fallback: no signal and no head ended it before.
    pub(super) const fn slept_out(&self) -> bool {
        self.sleeps_out
    }

    /// A transfer is sent now, with this fallback.
    pub(super) const fn sent(&mut self, fallback: Duration, now: Duration) {
        self.aimed = if self.woken || self.more { None } else { self.aim };
        self.woken = false;
        self.fallback = fallback;
        self.sent_at = now;
        self.signalled = None;
    }

    /// Takes in the answer of a transfer. If the store's clock has fallen back since the last one, returns how long ago that may be; nothing with
    /// the first one.
    pub(super) fn answered(&mut self, answer: &Transferred, now: Duration) -> Option<Duration> {
        let fell = self.store_clock.map_or(Some(Duration::ZERO), |known| {
            (known.fell(answer.micros, self.sent_at) >= CLOCK_SLACK / 2).then(|| known.age(now))
        });
        self.more = answer.more;
        self.role = answer.role;
        self.sleeps_out = !answer.more && answer.sleep.as_millis() >= self.fallback.as_millis();
        let mut came_early = false;
        if let Some((due, lead)) = self.aimed.take() {
            self.lead.arrived(lead, due, answer.micros);
            came_early = answer.micros < due;
        }
        // What was known has led here too early, so it does not count.
        let known = if came_early { None } else { self.store_clock };
        let clock = StoreClock::after(known, answer.micros, self.sent_at, now);
        self.store_clock = Some(clock);
        let head = answer.micros.saturating_add(answer.sleep.as_micros() as u64);
        let lead = if came_early { Duration::ZERO } else { self.lead.get() };
        self.aim = (answer.role == Some(Role::Watcher) && !self.sleeps_out).then_some((head, lead));
        self.until = match self.aim {
            Some(_) => clock.shows(head).saturating_sub(lead),
            None => now + answer.sleep,
        };
        if let Some(due) = self.signalled.take() {
            // The head may be one that the store did not know when it answered. Was it due then, the signal may be younger.
            if micros(due) >= answer.micros { self.head_is(due) } else { self.wake() }
        }
        fell
    }

    pub(super) const fn role(&self) -> Option<Role> {
        self.role
    }

    /// When a node without room for due jobs may call `wake`; `None`: it has no role to give up.
    pub(super) fn may_call_wake_at(&self) -> Option<Duration> {
        self.role.map(|_| self.called_wake_at.map_or(Duration::ZERO, |at| at + WAKE_PAUSE))
    }

    /// `wake` is called now: the role is given up.
    pub(super) const fn called_wake(&mut self, now: Duration) {
        self.role = None;
        self.called_wake_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Sequence;
    use crate::store::step::LeaseStatus;

    const MS: Duration = Duration::from_millis(1);
    const FALLBACK: Duration = Duration::from_millis(200);
    /// The store's clock at the answers, in milliseconds.
    const CLOCK: u64 = 1_000;

    fn answer(role: Option<Role>) -> Transferred {
        Transferred {
            lease_status: LeaseStatus { sequence: Sequence(1), rows: 0 },
            clock: Timestamp::from_millis(CLOCK),
            micros: CLOCK * 1_000 + 700,
            role,
            sleep: 100 * MS,
            more: false,
            foreign_lease: None,
            claims: Vec::new(),
            dropped: Vec::new(),
            state: None,
            left: 0,
        }
    }

    fn sleeping(role: Option<Role>) -> SmartSleep {
        let mut sleep = SmartSleep::new(Duration::ZERO);
        sleep.sent(FALLBACK, Duration::ZERO);
        sleep.answered(&answer(role), 10 * MS);
        assert!(!sleep.is_awake(109 * MS) && sleep.is_awake(110 * MS));
        sleep
    }

    #[test]
    fn the_watcher_comes_when_the_signalled_head_is_due_to_the_microsecond() {
        let mut sleep = sleeping(Some(Role::Watcher));
        for (head, wakes_at) in
            [(CLOCK + 200, 110_000), (CLOCK + 50, 59_300), (CLOCK + 60, 59_300), (CLOCK + 8, 17_300)]
        {
            sleep.head_is(Timestamp::from_millis(head));
            assert_eq!(sleep.wakes_at(), Duration::from_micros(wakes_at));
            assert!(!sleep.is_awake(11 * MS));
        }
        sleep.head_is(Timestamp::from_millis(CLOCK - 5));
        assert!(sleep.is_awake(11 * MS), "that head is due");
    }

    #[test]
    fn only_a_sleep_that_nothing_shortened_is_slept_out() {
        let whole = || {
            let mut sleep = SmartSleep::new(Duration::ZERO);
            sleep.sent(FALLBACK, Duration::ZERO);
            sleep.answered(&Transferred { sleep: FALLBACK, ..answer(Some(Role::Watcher)) }, 10 * MS);
            sleep
        };
        assert!(whole().slept_out());
        assert!(!sleeping(Some(Role::Watcher)).slept_out(), "it ends at the head");
        let mut woken = whole();
        woken.wake();
        assert!(!woken.slept_out());
        let mut signalled = whole();
        signalled.head_is(Timestamp::from_millis(CLOCK + 50));
        assert!(!signalled.slept_out());
    }

    #[test]
    fn a_node_that_is_not_the_watcher_transfers_at_once() {
        for role in [None, Some(Role::Standby)] {
            let mut sleep = sleeping(role);
            sleep.head_is(Timestamp::from_millis(CLOCK + 50));
            assert!(sleep.is_awake(11 * MS), "{role:?}");
        }
        let mut sleep = sleeping(Some(Role::Watcher));
        sleep.called_wake(11 * MS);
        sleep.head_is(Timestamp::from_millis(CLOCK + 50));
        assert!(sleep.is_awake(11 * MS), "it gave its role up");
    }

    #[test]
    fn a_head_signalled_during_a_transfer_counts_behind_its_answer() {
        let mut sleep = sleeping(Some(Role::Watcher));
        sleep.sent(FALLBACK, 10 * MS);
        sleep.head_is(Timestamp::from_millis(CLOCK + 30));
        sleep.answered(&answer(Some(Role::Watcher)), 12 * MS);
        assert_eq!(sleep.wakes_at(), Duration::from_micros(41_300));
        sleep.sent(FALLBACK, 10 * MS);
        sleep.head_is(Timestamp::from_millis(CLOCK));
        sleep.answered(&answer(Some(Role::Watcher)), 12 * MS);
        assert!(sleep.is_awake(12 * MS), "it was due at the answer, and may be younger");
        sleep.sent(FALLBACK, 10 * MS);
        sleep.head_is(Timestamp::from_millis(CLOCK + 30));
        sleep.answered(&answer(None), 12 * MS);
        assert!(sleep.is_awake(12 * MS), "the node is no longer the watcher");
        sleep.sent(FALLBACK, 10 * MS);
        sleep.answered(&answer(Some(Role::Watcher)), 12 * MS);
        assert_eq!(sleep.wakes_at(), 112 * MS, "a signal from before the transfer is in its answer");
    }
}
