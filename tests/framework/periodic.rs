//! Schedules that the code defines, and what a program can do with one schedule at run time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::ContextFactory;
use dq::environment::{StoreClock, TokioClock};
use dq::prelude::*;
use dq::provider::{CallError, Invalid, ScheduleInfo, ScheduleOrigin};
use dq::schedule::{OnMissed, Times};
use dq::testing::Harness;
use dq::time::Timestamp;
use dq_tests::{Fault, FaultyStore};
use serde::{Deserialize, Serialize};

use crate::backend::store_under;
use crate::scripted_listener::{HOUR, MINUTE, SECOND, start as start_node};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, DelayJob)]
#[job(topic = "periodic")]
struct Report {
    number: u32,
}

#[delay_listener(register = false)]
async fn write(job: Job<Report>, seen: &Seen) -> Result<(), JobError> {
    seen.0.lock().unwrap().push((job.id().to_string(), job.number));
    Ok(())
}

/// The ids and payloads of the jobs that ran.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, u32)>>>);

impl Seen {
    fn numbers(&self) -> Vec<u32> {
        self.0.lock().unwrap().drain(..).map(|(_, number)| number).collect()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().drain(..).count()
    }

    /// How many were jobs of this schedule.
    fn len_of(&self, schedule: &str) -> usize {
        let tick = format!("dq:tick:{schedule}@");
        self.0.lock().unwrap().drain(..).filter(|(id, _)| id.starts_with(&tick)).count()
    }
}

/// The time that all clocks of a test show.
fn now() -> Timestamp {
    Timestamp::from_millis(TokioClock::new().micros() / 1_000)
}

/// Advances to the middle between two ticks of a period of whole seconds.
async fn halfway(dq: &Harness, period: Duration) {
    let past_tick = Duration::from_millis(now().as_millis() % period.as_millis() as u64);
    dq.advance(period + period / 2 - past_tick).await;
}

fn listens(seen: &Seen) -> impl FnOnce(ContextFactory) -> ContextFactory {
    let seen = seen.clone();
    |factory| factory.provide(seen).listener::<write>()
}

async fn all(dq: &Harness) -> Vec<ScheduleInfo> {
    let mut pages = dq.provider().schedules::<Report>().per_page(7);
    let mut all = Vec::new();
    while let Some(page) = pages.next_page().await.unwrap() {
        all.extend(page);
    }
    all
}

mod first {
    use super::*;

    #[periodic(every = "10s", on_missed = "skip", register = false)]
    pub(super) fn report() -> Report {
        Report { number: 1 }
    }
}

mod second {
    use super::*;

    #[periodic(every = "20s", register = false)]
    pub(super) async fn report() -> Report {
        Report { number: 2 }
    }
}

mod by_default {
    use super::*;

