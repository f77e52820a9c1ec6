//! What errors say, and which of them a caller may repeat.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::job::{JobId, Record, State, TopicName, limits};
use crate::provider::error::Doing;
use crate::provider::{CallError, FailureReason, Invalid, Refusal, Target};
use crate::store::{CommandKind, GiveUp, OnDuplicate, Repair, StoreError};
use crate::time::MAX_DELAY;

fn target(doing: Doing) -> Target {
    Target { topic: TopicName::new("t").unwrap(), id: Some(JobId::new("7").unwrap()), doing }
}

fn add() -> Target {
    target(Doing::Add(OnDuplicate::Reject))
}

fn exists(state: State) -> CallError {
    CallError::Refused { target: add(), refusal: Refusal::Exists(state) }
}

#[test]
fn only_an_add_that_the_store_did_not_get_or_take_may_be_repeated() {
    let topic = TopicName::new("t").unwrap();
    let not_added = |reason| CallError::NotDone { target: add(), reason };
    let unknown = || CallError::Unknown { target: add(), reason: FailureReason::Unanswered };
    let some = |first| CallError::SomeFailed { failed: 1, jobs: 2, first: Box::new(first) };
    let no_answer = FailureReason::NoAnswer { waited: Duration::ZERO, limit: "within" };
    let never_sent = FailureReason::NeverSent { waited: Duration::ZERO, limit: "within" };
    let store = StoreError::NotSent { operation: "add", reason: String::new() };
    let repeat = [
        not_added(FailureReason::Store(Arc::new(store))),
        not_added(no_answer),
        not_added(never_sent),
        not_added(FailureReason::Stopped),
        not_added(FailureReason::Panicked),
        some(unknown()),
        unknown(),
    ];
    let invalid = [
        Invalid::BadPayload { topic: topic.clone(), source: serde_json::from_str::<u8>("").unwrap_err() },
        Invalid::PayloadTooLarge { topic, size: 2, limit: 1 },
        Invalid::OverLimit(limits::CONTROLS.check(1).unwrap_err()),
        TopicName::new("").unwrap_err().into(),
        Invalid::BadDuration { field: "after", source: dq_grammar::parse_duration("soon").unwrap_err() },
        Invalid::TooLong { field: "after", delay: MAX_DELAY * 2, limit: MAX_DELAY },
        Invalid::BadRetry("often".parse::<crate::job::RetryPolicy>().unwrap_err()),
        Invalid::BatchTooLarge { what: "jobs", size: 2, limit: 1 },
        Invalid::RepeatedInBatch { id: JobId::new("7").unwrap() },
    ];
    let refused = [not_added(FailureReason::Refused("why".into())), some(exists(State::Dead)), exists(State::Dead)];
    let give_up: Vec<_> = invalid.into_iter().map(CallError::from).chain(refused).collect();
    for (errors, may) in [(&repeat[..], true), (&give_up, false)] {
        for error in errors {
            assert_eq!(error.may_be_repeated(), may, "{error}");
        }
    }
}

#[test]
fn an_existing_id_says_what_to_write_instead() {
    let waits = exists(State::Delayed).to_string();
    assert!(waits.ends_with("`.keep_existing()` leaves it, `.replace_existing()` replaces it"), "{waits}");
    assert!(exists(State::Dead).to_string().ends_with("`requeue` runs it again"));
}

#[test]
fn an_unknown_result_says_what_to_do_and_that_the_store_may_have_done_it() {
    let error = CallError::Unknown { target: add(), reason: FailureReason::Unanswered };
    let text = crate::Error::from(error).to_string();
    let start =
        "it is not known whether job `7` of topic `t` was added (add it again with this id and `.keep_existing()`): ";
    assert!(text.starts_with(start) && text.matches("may have done it").count() == 1, "{text}");
    let target = target(Doing::Command(CommandKind::Delete));
    let error = CallError::Unknown { target, reason: FailureReason::Unanswered }.to_string();
    assert!(error.contains("topic `t` (call again): "), "{error}");
}

#[test]
fn the_longest_delay_is_written_in_words() {
    let delay = MAX_DELAY + Duration::from_millis(1);
    let text = Invalid::TooLong { field: "after", delay, limit: MAX_DELAY }.to_string();
    assert_eq!(text, "`after` is 3650d 1ms; the limit is ten years (3650d)");
}

#[test]
fn a_text_that_is_not_json_says_where_it_is_wrong() {
    let source = serde_json::from_str::<serde_json::Value>("{oops").unwrap_err();
    let error = CallError::from(Invalid::BadPayload { topic: TopicName::new("t").unwrap(), source });
    assert!(error.to_string().contains("is not JSON") && error.to_string().ends_with("line 1 column 2"), "{error}");
    assert_eq!(crate::Error::from(error).to_string().matches("column 2").count(), 1);
}

#[test]
fn a_refusal_says_what_to_do() {
    let said = [State::Running, State::Unacked, State::Dead, State::Done]
        .map(|state| CallError::Refused { target: target(Doing::Change), refusal: Refusal::State(state) }.to_string());
    for (text, what) in said.iter().zip(["replace_existing", "requeue", "requeue", "add it again"]) {
        assert!(text.starts_with("job `7` of topic `t` was not changed: it is") && text.contains(what), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repair_whose_answer_is_lost_may_have_been_made_and_a_query_was_not() {
    let (_provider, topic, _store) = super::provider();
    let job = GiveUp { id: JobId::new("7").unwrap(), record: Record::from_bytes(Bytes::new()), error: String::new() };
    let repaired = topic.repair(Repair::GiveUp(job)).await.unwrap_err();
    assert!(matches!(repaired, CallError::Unknown { .. }), "{repaired}");
    let found = topic.get("7").await.unwrap_err();
    assert!(matches!(found, CallError::NotDone { .. }), "{found}");
}
