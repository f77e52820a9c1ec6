//! The verbs of a provider that change what waits: their answers and their errors.

use std::time::{Duration, SystemTime};

use dq::DelayJob;
use dq::config::NodeSettings;
use dq::job::State;
use dq::provider::{AddedHow, CallError, Invalid, Refusal};
use dq::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::provider::{Fixture, START, due};
use crate::scripted_listener::SECOND;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, DelayJob)]
#[job(topic = "session", delay = "30m")]
struct Session {
    #[job(id)]
    user: u64,
    page: String,
}

fn session(user: u64, page: &str) -> Session {
    Session { user, page: page.into() }
}

async fn fixture() -> Fixture {
    Fixture::of("session", NodeSettings::default()).await
}

async fn due_of(fixture: &Fixture, user: u64) -> Duration {
    due(&fixture.provider.get::<Session>(user).await.unwrap().unwrap())
}

fn refusal<T: std::fmt::Debug>(result: Result<T, CallError>) -> Refusal {
    match result {
        Err(CallError::Refused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waits_is_rescheduled_extended_run_now_and_updated() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    jobs.add(session(7, "home")).await.unwrap();
    let changed = jobs.reschedule::<Session>(7, "2h").await.unwrap();
    assert_eq!((changed.id.as_str(), changed.state, changed.version), ("7", State::Delayed, 1));
    assert_eq!((changed.due.unwrap().since(START), due_of(&fixture, 7).await), (7_200 * SECOND, 7_200 * SECOND));
    jobs.extend_by::<Session>(7, SECOND).await.unwrap();
    assert_eq!(due_of(&fixture, 7).await, 7_201 * SECOND);
    jobs.reschedule::<Session>(7, START.after(60 * SECOND)).await.unwrap();
    jobs.reschedule::<Session>(7, SystemTime::from(START.after(61 * SECOND))).await.unwrap();
    assert_eq!(due_of(&fixture, 7).await, 61 * SECOND);
    jobs.update(7, session(7, "cart")).await.unwrap();
    let seen = jobs.get::<Session>(7).await.unwrap().unwrap();
    assert_eq!((seen.payload().unwrap(), seen.details.as_ref().unwrap().version), (session(7, "cart"), 5));
    assert_eq!(jobs.run_now::<Session>(7).await.unwrap().due.unwrap().since(START), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_names_another_version_learns_the_version_that_is_there() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    jobs.add(session(7, "home")).await.unwrap();
    let changed = jobs.run_now::<Session>(7).if_version(0).await.unwrap();
    assert_eq!(refusal(jobs.update(7, session(7, "cart")).if_version(0).await), Refusal::OtherVersion(1));
    jobs.update(7, session(7, "cart")).if_version(changed.version).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_job_that_does_not_wait_says_what_to_do() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    assert_eq!(refusal(jobs.reschedule::<Session>(7, "2h").await), Refusal::NoSuchJob);
    jobs.add(session(7, "home")).after("0s").await.unwrap();
    fixture.claim().await;
    assert_eq!(refusal(jobs.extend_by::<Session>(7, "2h").await), Refusal::State(State::Running));
    let error = dq::Error::from(jobs.update(7, session(7, "cart")).await.unwrap_err());
    assert!(error.to_string().contains("its run decides"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_of_a_change_send_nothing() {
    let mut settings = NodeSettings::default();
    settings.max_payload = 40;
    let fixture = Fixture::of("session", settings).await;
    let jobs = &fixture.provider;
    jobs.add(session(7, "home")).await.unwrap();
    let errors = [
        jobs.reschedule::<Session>(7, "soon").await.unwrap_err(),
        jobs.reschedule::<Session>(7, "11years").await.unwrap_err(),
        jobs.reschedule::<Session>(7, START.after(4_000 * 24 * 3_600 * SECOND)).await.unwrap_err(),
        jobs.extend_by::<Session>(7, "11years").await.unwrap_err(),
        jobs.run_now::<Session>("").await.unwrap_err(),
        jobs.run_now::<Session>(7).within("soon").await.unwrap_err(),
        jobs.update(7, session(7, &"x".repeat(50))).await.unwrap_err(),
        jobs.topic("session").unwrap().update_json(7, "{oops").await.unwrap_err(),
    ];
    let texts = errors.each_ref().map(ToString::to_string);
    let parts = ["`when`", "ten years", "`when`", "`extend_by`", "id", "`within`", "max_payload", "is not JSON"];
    for (text, part) in texts.iter().zip(parts) {
        assert!(text.contains(part), "{text}");
    }
    let seen = jobs.get::<Session>(7).await.unwrap().unwrap();
    assert_eq!((seen.details.unwrap().version, due_of(&fixture, 7).await), (0, 1_800 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn many_changes_are_answered_one_by_one_in_order() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    jobs.add_many((0..100).map(|user| session(user, "home"))).await.unwrap().all().unwrap();
    let changes = (0..=100).map(|user| jobs.extend_by::<Session>(user, "1m"));
    let again = [jobs.update(3, session(3, "cart")), jobs.run_now::<Session>(""), jobs.run_now::<Session>(3)];
    let mut results = jobs.change_many(changes.chain(again)).await.unwrap();
    assert_eq!(results.len(), 104);
    let [ran, nameless, updated, unknown] = [(); 4].map(|()| results.pop().unwrap());
    assert!(matches!(nameless, Err(CallError::Invalid(Invalid::InvalidName(_)))), "{nameless:?}");
    assert_eq!((ran.unwrap().version, updated.unwrap().version), (3, 2), "in their order");
    assert_eq!(refusal(unknown), Refusal::NoSuchJob);
    assert!(results.into_iter().all(|changed| changed.unwrap().due == Some(START.after(1_860 * SECOND))));
    let many = (0..1_001).map(|user| jobs.run_now::<Session>(user));
    assert!(matches!(
        jobs.change_many(many).await,
        Err(CallError::Invalid(Invalid::BatchTooLarge { limit: 1_000, .. }))
    ));
}

stores!(a_session_that_is_extended_for_ever_still_ends: memory, file, redis);
async fn a_session_that_is_extended_for_ever_still_ends() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    let beat = |page| jobs.add_or_extend(session(7, page)).after("30m").at_most("1h");
    assert_eq!(beat("0").await.unwrap().how, AddedHow::New);
    for minutes in [20, 40, 55] {
        tokio::time::advance(START.after(minutes * 60 * SECOND).since(now(&fixture).await)).await;
        let due = START.after(60 * SECOND * (minutes + 30).min(60));
        match beat("last").await.unwrap().how {
            AddedHow::Extended { due: is, .. } => assert_eq!(is, due),
            other => panic!("{other:?}"),
        }
    }
    let seen = jobs.get::<Session>(7).await.unwrap().unwrap();
    assert_eq!((seen.payload().unwrap().page.as_str(), seen.details.unwrap().version), ("last", 3));
    tokio::time::advance(5 * 60 * SECOND).await;
    fixture.claim().await;
    assert_eq!(beat("new").await.unwrap().how, AddedHow::ReplacementWaits);
}

async fn now(fixture: &Fixture) -> Timestamp {
    fixture.provider.counts::<Session>().await.unwrap().clock
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_the_delay_and_a_job_without_an_id_are_errors_before_anything_is_sent() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    match jobs.add_or_extend(session(7, "home")).after("30m").at_most("29m").await {
        Err(CallError::Invalid(Invalid::LimitBelowDelay { after, at_most })) => {
            assert_eq!((after, at_most), (1_800 * SECOND, 1_740 * SECOND))
        }
        other => panic!("{other:?}"),
    }
    let bare = jobs.topic("session").unwrap().add_or_extend_json(json!({})).after("1m").await;
    assert!(matches!(bare, Err(CallError::Invalid(Invalid::NoId { .. }))), "{bare:?}");
    assert_eq!(jobs.counts::<Session>().await.unwrap().delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn many_sessions_are_extended_in_one_call() {
    let fixture = fixture().await;
    let jobs = &fixture.provider;
    for version in 0..3_u32 {
        let beats = jobs.add_or_extend_many((0..200).map(|user| session(user, "home"))).after("10m").at_most("8h");
        for beat in beats.await.unwrap() {
            match beat.unwrap().how {
                AddedHow::New => assert_eq!(version, 0),
                AddedHow::Extended { version: is, .. } => assert_eq!(is, version),
                other => panic!("{other:?}"),
            }
        }
        tokio::time::advance(60 * SECOND).await;
    }
    assert_eq!(jobs.counts::<Session>().await.unwrap().delayed, 200);
}
