//! Changes of the payload (rule 28).

use super::changes::update;
use super::events::{NODE, add_in_state, ending};
use super::producer::{delayed, job};
use super::topic::{Topic, ms, secs};
use dq::job::{Cause, Codec, Delivery, GroupName, JobState, KeptState, Metadata, Record, State};
use dq::store::step::{Change, DEFAULT_BYTES};
use dq::store::{AddOutcome, ChangeKind, ChangeVerdict, Due, NewJob, OptionChange};

/// An update gives a DELAYED job another payload, and changes nothing else of it but its version (rule 28).
pub async fn delayed_job_gets_another_payload(t: &Topic) {
    add_in_state(t, "a", State::Delayed).await;
    let (before, due) = (t.metadata("a").await, t.due("a").await);
    let outcome = t.changed("a", update("new")).await;
    assert_eq!((outcome.found, outcome.version, outcome.due), (Some(State::Delayed), 1, Some(due)));
    assert_eq!((t.payload("a").await, t.due("a").await), ("new".into(), due));
    assert_eq!(t.metadata("a").await, Metadata { version: 1, ..before });
}

/// The same of a broadcast that waits (rules 24, 28).
pub async fn waiting_broadcast_gets_another_payload(t: &Topic) {
    let new = NewJob { deliver: Delivery::Broadcast, ..delayed("a", secs(9)) };
    assert_eq!(t.add_job(new).await, AddOutcome::Added);
    let due = t.in_ms(9_000);
    assert_eq!(t.changed("a", update("new")).await.due, Some(due));
    assert_eq!((t.payload("a").await, t.due("a").await, t.metadata("a").await.version), ("new".into(), due, 1));
    assert_eq!(t.counts().await.broadcasts, 1);
}

/// An UNACKED job gets another payload, and stays where it is with its parking fence and its crashes (rule 28).
pub async fn unacked_job_gets_another_payload(t: &Topic) {
    add_in_state(t, "a", State::Unacked).await;
    let (before, place) = (t.metadata("a").await, t.place("a").await);
    t.advance(secs(1)).await;
    let outcome = t.changed("a", update("new")).await;
    assert_eq!((outcome.found, outcome.version, outcome.due), (Some(State::Unacked), 1, None));
    assert_eq!((t.payload("a").await, t.place("a").await), ("new".into(), place));
    assert_eq!(t.metadata("a").await, Metadata { version: 1, ..before.clone() });
    assert!(t.command(dq::store::CommandKind::Requeue, "a", before.parked_by).await.changed);
    assert_eq!(t.payload("a").await, "new");
}

/// A DEAD job gets another payload and stays DEAD; a requeue then runs it with that: so a payload is mended that does not decode
/// (rule 28).
pub async fn dead_job_gets_another_payload(t: &Topic) {
    t.add("a").await;
    let claim = t.claim(NODE, "a").await;
    let dead =
        Metadata { cause: Some(Cause::Decode), error: Some("no number".into()), attempts: 1, ..Metadata::default() };
    t.end_with(NODE, &claim, Change::Dead, dead.clone()).await;
    let place = t.place("a").await;
    t.advance(secs(1)).await;
    assert_eq!(t.changed("a", update("7")).await.found, Some(State::Dead));
    assert_eq!((t.place("a").await, t.metadata("a").await), (place, Metadata { version: 1, ..dead }));
    t.requeue("a").await;
    let claim = t.claim(NODE, "a").await;
    assert_eq!(claim.record.payload().expect("the record is readable").1, b"7");
    assert_eq!(claim.record.metadata().expect("the record is readable").version, 1);
}

/// A payload of any size takes the place of one of any other size, and steps of the job go on with it (rules 5, 28).
pub async fn payload_may_grow_and_shrink(t: &Topic) {
    let texts = ["x".repeat(200_000), "small".to_owned(), "y".repeat(5_000), "z".repeat(300_000)];
    t.add_later("a", secs(60)).await;
    for (n, text) in texts.iter().enumerate() {
        t.changed("a", update(text)).await;
        t.changed("a", ChangeKind::Reschedule(Due::After(secs(0)))).await;
        assert_eq!(t.payload("a").await, *text);
        let claim = t.claim(NODE, "a").await;
        assert_eq!(claim.record.payload().expect("the record is readable").1, text.as_bytes());
        let failed = Metadata { attempts: 1, version: 2 * n as u32 + 2, ..Metadata::default() };
        t.end_with(NODE, &claim, Change::Retry(secs(9)), failed.clone()).await;
        assert_eq!((t.metadata("a").await, t.payload("a").await), (failed, text.clone()));
    }
}

/// Records that grew count with their size where a step is bounded by bytes (rules 5, 28).
pub async fn updated_records_count_with_their_size(t: &Topic) {
    for n in 0..4 {
        t.add_later(&format!("j{n}"), ms(n + 1)).await;
        t.changed(&format!("j{n}"), update(&"x".repeat(DEFAULT_BYTES / 2))).await;
    }
    t.advance(secs(1)).await;
    t.enter("n").await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.more), (1, true));
}

