//! Clocks: the node's clock measures durations, the store's clock decides when jobs are due.

use std::fmt;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// A node's clock. The node measures its leases by it, so it should go on while the machine is suspended.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time since some fixed moment.
    fn now(&self) -> Duration;

    /// Waits until [`now`](Self::now) is at least `at`.
    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()>;

    /// Milliseconds since the Unix epoch, for generated ids.
    fn wall_millis(&self) -> u64 {
        wall_micros() / 1000
    }
}

/// The clock of a store. It decides about due times and leases.
pub trait StoreClock: fmt::Debug + Send + Sync + 'static {
    /// Microseconds since the Unix epoch.
    fn micros(&self) -> u64;
}

fn wall_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// `CLOCK_BOOTTIME` on Linux and Android: it goes on while the machine is suspended, so a lease cannot look valid after
/// that. Elsewhere it is the monotonic clock of `std`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Boottime;

impl Clock for Boottime {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn now(&self) -> Duration {
        use std::sync::LazyLock;
        static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        let pause = at.saturating_sub(self.now());
        Box::pin(tokio::time::sleep(pause))
    }
}

/// Tokio's clock, which tests can pause. As a store's clock it starts at the wall clock's time.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Instant,
    wall_micros: u64,
}

impl TokioClock {
    /// A clock that shows the wall clock's time now, in whole milliseconds, and then follows tokio's clock. So a delay
    /// of whole milliseconds ends exactly when tokio's clock has advanced by it. While tokio's clock is paused, all these clocks of
    /// a runtime show the same time, however much real time passed between their making.
    pub fn new() -> Self {
        static BEGIN: LazyLock<(std::time::Instant, Duration)> =
            LazyLock::new(|| (std::time::Instant::now(), Duration::from_micros(wall_micros())));
        let ((begin, wall), now) = (*BEGIN, Instant::now().into_std());
        let wall = (wall + now.saturating_duration_since(begin)).saturating_sub(begin.saturating_duration_since(now));
        Self::at(wall.as_millis() as u64 * 1000)
    }

    /// A clock that shows `micros` since the Unix epoch now, and then follows tokio's clock.
    pub fn at(micros: u64) -> Self {
        Self { start: Instant::now(), wall_micros: micros }
    }

    /// Returns whether tokio's clock is paused, as under `start_paused`. Then everything must run on the test's runtime.
    /// Only programs built with the feature `testing` can pause it: others get `false`, because a clock that counts in
    /// coarse steps looks paused to a thread that was preempted.
    #[cfg(not(any(test, feature = "testing")))]
    pub const fn is_paused() -> bool {
        false
    }

    /// Returns whether tokio's clock is paused, as under `start_paused`. Then everything must run on the test's runtime.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_paused() -> bool {
        let (ours, theirs) = (std::time::Instant::now(), Instant::now());
        while ours.elapsed() < Duration::from_micros(2) {
            std::hint::spin_loop();
        }
        Instant::now() == theirs
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(self.start + at))
    }

    fn wall_millis(&self) -> u64 {
        self.micros() / 1000
    }
}

impl StoreClock for TokioClock {
    fn micros(&self) -> u64 {
        self.wall_micros + self.start.elapsed().as_micros() as u64
    }
}

/// The wall clock, including its jumps.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

impl StoreClock for WallClock {
    fn micros(&self) -> u64 {
        wall_micros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_is_detected() {
        assert!(TokioClock::is_paused());
        let clock = TokioClock::at(5);
        tokio::time::advance(Duration::from_millis(3)).await;
        assert_eq!(clock.micros(), 3_005);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clocks_of_a_paused_runtime_show_the_same_time() {
        let first = TokioClock::new();
        for pause in [0, 1, 999, 86_400_000] {
            tokio::time::advance(Duration::from_millis(pause)).await;
            let real = std::time::Instant::now();
            while real.elapsed() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
            assert_eq!(TokioClock::new().micros(), first.micros());
        }
    }

    #[tokio::test]
    async fn a_running_clock_is_not_taken_for_a_paused_one() {
        assert!(!TokioClock::is_paused());
    }
}
