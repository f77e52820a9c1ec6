//! Defects of dq itself: the task of a topic panics at a job, or at a step, and everything else goes on (rule 34).

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dq::config::TopicOverrides;
use dq::context::{Condition, TopicDefect, TopicHealth};
use dq::environment::{Environment, Seeded};
use dq::inspect::FindingCode;
use dq::job::{Cause, Codec, JobId, Metadata, Record, State};
use dq::store::step::{Change, Sequenced};
use dq::store::{Answer, Request};
use dq::testing::Harness;
use dq::testing::seam::watched;
use dq_tests::Faults;

use crate::backend::seeds;
use crate::isolation::crash_with;
use crate::scripted_listener::{
    HOUR, MINUTE, SECOND, Script, TestJob, add_record, faulty_store, handler_takes, stored_job, test_job,
};

/// How many jobs have nothing to do with a defect.
const INNOCENT: usize = 20;

/// What a test lets panic: a step of the task, and the job that it touches there.
type Watch = dyn Fn(&str, Option<&str>) -> bool + Send + Sync;

/// A script in which a job does what its id says.
fn by_id() -> Script {
    Script::new(|job, channel| async move {
        match job.id().as_str() {
            id if id.contains("fails") => Err("no".into()),
            id if id.contains("parks") => Ok(channel.park()),
            id if id.contains("rejoins") && job.attempt() == 0 => Ok(channel.rejoin_after("1h")),
            id if id.contains("late") => {
                handler_takes(HOUR).await;
                Ok(channel.ack())
            }
            id if id.contains("slow") => {
                handler_takes(5 * SECOND).await;
                Ok(channel.ack())
            }
            _ => Ok(channel.ack()),
        }
    })
}

fn settings(topic: TopicOverrides) -> TopicOverrides {
    topic.retry("none").timeout("10s").max_crashes(1).lookahead("50ms")
}

/// A node whose task panics where `panics` says.
async fn node(
    script: &Script,
    panics: impl Fn(&str, Option<&str>) -> bool + Send + Sync + 'static,
) -> (Harness, Arc<Faults>) {
    let (store, faults) = faulty_store();
    let panics: Box<Watch> = Box::new(panics);
    let environment =
        watched(Environment::on_this_runtime(Arc::new(Seeded::new(1))), move |step, job: Option<&JobId>| {
            if panics(step, job.map(JobId::as_str)) {
                resume_unwind(Box::new("a planted panic")); // without the hook, which prints
            }
        });
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, settings).environment(environment)).await;
    (dq, faults)
}

/// Adds the innocent jobs, some of which run while the others come.
async fn add_innocent(dq: &Harness) {
    let id = |n: usize| if n.is_multiple_of(4) { format!("slow-{n}") } else { format!("innocent-{n}") };
    dq.provider().add_many((0..INNOCENT).map(id).map(test_job)).await.unwrap().all().unwrap();
}

/// How often each job ran.
fn runs(script: &Script) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    for line in script.log.take_without_times() {
        if let Some(id) = line.strip_prefix("due ").and_then(|rest| rest.split(' ').next()) {
            *runs.entry(id.to_owned()).or_default() += 1;
        }
    }
    runs
}

fn topic(dq: &Harness) -> TopicHealth {
    dq.health().topics.remove(0)
}

/// All innocent jobs ran once, and are gone.
async fn assert_innocent_are_done(dq: &Harness, script: &Script, what: &str) {
    let runs = runs(script);
    let innocent: Vec<_> = runs.iter().filter(|(id, _)| id.contains('-') && !id.starts_with("bad")).collect();
    assert_eq!(innocent.len(), INNOCENT, "{what}: {:?}", topic(dq));
    assert!(innocent.iter().all(|(_, times)| **times == 1), "{what}: {innocent:?}");
    for id in innocent {
        assert!(dq.job::<TestJob>(id.0.as_str()).await.is_none(), "{what}: {id:?}");
    }
}

/// What the doctor finds in the topic, and at which job.
async fn diagnosed(dq: &Harness) -> Vec<(FindingCode, Option<String>)> {
    let mut doctor = dq.provider().inspect().doctor(Some("work")).unwrap();
    while doctor.step().await.unwrap().is_some() {}
    let of_jobs = doctor.findings().iter().filter(|finding| finding.topic.is_some());
    of_jobs.map(|finding| (finding.code, finding.id.clone())).collect()
}

