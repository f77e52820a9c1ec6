//! Changes of the payload (rule 28).

use super::changes::update;
use super::events::{NODE, add_in_state};
use super::producer::{delayed, job};
use super::topic::{Topic, ms, secs};
use dq::job::{Cause, Deliver, Metadata, Record, State};
use dq::store::step::{Change, USUAL_BYTES};
use dq::store::{AddOutcome, ChangeKind, Due, NewJob};

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
    let new = NewJob { deliver: Deliver::Broadcast, ..delayed("a", secs(9)) };
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
        t.changed(&format!("j{n}"), update(&"x".repeat(USUAL_BYTES / 2))).await;
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
