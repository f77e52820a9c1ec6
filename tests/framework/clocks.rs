//! A store whose clock is set a day ahead, or back, for a while: afterwards everything continues within one period.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::environment::{StoreClock, TokioClock};
use dq::inspect::{FindingCode, Repaired};
use dq::prelude::*;
use dq::schedule::{OnMissed, Overlap};
use dq::testing::Harness;
use dq::time::Timestamp;

use crate::backend::store_under;
use crate::scripted_listener::{DAY, HOUR, Log, MINUTE, SECOND, Script, TestJob, handler_takes, test_job};
use elsewhere::{Hears, Other};

/// A store's clock that follows tokio's, and that a test sets ahead or back by days.
#[derive(Debug)]
struct SetClock {
    follows: TokioClock,
    days: AtomicI64,
}

impl SetClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { follows: TokioClock::new(), days: AtomicI64::new(0) })
    }

    /// Sets the clock to so many days ahead.
    fn set(&self, days: i64) {
        self.days.store(days, SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }
}

impl StoreClock for SetClock {
    fn micros(&self) -> u64 {
        self.follows.micros().checked_add_signed(self.days.load(SeqCst) * DAY.as_micros() as i64).unwrap()
    }
}

/// The ids of the jobs that started, in order, and of the jobs among them that were not due by the store's clock.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<(Vec<String>, Vec<String>)>>);

impl Started {
    /// A listener whose handlers take `time`. A job of another topic follows those whose ids begin with `f`.
    fn script(&self, clock: &Arc<SetClock>, time: Duration) -> Script {
        let (started, clock) = (self.clone(), Arc::clone(clock));
        Script::new(move |job, channel| {
            let mut all = started.0.lock().unwrap();
            all.0.push(job.id().to_string());
            if Timestamp::from(job.due()) > clock.now() {
                all.1.push(job.id().to_string());
            }
            let id = job.id().to_string();
            async move {
                handler_takes(time).await;
                if !id.starts_with('f') {
                    return Ok(channel.ack());
                }
                Ok(channel.ack().then(|next| _ = next.add(Other { id }))?)
            }
        })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().0)
    }

    fn early(&self) -> Vec<String> {
        self.0.lock().unwrap().1.clone()
    }
}

/// How many of these jobs came from ticks of a schedule.
fn ticks_of(schedule: &str, started: &[String]) -> usize {
    started.iter().filter(|id| id.starts_with(&format!("dq:tick:{schedule}@"))).count()
}

async fn start(script: &Script, clock: &Arc<SetClock>) -> Harness {
    Harness::start_on(store_under(clock.clone()), 1, |factory| script.on(factory, settings)).await
}

fn settings(topic: TopicOverrides) -> TopicOverrides {
    topic.rate("20/s").group_concurrency(4).group_rate("2/s").history_max(9).history_retention("1h")
}

/// Everything that a program may listen to.
fn everything(script: &Script, log: &Log) -> impl FnOnce(ContextFactory) -> ContextFactory {
    let (script, log) = (script.clone(), log.clone());
    move |factory| {
        let factory = script.on(factory, settings).provide(log);
        factory.listener::<elsewhere::other>().broadcast_listener::<Hears>()
    }
}

/// When the next tick of a schedule is.
async fn next(dq: &Harness, schedule: &str) -> Timestamp {
    dq.provider().schedule::<TestJob>(schedule).await.unwrap().unwrap().details.unwrap().next
}

