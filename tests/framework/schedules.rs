//! Schedules: jobs that are added at each tick, once, by whichever node comes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use dq::inspect::{BulkAction, JobFilter};
use dq::job::{Codec, Metadata, Record, State};
use dq::provider::{AddSchedule, AddedHow, Call, CallError, Refusal};
use dq::schedule::{OnMissed, Overlap};
use dq::testing::Harness;
use dq::time::Timestamp;

use crate::backend::seeds;
use crate::scripted_listener::{
    HOUR, MINUTE, SECOND, Script, TestJob, add_record, default_settings, handler_takes, test_job,
};

/// The due times of the jobs that ran, in the order of their runs.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<(String, Timestamp)>>>);

impl Runs {
    /// A listener that records its jobs and takes `time` for each.
    fn script(&self, time: Duration) -> Script {
        let runs = self.clone();
        Script::new(move |job, channel| {
            runs.0.lock().unwrap().push((job.id().to_string(), Timestamp::from(job.due())));
            async move {
                handler_takes(time).await;
                Ok(channel.ack())
            }
        })
    }

    fn take(&self) -> Vec<Timestamp> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|(_, due)| due).collect()
    }
}

/// The ticks of an interval from `first` on.
fn every(interval: Duration, first: Timestamp, count: u32) -> Vec<Timestamp> {
    (0..count).map(|n| first.after(interval * n)).collect()
}

fn tens(dq: &Harness) -> Call<AddSchedule> {
    dq.provider().add_schedule("tens", test_job("payload")).every("10s")
}

stores!(a_schedule_adds_one_job_at_each_tick: memory, file, redis);
async fn a_schedule_adds_one_job_at_each_tick() {
    let runs = Runs::default();
    let dq = runs.script(Duration::ZERO).start(default_settings).await;
    let added = tens(&dq).await.unwrap();
    assert_eq!((added.name.as_str(), added.how), ("tens", AddedHow::New));
    dq.advance(MINUTE).await;
    assert_eq!(runs.take(), every(10 * SECOND, added.first, 6));
    let counters = dq.health().topics[0].counters;
    assert_eq!((counters.ticked, counters.acked), (6, 6));
}

/// One of five nodes dies each second, while a schedule ticks each second. Returns how often each tick has added its job, up to the last
/// one that did, and how many of these jobs ran.
async fn while_nodes_die(on_missed: OnMissed) -> (Vec<usize>, usize) {
    let seconds = if seeds() > 100 { 600 } else { 60 };
    let runs = Runs::default();
    let (script, settings) =
        (runs.script(Duration::ZERO), |topic| default_settings(topic).history_max(20).history_retention("1h"));
    let mut nodes = VecDeque::from([script.start(settings).await]);
    nodes[0].advance(SECOND).await; // the store keeps histories from now on
    let each = nodes[0].provider().add_schedule("s", test_job("p")).every("1s").on_missed(on_missed);
    let first = each.await.unwrap().first;
    for seed in 2..2 + seconds {
        nodes.push_back(script.beside(&nodes[0], seed, settings).await);
        nodes.back().unwrap().advance(SECOND).await;
        if nodes.len() > 5 {
            nodes.pop_front().unwrap().kill();
        }
    }
    let dq = nodes.pop_back().unwrap();
    dq.advance(MINUTE).await; // the jobs of dead nodes come back
    dq.provider().remove_schedule::<TestJob>("s").await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(dq.counts::<TestJob>().await.delayed, 0);
    let mut added = Vec::new();
    for tick in every(SECOND, first, seconds as u32 + 60) {
        let history = dq.provider().inspect().history("work", &format!("dq:tick:s@{tick}")).await.unwrap();
        added.push(history.iter().filter(|past| past.to_string().starts_with("added")).count());
    }
    while added.pop_if(|count| *count == 0).is_some() {}
    (added, runs.take().into_iter().collect::<BTreeSet<_>>().len())
}

stores!(of_five_nodes_one_dies_each_second_and_each_tick_of_a_second_is_added_once: memory, file, redis);
async fn of_five_nodes_one_dies_each_second_and_each_tick_of_a_second_is_added_once() {
    let (added, ran) = while_nodes_die(OnMissed::All).await;
    assert!(added.len() >= 60, "{} ticks", added.len());
    assert_eq!(added, vec![1; ran], "none is missing");
    let (added, ran) = while_nodes_die(OnMissed::Once).await;
    assert!(added.len() >= 60 && added.iter().all(|count| *count <= 1), "{added:?}");
    assert_eq!(added.iter().sum::<usize>(), ran);
}