/// Whether this request is about the job `bad`, and does not give it up.
fn concerns(request: &Request) -> bool {
    let is_bad = |id: &JobId| id.as_str().starts_with("bad");
    match request {
        Request::Settle(settle) => {
            let mut outcomes = settle.outcomes.iter();
            outcomes.any(|outcome| {
                is_bad(&outcome.id) && outcome.change != Change::Dead && outcome.change != Change::Rollback
            })
        }
        Request::Exhaust(exhaust) => is_bad(&exhaust.id),
        Request::Isolate(isolate) => isolate.runs.iter().any(|(id, _)| is_bad(id)),
        _ => false,
    }
}

/// Whether this answer brings the job `bad`.
fn brings(answer: &Answer) -> bool {
    let claims = match answer {
        Answer::Transfer(Sequenced::Done(done)) => &done.claims[..],
        Answer::Sweep(Sequenced::Done(done)) => &done.claims,
        _ => &[],
    };
    claims.iter().any(|claim| claim.id.as_str().starts_with("bad"))
}

/// Where the task panics at the job `bad`, and what that job does.
fn culprits() -> Vec<(&'static str, &'static str)> {
    vec![
        ("the request", "bad"),
        ("the request", "bad-fails"),
        ("the request", "bad-parks"),
        ("the answer", "bad"),
        ("admitting", "bad"),
        ("starting", "bad"),
        ("end of a run", "bad"),
        ("end of a run", "bad-fails"),
        ("timeouts", "bad-late"),
        ("exhausting", "bad-fails"),
        ("exhaust", "bad-fails"),
    ]
}

stores!(a_job_at_which_dq_panics_is_dead_and_all_others_run_once_within_a_minute: memory, file, redis);
async fn a_job_at_which_dq_panics_is_dead_and_all_others_run_once_within_a_minute() {
    for (place, id) in culprits() {
        let script = by_id();
        let (dq, faults) =
            node(&script, move |step, job| step == place && job.is_some_and(|job| job.starts_with("bad"))).await;
        match place {
            "the request" => faults.panic_at_request(concerns),
            "the answer" => faults.panic_at_answer(brings),
            _ => {}
        }
        dq.provider().add(test_job(id)).after(SECOND).header("tenant", "acme").await.unwrap();
        dq.advance(SECOND).await;
        add_innocent(&dq).await;
        dq.advance(MINUTE).await;
        let what = format!("{place} of {id}");
        let dead = stored_job(&dq, id).await;
        assert_eq!((dead.state, dead.cause), (State::Dead, Some(Cause::Defect)), "{what}: {:?}", topic(&dq));
        assert!(dead.error.contains("panicked at `"), "{what}: {}", dead.error);
        assert_innocent_are_done(&dq, &script, &what).await;
        let health = topic(&dq);
        let named = health.defects.iter().find(|defect| defect.job.as_deref() == Some(id)).unwrap();
        assert!(named.is_given_up && (2..=6).contains(&named.panics), "{what}: {named:?}");
        assert_eq!(diagnosed(&dq).await, [(FindingCode::DefectiveJob, Some(id.to_owned()))], "{what}");
        assert!((1..=8).contains(&health.counters.restarts), "{what}: {health:?}");
        assert_eq!(health.condition, Condition::Working, "{what}: {health:?}");
    }
}

/// All steps at which the task is meanwhile, each with whether it is at a job.
async fn live(dq: &Harness) {
    let ids = ["acks", "fails", "parks", "rejoins", "slow", "late"];
    dq.provider().add_many(ids.map(test_job)).await.unwrap().all().unwrap();
    dq.advance(SECOND).await;
    dq.provider().add(test_job("ahead")).after("25ms").await.unwrap();
    dq.provider().cancel::<TestJob>("slow").await.unwrap();
    dq.advance(4 * SECOND).await;
    dq.provider().pause::<TestJob>().reason("a test").await.unwrap();
    dq.advance(SECOND).await;
    dq.provider().resume::<TestJob>().await.unwrap();
    dq.advance(MINUTE).await;
}