/// Sets the clock off by so many days for `time`, under a program of two nodes that uses everything.
async fn is_off(days: i64, time: Duration) {
    let (clock, started, log) = (SetClock::new(), Started::default(), Log::new());
    let script = started.script(&clock, Duration::ZERO);
    let dq = Harness::start_on(store_under(clock.clone()), 1, everything(&script, &log)).await;
    let other = dq.another(2, everything(&script, &log)).await;
    let jobs = dq.provider();
    let starts = clock.now().after(3 * DAY);
    jobs.add_schedule("tens", test_job("p")).every("10s").await.unwrap();
    jobs.add_schedule("alone", test_job("p")).every("10s").overlap(Overlap::Skip).await.unwrap();
    jobs.add_schedule("hourly", test_job("p")).every("1h").on_missed(OnMissed::Skip).await.unwrap();
    jobs.add_schedule("later", test_job("p")).every("1h").start_at(starts).await.unwrap();
    jobs.add_schedule("paused", test_job("p")).every("1h").await.unwrap();
    let paused = jobs.pause_schedule::<TestJob>("paused", "why").await.unwrap().details.unwrap().next;
    jobs.topic("work").unwrap().pause_group("b").unwrap().reason("why").await.unwrap();
    jobs.add(test_job("b-1")).group("b").await.unwrap();
    dq.advance(30 * SECOND).await;
    clock.set(days);
    jobs.add_many((100..120).map(test_job)).await.unwrap().all().unwrap();
    uses_the_rest(jobs, "off").await;
    dq.advance(time).await;
    clock.set(0);
    dq.advance(15 * SECOND).await;
    started.take();
    jobs.add_many((0..100).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(3 * SECOND).await;
    let what = format!("{days} days for {time:?}");
    let mut ran = started.take();
    let plain = ran.len() - ticks_of("tens", &ran) - ticks_of("alone", &ran);
    assert!((55..=61).contains(&plain), "{what}: {plain} of twenty a second");
    dq.advance(57 * SECOND).await;
    ran.extend(started.take());
    assert_eq!((ticks_of("tens", &ran), ticks_of("alone", &ran)), (6, 6), "{what}");
    let history = jobs.inspect().history("work", "99").await.unwrap();
    assert!(history.last().unwrap().to_string().contains("done"), "{what}: {history:?}");
    let ahead = next(&dq, "hourly").await.since(clock.now());
    assert!(Duration::ZERO < ahead && ahead <= HOUR, "{what}: {ahead:?}");
    assert_eq!((next(&dq, "later").await, next(&dq, "paused").await), (starts, paused), "{what}");
    the_rest_continues(&dq, &started, &log, &what).await;
    dq.kill();
    other.advance(20 * SECOND).await;
    started.take();
    other.advance(MINUTE).await;
    assert_eq!(ticks_of("tens", &started.take()), 6, "{what}: the other node has the roles");
    assert_eq!(started.early(), [""; 0], "{what}");
}

/// Adds jobs of a group, one with a follow-up and a broadcast.
async fn uses_the_rest(jobs: &Provider, when: &str) {
    for n in 1..=6 {
        jobs.add(test_job(format_args!("a-{when}-{n}"))).group("a").await.unwrap();
    }
    jobs.add(test_job(format_args!("f-{when}"))).await.unwrap();
    jobs.add(test_job(format_args!("w-{when}"))).broadcast().after(SECOND).await.unwrap();
}

/// Groups, pauses, follow-ups and broadcasts continue as without the jump.
async fn the_rest_continues(dq: &Harness, started: &Started, log: &Log, what: &str) {
    let jobs = dq.provider();
    log.take();
    jobs.topic("work").unwrap().resume_group("b").await.unwrap();
    uses_the_rest(jobs, "after").await;
    dq.advance(SECOND).await;
    let mut ran = started.take();
    let of_group = |ran: &[String]| ran.iter().filter(|id| id.starts_with("a-after")).count();
    assert!((1..=3).contains(&of_group(&ran)), "{what}: two a second: {ran:?}");
    dq.advance(4 * SECOND).await;
    ran.extend(started.take());
    assert_eq!((of_group(&ran), ran.iter().filter(|id| *id == "b-1").count()), (6, 1), "{what}: {ran:?}");
    let mut noticed = log.take_without_times();
    noticed.sort();
    // Both nodes hear a broadcast.
    assert_eq!(noticed, ["followed f-after", "noticed w-after", "noticed w-after"], "{what}");
    jobs.pause::<TestJob>().reason("why").for_duration("5s").await.unwrap();
    jobs.add(test_job("c")).await.unwrap();
    dq.advance(4 * SECOND).await;
    assert_eq!(started.take(), [""; 0], "{what}");
    dq.advance(2 * SECOND).await;
    assert!(started.take().contains(&"c".to_owned()), "{what}: the pause is over");
}

stores!(a_clock_that_is_a_day_ahead_for_a_while_stops_nothing: memory, file, redis);
async fn a_clock_that_is_a_day_ahead_for_a_while_stops_nothing() {
    for time in [SECOND, 10 * SECOND, 100 * SECOND] {
        is_off(1, time).await;
    }
}

stores!(a_clock_that_is_a_day_behind_for_a_while_stops_nothing: memory, file, redis);
async fn a_clock_that_is_a_day_behind_for_a_while_stops_nothing() {
    for time in [SECOND, 10 * SECOND, 100 * SECOND] {
        is_off(-1, time).await;
    }
}

stores!(a_schedule_that_skips_does_not_wait_for_a_job_of_the_next_day: memory, file, redis);
/// The jobs of ticks that came while the clock was ahead wait for their times, and hold back no other tick.
async fn a_schedule_that_skips_does_not_wait_for_a_job_of_the_next_day() {
    let (clock, started) = (SetClock::new(), Started::default());
    let dq = start(&started.script(&clock, Duration::ZERO), &clock).await;
    let alone = dq.provider().add_schedule("alone", test_job("p")).every("10s").overlap(Overlap::Skip);
    alone.jitter("9s").await.unwrap();
    clock.set(1);
    dq.advance(11 * SECOND).await;
    clock.set(0);
    dq.advance(25 * SECOND).await;
    started.take();
    dq.advance(MINUTE).await;
    let ran = ticks_of("alone", &started.take());
    assert!((5..=7).contains(&ran), "{ran} ticks");
    assert_eq!(started.early(), [""; 0]);
}

stores!(nodes_take_over_from_one_that_died_while_the_clock_was_ahead: memory, file, redis);
async fn nodes_take_over_from_one_that_died_while_the_clock_was_ahead() {
    let (clock, started) = (SetClock::new(), Started::default());
    let script = started.script(&clock, 30 * SECOND);
    let dq = start(&script, &clock).await;
    dq.provider().add_schedule("tens", test_job("p")).every("10s").await.unwrap();
    dq.advance(30 * SECOND).await;
    dq.provider().add(test_job("held")).await.unwrap();
    dq.advance(SECOND).await;
    assert!(started.take().contains(&"held".to_owned()));
    clock.set(1);
    dq.advance(10 * SECOND).await; // its lease is renewed by the clock of the next day
    let other = script.beside(&dq, 2, settings).await;
    dq.advance(SECOND).await;
    dq.kill();
    clock.set(0);
    other.advance(6 * MINUTE).await;
    assert!(started.take().contains(&"held".to_owned()), "the job of the dead node went back");
    other.advance(MINUTE).await;
    assert_eq!(ticks_of("tens", &started.take()), 6);
}

stores!(a_pause_ends_at_its_time_after_the_clock_was_a_day_behind: memory, file, redis);
async fn a_pause_ends_at_its_time_after_the_clock_was_a_day_behind() {
    let (clock, started) = (SetClock::new(), Started::default());
    let dq = start(&started.script(&clock, Duration::ZERO), &clock).await;
    dq.provider().pause::<TestJob>().reason("why").for_duration("5m").await.unwrap();
    dq.provider().add(test_job("a")).await.unwrap();
    clock.set(-1);
    dq.advance(10 * SECOND).await;
    clock.set(0);
    dq.advance(4 * MINUTE).await;
    assert_eq!(started.take(), [""; 0]);
    dq.advance(MINUTE).await;
    assert_eq!(started.take(), ["a"]);
}

stores!(the_first_tick_is_the_next_one_by_the_clock_of_the_store: memory, file, redis);
/// The first tick follows the clock of the store, whatever the clocks of callers and nodes show.
async fn the_first_tick_is_the_next_one_by_the_clock_of_the_store() {
    for days in [2, -2] {
        let (clock, started) = (SetClock::new(), Started::default());
        clock.set(days);
        let dq = start(&started.script(&clock, Duration::ZERO), &clock).await;
        let added = dq.provider().add_schedule("hourly", test_job("p")).every("1h").await.unwrap();
        let ahead = added.first.since(clock.now());
        assert!(ahead > Duration::ZERO && ahead <= HOUR, "{days}: {ahead:?}");
    }
}

stores!(a_start_and_the_doctor_align_a_schedule_that_waits_for_the_next_day: memory, file, redis);
/// A schedule that waits for a tick of the next day is aligned when a node starts, and by the doctor.
async fn a_start_and_the_doctor_align_a_schedule_that_waits_for_the_next_day() {
    for starts in [true, false] {
        let (clock, started) = (SetClock::new(), Started::default());
        let script = started.script(&clock, Duration::ZERO);
        clock.set(1);
        let dq = start(&script, &clock).await;
        let store = dq.store();
        dq.provider().add_schedule("hourly", test_job("p")).every("1h").await.unwrap();
        dq.kill();
        clock.set(0);
        let dq = if starts {
            Harness::start_on(store, 2, |factory| script.on(factory, settings)).await
        } else {
            // It listens to another topic.
            Harness::start_on(store, 2, |factory| factory.provide(Log::new()).listener::<elsewhere::other>()).await
        };
        dq.advance(SECOND).await;
        let is_late = next(&dq, "hourly").await.since(clock.now()) > HOUR;
        assert_eq!(is_late, !starts);
        let mut doctor = dq.provider().inspect().doctor(Some("work")).unwrap();
        while doctor.step().await.unwrap().is_some() {}
        let found = doctor.findings().iter().any(|finding| finding.code == FindingCode::ScheduleAhead);
        assert_eq!(found, !starts, "{:?}", doctor.findings());
        while let Some(Repaired { finding, done, .. }) = doctor.repair().await.unwrap() {
            assert!(done, "{finding}");
        }
        let ahead = next(&dq, "hourly").await.since(clock.now());
        assert!(Duration::ZERO < ahead && ahead <= HOUR, "{ahead:?}");
    }
}

/// What else the program listens to.
mod elsewhere {
    use dq::prelude::*;
    use serde::{Deserialize, Serialize};

    use crate::scripted_listener::{Log, TestJob};

    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "elsewhere")]
    pub(super) struct Other {
        #[job(id)]
        pub(super) id: String,
    }

    #[delay_listener(register = false)]
    pub(super) async fn other(job: Job<Other>, log: &Log) -> Result<(), JobError> {
        log.record(format_args!("followed {}", job.id));
        Ok(())
    }

    #[broadcast_listener(channels = ["work"], register = false)]
    pub(super) struct Hears {
        log: Log,
    }

    impl BroadcastListener for Hears {
        type Message = TestJob;

        async fn on_message(&self, received: Broadcast<TestJob>) -> Result<(), JobError> {
            self.log.record(format_args!("noticed {}", received.message.id));
            Ok(())
        }
    }
}