/// The time of the store, to the second.
async fn now(dq: &Harness) -> Timestamp {
    let clock = dq.provider().add_schedule("clock", test_job("p")).every("1s").await.unwrap();
    assert!(dq.provider().remove_schedule::<TestJob>("clock").await.unwrap().changed);
    clock.first
}

/// The ticks that get a job, as hours after the first one, if there is no node at the first four ticks.
async fn after_a_gap(on_missed: OnMissed) -> Vec<u64> {
    let runs = Runs::default();
    let script = runs.script(Duration::ZERO);
    let dq = script.start(default_settings).await;
    let start = now(&dq).await.after(HOUR);
    dq.provider().add_schedule("s", test_job("p")).every("1h").start_at(start).on_missed(on_missed).await.unwrap();
    let store = dq.store();
    dq.kill();
    Script::acks().start(default_settings).await.advance(4 * HOUR + 30 * MINUTE).await; // a node elsewhere
    let dq = Harness::start_on(store, 3, |factory| script.on(factory, default_settings)).await;
    dq.advance(HOUR).await;
    runs.take().into_iter().map(|due| due.since(start).as_secs() / 3600).collect()
}

stores!(missed_ticks_follow_the_policy_of_their_schedule: memory, file, redis);
async fn missed_ticks_follow_the_policy_of_their_schedule() {
    assert_eq!(after_a_gap(OnMissed::All).await, [0, 1, 2, 3, 4]);
    assert_eq!(after_a_gap(OnMissed::Once).await, [3, 4]);
    assert_eq!(after_a_gap(OnMissed::Skip).await, [4]);
}

stores!(missed_ticks_that_must_not_overlap_run_one_after_the_other: memory, file, redis);
async fn missed_ticks_that_must_not_overlap_run_one_after_the_other() {
    let most = Arc::new(Mutex::new((0_usize, 0_usize, Vec::new())));
    let runs = most.clone();
    let script = Script::new(move |job, channel| {
        let runs = runs.clone();
        let mut all = runs.lock().unwrap();
        all.0 += 1;
        all.1 = all.1.max(all.0);
        all.2.push(Timestamp::from(job.due()));
        drop(all);
        async move {
            handler_takes(20 * SECOND).await;
            runs.lock().unwrap().0 -= 1;
            Ok(channel.ack())
        }
    });
    let dq = script.start(default_settings).await;
    dq.provider().pause::<TestJob>().reason("why").await.unwrap();
    let each = dq.provider().add_schedule("each", test_job("p")).every("1m").overlap(Overlap::Skip);
    let first = each.on_missed(OnMissed::All).await.unwrap().first;
    dq.advance(10 * MINUTE).await;
    dq.provider().resume::<TestJob>().await.unwrap();
    dq.advance(10 * MINUTE).await;
    let (_, most, ran) = &*most.lock().unwrap();
    assert_eq!((*most, &ran[..10]), (1, &every(MINUTE, first, 10)[..]), "{ran:?}");
    assert!(ran.len() > 12, "the ticks after the gap follow: {ran:?}");
}