stores!(wherever_the_task_panics_once_each_job_ends_as_it_would_and_none_is_given_up: memory, file, redis);
async fn wherever_the_task_panics_once_each_job_ends_as_it_would_and_none_is_given_up() {
    let visits = Arc::new(Mutex::new(Vec::new()));
    let seen = visits.clone();
    let see = move |step: &str, job: Option<&str>| {
        seen.lock().unwrap().push((step.to_owned(), job.is_some()));
        false
    };
    let (dq, _) = node(&by_id(), see).await;
    live(&dq).await;
    drop(dq);
    let visits = std::mem::take(&mut *visits.lock().unwrap());
    let mut places = BTreeMap::<_, Vec<usize>>::new();
    visits.iter().enumerate().for_each(|(n, place)| places.entry(place).or_default().push(n));
    assert!(places.len() >= 22, "{:?}", places.keys());
    for (place, visits) in places {
        let chosen = [visits[0], visits[visits.len() / 2], visits[visits.len() - 1]];
        for visit in &chosen[..if seeds() < 300 { 1 } else { 3 }] {
            let (script, at, count) = (by_id(), *visit, AtomicUsize::new(0));
            let (dq, _) = node(&script, move |_, _| count.fetch_add(1, Relaxed) == at).await;
            live(&dq).await;
            let (what, health) = (format!("{place:?} at {at}"), topic(&dq));
            assert_eq!((health.counters.restarts, &health.condition), (1, &Condition::Working), "{what}: {health:?}");
            assert_eq!(health.defects.len(), 1, "{what}");
            let ran = runs(&script);
            assert!(!ran.is_empty() && ran.values().all(|times| *times <= 2), "{what}: {ran:?}");
            let counts = dq.counts::<TestJob>().await;
            let states = (counts.delayed, counts.running, counts.unacked, counts.dead);
            assert_eq!(states, (1, 0, 1, 2), "{what}: {counts:?} {health:?}");
            assert_eq!(stored_job(&dq, "fails").await.cause, Some(Cause::Error), "{what}");
            assert_eq!(stored_job(&dq, "late").await.cause, Some(Cause::Timeout), "{what}");
        }
    }
}

/// A node whose task panics where `panics` says, until the test ends that.
async fn node_for_a_while(
    script: &Script,
    panics: impl Fn(&str, Option<&str>) -> bool + Send + Sync + 'static,
) -> (Harness, Arc<AtomicBool>) {
    let is_on = Arc::new(AtomicBool::new(true));
    let on = is_on.clone();
    let (dq, _) = node(script, move |step, job| on.load(Relaxed) && panics(step, job)).await;
    (dq, is_on)
}

