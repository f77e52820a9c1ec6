use std::sync::Weak;
use std::task::Wake;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime as TokioRuntime};

use super::*;
use crate::environment::{SpawnOn, Task};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn runtime() -> TokioRuntime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn clock_on(runtime: &TokioRuntime) -> PreciseClock {
    let own = runtime.handle().clone();
    PreciseClock::start(&SpawnOn::new(own.clone(), own)).unwrap()
}

/// Polls a sleep once, so that it has a deadline.
fn polled_once(clock: &PreciseClock, at: Duration) -> BoxFuture<'static, ()> {
    let mut sleep = clock.sleep_until(at);
    assert!((&mut sleep).now_or_never().is_none());
    sleep
}

/// How often the alarm was set, and how many deadlines there are.
fn counts(clock: &PreciseClock) -> (usize, usize) {
    let deadlines = clock.0.deadlines();
    (deadlines.alarm.as_ref().unwrap().set, deadlines.sleepers.len())
}

fn alarm(clock: &PreciseClock) -> Weak<OwnedFd> {
    Arc::downgrade(&clock.0.deadlines().alarm.as_ref().unwrap().fd)
}

#[test]
fn sleeps_end_in_order_and_never_early() {
    let runtime = runtime();
    let clock = clock_on(&runtime);
    // All sleeps begin before the first deadline, and tasks run in the order in which the alarm wakes them.
    let start = clock.now() + 100 * MS;
    let ended = Arc::new(Mutex::new(Vec::new()));
    let sleep = |after: Duration| {
        let (clock, ended) = (clock.clone(), ended.clone());
        async move {
            clock.sleep_until(start + after).await;
            assert!(clock.now() >= start + after, "early");
            ended.lock().unwrap().push(after);
        }
    };
    let sleeps = [7 * MS, 3 * MS, Duration::ZERO, 5 * MS, 3 * MS, MS / 10].map(|after| runtime.spawn(sleep(after)));
    runtime.block_on(join_all(sleeps)).into_iter().for_each(|ended| ended.expect("no sleep ends early"));
    let ended = ended.lock().unwrap().clone();
    assert!(ended.is_sorted() && ended.len() == 6, "{ended:?}");
    assert_eq!(counts(&clock).1, 0);
}

#[test]
fn a_sleep_on_another_runtime_ends_too() {
    let own = clock_and_thread();
    runtime().block_on(async {
        let at = own.0.now() + 2 * MS;
        own.0.sleep_until(at).await;
        assert!(own.0.now() >= at);
    });
}

fn clock_and_thread() -> (PreciseClock, SpawnOn) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let thread = SpawnOn::own_thread().unwrap();
    (PreciseClock::start(&thread).unwrap(), thread)
}

#[test]
fn an_alarm_goes_off_once() {
    let runtime = runtime();
    let clock = clock_on(&runtime);
    let _sleep = polled_once(&clock, clock.now() + HOUR);
    let set = rustix::time::timerfd_gettime(alarm(&clock).upgrade().unwrap()).unwrap();
    assert!(set.it_value.tv_sec > 0, "it is set");
    assert_eq!((set.it_interval.tv_sec, set.it_interval.tv_nsec), (0, 0));
}

#[test]
fn only_an_earlier_deadline_sets_the_alarm() {
    let runtime = runtime();
    let clock = clock_on(&runtime);
    let now = clock.now();
    let first = polled_once(&clock, now + HOUR);
    assert_eq!(counts(&clock), (1, 1));
    for minute in 1..100 {
        drop(polled_once(&clock, now + HOUR + minute * MS)); // as a task does at each pass
    }
    let same = polled_once(&clock, now + HOUR);
    assert_eq!(counts(&clock), (1, 2), "later deadlines and equal ones set nothing");
    drop((first, same));
    let later = polled_once(&clock, now + 2 * HOUR);
    assert_eq!(counts(&clock), (1, 1), "that the earliest is gone shows when the alarm goes off");
    let earlier = polled_once(&clock, now + HOUR / 2);
    assert_eq!(counts(&clock), (2, 2));
    drop((later, earlier));
    assert_eq!(counts(&clock).1, 0, "a sleep that is dropped leaves nothing");
}

#[test]
fn an_alarm_for_a_sleep_that_was_dropped_is_set_for_the_next_one() {
    let runtime = runtime();
    let clock = clock_on(&runtime);
    let now = clock.now();
    drop(polled_once(&clock, now + 50 * MS));
    let at = now + 60 * MS;
    runtime.block_on(clock.sleep_until(at));
    assert!(clock.now() >= at);
    let (set, left) = counts(&clock);
    assert!(left == 0 && (1..=2).contains(&set), "set {set} times");
}

#[test]
fn a_sleep_wakes_the_task_that_polled_it_last() {
    struct Woken(std::sync::atomic::AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let runtime = runtime();
    let clock = clock_on(&runtime);
    let woken = || Arc::new(Woken(0.into()));
    let (first, last) = (woken(), woken());
    let (mut sleep, end) = (clock.sleep_until(clock.now() + 50 * MS), clock.now() + 60 * MS);
    for woken in [&first, &last] {
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&woken.clone().into())).is_pending());
    }
    runtime.block_on(clock.sleep_until(end));
    let count = |woken: Arc<Woken>| woken.0.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((count(first), count(last)), (0, 1));
    assert!(sleep.now_or_never().is_some());
}

#[test]
fn after_the_end_of_its_runtime_a_timer_holds_nothing_and_its_sleeps_go_on() {
    let own = runtime();
    let clock = clock_on(&own);
    own.block_on(async { tokio::task::yield_now().await });
    let (fd, timer) = (alarm(&clock), Arc::downgrade(&clock.0));
    let at = clock.now() + 50 * MS;
    let sleep = polled_once(&clock, at);
    drop(own);
    assert!(fd.upgrade().is_none(), "the timerfd is closed");
    let fresh = clock.sleep_until(at);
    runtime().block_on(async {
        join_all([sleep, fresh]).await;
        assert!(clock.now() >= at, "early");
    });
    drop(clock);
    assert!(timer.upgrade().is_none(), "no task is left");
}

#[test]
fn a_runtime_that_starts_no_task_leaves_the_sleeps_to_tokio() {
    #[derive(Debug)]
    struct Refuses;
    impl Spawn for Refuses {
        fn spawn(&self, _: Runtime, task: BoxFuture<'static, ()>) -> Task {
            drop(task);
            let runtime = runtime();
            runtime.spawn(async {}).abort_handle()
        }
    }
    let clock = PreciseClock::start(&Refuses).unwrap();
    let at = clock.now() + MS;
    runtime().block_on(clock.sleep_until(at));
    assert!(clock.now() >= at);
}

#[test]
fn a_thousand_environments_one_after_the_other_leave_no_timer() {
    let fds: Vec<Weak<OwnedFd>> = (0..1_000)
        .map(|_| {
            let own = runtime();
            let clock = clock_on(&own);
            own.block_on(clock.sleep_until(clock.now() + MS / 20));
            alarm(&clock)
        })
        .collect();
    assert!(fds.iter().all(|fd| fd.upgrade().is_none()));
}