/// A record that does not decode is mended by an update (rules 1, 28).
pub async fn unreadable_record_is_mended(t: &Topic) {
    let new = NewJob { record: Record::from_bytes("what?".into()), ..job("a") };
    assert_eq!(t.add_job(new).await, AddOutcome::Added);
    t.changed("a", update("7")).await;
    assert_eq!(
        (t.payload("a").await, t.metadata("a").await),
        ("7".into(), Metadata { version: 1, ..Metadata::default() })
    );
}

/// All options; the job that they are for has others.
fn options() -> OptionChange {
    OptionChange {
        retry: Some("none".into()),
        headers: Some(vec![("a".into(), "1".into()), ("b".into(), String::new())]),
        retain: Some(secs(9)),
    }
}

fn with_options(metadata: Metadata, options: &OptionChange) -> Metadata {
    let OptionChange { retry, headers, retain } = options.clone();
    Metadata {
        retry: retry.or(metadata.retry),
        headers: headers.unwrap_or(metadata.headers),
        retain: retain.unwrap_or(metadata.retain),
        version: metadata.version + 1,
        ..metadata
    }
}

/// A DELAYED, UNACKED or DEAD job gets another retry policy, other headers or another retention; what is not named stays (rule 28).
pub async fn job_gets_other_options(t: &Topic) {
    let none = OptionChange::default();
    let changes = [
        OptionChange { headers: Some(Vec::new()), ..none.clone() },
        options(),
        OptionChange { retry: Some("30s x 5".into()), ..none.clone() },
        OptionChange { headers: Some(vec![("c".into(), "x".repeat(5_000))]), ..none.clone() },
        OptionChange { headers: Some(Vec::new()), ..none.clone() },
        OptionChange { retain: Some(secs(0)), ..none },
        options(),
    ];
    let failed = Metadata {
        attempts: 2,
        cause: Some(Cause::Error),
        error: Some("no".into()),
        headers: vec![("old".into(), "h".into())],
        group: GroupName::new("g").ok(),
        delay: secs(5),
        ..Metadata::default()
    };
    let kept = |bytes: usize| Some(KeptState::from_bytes(&vec![b'7'; bytes]));
    let cases = [
        (State::Delayed, 1, failed.clone()),
        (State::Unacked, 1, Metadata { state: kept(3), ..failed.clone() }),
        (State::Dead, 9_000, Metadata { state: kept(64 << 10), ..failed.clone() }),
        (State::Delayed, 9_000, Metadata { state: kept(3), ..Metadata::default() }),
        (State::Dead, 1, Metadata { state: kept(64 << 10), ..Metadata::default() }),
    ];
    for (state, size, metadata) in cases {
        t.add_job(NewJob { record: Record::new(&metadata, Codec::Json, &vec![b'7'; size]), ..job("a") }).await;
        let claim = t.claim(NODE, "a").await;
        let end = if state == State::Delayed { Change::Retry(secs(60)) } else { ending(state) };
        t.end(NODE, &claim, end).await;
        let place = t.place("a").await;
        for change in &changes {
            let before = t.metadata("a").await;
            assert_eq!(t.changed("a", ChangeKind::Options(change.clone())).await.found, Some(state));
            let is_same = (t.metadata("a").await, t.place("a").await) == (with_options(before, change), place.clone());
            assert!(
                is_same && t.payload("a").await == "7".repeat(size),
                "{change:?} of {state}: {:?}",
                t.metadata("a").await
            );
        }
        t.delete("a").await;
    }
}

/// A waiting broadcast gets other options too; a RUNNING, DONE or unknown job does not (rules 24, 28).
pub async fn options_are_changed_where_a_payload_is(t: &Topic) {
    let unknown = t.change("a", ChangeKind::Options(options())).await;
    assert_eq!((unknown.found, unknown.verdict), (None, ChangeVerdict::Refused));
    for deliver in [Delivery::Broadcast, Delivery::Both] {
        t.add_job(NewJob { deliver, ..delayed("a", secs(9)) }).await;
        let before = t.metadata("a").await;
        t.changed("a", ChangeKind::Options(options())).await;
        assert_eq!((t.metadata("a").await, t.payload("a").await), (with_options(before, &options()), "a".into()));
        t.delete("a").await;
    }
    for state in [State::Running, State::Done] {
        let claim = add_in_state(t, "a", state).await;
        let before = t.stored("a").await;
        let outcome = t.change("a", ChangeKind::Options(options())).await;
        assert_eq!((outcome.verdict, t.stored("a").await), (ChangeVerdict::Refused, before));
        if let Some(claim) = claim {
            t.end(NODE, &claim, Change::Drop).await;
        }
        t.delete("a").await;
    }
}

/// A retention that a job gets while it waits applies to its ack, in a topic that had none (rule 28).
pub async fn retention_of_a_changed_job_applies(t: &Topic) {
    t.add_later("a", secs(9)).await;
    t.changed("a", ChangeKind::Options(OptionChange { retain: Some(secs(60)), ..OptionChange::default() })).await;
    t.advance(secs(9)).await;
    t.run(NODE, "a", Change::Ack).await;
    assert_eq!(t.place("a").await, JobState::Done { until: t.in_ms(60_000) });
}