#[tokio::test(start_paused = true)]
async fn a_step_at_which_dq_panics_for_every_job_gives_none_up_and_panics_ever_more_rarely() {
    for step in ["admitting", "starting", "settling", "end of a run"] {
        let script = by_id();
        let (dq, is_on) = node_for_a_while(&script, move |at, job| at == step && job.is_some()).await;
        add_innocent(&dq).await;
        dq.advance(10 * MINUTE).await;
        let health = topic(&dq);
        assert!((10..600).contains(&health.counters.restarts), "{step}: {}", health.counters.restarts);
        assert!(health.defects.iter().any(|defect| defect.step == step && defect.message == "a planted panic"));
        let before = health.counters.restarts;
        dq.advance(10 * MINUTE).await;
        let more = topic(&dq).counters.restarts - before;
        assert!((1..=15 * INNOCENT as u64).contains(&more), "{step}: {more}");
        assert_eq!(dq.counts::<TestJob>().await.dead, 0, "{step}: {:?}", topic(&dq));
        is_on.store(false, Relaxed);
        script.log.take();
        dq.advance(5 * MINUTE).await;
        let counts = dq.counts::<TestJob>().await;
        assert_eq!((counts.delayed, counts.running, counts.dead), (0, 0, 0), "{step}: {:?}", topic(&dq));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_at_no_job_rests_when_it_panics_and_the_others_go_on() {
    for step in ["others", "renewing", "pausing", "lookahead", "expiry", "signal", "scan"] {
        let script = by_id();
        let (dq, _) = node_for_a_while(&script, move |at, job| at == step && job.is_none()).await;
        add_innocent(&dq).await;
        dq.advance(MINUTE).await;
        assert_innocent_are_done(&dq, &script, step).await;
        dq.advance(HOUR).await;
        let health = topic(&dq);
        assert!((1..=150).contains(&health.counters.restarts), "{step}: {}", health.counters.restarts);
        let is_named = |defect: &TopicDefect| defect.step == step && defect.job.is_none();
        assert!(!health.defects.is_empty() && health.defects.iter().all(is_named), "{step}: {health:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_even_be_given_up_is_named_and_keeps_no_other_from_running() {
    let script = by_id();
    let (dq, faults) = node(&script, |_, _| false).await;
    faults.panic_at_request(|request| match request {
        Request::Settle(settle) => settle.outcomes.iter().any(|outcome| outcome.id.as_str() == "bad"),
        _ => false,
    });
    dq.provider().add(test_job("bad")).await.unwrap();
    add_innocent(&dq).await;
    dq.advance(MINUTE).await;
    assert_innocent_are_done(&dq, &script, "a job that cannot be given up").await;
    dq.advance(HOUR).await;
    let health = topic(&dq);
    assert!((10..150).contains(&health.counters.restarts), "{}", health.counters.restarts);
    let named = |defect: &TopicDefect| defect.job.as_deref() == Some("bad") && defect.message == "a poisoned request";
    assert!(health.defects.iter().any(named), "{health:?}");
}

stores!(outcomes_that_were_decided_survive_a_panic_and_are_sent_once: memory, file, redis);
async fn outcomes_that_were_decided_survive_a_panic_and_are_sent_once() {
    let script = by_id();
    let (dq, faults) = node(&script, |_, _| false).await;
    let left = AtomicUsize::new(3);
    faults.panic_at_request(move |request| {
        matches!(request, Request::Settle(_)) && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    });
    add_innocent(&dq).await;
    dq.advance(MINUTE).await;
    assert_innocent_are_done(&dq, &script, "three requests").await;
    let health = topic(&dq);
    assert_eq!((health.counters.restarts, health.counters.acked), (3, INNOCENT as u64));
    assert_eq!(health.counters.stale_outcomes + health.counters.rolled_back, 0);
}

/// The encoder of an early version panicked at such a record, wherever the store wrote it again.
#[tokio::test(start_paused = true)]
async fn a_job_whose_error_has_no_room_beside_its_headers_is_dead_and_all_others_run_once() {
    let script = by_id();
    let (dq, _) = node(&script, |_, _| false).await;
    let headers = vec![("large".into(), "x".repeat(65_000))];
    let metadata = Metadata { headers, ..Metadata::default() };
    let record = Record::new(&metadata, Codec::Json, br#"{"id":"bad-fails"}"#);
    add_record(&dq, JobId::new("bad-fails").unwrap(), record).await;
    dq.advance(SECOND).await;
    add_innocent(&dq).await;
    dq.advance(MINUTE).await;
    assert_eq!(stored_job(&dq, "bad-fails").await.state, State::Dead, "{:?}", topic(&dq));
    assert_innocent_are_done(&dq, &script, "an error without room").await;
    assert!(dq.health().ready);
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_job_at_which_dq_panics_takes_none_of_its_group_with_it() {
    let (store, faults) = faulty_store();
    crash_with(&store, (0..6).map(|n| format!("group-{n}")).chain(["bad".into()])).await;
    faults.panic_at_request(concerns);
    let script = by_id();
    let dq = Harness::start_on(store, 2, |factory| script.on(factory, settings)).await;
    dq.advance(MINUTE).await;
    let dead = stored_job(&dq, "bad").await;
    assert_eq!((dead.state, dead.cause), (State::Dead, Some(Cause::Defect)), "{:?}", topic(&dq));
    let runs = runs(&script);
    assert_eq!(runs.len(), 6, "{runs:?}");
    assert!(runs.values().all(|times| *times == 1), "{runs:?}");
}