    #[periodic(every = "30s", jitter = "1s", start = "2020-01-01T00:00:00Z", register = false)]
    #[periodic(every = "1h", name = "hourly", overlap = "skip", on_missed = "all", register = false)]
    #[periodic(cron = "0 9 * * MON-FRI", tz = "Asia/Singapore", name = "mornings", register = false)]
    #[delay_listener(register = false)]
    pub(super) async fn clean(job: Job<Report>, seen: &Seen) -> Result<(), JobError> {
        seen.0.lock().unwrap().push((job.id().to_string(), job.number));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_has_the_schedules_above_it_and_the_default_payload() {
    let seen = Seen::default();
    let with = seen.clone();
    let start =
        |factory: ContextFactory| factory.provide(with).listener::<by_default::clean>().periodic::<by_default::clean>();
    let dq = start_node(start).await;
    halfway(&dq, 30 * SECOND).await;
    seen.len();
    dq.advance(MINUTE).await;
    assert_eq!(seen.len_of("clean"), 2);
    let schedules = all(&dq).await;
    let names: Vec<_> = schedules.iter().map(|schedule| schedule.name.as_str()).collect();
    assert_eq!(names, ["clean", "hourly", "mornings"]);
    for schedule in schedules {
        assert_eq!(schedule.details.unwrap().origin, ScheduleOrigin::ThisProgram);
    }
    let hourly = dq.provider().schedule::<Report>("hourly").await.unwrap().unwrap().details.unwrap();
    assert_eq!((hourly.on_missed, hourly.times), (OnMissed::All, Times::Every(HOUR)));
}

#[tokio::test(start_paused = true)]
async fn a_function_makes_the_payload_of_each_tick() {
    mod counted {
        use super::*;
        static CALLS: AtomicU32 = AtomicU32::new(0);
        #[periodic(every = "10s", register = false)]
        pub(super) async fn count() -> Report {
            Report { number: CALLS.fetch_add(1, Relaxed) }
        }
    }
    let seen = Seen::default();
    let dq = start_node(|factory| listens(&seen)(factory).periodic::<counted::count>()).await;
    dq.advance(MINUTE).await;
    assert_eq!(seen.numbers(), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_is_called_again_for_its_tick_after_a_minute() {
    mod poison {
        use super::*;
        pub(super) static CALLS: AtomicU32 = AtomicU32::new(0);
        #[periodic(every = "1h", on_missed = "skip", register = false)]
        pub(super) fn panics_twice() -> Report {
            let calls = CALLS.fetch_add(1, Relaxed);
            assert!(calls >= 1, "not yet");
            Report { number: calls }
        }
    }
    let seen = Seen::default();
    let dq = start_node(|factory| listens(&seen)(factory).periodic::<poison::panics_twice>()).await;
    let tick = dq.provider().schedule::<Report>("panics_twice").await.unwrap().unwrap().details.unwrap().next;
    dq.advance(tick.since(now()) + SECOND).await;
    assert_eq!((poison::CALLS.load(Relaxed), seen.numbers()), (1, vec![]), "it does not spin");
    dq.advance(MINUTE).await;
    let ran = seen.0.lock().unwrap().clone();
    assert_eq!(ran, [(format!("dq:tick:panics_twice@{tick}"), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_hangs_is_given_up_and_called_again_for_its_tick() {
    mod hanging {
        use super::*;
        pub(super) static CALLS: AtomicU32 = AtomicU32::new(0);
        #[periodic(every = "1h", register = false)]
        pub(super) async fn hangs_once() -> Report {
            let calls = CALLS.fetch_add(1, Relaxed);
            if calls == 0 {
                std::future::pending::<()>().await;
            }
            Report { number: calls }
        }
    }
    let seen = Seen::default();
    let dq = start_node(|factory| listens(&seen)(factory).periodic::<hanging::hangs_once>()).await;
    dq.settle().await;
    let tick = dq.provider().schedule::<Report>("hangs_once").await.unwrap().unwrap().details.unwrap().next;
    dq.advance(HOUR + 2 * MINUTE).await;
    assert_eq!(seen.0.lock().unwrap()[0], (format!("dq:tick:hangs_once@{tick}"), 1));
}

stores!(a_newer_definition_holds_and_older_nodes_do_not_fight_it: memory, file, redis);
async fn a_newer_definition_holds_and_older_nodes_do_not_fight_it() {
    let seen = Seen::default();
    let old = start_node(|factory| listens(&seen)(factory).periodic::<first::report>()).await;
    old.advance(MINUTE).await;
    assert_eq!(seen.numbers(), [1; 6]);
    let new = old.another(2, |factory| listens(&seen)(factory).periodic::<second::report>()).await;
    let again = old.another(3, |factory| listens(&seen)(factory).periodic::<first::report>()).await;
    again.advance(5 * MINUTE).await;
    let numbers = seen.numbers();
    let is_one_of_two = numbers.iter().all(|number| matches!(number, 1 | 2));
    assert!((14..=16).contains(&numbers.len()) && is_one_of_two, "{numbers:?}");
    let details = again.provider().schedule::<Report>("report").await.unwrap().unwrap().details.unwrap();
    assert_eq!((details.times, details.on_missed), (Times::Every(20 * SECOND), OnMissed::Once));
    assert_eq!(details.origin, ScheduleOrigin::ThisProgram);
    drop(new);
}

stores!(of_many_nodes_of_two_versions_that_start_together_each_tick_is_added_once: memory, file, redis);
async fn of_many_nodes_of_two_versions_that_start_together_each_tick_is_added_once() {
    let seen = Seen::default();
    let mut nodes = vec![start_node(|factory| listens(&seen)(factory).periodic::<first::report>()).await];
    for seed in 2..10 {
        let next = nodes[0].another(seed, |factory| {
            let factory = listens(&seen)(factory);
            if seed % 2 == 0 { factory.periodic::<second::report>() } else { factory.periodic::<first::report>() }
        });
        nodes.push(next.await);
        if seed % 3 == 0 {
            nodes.remove(0).kill();
        }
        nodes[0].advance(9 * SECOND).await;
    }
    nodes[0].advance(10 * MINUTE).await;
    let mut ids: Vec<_> = seen.0.lock().unwrap().drain(..).map(|(id, _)| id).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "no tick has two jobs");
    assert!(count >= 30, "{count}");
    let details = nodes[0].provider().schedule::<Report>("report").await.unwrap().unwrap().details.unwrap();
    assert_eq!(details.times, Times::Every(20 * SECOND));
}

stores!(a_newer_definition_that_ticks_sooner_does_so_at_once: memory, file, redis);
async fn a_newer_definition_that_ticks_sooner_does_so_at_once() {
    mod rare {
        use super::*;
        #[periodic(every = "24h", name = "report", register = false)]
        pub(super) fn rare() -> Report {
            Report { number: 9 }
        }
    }
    let seen = Seen::default();
    let old = start_node(|factory| listens(&seen)(factory).periodic::<rare::rare>()).await;
    let new = old.another(2, |factory| listens(&seen)(factory).periodic::<first::report>()).await;
    old.kill();
    new.advance(MINUTE).await;
    let numbers = seen.numbers(); // the watcher has died, so the first ticks may come late
    assert!(numbers.len() >= 4 && numbers.iter().all(|number| *number == 1), "{numbers:?}");
}

stores!(a_paused_schedule_adds_nothing_and_its_missed_ticks_follow_its_policy: memory, file, redis);
async fn a_paused_schedule_adds_nothing_and_its_missed_ticks_follow_its_policy() {
    for (on_missed, expected) in [(OnMissed::Skip, 0), (OnMissed::Once, 1), (OnMissed::All, 18)] {
        let seen = Seen::default();
        let dq = start_node(listens(&seen)).await;
        let jobs = dq.provider();
        halfway(&dq, 10 * MINUTE).await;
        jobs.add_schedule("s", Report { number: 1 }).every("10m").on_missed(on_missed).await.unwrap();
        dq.advance(20 * MINUTE).await;
        assert_eq!(seen.len(), 2);
        let paused = jobs.pause_schedule::<Report>("s", "the printer is broken").by("ann").await.unwrap();
        let pause = paused.details.unwrap().pause.unwrap();
        assert_eq!((pause.reason.as_str(), pause.by.as_str()), ("the printer is broken", "ann"));
        dq.advance(3 * HOUR).await;
        assert_eq!(seen.len(), 0);
        assert!(jobs.resume_schedule::<Report>("s").await.unwrap().details.unwrap().pause.is_none());
        dq.advance(SECOND).await;
        assert_eq!(seen.len(), expected, "{on_missed:?}");
        dq.advance(20 * MINUTE).await;
        assert_eq!(seen.len(), 2, "{on_missed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_survives_a_newer_definition_and_names_what_is_wrong_with_its_arguments() {
    let seen = Seen::default();
    let old = start_node(|factory| listens(&seen)(factory).periodic::<first::report>()).await;
    let paused = old.provider().pause_schedule::<Report>("report", "why").await.unwrap();
    let by = paused.details.unwrap().pause.unwrap().by;
    assert!(by.ends_with(&std::process::id().to_string()), "{by}: a pause without a name has that of its process");
    let new = old.another(2, |factory| listens(&seen)(factory).periodic::<second::report>()).await;
    new.advance(HOUR).await;
    assert_eq!(seen.len(), 0);
    old.kill();
    let jobs = new.provider();
    assert!(matches!(
        jobs.pause_schedule::<Report>("report", " ").await,
        Err(CallError::Invalid(Invalid::NoReason { .. }))
    ));
    let long = jobs.pause_schedule::<Report>("report", "why").by("a".repeat(257)).await;
    assert!(matches!(long, Err(CallError::Invalid(Invalid::TooLarge { size: 257, limit: 256, .. }))), "{long:?}");
    let unknown = jobs.resume_schedule::<Report>("nobody").await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no schedule `nobody`");
    jobs.resume_schedule::<Report>("report").await.unwrap();
    new.advance(MINUTE).await;
    assert!(seen.numbers().ends_with(&[2, 2, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_fails_keeps_no_other_from_its_schedule() {
    mod newer {
        use super::*;
        #[periodic(every = "31s", register = false, name = "clean")]
        #[periodic(every = "2h", register = false, name = "hourly")]
        #[periodic(cron = "0 8 * * MON-FRI", tz = "Asia/Singapore", name = "mornings", register = false)]
        #[delay_listener(register = false)]
        pub(super) async fn clean(_job: Job<Report>) -> Result<(), JobError> {
            Ok(())
        }
    }
    let (store, faults) = FaultyStore::over(store_under(Arc::new(TokioClock::new())));
    let seen = Seen::default();
    let first = |factory: ContextFactory| {
        factory.provide(seen.clone()).listener::<by_default::clean>().periodic::<by_default::clean>()
    };
    let old = Harness::start_on(store, 1, first).await;
    old.advance(SECOND).await;
    faults.fail_next("change", Fault::WrongType);
    let new = old.another(2, |factory| factory.listener::<newer::clean>().periodic::<newer::clean>()).await;
    new.advance(10 * SECOND).await;
    let schedules = all(&new).await.into_iter();
    let times: Vec<_> = schedules.map(|schedule| schedule.details.unwrap().times).collect();
    assert_eq!(times[..2], [Times::Every(31 * SECOND), Times::Every(2 * HOUR)]);
    assert!(format!("{:?}", times[2]).contains("0 8"), "{:?}", times[2]);
}

stores!(schedules_of_the_code_wait_for_an_outage_together: memory, file, redis);
async fn schedules_of_the_code_wait_for_an_outage_together() {
    mod newer {
        use super::*;
        #[periodic(every = "31s", register = false, name = "clean")]
        #[periodic(every = "3h", register = false, name = "hourly")]
        #[delay_listener(register = false)]
        pub(super) async fn clean(_job: Job<Report>) -> Result<(), JobError> {
            Ok(())
        }
    }
    let (store, faults) = FaultyStore::over(store_under(Arc::new(TokioClock::new())));
    let first = |factory: ContextFactory| {
        factory.provide(Seen::default()).listener::<by_default::clean>().periodic::<by_default::clean>()
    };
    let old = Harness::start_on(store, 1, first).await;
    old.advance(SECOND).await;
    faults.fail_only("change", Fault::Unavailable);
    let new = old.another(2, |factory| factory.listener::<newer::clean>().periodic::<newer::clean>()).await;
    // One call fails after ten seconds, and the node waits for five.
    new.advance(12 * SECOND).await;
    faults.clear();
    new.advance(6 * SECOND).await;
    let times: Vec<_> = all(&new).await.into_iter().map(|schedule| schedule.details.unwrap().times).collect();
    assert_eq!(times[..2], [Times::Every(31 * SECOND), Times::Every(3 * HOUR)]);
}

stores!(an_error_after_the_end_of_a_pause_does_not_say_that_nothing_was_done: memory, file, redis);
async fn an_error_after_the_end_of_a_pause_does_not_say_that_nothing_was_done() {
    let (store, faults) = FaultyStore::over(store_under(Arc::new(TokioClock::new())));
    let dq = Harness::start_on(store, 1, listens(&Seen::default())).await;
    let jobs = dq.provider();
    jobs.add_schedule("s", Report { number: 1 }).every("10m").await.unwrap();
    jobs.pause_schedule::<Report>("s", "why").await.unwrap();
    dq.advance(15 * MINUTE).await; // it is due in an hour from its tick
    let changes = AtomicU32::new(0);
    faults.fail_when(move |step| (step == "change" && changes.fetch_add(1, Relaxed) > 0).then_some(Fault::WrongType));
    let error = jobs.resume_schedule::<Report>("s").await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error:?}");
    let details = jobs.schedule::<Report>("s").await.unwrap().unwrap().details.unwrap();
    assert!(details.pause.is_none(), "the pause has ended");
}

stores!(a_schedule_that_left_the_code_goes_on_until_it_is_removed: memory, file, redis);
async fn a_schedule_that_left_the_code_goes_on_until_it_is_removed() {
    let seen = Seen::default();
    let old = start_node(|factory| {
        let seen = seen.clone();
        factory.provide(seen).listener::<by_default::clean>().periodic::<by_default::clean>()
    })
    .await;
    let new = old.another(2, listens(&seen)).await;
    old.kill();
    new.advance(2 * MINUTE).await;
    assert!(seen.len_of("clean") >= 3);
    let clean = all(&new).await.remove(0);
    assert_eq!(clean.details.unwrap().origin, ScheduleOrigin::OtherProgram);
    assert!(new.provider().remove_schedule::<Report>("clean").await.unwrap().changed);
    assert_eq!(all(&new).await.len(), 2);
    new.advance(MINUTE).await;
    seen.len();
    new.advance(2 * MINUTE).await;
    assert_eq!(seen.len_of("clean"), 0);
}

stores!(a_program_without_the_function_leaves_the_tick_to_one_that_has_it: memory, file, redis);
async fn a_program_without_the_function_leaves_the_tick_to_one_that_has_it() {
    let seen = Seen::default();
    let old = start_node(|factory| listens(&seen)(factory).periodic::<first::report>()).await;
    let store = old.store();
    let stranger = old.another(2, listens(&seen)).await;
    old.kill();
    stranger.advance(MINUTE).await;
    assert_eq!(seen.len(), 0);
    stranger.kill();
    let again = Harness::start_on(store, 3, |factory| listens(&seen)(factory).periodic::<first::report>()).await;
    again.advance(2 * MINUTE).await;
    assert!(seen.len() >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_outweighs_the_code_until_its_schedule_is_removed() {
    let seen = Seen::default();
    let dq = start_node(listens(&seen)).await;
    dq.provider().add_schedule("report", Report { number: 7 }).every("30s").await.unwrap();
    let code = dq.another(2, |factory| listens(&seen)(factory).periodic::<first::report>()).await;
    code.advance(MINUTE).await;
    assert_eq!(seen.numbers(), [7, 7]);
    let details = code.provider().schedule::<Report>("report").await.unwrap().unwrap().details.unwrap();
    assert_eq!(details.origin, ScheduleOrigin::Call);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_schedules_of_a_topic_tick_and_are_listed_page_by_page() {
    let seen = Seen::default();
    let dq = start_node(listens(&seen)).await;
    for number in 0..1_000 {
        let name = format!("s{number:04}");
        dq.provider().add_schedule(name, Report { number }).every("10m").await.unwrap();
    }
    let schedules = all(&dq).await;
    assert_eq!(schedules.len(), 1_000);
    assert!(schedules.is_sorted_by(|a, b| a.name < b.name));
    dq.advance(10 * MINUTE).await;
    let mut numbers = seen.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn bad_schedules_are_reported_together_at_start() {
    mod twice {
        use super::*;
        #[periodic(every = "1h", register = false, name = "report")]
        pub(super) fn other() -> Report {
            Report::default()
        }
    }
    let factory = ContextFactory::new("test").without_inventory().variables([("", ""); 0]).store("memory:");
    let factory = listens(&Seen::default())(factory).periodic::<first::report>().periodic::<twice::other>();
    let error = factory.start().await.unwrap_err().to_string();
    assert!(error.contains("topic `periodic` has the schedule `report` 2 times"), "{error}");
}
