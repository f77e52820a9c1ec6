//! Sleeps that end on time: one `timerfd` for all sleeps of an environment.
//!
//! Tokio and `epoll` count whole milliseconds and round up, so a sleep of theirs ends about a millisecond late. A `timerfd` ends
//! to the microsecond. The tasks of a node make and drop a sleep at almost each pass, so the alarm is set only for a deadline
//! that is earlier than the one it is set for. That the earliest sleep was dropped shows when the alarm goes off: one wake-up
//! for each time for which it was set.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::clock::{Boottime, Clock};
use super::spawn::{Runtime, Spawn};

/// [`Boottime`], with sleeps that end to the microsecond.
///
/// A task on dq's own runtime waits for the alarm and wakes the sleepers, on whichever runtime they are. It ends with that
/// runtime and closes the `timerfd`. Sleeps that are left then go on as sleeps of tokio.
#[derive(Debug, Clone)]
pub(super) struct PreciseClock(Arc<Timer>);

impl PreciseClock {
    /// Makes the clock, and starts its task on [`Runtime::Own`].
    ///
    /// # Errors
    /// If the operating system has no `timerfd` for `CLOCK_BOOTTIME`, or the process has too many open files.
    pub(super) fn start(spawn: &dyn Spawn) -> io::Result<Self> {
        let (timer, task) = Timer::start()?;
        spawn.spawn(Runtime::Own, Box::pin(task));
        Ok(Self(timer))
    }
}

impl Clock for PreciseClock {
    fn now(&self) -> Duration {
        Boottime.now()
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { timer: Arc::clone(&self.0), at, state: SleepState::New })
    }
}

/// The deadlines of all sleeps, and the alarm.
#[derive(Debug)]
struct Timer(Mutex<Deadlines>);

/// A deadline, and a number that distinguishes it from others of the same time.
type Key = (Duration, u64);

#[derive(Debug)]
struct Deadlines {
    sleepers: BTreeMap<Key, Waker>,
    last: u64,
    /// `None`: nobody waits for the alarm any more.
    alarm: Option<Alarm>,
}

#[derive(Debug)]
struct Alarm {
    fd: Arc<OwnedFd>,
    /// The alarm has not gone off since it was set for this time.
    set_for: Option<Duration>,
    /// How often it was set.
    #[cfg(test)]
    set: usize,
}

impl Alarm {
    fn set(&mut self, at: Duration) -> io::Result<()> {
        let tv_sec = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
        let it_value = Timespec { tv_sec, tv_nsec: at.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&*self.fd, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        self.set_for = Some(at);
        #[cfg(test)]
        {
            self.set += 1;
        }
        Ok(())
    }
}

impl Deadlines {
    /// Sets the alarm for the earliest deadline, unless it is set for that time or an earlier one. Without a working alarm the
    /// timer is over, and the caller wakes the sleepers, which then sleep otherwise.
    #[must_use = "the sleepers must be woken, after the lock"]
    fn set_alarm(&mut self) -> BTreeMap<Key, Waker> {
        let (Some((first, _)), Some(alarm)) = (self.sleepers.first_key_value(), &mut self.alarm) else {
            return BTreeMap::new();
        };
        if alarm.set_for.is_some_and(|set_for| set_for <= first.0) {
            return BTreeMap::new();
        }
        match alarm.set(first.0) {
            Ok(()) => BTreeMap::new(),
            Err(error) => {
                tracing::warn!(error = %error, "cannot set a timer; jobs start up to two milliseconds later from now on");
                self.close()
            }
        }
    }

    /// The timer is over. The caller wakes the sleepers.
    #[must_use = "the sleepers must be woken, after the lock"]
    fn close(&mut self) -> BTreeMap<Key, Waker> {
        self.alarm = None;
        std::mem::take(&mut self.sleepers)
    }
}

fn wake(sleepers: BTreeMap<Key, Waker>) {
    sleepers.into_values().for_each(Waker::wake);
}

impl Timer {
    /// Makes a timer, and the task that wakes its sleepers.
    fn start() -> io::Result<(Arc<Self>, impl Future<Output = ()> + Send + 'static)> {
        let fd = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let fd = Arc::new(fd);
        let alarm = Alarm {
            fd: Arc::clone(&fd),
            set_for: None,
            #[cfg(test)]
            set: 0,
        };
        let timer = Arc::new(Self(Mutex::new(Deadlines { sleepers: BTreeMap::new(), last: 0, alarm: Some(alarm) })));
        let running = Running(Arc::clone(&timer));
        Ok((timer, async move { running.run(fd).await }))
    }

