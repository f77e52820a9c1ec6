use super::*;
use crate::job::Cause;

const AGE: Duration = Duration::from_secs(100);

/// A job that `n` parked and, after its age, claimed again.
fn aged(bench: &mut Bench) -> (Token, Token) {
    let parking = bench.run("n", job("a"));
    bench.settle("n", "a", parking, Change::Park);
    bench.pass(AGE);
    let claim = bench.sweep("n", AGE).claims.remove(0);
    (parking, claim.token)
}

#[test]
fn an_outcome_of_another_run_changes_nothing() {
    let mut bench = Bench::new();
    let old = bench.run("n", job("a"));
    bench.settle("n", "a", old, Change::Retry(Duration::ZERO));
    let new = bench.claim("n", "a");
    assert_eq!(bench.settle("n", "a", old, Change::Ack), Verdict::Stale);
    assert_eq!(bench.settle("m", "a", new, Change::Ack), Verdict::Stale);
    assert_eq!(bench.settle("n", "a", new, Change::Ack), Verdict::Done);
    assert_eq!(bench.settle("n", "a", new, Change::Ack), Verdict::Stale);
}

#[test]
fn a_rejoin_uses_the_delay_of_the_add_where_it_names_no_time_to_come() {
    let delayed = Metadata { delay: Duration::from_secs(30), attempts: 2, ..Metadata::default() };
    let past = Timestamp::from_millis(START_MS);
    for (again, after) in [
        (RejoinDue::AsAdded, 30_000),
        (RejoinDue::At(past), 30_000),
        (RejoinDue::At(past.after(Duration::from_secs(1))), 1_000),
        (RejoinDue::After(Duration::from_secs(2)), 2_000),
    ] {
        let mut bench = Bench::new();
        let token = bench.run("n", NewJob { record: record(&delayed, "1"), ..job("a") });
        bench.settle("n", "a", token, Change::Rejoin(again));
        assert_eq!((bench.head(), bench.metadata("a").attempts), (Some(START_MS + after), 2));
    }
}

#[test]
fn new_metadata_is_kept_with_the_parking_fence_of_the_store() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    let metadata = Metadata { attempts: 1, error: Some("no".into()), parked_by: Some(Fence(7)), ..Metadata::default() };
    bench.settle_with("n", "a", token, Change::Park, Some(metadata.clone()));
    assert_eq!(bench.metadata("a"), Metadata { parked_by: Some(token.fence), ..metadata });
    assert_eq!(bench.payload("a"), "1");
}

#[test]
fn a_parked_job_can_be_acked_under_its_fence_alone_or_under_none() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    bench.settle("n", "a", token, Change::Park);
    assert!(!bench.command(CommandKind::Ack, "a", Some(Fence(1))).changed);
    assert!(!bench.command(CommandKind::Requeue, "a", Some(Fence(1))).changed);
    assert!(bench.command(CommandKind::Ack, "a", Some(token.fence)).changed);
    assert_eq!(bench.state("a"), None);
}

#[test]
fn an_aged_claim_that_is_given_back_is_parked_as_it_was() {
    let mut bench = Bench::new();
    let (parking, token) = aged(&mut bench);
    assert_eq!(token.due, Timestamp::from_millis(START_MS));
    bench.settle("n", "a", token, Change::Rollback);
    assert_eq!((bench.state("a"), bench.metadata("a").parked_by), (Some(State::Unacked), Some(parking.fence)));
    assert_eq!(bench.sweep("n", AGE).claims.len(), 1);
    bench.crash("n");
    assert_eq!(bench.state("a"), Some(State::Unacked));
}

#[test]
fn an_aged_claim_that_is_kept_waits_for_another_period_under_its_old_fence() {
    let mut bench = Bench::new();
    let (parking, token) = aged(&mut bench);
    bench.settle("n", "a", token, Change::Park);
    assert_eq!(bench.metadata("a").parked_by, Some(parking.fence));
    assert!(bench.sweep("n", AGE).claims.is_empty());
}

#[test]
fn an_ack_under_the_parking_fence_ends_an_aged_claim() {
    let mut bench = Bench::new();
    let (parking, token) = aged(&mut bench);
    bench.command(CommandKind::Ack, "a", Some(parking.fence));
    bench.settle("n", "a", token, Change::Park);
    assert_eq!(bench.state("a"), None);
}

#[test]
fn a_note_of_exhaustion_leaves_the_parking_fence_alone() {
    let mut bench = Bench::new();
    let (parking, token) = aged(&mut bench);
    let metadata = Metadata::default();
    let request = Exhaust { last_seen: bench.sequence("n"), lease: LEASE, id: id("a"), token, metadata };
    assert_eq!(bench.topic.exhaust(bench.now, &node("n"), request).note, NoteVerdict::Done);
    assert_eq!(
        bench.metadata("a"),
        Metadata { exhausted: true, parked_by: Some(parking.fence), ..Metadata::default() }
    );
}

#[test]
fn a_retried_aged_claim_is_parked_no_more() {
    let mut bench = Bench::new();
    let (_, token) = aged(&mut bench);
    bench.settle("n", "a", token, Change::Retry(Duration::ZERO));
    assert_eq!((bench.state("a"), bench.metadata("a").parked_by), (Some(State::Delayed), None));
}

#[test]
fn exhaustion_is_kept_and_a_requeue_begins_afresh() {
    let mut bench = Bench::new();
    let token = bench.run("n", NewJob { expires_after: Some(AGE), ..job("a") });
    let metadata = Metadata { attempts: 6, cause: Some(Cause::Error), error: Some("no".into()), ..bench.metadata("a") };
    let request = Exhaust { last_seen: bench.sequence("n"), lease: LEASE, id: id("a"), token, metadata };
    assert_eq!(bench.topic.exhaust(bench.now, &node("n"), request).note, NoteVerdict::Done);
    assert!(bench.metadata("a").exhausted);
    bench.settle("n", "a", token, Change::Dead);
    assert_eq!(bench.state("a"), Some(State::Dead));
    assert!(bench.command(CommandKind::Requeue, "a", None).changed);
    let metadata = bench.metadata("a");
    assert_eq!((metadata.attempts, metadata.exhausted, metadata.expires_at), (0, false, None));
    assert_eq!((metadata.cause, metadata.error.as_deref()), (Some(Cause::Error), Some("no")));
}

#[test]
fn a_record_that_is_none_is_moved_and_never_lost() {
    let mut bench = Bench::new();
    let mangled = Record::from_bytes(bytes::Bytes::from_static(b"what?"));
    let token = bench.run("n", NewJob { record: mangled, ..job("a") });
    bench.settle("n", "a", token, Change::Park);
    assert_eq!(bench.payload("a"), "what?");
}