stores!(jobs_of_a_schedule_overlap_unless_it_skips_the_ticks_while_the_last_one_runs: memory, file, redis);
async fn jobs_of_a_schedule_overlap_unless_it_skips_the_ticks_while_the_last_one_runs() {
    for (skips, interval, count) in [(true, 30, 3), (false, 10, 9)] {
        let runs = Runs::default();
        let dq = runs.script(25 * SECOND).start(default_settings).await;
        let added = if skips { tens(&dq).overlap(Overlap::Skip).await } else { tens(&dq).await };
        dq.advance(MINUTE + 30 * SECOND).await;
        let ran = runs.take();
        assert_eq!(ran, every(interval * SECOND, added.unwrap().first, count), "each runs for 25 s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_ends_with_its_last_tick() {
    let runs = Runs::default();
    let dq = runs.script(Duration::ZERO).start(default_settings).await;
    let first = tens(&dq).await.unwrap().first;
    let last = first.after(20 * SECOND);
    tens(&dq).end_at(last).replace_existing().await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(runs.take(), every(10 * SECOND, first, 3));
    assert_eq!(dq.counts::<TestJob>().await.delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_shows_its_next_tick_and_its_last_job() {
    let dq = Script::acks().start(default_settings).await;
    let first = tens(&dq).overlap(Overlap::Skip).await.unwrap().first;
    let seen = async || dq.provider().schedule::<TestJob>("tens").await.unwrap().unwrap().details.unwrap();
    assert_eq!((seen().await.next, seen().await.last_job), (first, None));
    dq.advance(10 * SECOND).await;
    let details = seen().await;
    assert_eq!((details.next, details.overlap), (first.after(10 * SECOND), Overlap::Skip));
    assert_eq!(details.last_job.unwrap().as_str(), format!("dq:tick:tens@{first}"));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_a_known_name_is_refused_kept_or_replaced_as_asked() {
    let dq = Script::acks().start(default_settings).await;
    tens(&dq).await.unwrap();
    let refused = tens(&dq).await;
    assert!(matches!(refused, Err(CallError::Refused { refusal: Refusal::Exists(_), .. })), "{refused:?}");
    assert!(matches!(tens(&dq).keep_existing().await.unwrap().how, AddedHow::Kept(State::Delayed)));
    let hourly = dq.provider().add_schedule("tens", test_job("p")).every("1h").replace_existing().await.unwrap();
    let details = dq.provider().schedule::<TestJob>("tens").await.unwrap().unwrap().details.unwrap();
    assert_eq!(details.next, hourly.first);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_makes_no_sense_is_refused_with_a_reason() {
    let dq = Script::acks().start(default_settings).await;
    let text = async |schedule: Call<AddSchedule>| schedule.await.unwrap_err().to_string();
    let new = || dq.provider().add_schedule("s", test_job("p"));
    assert!(text(new()).await.contains("does not say when"));
    assert!(text(new().every("10ms")).await.contains("write 1s to ten years"));
    assert!(text(new().every("soon")).await.starts_with("`every`: "));
    assert!(text(new().every("1h").end_at(SystemTime::UNIX_EPOCH)).await.contains("no tick from now on"));
    assert!(text(dq.provider().add_schedule("", test_job("p")).every("1h")).await.contains("name of the schedule"));
    let reserved = dq.provider().add(test_job("dq:tick:tens@x")).await.unwrap_err().to_string();
    assert!(reserved.contains("begins with `dq:`"), "{reserved}");
    assert_eq!(dq.counts::<TestJob>().await.delayed, 0);
}

stores!(a_schedule_that_this_version_cannot_read_is_given_back_and_goes_on_later: memory, file, redis);
async fn a_schedule_that_this_version_cannot_read_is_given_back_and_goes_on_later() {
    let runs = Runs::default();
    let dq = runs.script(Duration::ZERO).start(default_settings).await;
    let record = Record::new(&Metadata::default(), Codec::Json, b"{\"lunar\":1}");
    add_record(&dq, dq::schedule::schedule_id("strange").unwrap(), record).await;
    dq.advance(HOUR).await;
    assert!(runs.take().is_empty());
    assert_eq!(dq.counts::<TestJob>().await.delayed, 1, "it is not DEAD, and a node that can read it may come");
}

#[tokio::test(start_paused = true)]
async fn a_bulk_change_leaves_schedules_alone() {
    let dq = Runs::default().script(Duration::ZERO).start(default_settings).await;
    tens(&dq).await.unwrap();
    let jobs = dq.provider();
    jobs.add(test_job("later")).after(HOUR).await.unwrap();
    let next = jobs.schedule::<TestJob>("tens").await.unwrap().unwrap().details.unwrap().next;
    for action in [BulkAction::Reschedule(next.after(2 * HOUR)), BulkAction::Delete] {
        let mut bulk = jobs.inspect().bulk("work", State::Delayed, JobFilter::default(), action).unwrap();
        while bulk.step().await.unwrap().is_some() {}
        assert_eq!((bulk.progress().looked_at, bulk.progress().changed), (2, 1));
    }
    let schedule = jobs.schedule::<TestJob>("tens").await.unwrap().unwrap();
    assert_eq!(schedule.details.unwrap().next, next);
    assert!(jobs.get::<TestJob>("later").await.unwrap().is_none());
}