    fn deadlines(&self) -> MutexGuard<'_, Deadlines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody whose deadline has come, and sets the alarm for the next one.
    fn wake_due(&self) {
        let now = Boottime.now();
        let mut deadlines = self.deadlines();
        let later = deadlines.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut deadlines.sleepers, later);
        if let Some(alarm) = &mut deadlines.alarm {
            alarm.set_for = alarm.set_for.filter(|set_for| *set_for > now);
        }
        let failed = deadlines.set_alarm();
        drop(deadlines);
        wake(due);
        wake(failed);
    }
}

/// The task of a timer. When it is dropped, as by the end of its runtime, the timer is over.
struct Running(Arc<Timer>);

impl Running {
    async fn run(self, fd: Arc<OwnedFd>) {
        // Newer versions of tokio want `unsafe` code instead, because a type could lie about its descriptor; `OwnedFd` does not.
        #[allow(deprecated)]
        let registered = AsyncFd::with_interest(fd, Interest::READABLE);
        let fd = match registered {
            Ok(fd) => fd,
            Err(error) => {
                tracing::warn!(error = %error, "cannot wait for a timer; jobs start up to two milliseconds later");
                return;
            }
        };
        // Nothing reads the number of expirations: `epoll` reports each new one, and setting the alarm resets it.
        while let Ok(mut ready) = fd.readable().await {
            ready.clear_ready();
            self.0.wake_due();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let left = self.0.deadlines().close();
        wake(left);
    }
}

/// A sleep. Dropping it removes its deadline.
struct Sleep {
    timer: Arc<Timer>,
    at: Duration,
    state: SleepState,
}

enum SleepState {
    New,
    /// Its deadline is in the timer until it has come.
    Waiting(u64),
    /// The timer is over.
    Otherwise(BoxFuture<'static, ()>),
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            SleepState::New => self.begin(cx),
            SleepState::Waiting(number) => {
                let number = *number;
                self.wait(number, cx)
            }
            SleepState::Otherwise(sleep) => sleep.as_mut().poll(cx),
        }
    }
}

impl Sleep {
    fn begin(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Boottime.now() >= self.at {
            return Poll::Ready(());
        }
        let mut deadlines = self.timer.deadlines();
        if deadlines.alarm.is_none() {
            drop(deadlines);
            return self.sleep_otherwise(cx);
        }
        deadlines.last += 1;
        let number = deadlines.last;
        deadlines.sleepers.insert((self.at, number), cx.waker().clone());
        let failed = deadlines.set_alarm();
        drop(deadlines);
        self.state = SleepState::Waiting(number);
        wake(failed);
        Poll::Pending
    }

    fn wait(&mut self, number: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut deadlines = self.timer.deadlines();
        if deadlines.alarm.is_none() {
            drop(deadlines);
            return self.sleep_otherwise(cx);
        }
        let Some(waker) = deadlines.sleepers.get_mut(&(self.at, number)) else { return Poll::Ready(()) };
        let before = (!waker.will_wake(cx.waker())).then(|| std::mem::replace(waker, cx.waker().clone()));
        drop(deadlines);
        drop(before);
        Poll::Pending
    }

    fn sleep_otherwise(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut sleep = Boottime.sleep_until(self.at);
        let polled = sleep.as_mut().poll(cx);
        self.state = SleepState::Otherwise(sleep);
        polled
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let SleepState::Waiting(number) = self.state {
            let removed = self.timer.deadlines().sleepers.remove(&(self.at, number));
            drop(removed); // behind the lock
        }
    }
}

#[cfg(test)]
mod tests;
